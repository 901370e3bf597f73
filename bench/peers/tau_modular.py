"""Run τ-Argus's modular method: ``python tau_modular.py FOLDER SECONDS`` → one JSON line.

FOLDER holds a table as τ-Argus wants it: ``table.txt``, ``table.rda`` and the hierarchies it names, with
the dimensions d0, d1, … first.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from pytauargus.engine import Engine, parse_rda_table, run_batch

source, seconds = Path(sys.argv[1]).resolve(), float(sys.argv[2])
names = [v.name for v in parse_rda_table(source / "table.rda").variables if v.name.startswith("d")]
taken = [0.0]
suppress = Engine.suppress


def timed(self, command):
    """Suppression alone counts, not reading the table."""
    began = time.process_time()
    suppress(self, command)
    taken[0] = time.process_time() - began


Engine.suppress = timed
# A fresh folder each time: the engine leaves scratch files that break its next run.
with tempfile.TemporaryDirectory() as folder:
    for file in source.iterdir():
        shutil.copy(file, folder)
    os.chdir(folder)
    variables = "".join(f'"{name}"' for name in names)
    minutes = max(1, round(seconds / 60))
    Path("batch.arb").write_text(
        '<OPENTABLEDATA> "table.txt"\n'
        '<OPENMETADATA> "table.rda"\n'
        f'<SPECIFYTABLE> {variables}|"value"||"cost"\n'
        "<SAFETYRULE>\n"
        "<READTABLE>\n"
        f"<SUPPRESS> MOD(1,{minutes},0,0,0)\n"
        '<WRITETABLE> (1,5,SO+,"answer.txt")\n'
    )
    run_batch("batch.arb")
    hidden = []
    for line in Path("answer.txt").read_text().split("\n"):
        fields = [field.strip('"') for field in line.split(";")]
        if len(fields) > len(names) and fields[-3] in ("U", "M", "D", "B"):
            hidden.append(fields[: len(names)])
print(json.dumps({"hidden": hidden, "seconds": taken[0], "proven": False}))
