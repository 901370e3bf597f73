"""Attacker problems that share nothing, asked side by side.

What a point hides falls into parts that have no relation in common, many of them in two dimensions. One
linear program then moves a cell in each of these islands, in units of its own, and its duals fall apart
the same way.
"""

from __future__ import annotations

import numpy as np

from solver.attack import Region
from solver.clock import Clock
from solver.columns import linked
from solver.instance import FloatArray, IntArray
from solver.presolve import Problem


class Islands:
    """The attacker problems at a point.

    Each island has room in units of a level and capped at one such (see :mod:`solver.separate`), and
    an attacker to whom what it knows can't move; both may change from push to push.

    Parameters
    ----------
    problem
        The component.
    x : float64[n]
        The point, between 0 and 1.
    clock
        Out of seconds, :meth:`push` raises OutOfTimeError.
    """

    def __init__(self, problem: Problem, x: FloatArray, clock: Clock) -> None:
        self._problem = problem
        self._region = region = Region(problem, problem.lo * x, problem.hi * x, clock)
        open_ = region.columns
        self._x, self._lo, self._hi = x[open_], problem.lo[open_], problem.hi[open_]
        self._rows, self._columns = linked(region.part.indptr, region.part.indices, len(open_))
        count = int(max(self._rows.max(initial=-1), self._columns.max(initial=-1))) + 1
        self._of = np.full(problem.n, -1, dtype=np.int64)
        self._of[open_] = self._columns
        # The last place stands for columns without room.
        self._level, self._attacker = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
        self._unit = np.ones(len(open_))
        self._even = np.full(count + 1, np.inf)
        uneven = np.flatnonzero(self._lo != self._hi)
        if len(uneven):
            np.minimum.at(self._even, self._columns[uneven], np.minimum(self._lo, self._hi)[uneven])

    @property
    def work(self) -> float:
        """Deterministic effort so far, in about milliseconds."""
        return self._region.work

    def of(self, cells: IntArray) -> IntArray:
        """The island of each column; -1 without room."""
        return self._of[cells]

    def even(self, island: int, level: float) -> bool:
        """May all of an island move as far up as down, in units of a level?"""
        return bool(level <= self._even[island])

    def levels(self, islands: IntArray) -> FloatArray:
        """The unit of each of some islands now."""
        return self._level[islands]

    def push(
        self, cells: IntArray, directions: IntArray, levels: FloatArray, attackers: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Move cells of different islands as far as they go.

        Parameters
        ----------
        cells, directions : int64[k]
            Which, and whether up (1) or down (-1).
        levels : float64[k]
            The unit of each from now on.
        attackers : int64[k]
            On whose behalf each moves.

        Returns
        -------
        The movement (float64[n]) in the table's unit, and its duals (float64[m]).
        """
        islands = self._of[cells]
        if (self._level[islands] != levels).any() or (self._attacker[islands] != attackers).any():
            self._level[islands], self._attacker[islands] = levels, attackers
            self._set_room()
        move, gamma = self._region.push_all(cells, directions)
        move[self._region.columns] *= self._unit
        return move, gamma

    def apart(self, gammas: FloatArray, islands: IntArray) -> FloatArray:
        """What duals (float64[m, k]) have of one island each (int64[k])."""
        rows = self._region.part.rows
        parts = np.zeros_like(gammas)
        parts[rows] = np.where(self._rows[:, None] == islands, gammas[rows], 0.0)
        return parts

    def _set_room(self) -> None:
        # Where nobody asked yet, any unit will do.
        unit = self._level[self._columns]
        self._unit = unit = np.where(unit > 0, unit, 1.0)
        lo, hi = (np.minimum(room / unit, 1.0) * self._x for room in (self._lo, self._hi))
        who = self._attacker[self._columns]
        for attacker in np.unique(who[who > 0]).tolist():
            still = np.isin(self._region.columns, self._problem.known[attacker]) & (who == attacker)
            lo[still] = hi[still] = 0.0
        self._region.set_room(lo, hi)
