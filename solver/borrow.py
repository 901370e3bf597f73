"""General integer cuts borrowed from HiGHS.

The known inequalities with integrality and "cheaper than the incumbent" make a mixed-integer
program whose root node HiGHS strengthens with cuts of its own (mixed-integer rounding, zero-half,
lifted covers). They hold for every pattern cheaper than the incumbent as long as HiGHS itself knew
no cheaper point, which could be an unsafe pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.columns import in_columns
from solver.cuts import Cut
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import CutPool, LinearProgram
from solver.presolve import Problem
from solver.swaps import worthwhile

# Nodes times columns times rows that a run may have.
_SIZE = 1e6
_FEW_WEIGHTS = 3
# Work for each column and row from which on a run was hard: some 800 simplex iterations; where most columns
# lie in four relations or more, some 200, as the next run then takes ten times as long.
_HARD, _CROWDED_HARD = 0.25, 0.075


@dataclass(frozen=True, eq=False)
class Borrowed:
    """What one run of HiGHS gave.

    Attributes
    ----------
    cuts
        Valid for every pattern cheaper than the incumbent.
    bound
        No pattern cheaper than the incumbent costs less.
    point : float64[n] or None
        A 0/1 point that satisfies all known inequalities; may be unsafe.
    exact
        The point is proven cheapest among such points (or there is none).
    work
        Deterministic effort, in about milliseconds.
    hard
        It took many steps for a program of its size.
    """

    cuts: list[Cut]
    bound: float
    point: FloatArray | None
    exact: bool
    work: float
    hard: bool


def crowded(problem: Problem) -> bool:
    """Do most columns lie in four relations or more, as in tables of four dimensions?"""
    return bool(2 * (np.diff(problem.transposed.indptr) > 3).sum() > problem.n)


def borrow(
    problem: Problem,
    cuts: list[Cut],
    lower: FloatArray,
    upper: FloatArray,
    below: float,
    step: float,
    *,
    nodes: int,
    seconds: float | None,
    seed: int = 0,
    pool: bool = True,
    given: BoolArray | None = None,
) -> Borrowed:
    """Solve the program of the known cuts for some nodes.

    Parameters
    ----------
    cuts
        Known inequalities.
    lower, upper : float64[n]
        Columns fixed so far have equal bounds.
    below
        Only patterns that cost at most this matter.
    step
        All costs are multiples of this (0: not known).
    nodes, seconds
        Limits of the run.
    pool
        Take over HiGHS's root cuts.
    given : bool[n], optional
        A pattern that satisfies all of this, as HiGHS's incumbent.
    """
    open_ = np.flatnonzero(lower < upper)
    fixed = np.where(lower >= upper, lower, 0.0)
    base = float(problem.weight @ fixed)
    rows, rhs = _rows(problem, cuts, open_, fixed)
    favour = _favour(problem, open_, below - base, step)
    kept = np.arange(len(open_))
    if not pool:
        # Some cheapest point has none of the others; cuts must hold with all of them.
        kept = worthwhile(rows, rhs, problem.weight[open_] + favour)
        open_, favour = open_[kept], favour[kept]
    budget = max(below - base, 1.0)
    rhs = np.append(rhs, (base - below) / budget)
    program = LinearProgram(
        problem.weight[open_] + favour,
        np.zeros(len(open_)),
        np.ones(len(open_)),
        *_with_budget(rows, kept, problem.weight[open_] / budget),
        rhs,
        np.full(len(rhs), np.inf),
        integral=np.ones(len(open_), dtype=np.bool_),
        seed=seed,
    )
    program.skip_heuristics()
    if given is not None:
        program.propose(np.arange(len(open_)), given[open_].astype(np.float64))
    if pool:
        program.keep_cuts()
    allowed = max(int(_SIZE / (len(open_) * len(rhs) + 1)), 1)
    result = program.solve(nodes=min(nodes, allowed), seconds=seconds, gap=0.0)
    most = _CROWDED_HARD if crowded(problem) else _HARD
    hard = program.work > most * (len(open_) + len(rhs))
    if result.status == "infeasible":
        return Borrowed([], np.inf, None, True, program.work, hard)
    point = None
    if len(result.primal):
        point = fixed.copy()
        point[open_] = np.round(result.primal)
    found = program.pool
    new: list[Cut] = []
    if found is not None and found.incumbent >= below - base - 1e-6 * max(1.0, below):
        new = _pool_cuts(found, open_)
    bound = result.bound + base - (step / 2 if favour.any() else 0.0)
    bound = bound if np.isfinite(bound) else -np.inf
    return Borrowed(new, bound, point, result.status == "optimal", program.work, hard)


def _favour(problem: Problem, open_: np.ndarray, budget: float, step: float) -> FloatArray:
    """Of patterns that cost the same, prefer those of cells with room, which protect more: an
    addition to the weights that comes to less than half a step for any pattern within the budget."""
    weight = problem.weight[open_]
    used = weight > 0
    if not step or not used.any() or len(np.unique(weight)) > _FEW_WEIGHTS:
        return np.zeros(len(open_))
    room = np.minimum(problem.lo, problem.hi)[open_]
    rank = np.argsort(np.argsort(-room, kind="stable"), kind="stable") / len(open_)
    most = max(budget / float(weight[used].min()), 1.0)
    return np.where(used, 0.4 * step / most * rank, 0.0)


def _rows(
    problem: Problem, cuts: list[Cut], open_: np.ndarray, fixed: FloatArray
) -> tuple[sparse.csr_array, FloatArray]:
    """The cuts on the open columns, what the fixed ones already give taken off, without those that nothing
    can violate."""
    count = len(cuts)
    row = np.repeat(np.arange(count), [len(cut.columns) for cut in cuts])
    column = np.concatenate([np.empty(0, dtype=np.int64), *(cut.columns for cut in cuts)])
    coefs = np.concatenate([np.empty(0), *(cut.coefs for cut in cuts)])
    rhs: FloatArray = np.array([cut.rhs for cut in cuts], dtype=np.float64)
    rhs -= np.bincount(row, coefs * fixed[column], count)
    position = np.full(problem.n, -1, dtype=np.int64)
    position[open_] = np.arange(len(open_))
    kept = position[column] >= 0
    row, column, coefs = row[kept], position[column[kept]], coefs[kept]
    needed = np.bincount(row, np.minimum(coefs, 0.0), count) < rhs - 1e-9
    wanted = needed[row]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row[wanted], minlength=count)[needed])])
    entries = (coefs[wanted], column[wanted], ends)
    return sparse.csr_array(entries, shape=(len(ends) - 1, len(open_))), rhs[needed]


def _with_budget(
    rows: sparse.csr_array, kept: IntArray, price: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows in some of their columns (int64[k]) and one more, what these cost (float64[k]), compressed. SciPy
    takes as long for that as HiGHS for a small program.
    """
    indptr, indices, coefs = in_columns(rows, kept)
    ends = np.append(indptr, indptr[-1] + len(kept))
    return ends, np.concatenate([indices, np.arange(len(kept))]), np.concatenate([coefs, -price])


def _pool_cuts(pool: CutPool, open_: np.ndarray) -> list[Cut]:
    cuts = []
    for k in range(len(pool.lower)):
        part = slice(int(pool.indptr[k]), int(pool.indptr[k + 1]))
        columns, coefs = open_[pool.indices[part]], pool.coefs[part]
        order = np.argsort(columns, kind="stable")
        for sign, side in ((1.0, pool.lower[k]), (-1.0, pool.upper[k])):
            if np.isfinite(side) and abs(side) < 1e20:
                cuts.append(Cut(columns[order], sign * coefs[order], float(sign * side)))
    return cuts
