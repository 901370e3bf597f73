"""Is an answer safe? By our audit, and by linear programs of scipy's, which share nothing with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from solver import Instance, audit

# So many targets of an answer are put to the independent linear program, evenly spread.
CHECKED = 40

Pattern = np.ndarray[Any, np.dtype[np.bool_]]


def exposed_cells(instance: Instance, hidden: Pattern) -> tuple[int, int]:
    """How many cells our audit finds exposed (−1: it did not finish), and how many the independent one."""
    report = audit(instance, hidden)
    ours = len({exposure.cell for exposure in report.exposures}) if report.complete else -1
    return ours, _independent(instance, hidden)


def _independent(instance: Instance, hidden: Pattern) -> int:
    columns = np.flatnonzero(hidden)
    matrix = sparse.csc_array(instance.matrix)[:, columns]
    used = np.flatnonzero(np.diff(sparse.csr_array(matrix).indptr))
    matrix = sparse.csr_array(matrix)[used]
    lower = instance.lower_bound[columns] - instance.value[columns]
    upper = instance.upper_bound[columns] - instance.value[columns]
    targets = instance.protected
    targets = targets[np.unique(np.linspace(0, len(targets) - 1, min(CHECKED, len(targets))).astype(int))]
    exposed = 0
    for cell in targets.tolist():
        at = int(np.searchsorted(columns, cell))
        reach = []
        for sign in (-1.0, 1.0):
            cost = np.zeros(len(columns))
            cost[at] = sign
            found = linprog(
                cost,
                A_eq=matrix,
                b_eq=np.zeros(len(used)),
                bounds=np.stack([lower, upper], axis=1),
                method="highs",
            )
            # What it can't solve counts as exposed: an unbounded program is the only one without a point.
            end = np.nan if found.x is None else float(found.x[at])
            reach.append(np.inf if found.status == 3 else -sign * end)
        up, down = reach
        near = 1 - 1e-6
        fine = up >= instance.upl[cell] * near and down >= instance.lpl[cell] * near
        exposed += not (fine and up + down >= instance.spl[cell] * near)
    return exposed
