"""Columns that may move, and what they do together: the relations among them, as few as there are."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solver.columns import keep_entries, without_repeats
from solver.instance import FloatArray, IntArray
from solver.presolve import Problem, merge_cells


class Joint:
    """Some columns of a problem, of which those that only move together are one, and those that can't move
    none: among the hidden cells of a good pattern, most relations have but two.

    Parameters
    ----------
    problem
        The component.
    columns : int64[k], optional
        Columns that may move; default, all.
    room : pair of float64[n], optional
        How far they may go down and up; default, as far as the problem lets them.

    Attributes
    ----------
    columns : int64[k]
    position : int64[n]
        Of each column of the problem among these, -1 for others.
    up, down : float64[c]
        Room of what moves as one.
    relations : csr_array of float64[r, c]
        What sums to zero.
    able : int64[a]
        Positions of the columns that can move.
    joined : int64[k]
        What each moves with, -1 where it can't.
    ratio : float64[k]
        How far it moves, for each unit of that.
    """

    def __init__(
        self,
        problem: Problem,
        columns: IntArray | None = None,
        room: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.columns = np.arange(problem.n) if columns is None else columns
        k = len(self.columns)
        self.position = np.full(problem.n, -1, dtype=np.int64)
        self.position[self.columns] = np.arange(k)
        lo, hi = (side[self.columns] for side in room or (problem.lo, problem.hi))
        part = sparse.csr_array(problem.transposed[self.columns].T)
        part = part[np.flatnonzero(np.diff(part.indptr))]
        self.size = 2 * k + part.shape[0]
        root, self.ratio = np.arange(k), np.ones(k)
        if k < problem.n or room is not None:
            part, root, self.ratio, lo, hi = merge_cells(part, lo, hi)
            part = without_repeats(part)
        moving = np.flatnonzero((lo > 0) | (hi > 0))
        number = np.full(k, -1, dtype=np.int64)
        number[moving] = np.arange(len(moving))
        self.joined = number[root]
        self.able = np.flatnonzero(self.joined >= 0)
        self.up, self.down = hi[moving], lo[moving]
        kept = keep_entries(part, number[part.indices] >= 0)
        shape = (part.shape[0], len(moving))
        self.relations = sparse.csr_array((kept.data, number[kept.indices], kept.indptr), shape=shape)

    def __len__(self) -> int:
        return len(self.up)

    def apart(self, moves: FloatArray) -> FloatArray:
        """Movements (float64[…, c]) of the columns (float64[…, k])."""
        apart = np.zeros((*moves.shape[:-1], len(self.columns)))
        apart[..., self.able] = moves[..., self.joined[self.able]] * self.ratio[self.able]
        return apart
