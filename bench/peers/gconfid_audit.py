"""Run G-Confid's auditing on a JJ file and a pattern (a JSON list of true and false, cell by cell):
``python gconfid_audit.py FILE.jj PATTERN.json`` → one JSON line."""

import json
import logging
import resource
import sys
import time

import gconfid
import pandas as pd

with open(sys.argv[1]) as stream:
    lines = stream.read().split("\n")
with open(sys.argv[2]) as stream:
    hidden = json.load(stream)
count = int(lines[1])
cells = [line.split() for line in lines[2 : 2 + count]]
number = {cell[0]: k + 1 for k, cell in enumerate(cells)}
incell = pd.DataFrame(
    {
        "CellId": range(1, count + 1),
        "TotalNoise": [max(float(cell[1]), 1e-6) for cell in cells],
        "Sensitivity": [max(float(cell[6]), float(cell[7])) if cell[3] == "u" else -1.0 for cell in cells],
        "OutStatus": ["X" if secret else "P" for secret in hidden],
        "TotalLB": [float(cell[4]) for cell in cells],
        "TotalUB": [float(cell[5]) for cell in cells],
    }
)
rows = []
for k, line in enumerate(lines[3 + count : 3 + count + int(lines[2 + count])]):
    words = line.split(":", 1)[1].replace("(", " ").replace(")", " ").split()
    terms = [(number[words[i]], round(float(words[i + 1]))) for i in range(0, len(words), 2)]
    turn = 1 if sum(sign < 0 for _, sign in terms) == 1 else -1
    rows += [(k + 1, cell, turn * sign) for cell, sign in terms]
inconstraint = pd.DataFrame(rows, columns=["ConstraintId", "CellId", "Coefficient"])
logging.disable(logging.CRITICAL)
gconfid.Auditing.set_default_output_format("pandas")
began = time.process_time()
result = gconfid.Auditing(incell=incell, inconstraint=inconstraint, capture=True)
taken = time.process_time() - began
# Its solver runs in processes of its own.
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"seconds": taken + used.ru_utime + used.ru_stime, "rows": len(result.outaudit)}))
