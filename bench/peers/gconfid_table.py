"""A JJ file as G-Confid takes it: its cells, and relations with one total (the other sign is turned)."""

import pandas as pd


def read_table(path):
    """The words of each cell's line, and the relations as G-Confid's frame."""
    with open(path) as stream:
        lines = stream.read().split("\n")
    count = int(lines[1])
    cells = [line.split() for line in lines[2 : 2 + count]]
    number = {cell[0]: k + 1 for k, cell in enumerate(cells)}
    rows = []
    for k, line in enumerate(lines[3 + count : 3 + count + int(lines[2 + count])]):
        words = line.split(":", 1)[1].replace("(", " ").replace(")", " ").split()
        terms = [(number[words[i]], round(float(words[i + 1]))) for i in range(0, len(words), 2)]
        turn = 1 if sum(sign < 0 for _, sign in terms) == 1 else -1
        rows += [(k + 1, cell, turn * sign) for cell, sign in terms]
    return cells, pd.DataFrame(rows, columns=["ConstraintId", "CellId", "Coefficient"])
