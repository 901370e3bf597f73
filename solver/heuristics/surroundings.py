"""Growing neighbourhoods of a cell, smallest first, the last of them everything."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solver.heuristics.closure import Closure
from solver.heuristics.nearby import Nearby
from solver.heuristics.needs import Needs
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

# Nearest columns of the first and of the second neighbourhood.
_NEAR, _WIDER = 300, 1500
# Sets with company in each relation, in the first neighbourhood and among the totals.
_SETS, _ROOMY = 3, 2
_MOST = 4000
# What succeeded for the last cells is tried first for the next; now and then, a smaller one.
_RETRY = 16


class Surroundings:
    """Columns around cells in which a movement is likely to be found, and cheap.

    Parameters
    ----------
    problem
        The component.
    barred : int64[k], optional
        Columns that may not move.

    Attributes
    ----------
    problem
        The component.
    nearby
        The distances they go by.
    """

    def __init__(self, problem: Problem, barred: IntArray | None = None) -> None:
        self.problem = problem
        self._barred = np.empty(0, dtype=np.int64) if barred is None else barred
        self._closure, self.nearby = Closure(problem), Nearby(problem)
        self._first, self._count = 0, 0

    def of(self, needs: Needs, need: int, prices: FloatArray) -> Iterator[IntArray]:
        """Neighbourhoods of a need's cell (int64[k], sorted), each to be tried if the last was too small.

        Parameters
        ----------
        prices : float64[n]
            What each column costs; 0 for hidden ones.
        """
        problem = self.problem
        cell, level = int(needs.cell[need]), float(needs.level[need])
        closed = np.concatenate([self._barred, problem.known[needs.attacker[need]]])
        self._count += 1
        first = max(self._first - (self._count % _RETRY == 0), 0)
        columns = self._closure.columns(cell, level, prices, closed, _SETS, _MOST)
        for stage in range(first, 3):
            self._first = stage
            if stage < 2:
                near = self.nearby.columns(cell, level, prices, (_NEAR, _WIDER)[stage], closed)
                columns = np.union1d(columns, near)
            else:
                roomy = self._closure.columns(cell, level, prices, closed, _ROOMY, _MOST, roomy_first=True)
                columns = np.union1d(columns, roomy)
            yield columns
        most = 2 * _WIDER
        while most < problem.n:
            yield self.nearby.columns(cell, level, prices, most, closed)
            most *= 4
        yield np.setdiff1d(np.arange(problem.n), closed)

    def nearest(self, needs: Needs, need: int, prices: FloatArray, closed: BoolArray) -> IntArray:
        """The smallest neighbourhood alone, without the columns closed (bool[n])."""
        cell, level = int(needs.cell[need]), float(needs.level[need])
        shut = np.flatnonzero(closed)
        columns = self._closure.columns(cell, level, prices, shut, _SETS, _MOST)
        return np.union1d(columns, self.nearby.columns(cell, level, prices, _NEAR, shut))
