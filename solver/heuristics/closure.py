"""Small sets of columns in which a cell can move: every relation touched has company.

A cell that moves needs company in each of its relations, and so does the company: adding, relation by
relation, the column that serves most open relations at once (the cheapest of those) ends in a box of a
table of any number of dimensions, 2^d corners that rise and fall in turn (Giessing, Repsilber 2002),
found in the relations alone. The linear program over a few such sets is small where one over all that
is near a cell is hopeless: in seven dimensions a cell has thousands of neighbours, and a set of the
nearest rarely lets it move at all.
"""

from __future__ import annotations

import numpy as np

from solver.entries import ranges
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

_ROUNDS = 60
# Price of a column taken before, as a multiple of the dearest: the next set looks elsewhere.
_AGAIN = 0.5


class Closure:
    """Grows sets around cells of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rows, self._columns = problem.matrix, problem.transposed

    def columns(
        self,
        cell: int,
        level: float,
        prices: FloatArray,
        closed: IntArray,
        sets: int,
        most: int,
        roomy_first: bool = False,
    ) -> IntArray:
        """The union of some sets in which a cell may move by a level (int64[k], sorted).

        Parameters
        ----------
        cell, level
            Which column, by how much.
        prices : float64[n]
            What each column costs; 0 for hidden ones.
        closed : int64[...]
            Columns that cannot move.
        sets
            How many sets, each avoiding what the earlier ones paid for.
        most
            Stop growing at so many columns.
        """
        problem = self._problem
        room = np.minimum(problem.hi, problem.lo)
        able = np.maximum(problem.hi, problem.lo) > 0
        able[closed] = False
        top = float(prices.max(initial=0.0)) or 1.0
        price = np.minimum(prices / top, 1.0) + (room < level)
        # Room grows towards the totals: what is found among them carries any level.
        roomy = 1.0 / (1.0 + np.log1p(room / level))
        taken = np.zeros(problem.n, dtype=np.bool_)
        for number in range(sets):
            grown = self._grow(cell, able, roomy if roomy_first and number == 0 else price, most)
            if grown is None:
                continue
            taken[grown] = True
            price[grown] += np.where(prices[grown] > 0, _AGAIN, 0.0)
            if taken.sum() >= most:
                break
        taken[cell] = True
        return np.flatnonzero(taken)

    def _grow(self, cell: int, able: BoolArray, price: FloatArray, most: int) -> IntArray | None:
        """One set, or None if some relation has no company to offer."""
        n = self._problem.n
        taken = np.zeros(n, dtype=np.bool_)
        count = np.zeros(self._problem.m, dtype=np.int64)
        new, size = np.array([cell]), 1
        open_ = np.empty(0, dtype=np.int64)
        for _ in range(_ROUNDS):
            taken[new] = True
            touched = _entries(self._columns.indptr, self._columns.indices, new)[0]
            np.add.at(count, touched, 1)
            open_ = np.unique(np.concatenate([open_, touched]))
            open_ = open_[count[open_] == 1]
            if not len(open_):
                return np.flatnonzero(taken)
            found, of = _entries(self._rows.indptr, self._rows.indices, open_)
            fits = able[found] & ~taken[found]
            found, of = found[fits], of[fits]
            serves = np.bincount(found, minlength=n)[found]
            order = np.lexsort((price[found], -serves, of))
            first = order[np.concatenate([[True], np.diff(of[order]) != 0])] if len(order) else order
            if len(first) < len(open_):
                return None
            new = np.unique(found[first])
            size += len(new)
            if size > most:
                return None
        return None


def _entries(indptr: IntArray, indices: IntArray, lines: IntArray) -> tuple[IntArray, IntArray]:
    """What some lines of a sparse matrix hold, and which of them holds it."""
    counts = (indptr[lines + 1] - indptr[lines]).astype(np.int64)
    of = np.repeat(np.arange(len(lines)), counts)
    return indices[ranges(indptr[lines], counts)].astype(np.int64), of
