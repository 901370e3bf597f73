"""The cheapest columns that leave no relation of a target without the company that it needs.

The single-relation capacity constraints with x ∈ {0, 1} are a program of its own. It says little of tables of
three dimensions, but on a large network most of what a pattern costs is decided there.
Its bound holds for every safe pattern, and few needs are left when its point is hidden.

A column is left out if those that each meet one of its constraints alone cost no more together: they can take
its place. That leaves thousands of half a million columns, without loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.clock import Clock
from solver.cuts import relation_cuts
from solver.errors import NumericalError
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem
from solver.swaps import worthwhile

# Gaps up to which a program of so many columns and a larger one are solved, and nodes at most.
_SMALL, _GAP, _LARGE_GAP, _NODES = 5_000, 0.02, 0.04, 200
# Part of the seconds that it may take.
_PART = 0.5


@dataclass(frozen=True, eq=False)
class Company:
    """What the program of single relations gives.

    Attributes
    ----------
    hidden : bool[n] or None
        A pattern, mostly not safe yet, if one was found.
    bound
        No safe pattern costs less.
    """

    hidden: BoolArray | None
    bound: float


def capacity_rows(problem: Problem) -> sparse.csr_array:
    """The single-relation capacity constraints, A x ≥ 1 over all columns (float64[rows, n])."""
    # Tiny coefficients have given away a little of the right-hand side.
    cuts = [cut for cut in relation_cuts(problem) if cut.rhs > 0]
    ends = np.cumsum([0] + [len(cut.columns) for cut in cuts])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *(cut.columns for cut in cuts)])
    coefs = np.concatenate([np.empty(0), *(cut.coefs / cut.rhs for cut in cuts)])
    return sparse.csr_array((coefs, columns, ends), shape=(len(cuts), problem.n))


def find_company(problem: Problem, clock: Clock) -> Company:
    """Solve the program of single relations to a small gap."""
    rows = capacity_rows(problem)
    free = worthwhile(rows, np.ones(rows.shape[0]), problem.weight)
    if not len(free):
        return Company(problem.forced.copy(), 0.0)
    program = covering(rows, problem.weight, free, whole=True)
    try:
        gap = _GAP if len(free) <= _SMALL else _LARGE_GAP
        result = program.solve(nodes=_NODES, gap=gap, seconds=clock.part(_PART).seconds_left)
    except NumericalError:
        return Company(None, 0.0)
    clock.charge(program.columns + program.rows)
    hidden = None
    if len(result.primal) and result.status in ("optimal", "limit"):
        hidden = problem.forced.copy()
        hidden[free[result.primal > 0.5]] = True
    return Company(hidden, prudent(result.bound))


def covering(
    rows: sparse.csr_array, weight: FloatArray, free: IntArray, *, whole: bool = False
) -> LinearProgram:
    """The program min weight·x, rows·x ≥ 1 of some columns between 0 and 1; `whole`: in whole numbers."""
    used = sparse.csr_array(rows[:, free])
    return LinearProgram(
        weight[free],
        np.zeros(len(free)),
        np.ones(len(free)),
        used.indptr,
        used.indices,
        used.data,
        np.ones(used.shape[0]),
        np.full(used.shape[0], np.inf),
        integral=np.ones(len(free), dtype=np.bool_) if whole else None,
        presolve=whole,
    )


def prudent(bound: float) -> float:
    """A bound of a program, which is only as good as its arithmetic; 0 without one."""
    return max(bound * (1 - 1e-7) - 1e-7, 0.0) if np.isfinite(bound) else 0.0
