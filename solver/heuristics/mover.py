"""The cheapest movement that meets a need: one linear program for all needs.

    min Σ price_i |z_i|   s.t.  M z = 0,  z_p = ±level,  −lo ≤ z ≤ hi

(Kelly, Golden, Assad 1992; Robertson 1995.) Each column is split into its upward and downward
part. What costs nothing may move both ways in one column instead, from one end of its room: less than half
of the time where a movement concerns most relations, and many times as long where it is a short one.
Every need starts from the slack basis: z = 0 is nearly right, while the last basis is neither primal nor dual
feasible after a change of prices and fixing; measured, going on from it costs 6 to 20 times more on
hierarchical and three-dimensional tables. A need asked again at the same prices, with other
columns closed, goes on from its own last basis, which is still dual feasible: half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from solver.clock import Clock, OutOfTimeError
from solver.errors import NumericalError
from solver.heuristics.joint import Joint
from solver.heuristics.needs import Needs
from solver.instance import FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem

# A movement never needs more room than this many times its level.
_ROOM = 1e4
# A movement that takes so many steps for each relation concerns most of them; if it takes so many times as
# many with columns that move both ways, they are split again for good.
_MANY_STEPS, _WORSE = 0.5, 1.5
# So much beyond its room, in those units, is what the linear program takes for nothing.
_NOISE = 1e-7
# What each movement takes whatever its size, and each program before the first: most of it on small tables.
_EACH, _MAKING = 400.0, 1500.0
#: Levels that one program can meet differ by no more than that.
ALIKE = 1e3
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
    in_one : bool, optional
        Let what costs nothing move both ways in one column, or don't; default, as the steps tell.
    """

    def __init__(
        self,
        problem: Problem,
        needs: Needs,
        columns: IntArray | None = None,
        *,
        in_one: bool | None = None,
    ) -> None:
        self.joint = joint = Joint(problem, columns)
        self.columns, self.size = joint.columns, joint.size
        self._needs, self._known = needs, problem.known
        self.hi, self.lo = problem.hi[self.columns], problem.lo[self.columns]
        self._position, self._joined, self._ratio = joint.position, joint.joined, joint.ratio
        self._able, self._up, self._down = joint.able, joint.up, joint.down
        part, k, c = joint.relations, len(self.columns), len(joint)
        self._open, self._shut = np.ones(k, dtype=np.bool_), np.zeros(c, dtype=np.bool_)
        self._upper, self._rooms = np.zeros(2 * c), np.concatenate([self._up, self._down])
        # What costs nothing either way, and whether it moves both ways in its first column.
        self._gratis = np.zeros(c, dtype=np.bool_)
        self._in_one, self._settled, self._steps = bool(in_one), in_one is not None, 0
        # Whether it did so when the last movement was sought: what that told may have changed it since.
        self._sought_in_one = False
        self._unpaid = _MAKING
        self._rows = part.shape[0]
        self._level = 0.0
        both = sparse.csr_array(sparse.hstack([part, -part]))
        zeros = np.zeros(both.shape[0])
        self._program = LinearProgram(
            np.zeros(2 * c),
            np.zeros(2 * c),
            self._upper,
            both.indptr,
            both.indices,
            both.data,
            zeros,
            zeros,
            with_duals=False,
        )
        self._all = np.arange(2 * c)
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
        up, down = (price / (self._share(room, level) * usual) for room in (self.hi, self.lo))
        self._set_costs(np.minimum(up, _DEAR), np.minimum(down, _DEAR))

    def set_unit_prices(self, unit: FloatArray) -> None:
        """Price per unit of movement, per column of the problem, the same both ways."""
        price = unit[self.columns]
        usual = float(price[price > 0].mean()) if (price > 0).any() else 1.0
        each = np.minimum(price / usual, _DEAR)
        self._set_costs(each, each)

    def move(
        self, need: int, clock: Clock, *, go_on: bool = False, others: Sequence[int] = ()
    ) -> FloatArray | None:
        """The cheapest movement (float64[k]) that meets a need, or None if there is none, or none
        that floating point finds.

        `go_on` begins with the last basis, of whichever need: right where next to nothing costs anything.
        `others` are needs of the same attacker that it must meet too, with levels up to :data:`ALIKE` times
        as low: measured in units of the highest, much lower ones are rounding.

        Raises
        ------
        OutOfTimeError
            The clock's seconds are over.
        """
        clock.check()
        self._sought_in_one = False
        needs, c = self._needs, len(self._up)
        asked, known = (need, *others), self._still(int(needs.attacker[need]))
        levels = [float(needs.level[one]) for one in asked]
        level = max(levels)
        if min(levels) * ALIKE < level:
            return None
        goals: dict[int, float] = {}
        for one in asked:
            at = int(self._position[needs.cell[one]])
            joined = int(self._joined[at]) if at >= 0 else -1
            if joined < 0 or self._shut[joined] or joined in known or joined in goals:
                return None
            goal = float(needs.side[one] * needs.level[one] / level / self._ratio[at])
            room = self._up if goal > 0 else self._down
            if level * abs(goal) > room[joined] * (1 + 1e-9):
                return None
            goals[joined] = goal
        if level != self._level:
            self._set_level(level)
        pair = np.array([*goals, *(joined + c for joined in goals)])
        fixed = np.array([max(sign * goal, 0.0) for sign in (1.0, -1.0) for goal in goals.values()])
        blocked = np.concatenate([known, known + c])
        self._program.set_bounds(pair, fixed, fixed)
        if len(known):
            self._program.set_bounds(blocked, np.zeros(len(blocked)), np.zeros(len(blocked)))
        basis = None if others else self._bases.get(need)
        cold = basis is None and not go_on
        if basis is not None:
            self._program.set_basis(basis)
        elif cold:
            self._program.forget_basis()
        self._sought_in_one = self._in_one
        try:
            result = self._program.solve(seconds=clock.seconds_left)
        except NumericalError:
            result = None
        clock.charge(self.size + _EACH + self._unpaid)
        self._unpaid = 0.0
        switched = cold and not self._settled and self._learn(self._program.steps)
        self._program.set_bounds(pair, *self._limits(pair))
        if len(known):
            self._program.set_bounds(blocked, *self._limits(blocked))
        if result is not None and result.status == "limit":
            raise OutOfTimeError
        if result is None or result.status != "optimal":
            return None
        if not go_on and not switched and not others:
            self._bases[need] = self._program.basis()
        # What is shut is moved by no more than rounding, which would count as hiding it.
        net = np.where(self._shut, 0.0, result.primal[:c] - result.primal[c:])
        within = np.clip(net, -self._upper[c:], self._upper[:c])
        net = np.where(np.abs(net - within) <= _NOISE, within, net)
        return self.joint.apart(net) * level

    def _still(self, attacker: int) -> IntArray:
        """Columns of the program that an attacker knows."""
        known = self._known[attacker]
        if len(known):
            known = self._position[known]
            known = self._joined[known[known >= 0]]
            known = np.unique(known[known >= 0])
        return known

    def split(self) -> bool:
        """Let every column move one way for good. False if the last movement was sought so already."""
        if not self._sought_in_one:
            return False
        self._sought_in_one = False
        if self._in_one:
            self._in_one, self._settled = False, True
            self._limit_gratis()
        return True

    def _limit_gratis(self) -> None:
        gratis = np.flatnonzero(self._gratis)
        self._limit(np.concatenate([gratis, gratis + len(self._gratis)]))
        self._bases.clear()

    def _learn(self, steps: int) -> bool:
        """Do columns that move both ways in one pay? True if they do so otherwise from now on."""
        before = self._in_one
        if before:
            self._in_one = steps <= _WORSE * self._steps
            self._settled = not self._in_one
        elif steps > _MANY_STEPS * self._rows and self._gratis.any():
            self._in_one = True
        else:
            return False
        self._steps = max(self._steps, steps)
        if self._in_one == before:
            return False
        self._limit_gratis()
        return True

    def _set_costs(self, up: FloatArray, down: FloatArray) -> None:
        """Costs of each column upwards and downwards (float64[k] each)."""
        able, c = self._able, len(self._up)
        joined, ratio = self._joined[able], self._ratio[able]
        size = np.abs(ratio)
        forth = size * np.where(ratio > 0, up[able], down[able])
        back = size * np.where(ratio > 0, down[able], up[able])
        costs = np.concatenate([np.bincount(joined, each, c) for each in (forth, back)])
        self._program.set_costs(self._all, costs)
        self._bases.clear()
        gratis = (costs[:c] == 0) & (costs[c:] == 0)
        changed = np.flatnonzero(gratis != self._gratis)
        self._gratis = gratis
        if self._in_one:
            self._limit(np.concatenate([changed, changed + c]))

    @staticmethod
    def _share(room: FloatArray, level: float) -> FloatArray:
        return np.maximum(np.minimum(room / level, 1.0), _LITTLE)

    def _set_level(self, level: float) -> None:
        """Measure movement in units of the level: whatever the level, the program looks alike."""
        room = np.minimum(self._rooms / level, _ROOM)
        room[room <= _LITTLE] = 0.0
        c = len(self._up)
        changed = np.flatnonzero(room != self._upper)
        self._upper, self._level = room, level
        if self._in_one:
            # What moves both ways in one column has the room of its second in the bounds of its first.
            changed = np.union1d(changed, changed[changed >= c] - c)
        self._limit(changed)

    def _limit(self, positions: IntArray) -> None:
        if len(positions):
            self._program.set_bounds(positions, *self._limits(positions))

    def _limits(self, positions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of columns of the program."""
        c = len(self._up)
        column, first = positions % c, positions < c
        shut, gratis = self._shut[column], self._gratis[column] & self._in_one
        lower = np.where(first & gratis & ~shut, -self._upper[c + column], 0.0)
        return lower, np.where(shut | (gratis & ~first), 0.0, self._upper[positions])

    def _set_open(self, columns: IntArray, flag: bool) -> None:
        positions = self._position[columns]
        positions = positions[positions >= 0]
        if not len(positions):
            return
        self._open[positions] = flag
        able = self._able
        shut = np.bincount(self._joined[able], ~self._open[able], len(self._up)) > 0
        changed = np.flatnonzero(shut != self._shut)
        self._shut = shut
        self._limit(np.concatenate([changed, changed + len(shut)]))
