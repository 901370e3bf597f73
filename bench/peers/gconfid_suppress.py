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

with open(sys.argv[1]) as stream:
    lines = stream.read().split("\n")
count = int(lines[1])
cells = [line.split() for line in lines[2 : 2 + count]]
status = {"u": "S", "s": "V", "z": "P", "x": "X", "v": "X"}
number = {cell[0]: k + 1 for k, cell in enumerate(cells)}
level = [max(float(cell[6]), float(cell[7])) if cell[3] == "u" else -1.0 for cell in cells]
incell = pd.DataFrame(
    {
        "CellId": range(1, count + 1),
        "TotalNoise": [max(float(cell[1]), 1e-6) for cell in cells],
        "Sensitivity": level,
        "Status": [status[cell[3]] for cell in cells],
        "Type": "C",
        "Weight": [max(float(cell[2]), 1e-6) for cell in cells],
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
gconfid.Suppression.set_default_output_format("pandas")
began = time.process_time()
result = gconfid.Suppression(
    incell=incell, inconstraint=inconstraint, cost_function1="Size", cost_var1="Weight", capture=True
)
taken = time.process_time() - began
out = result.outsuppress
hidden = [int(cells[int(k) - 1][0]) for k in out.loc[out["OutStatus"].isin(["S", "X"]), "CellId"]]
print(json.dumps({"hidden": hidden, "seconds": taken, "proven": False}))
