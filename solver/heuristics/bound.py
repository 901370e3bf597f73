"""A lower bound from single relations, for tables too large for the exact method's root.

Castro 2005 §5 (after Kelly, Golden, Assad 1992), for any linear relations: in every relation of a
target the other hidden cells must carry its level, and none must carry it alone without company.
The first is the single-relation capacity constraint with the coefficients truncated at the level,
which implies (20), (23), (24) and (27) of the paper; the second, (21)-(22) and (25)-(26), is separated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from solver.clock import Clock
from solver.cuts import row_bridgeless
from solver.errors import NumericalError
from solver.heuristics.relations import capacity_rows, covering, prudent
from solver.presolve import Problem

_ROUNDS = 20
_VIOLATION = 0.01


def relations_bound(problem: Problem, clock: Clock) -> float:
    """No safe pattern of the component costs less (optimum of a linear relaxation)."""
    bound = 0.0
    if not clock.out:
        with suppress(NumericalError):
            for better in _bounds(problem, clock):
                bound = better
    return prudent(bound)


def _bounds(problem: Problem, clock: Clock) -> Iterator[float]:
    """Better and better bounds."""
    rows = capacity_rows(problem)
    free = np.flatnonzero(~problem.forced & (np.diff(rows.tocsc().indptr) > 0))
    if not len(free):
        return
    program = covering(rows, problem.weight, free)
    result = program.solve(seconds=clock.seconds_left)
    if result.status != "optimal":
        return
    yield result.objective
    # Company may lie outside the columns of the program, so only what costs nothing extra is added.
    position = np.full(problem.n, -1, dtype=np.int64)
    position[free] = np.arange(len(free))
    for _ in range(_ROUNDS):
        if clock.out:
            break
        x = problem.forced.astype(np.float64)
        x[free] = result.primal
        cuts = [c for c in row_bridgeless(problem, x, _VIOLATION) if (position[c.columns] >= 0).all()]
        if not cuts:
            break
        program.add_rows(
            np.concatenate([[0], np.cumsum([len(cut.columns) for cut in cuts])]),
            np.concatenate([position[cut.columns] for cut in cuts]),
            np.concatenate([cut.coefs for cut in cuts]),
            np.array([cut.rhs for cut in cuts]),
            np.full(len(cuts), np.inf),
        )
        result = program.solve(seconds=clock.seconds_left)
        clock.charge(program.columns + program.rows)
        if result.status != "optimal":
            break
        yield result.objective
