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
        # Cuts dropped, by key; kept as one matrix until there are more.
        self._shelf: dict[bytes, Cut] = {}
        self._shelved: tuple[list[Cut], sparse.csr_array, FloatArray] | None = None
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
            for k in stale:
                self._keys.discard(self.cuts[k].key)
                self._shelf[self.cuts[k].key] = self.cuts[k]
            self._shelved = None
            self.cuts = [cut for cut, kept in zip(self.cuts, keep, strict=True) if kept]
            self._age = self._age[keep]

    def recall(self, x: FloatArray, least: float) -> list[Cut]:
        """Cuts dropped earlier that a point (float64[n]) violates by so much, most violated first."""
        if self._shelved is None:
            cuts = [cut for key, cut in self._shelf.items() if key not in self._keys][-_SHELVED:]
            self._shelf = {cut.key: cut for cut in cuts}
            ends = np.cumsum([0] + [len(cut.columns) for cut in cuts])
            none = np.empty(0, dtype=np.int64)
            columns = np.concatenate([none, *(cut.columns for cut in cuts)])
            coefs = np.concatenate([np.empty(0), *(cut.coefs for cut in cuts)])
            matrix = sparse.csr_array((coefs, columns, ends), shape=(len(cuts), len(x)))
            self._shelved = cuts, matrix, np.array([cut.rhs for cut in cuts])
        cuts, matrix, rhs = self._shelved
        missing = rhs - matrix @ x
        order = np.argsort(-missing, kind="stable")[:_RECALLED]
        return [cuts[k] for k in order[missing[order] > least].tolist() if cuts[k].key not in self._keys]

    def save(self) -> object:
        """The basis, to return to after trial branchings."""
        return self._program.basis()

    def load(self, basis: object) -> None:
        """Return to a saved basis (no cuts added since)."""
        self._program.set_basis(basis)


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
