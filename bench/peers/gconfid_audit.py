"""Run G-Confid's auditing on a JJ file and a pattern (a JSON list of true and false, cell by cell):
``python gconfid_audit.py FILE.jj PATTERN.json`` → one JSON line."""

import json
import logging
import resource
import sys
import time

import gconfid
import pandas as pd
from gconfid_table import read_table

cells, inconstraint = read_table(sys.argv[1])
with open(sys.argv[2]) as stream:
    hidden = json.load(stream)
incell = pd.DataFrame(
    {
        "CellId": range(1, len(cells) + 1),
        "TotalNoise": [max(float(cell[1]), 1e-6) for cell in cells],
        "Sensitivity": [max(float(cell[6]), float(cell[7])) if cell[3] == "u" else -1.0 for cell in cells],
        "OutStatus": ["X" if secret else "P" for secret in hidden],
        "TotalLB": [float(cell[4]) for cell in cells],
        "TotalUB": [float(cell[5]) for cell in cells],
    }
)
logging.disable(logging.CRITICAL)
gconfid.Auditing.set_default_output_format("pandas")
began = time.process_time()
result = gconfid.Auditing(incell=incell, inconstraint=inconstraint, capture=True)
taken = time.process_time() - began
# Its solver runs in processes of its own.
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"seconds": taken + used.ru_utime + used.ru_stime, "rows": len(result.outaudit)}))
