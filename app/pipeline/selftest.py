"""A small problem whose answer is known: does the solver work on this machine?"""

from __future__ import annotations

import numpy as np

from solver import Instance, SolverError, Status, audit, solve

#: A table of two by two with its margins: rows, then the row of totals.
_VALUES = (20.0, 50.0, 70.0, 80.0, 30.0, 110.0, 100.0, 80.0, 180.0)
_INNER = [0, 1, 3, 4]
#: Each total is the sum of the two cells before it.
_SUMS = ((2, 0, 1), (5, 3, 4), (8, 6, 7), (6, 0, 3), (7, 1, 4), (8, 2, 5))


def solver_works() -> bool:
    """Whether the only cheapest pattern of the small problem is found, proven and audited."""
    n = len(_VALUES)
    status = np.full(n, Status.FREE, dtype=np.int8)
    status[0] = Status.SENSITIVE
    levels = np.zeros(n)
    levels[0] = 2.0
    try:
        instance = Instance(
            value=np.array(_VALUES),
            weight=np.array(_VALUES),
            lower_bound=np.zeros(n),
            upper_bound=np.full(n, np.inf),
            lpl=levels,
            upl=levels,
            spl=np.zeros(n),
            status=status,
            indptr=np.arange(0, 3 * len(_SUMS) + 1, 3),
            indices=np.array(_SUMS).ravel(),
            coefs=np.tile([-1.0, 1.0, 1.0], len(_SUMS)),
            rhs=np.zeros(len(_SUMS)),
        )
        solution = solve(instance)
        exposures = audit(instance, solution.hidden).exposures
    except SolverError:
        return False
    return np.flatnonzero(solution.hidden).tolist() == _INNER and not exposures
