"""Run G-Confid's suppression on a JJ file: ``python gconfid_suppress.py FILE.jj SECONDS`` → one JSON line.

It knows one sensitivity per cell (here the larger level), no external bounds, and relations with one
total; the other sign of a relation is turned.
"""

import json
import logging
import sys
import time

import gconfid
import pandas as pd
from gconfid_table import read_table

cells, inconstraint = read_table(sys.argv[1])
status = {"u": "S", "s": "V", "z": "P", "x": "X", "v": "X"}
level = [max(float(cell[6]), float(cell[7])) if cell[3] == "u" else -1.0 for cell in cells]
incell = pd.DataFrame(
    {
        "CellId": range(1, len(cells) + 1),
        "TotalNoise": [max(float(cell[1]), 1e-6) for cell in cells],
        "Sensitivity": level,
        "Status": [status[cell[3]] for cell in cells],
        "Type": "C",
        "Weight": [max(float(cell[2]), 1e-6) for cell in cells],
    }
)
logging.disable(logging.CRITICAL)
gconfid.Suppression.set_default_output_format("pandas")
began = time.process_time()
result = gconfid.Suppression(
    incell=incell, inconstraint=inconstraint, cost_function1="Size", cost_var1="Weight", capture=True
)
taken = time.process_time() - began
out = result.outsuppress
hidden = [int(cells[int(k) - 1][0]) for k in out.loc[out["OutStatus"].isin(["S", "X"]), "CellId"]]
print(json.dumps({"hidden": hidden, "seconds": taken, "proven": False}))
