"""The cheapest movement that meets a need: one linear program for all needs.

    min Σ price_i |z_i|   s.t.  M z = 0,  z_p = ±level,  −lo ≤ z ≤ hi

(Kelly, Golden, Assad 1992; Robertson 1995.) Each column is split into its upward and downward
part. Every need starts from the slack basis: z = 0 is nearly right, while the last basis is neither
primal nor dual feasible after a change of prices and fixing; measured, going on from it costs 6 to 20
times more on hierarchical and three-dimensional tables. A need asked again at the same prices, with other
columns closed, goes on from its own last basis, which is still dual feasible: half the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from solver.clock import Clock, OutOfTimeError
from solver.errors import NumericalError
from solver.heuristics.needs import Needs
from solver.instance import FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem

# A movement never needs more room than this many times its level.
_ROOM = 1e4
# Room and prices below this part of the level, or above this many times the usual price, are out
# of reach of double precision.
_LITTLE = 1e-7
_DEAR = 1e6


class Mover:
    """Movements over some columns of a problem.

    Parameters
    ----------
    problem, needs
        The component and its needs.
    columns : int64[k], optional
        Columns that may move; default, all.
    """

    def __init__(self, problem: Problem, needs: Needs, columns: IntArray | None = None) -> None:
        self.columns = np.arange(problem.n) if columns is None else columns
        self._needs, self._known = needs, problem.known
        k = len(self.columns)
        self._position = np.full(problem.n, -1, dtype=np.int64)
        self._position[self.columns] = np.arange(k)
        self.hi, self.lo = problem.hi[self.columns], problem.lo[self.columns]
        self._open = np.ones(k, dtype=np.bool_)
        self._upper = np.zeros(2 * k)
        self._level = 0.0
        part = sparse.csr_array(problem.transposed[self.columns].T)
        part = part[np.flatnonzero(np.diff(part.indptr))]
        both = sparse.csr_array(sparse.hstack([part, -part]))
        zeros = np.zeros(both.shape[0])
        self._program = LinearProgram(
            np.zeros(2 * k),
            np.zeros(2 * k),
            self._upper,
            both.indptr,
            both.indices,
            both.data,
            zeros,
            zeros,
            with_duals=False,
        )
        self.size = 2 * k + both.shape[0]
        self._all = np.arange(2 * k)
        # The last basis of each need, at the prices as they are.
        self._bases: dict[int, Any] = {}

    def close(self, columns: IntArray) -> None:
        """Let columns move no longer."""
        self._set_open(columns, False)

    def open(self, columns: IntArray) -> None:
        """Let columns move again."""
        self._set_open(columns, True)

    def set_prices(self, prices: FloatArray, level: float) -> None:
        """Price of moving by `level`, per column of the problem; less room makes a unit dearer."""
        price = prices[self.columns]
        usual = float(price[price > 0].mean()) if (price > 0).any() else 1.0
        unit = np.concatenate([price / self._share(self.hi, level), price / self._share(self.lo, level)])
        self._set_costs(np.minimum(unit / usual, _DEAR))

    def set_unit_prices(self, unit: FloatArray) -> None:
        """Price per unit of movement, per column of the problem, the same both ways."""
        price = unit[self.columns]
        usual = float(price[price > 0].mean()) if (price > 0).any() else 1.0
        self._set_costs(np.minimum(np.tile(price / usual, 2), _DEAR))

    def move(self, need: int, clock: Clock) -> FloatArray | None:
        """The cheapest movement (float64[k]) that meets a need, or None if there is none, or none
        that floating point finds.

        Raises
        ------
        OutOfTimeError
            The clock's seconds are over.
        """
        clock.check()
        needs = self._needs
        at = int(self._position[needs.cell[need]])
        level = float(needs.level[need])
        up, k = needs.side[need] > 0, len(self.columns)
        if at < 0 or level > (self.hi if up else self.lo)[at] * (1 + 1e-9):
            return None
        if level != self._level:
            self._set_level(level)
        pair = np.array([at, at + k])
        fixed = np.array([1.0, 0.0] if up else [0.0, 1.0])
        known = self._known[needs.attacker[need]]
        known = self._position[known]
        known = known[known >= 0]
        self._program.set_bounds(pair, fixed, fixed)
        if len(known):
            self._block(known)
        basis = self._bases.get(need)
        if basis is None:
            self._program.forget_basis()
        else:
            self._program.set_basis(basis)
        try:
            result = self._program.solve(seconds=clock.seconds_left)
        except NumericalError:
            result = None
        clock.charge(self.size)
        self._program.set_bounds(pair, np.zeros(2), self._limits(pair))
        if len(known):
            both = np.concatenate([known, known + k])
            self._program.set_bounds(both, np.zeros(len(both)), self._limits(both))
        if result is not None and result.status == "limit":
            raise OutOfTimeError
        if result is None or result.status != "optimal":
            return None
        self._bases[need] = self._program.basis()
        return np.asarray(result.primal[:k] - result.primal[k:]) * level

    def _set_costs(self, costs: FloatArray) -> None:
        self._program.set_costs(self._all, costs)
        self._bases.clear()

    @staticmethod
    def _share(room: FloatArray, level: float) -> FloatArray:
        return np.maximum(np.minimum(room / level, 1.0), _LITTLE)

    def _set_level(self, level: float) -> None:
        """Measure movement in units of the level: whatever the level, the program looks alike."""
        room = np.minimum(np.concatenate([self.hi, self.lo]) / level, _ROOM)
        self._upper = np.where(room > _LITTLE, room, 0.0)
        self._level = level
        self._program.set_bounds(self._all, np.zeros(len(self._all)), self._limits(self._all))

    def _limits(self, positions: IntArray) -> FloatArray:
        return np.where(self._open[positions % len(self.columns)], self._upper[positions], 0.0)

    def _block(self, positions: IntArray) -> None:
        both = np.concatenate([positions, positions + len(self.columns)])
        zeros = np.zeros(len(both))
        self._program.set_bounds(both, zeros, zeros)

    def _set_open(self, columns: IntArray, flag: bool) -> None:
        positions = self._position[columns]
        positions = positions[positions >= 0]
        self._open[positions] = flag
        both = np.concatenate([positions, positions + len(self.columns)])
        self._program.set_bounds(both, np.zeros(len(both)), self._limits(both))
