"""The relaxation of the exact method: minimise weight over known cuts, warm from solve to solve."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solver.cuts import Cut
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram, LpResult
from solver.presolve import Problem

# Idle solutions before a cut is dropped; how many dropped ones are kept, and added at once.
_OLD, _SHELVED, _RECALLED = 12, 5_000, 20
_INTEGRAL = 1e-6


class Master:
    """min weight·x over the cuts added, lower ≤ x ≤ upper.

    Attributes
    ----------
    cuts
        The cuts in the program, in row order.
    lower, upper : float64[n]
        Current bounds of x.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.lower = problem.forced.astype(np.float64)
        self.upper = np.ones(problem.n)
        self.cuts: list[Cut] = []
        self._keys: set[bytes] = set()
        self._age = np.empty(0, dtype=np.int64)
        self._shelf = _Shelf()
        none, ints = np.empty(0), np.empty(0, dtype=np.int64)
        self._program = LinearProgram(
            problem.weight, self.lower, self.upper, np.zeros(1, dtype=np.int64), ints, none, none, none
        )

    @property
    def work(self) -> float:
        """Deterministic effort so far, in about milliseconds."""
        return self._program.work

    def add(self, cuts: list[Cut]) -> int:
        """Add the cuts that are not there yet; how many were new."""
        fresh = [cut for cut in cuts if cut.key not in self._keys]
        if not fresh:
            return 0
        self._keys.update(cut.key for cut in fresh)
        self.cuts += fresh
        self._age = np.concatenate([self._age, np.zeros(len(fresh), dtype=np.int64)])
        sizes = np.array([len(cut.columns) for cut in fresh])
        self._program.add_rows(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([cut.columns for cut in fresh]),
            np.concatenate([cut.coefs for cut in fresh]),
            np.array([cut.rhs for cut in fresh]),
            np.full(len(fresh), np.inf),
        )
        return len(fresh)

    def set_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Replace the bounds of x (float64[n])."""
        changed = np.flatnonzero((lower != self.lower) | (upper != self.upper))
        if len(changed):
            self._program.set_bounds(changed, lower[changed], upper[changed])
            self.lower, self.upper = lower.copy(), upper.copy()

    def solve(self, iterations: int | None = None, seconds: float | None = None) -> LpResult:
        """Solve from the last basis; at most so many simplex iterations, and seconds."""
        most = 2**31 - 1 if iterations is None else iterations
        return self._program.solve(iterations=most, seconds=seconds)

    def grow_older(self, result: LpResult) -> None:
        """Note which cuts do nothing at this solution."""
        idle = np.abs(result.row_duals) < 1e-9
        self._age = np.where(idle, self._age + 1, 0)

    def forget_idle(self, old: int = _OLD) -> None:
        """Drop cuts that did nothing for many solutions."""
        stale = np.flatnonzero(self._age > old)
        if len(stale) > max(20, len(self.cuts) // 4):
            self._program.delete_rows(stale)
            keep = np.ones(len(self.cuts), dtype=np.bool_)
            keep[stale] = False
            dropped = [self.cuts[k] for k in stale.tolist()]
            self._keys.difference_update(cut.key for cut in dropped)
            self._shelf.put(dropped)
            self.cuts = [cut for cut, kept in zip(self.cuts, keep, strict=True) if kept]
            self._age = self._age[keep]

    def recall(self, x: FloatArray, least: float) -> list[Cut]:
        """Cuts dropped earlier that a point (float64[n]) violates by so much, most violated first."""
        cuts, matrix, rhs = self._shelf.rows(len(x))
        missing = rhs - matrix @ x
        order = np.argsort(-missing, kind="stable")[:_RECALLED]
        return [cuts[k] for k in order[missing[order] > least].tolist() if cuts[k].key not in self._keys]

    def save(self) -> object:
        """The basis, to return to after trial branchings."""
        return self._program.basis()

    def load(self, basis: object) -> None:
        """Return to a saved basis (no cuts added since)."""
        self._program.set_basis(basis)


class _Shelf:
    """The last cuts that were dropped, as one matrix that grows by what is new."""

    def __init__(self) -> None:
        self._cuts: list[Cut] = []
        self._keys: set[bytes] = set()
        self._ends, self._columns = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._coefs, self._rhs = np.empty(0), np.empty(0)
        self._matrix: sparse.csr_array | None = None

    def put(self, dropped: list[Cut]) -> None:
        """Keep cuts; the oldest go when there are too many."""
        fresh = [cut for cut in dropped if cut.key not in self._keys]
        self._matrix = None
        self._cuts += fresh
        self._keys.update(cut.key for cut in fresh)
        ends = self._ends[-1] + np.cumsum([len(cut.columns) for cut in fresh], dtype=np.int64)
        self._ends = np.concatenate([self._ends, ends])
        self._columns = np.concatenate([self._columns, *(cut.columns for cut in fresh)])
        self._coefs = np.concatenate([self._coefs, *(cut.coefs for cut in fresh)])
        self._rhs = np.concatenate([self._rhs, [cut.rhs for cut in fresh]])
        over = len(self._cuts) - _SHELVED
        if over > 0:
            self._keys.difference_update(cut.key for cut in self._cuts[:over])
            first = int(self._ends[over])
            self._cuts, self._rhs = self._cuts[over:], self._rhs[over:]
            self._columns, self._coefs = self._columns[first:], self._coefs[first:]
            self._ends = self._ends[over:] - first

    def rows(self, n: int) -> tuple[list[Cut], sparse.csr_array, FloatArray]:
        """The cuts, their left-hand sides (k × n) and right-hand sides (float64[k])."""
        if self._matrix is None:
            entries = (self._coefs, self._columns, self._ends)
            self._matrix = sparse.csr_array(entries, shape=(len(self._cuts), n))
        return self._cuts, self._matrix, self._rhs


def point_of(problem: Problem, result: LpResult) -> FloatArray:
    """How much a solution of the relaxation hides of each column (float64[n], 0 to 1)."""
    return np.clip(np.where(problem.forced, 1.0, result.primal), 0.0, 1.0)


def is_whole(x: FloatArray) -> bool:
    """Is a point (float64[n]) a pattern, up to rounding?"""
    return bool((np.minimum(x, 1 - x) < _INTEGRAL).all())


def fixable(result: LpResult, free: BoolArray, room: float) -> tuple[IntArray, IntArray]:
    """Columns whose reduced cost closes the gap: to fix at 0, and at 1.

    Parameters
    ----------
    free : bool[n]
        Columns not fixed yet.
    room
        How much the objective may still rise (upper − objective), by less than which nothing
        better is possible.
    """
    costs, x = result.reduced_costs, result.primal
    zero = np.flatnonzero(free & (x < 0.5) & (costs > room))
    one = np.flatnonzero(free & (x > 0.5) & (-costs > room))
    return zero, one
