"""Cheapest movements: repair a pattern until it is safe, and show again what it does not need.

The cheapest z that moves a target by its level (Kelly, Golden, Assad 1992; Robertson 1995) is a
linear program in z⁺, z⁻ ≥ 0 whose cost is zero on cells already hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.attack import SLACK, Region
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem

_STILL = 1e-7


class UnreachableTargetError(Exception):
    """No pattern of the allowed columns protects the target."""

    def __init__(self, target: int) -> None:
        self.target = target
        super().__init__(target)


@dataclass(frozen=True, eq=False)
class Demands:
    """One movement to make possible per entry: (target, direction, level), by attacker."""

    target: IntArray
    direction: IntArray
    level: FloatArray

    def __len__(self) -> int:
        return len(self.target)


def demands_of(problem: Problem) -> Demands:
    """Split every target into upward and downward movements.

    A sliding level becomes a pair that the room allows: up as far as it may go, down for the rest.

    Raises
    ------
    UnreachableTargetError
        A sliding level is out of reach even if everything is hidden.
    """
    targets = problem.targets
    upper, lower = targets.upper.copy(), targets.lower.copy()
    wide = np.flatnonzero(targets.sliding > upper + lower)
    if len(wide):
        region = Region(problem, problem.lo, problem.hi)
        for k in wide:
            region.use(int(targets.attacker[k]))
            top = region.push(int(targets.cell[k]), 1).value
            bottom = region.push(int(targets.cell[k]), -1).value
            if top + bottom < targets.sliding[k] * (1 - SLACK):
                raise UnreachableTargetError(int(k))
            upper[k] = max(upper[k], min(targets.sliding[k] / 2, top), targets.sliding[k] - bottom)
            lower[k] = max(lower[k], targets.sliding[k] - upper[k])
    index = np.repeat(np.arange(len(targets)), 2)
    direction = np.tile(np.array([1, -1]), len(targets))
    level = np.stack([upper, lower], axis=1).ravel()
    order = np.lexsort((-level, targets.attacker[index]))
    order = order[level[order] > 0]
    return Demands(index[order], direction[order], level[order])


class Movements:
    """Cheapest movements over some columns, as one warm linear program.

    Parameters
    ----------
    problem
        The component.
    columns : bool[n]
        Columns that may move.
    """

    def __init__(self, problem: Problem, columns: BoolArray) -> None:
        self._problem = problem
        self.columns = np.flatnonzero(columns)
        k = len(self.columns)
        self._position = np.full(problem.n, -1, dtype=np.int64)
        self._position[self.columns] = np.arange(k)
        part = sparse.csr_array(problem.matrix[:, self.columns])
        part = part[np.flatnonzero(np.diff(part.indptr))]
        both = sparse.csr_array(sparse.hstack([part, -part]))
        zeros = np.zeros(both.shape[0])
        self._room = np.concatenate([problem.hi[self.columns], problem.lo[self.columns]])
        self._closed, self._known = np.zeros(k, dtype=np.bool_), np.zeros(k, dtype=np.bool_)
        self._cost = np.zeros(2 * k)
        self._attacker = 0
        self._program = LinearProgram(
            self._cost, np.zeros(2 * k), self._room, both.indptr, both.indices, both.data, zeros, zeros
        )

    @property
    def work(self) -> float:
        """Deterministic effort so far."""
        return self._program.work

    def set_costs(self, cost: FloatArray) -> None:
        """Cost per unit of movement (float64[n])."""
        wanted = np.tile(cost[self.columns], 2)
        changed = np.flatnonzero(wanted != self._cost)
        if len(changed):
            self._program.set_costs(changed, wanted[changed])
            self._cost = wanted

    def close(self, column: int, closed: bool = True) -> None:
        """Forbid a column to move, or allow it again."""
        at = int(self._position[column])
        self._closed[at] = closed
        self._refresh(np.array([at]))

    def use(self, attacker: int) -> None:
        """Move on behalf of an attacker: what it knows cannot move."""
        if attacker == self._attacker:
            return
        before, now = (self._positions(k) for k in (self._attacker, attacker))
        self._known[before], self._known[now] = False, True
        self._attacker = attacker
        self._refresh(np.union1d(before, now))

    def _positions(self, attacker: int) -> IntArray:
        at = self._position[self._problem.known[attacker]]
        return at[at >= 0]

    def _refresh(self, positions: IntArray) -> None:
        if len(positions):
            open_ = ~(self._closed | self._known)[positions]
            pairs = np.concatenate([positions, positions + len(self.columns)])
            room = np.where(np.tile(open_, 2), self._room[pairs], 0.0)
            self._program.set_bounds(pairs, np.zeros(len(pairs)), room)

    def find(self, cell: int, direction: int, level: float) -> FloatArray | None:
        """The cheapest z (float64[n]) that moves the cell by the level; None if there is none."""
        k = len(self.columns)
        at = int(self._position[cell])
        forth, back = (at, at + k) if direction == 1 else (at + k, at)
        blocked = at < 0 or self._closed[at] or self._known[at]
        if blocked or self._room[forth] < level * (1 - SLACK):
            return None
        pair = np.array([forth, back])
        need = min(level, float(self._room[forth]))
        self._program.set_bounds(pair, np.array([need, 0.0]), np.array([need, 0.0]))
        result = self._program.solve()
        self._program.set_bounds(pair, np.zeros(2), self._room[pair])
        if result.status != "optimal":
            return None
        move = np.zeros(self._problem.n)
        move[self.columns] = result.primal[:k] - result.primal[k:]
        return move


def repair(
    problem: Problem,
    hidden: BoolArray,
    price: FloatArray | None = None,
    allowed: BoolArray | None = None,
) -> BoolArray:
    """Hide more until every target is protected.

    Parameters
    ----------
    problem, hidden
        The component and the pattern to start from (bool[n]).
    price : float64[n], optional
        Cost of hiding a column as this search sees it; the weights by default.
    allowed : bool[n], optional
        Columns that may be hidden.

    Raises
    ------
    UnreachableTargetError
        A target stays exposed with everything allowed hidden.
    """
    hidden = hidden | problem.forced
    price = problem.weight if price is None else price
    movements = Movements(
        problem, hidden | (np.ones(problem.n, dtype=np.bool_) if allowed is None else allowed)
    )
    demands = demands_of(problem)
    room = np.minimum(problem.lo, problem.hi)
    wide = np.where(room > 0, room, np.maximum(problem.lo, problem.hi))
    for target, direction, level in zip(demands.target, demands.direction, demands.level, strict=True):
        movements.use(int(problem.targets.attacker[target]))
        # A tiny price on movement keeps the support small where everything is free.
        per_unit = np.where(hidden, 0.0, price + 1e-3) / np.minimum(wide, level) + 1e-6
        movements.set_costs(per_unit)
        move = movements.find(int(problem.targets.cell[target]), int(direction), float(level))
        if move is None:
            raise UnreachableTargetError(int(target))
        hidden = hidden | (np.abs(move) > _STILL)
    return hidden


def clean_up(problem: Problem, hidden: BoolArray) -> BoolArray:
    """Show again what a safe pattern does not need, heaviest first.

    Every demand keeps one movement as its certificate; only the demands that use a column are
    solved again when the column is tried.
    """
    hidden = hidden.copy()
    if not len(problem.targets):
        return problem.forced.copy()
    movements = Movements(problem, hidden)
    columns = movements.columns
    movements.set_costs(problem.weight + 1e-6)
    demands = demands_of(problem)
    used = np.zeros((len(demands), len(columns)), dtype=np.bool_)
    for k in range(len(demands)):
        move = _certify(problem, movements, demands, k)
        if move is None:
            raise UnreachableTargetError(int(demands.target[k]))
        used[k] = np.abs(move[columns]) > _STILL
    secondary = np.flatnonzero(~problem.forced[columns])
    heaviest = secondary[np.argsort(-problem.weight[columns[secondary]], kind="stable")]
    for j in heaviest:
        column = int(columns[j])
        movements.close(column)
        renewed = {}
        for k in np.flatnonzero(used[:, j]).tolist():
            move = _certify(problem, movements, demands, k)
            if move is None:
                break
            renewed[k] = np.abs(move[columns]) > _STILL
        else:
            hidden[column] = False
            for k, support in renewed.items():
                used[k] = support
            continue
        movements.close(column, False)
    return hidden


def _certify(problem: Problem, movements: Movements, demands: Demands, k: int) -> FloatArray | None:
    target = int(demands.target[k])
    movements.use(int(problem.targets.attacker[target]))
    return movements.find(
        int(problem.targets.cell[target]), int(demands.direction[k]), float(demands.level[k])
    )
