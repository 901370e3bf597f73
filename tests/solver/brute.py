"""Random small instances, and their optimum by trying every pattern with a plain LP per attacker."""

from __future__ import annotations

import highspy
import numpy as np
from scipy.optimize import linprog

from solver import Insider, Instance, Status

# Farther than any level of these instances takes any cell.
_FAR = 1e5


def random_instance(seed: int, *, largest: int = 12) -> Instance:
    """A small table or random relation system with every feature the model has."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    if kind == 0:
        relations = _table(int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    elif kind == 1:
        relations = _cube()
    else:
        relations = _system(rng, int(rng.integers(5, 11)))
    n = relations.shape[1]
    value = _solution(relations, rng)
    status = rng.choice([0, 1, 2, 3, 4], size=n, p=[0.15, 0.68, 0.05, 0.06, 0.06])
    free = np.flatnonzero(status == Status.FREE)
    status[free[largest:]] = Status.SHOWN
    levels = rng.integers(0, 4, size=(3, n)) * rng.choice([0.5, 1.0], size=(3, n))
    levels[2] *= 2 * (rng.random(n) < 0.3)
    lower, upper = _bounds(value, rng)
    if rng.random() < 0.9:
        # Levels that the cells' own bounds rule out have tests of their own.
        levels[0], levels[1] = np.minimum(levels[0], value - lower), np.minimum(levels[1], upper - value)
        levels[2] = np.minimum(levels[2], upper - lower)
    hidden = np.flatnonzero(~np.isin(status, (Status.FREE, Status.SHOWN)))
    insiders = _insiders(hidden, rng) if len(hidden) > 1 and rng.random() < 0.4 else ()
    return Instance.from_arrays(
        value,
        relations,
        status=status,
        weight=rng.integers(0, 20, size=n),
        lower_bound=lower,
        upper_bound=upper,
        lpl=levels[0],
        upl=levels[1],
        spl=levels[2],
        insiders=insiders,
    )


def cheapest(instance: Instance) -> float | None:
    """Cost of the cheapest safe pattern, None if there is none: patterns in the order of their cost.

    What is hidden in an unsafe pattern is unsafe too with less; and the dual of the attacker problem
    that shows it is unsafe tells with what more it still is. Those patterns are passed over.
    """
    free = np.flatnonzero(instance.status == Status.FREE)
    weight = instance.weight[free]
    patterns = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1 > 0
    costs = patterns @ weight
    order = np.argsort(costs, kind="stable")
    possible = np.ones(len(order), dtype=np.bool_)
    attackers = _Attackers(instance)
    if attackers.unsafe(np.array(instance.may_hide)) is not None:
        return None
    for k in order.tolist():
        if not possible[k]:
            continue
        hidden = instance.always_hidden.copy()
        hidden[free[patterns[k]]] = True
        proof = attackers.unsafe(hidden)
        if proof is None:
            return float(costs[k])
        room, level = proof
        always = float(room[instance.always_hidden].sum())
        possible &= ~(always + patterns @ room[free] < level - 1e-7)
        possible[k] = False
    raise AssertionError("hiding everything is safe, but no pattern is")


class _Attackers:
    """All attacker problems of an instance, one linear program with changing bounds and costs."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._matrix = instance.matrix
        self._low = np.maximum(instance.lower_bound - instance.value, -_FAR)
        self._high = np.minimum(instance.upper_bound - instance.value, _FAR)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = instance.n, instance.m
        model.col_cost_ = model.col_lower_ = model.col_upper_ = np.zeros(instance.n)
        model.row_lower_ = model.row_upper_ = np.zeros(instance.m)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = instance.matrix.indptr.astype(np.int32)
        model.a_matrix_.index_ = instance.matrix.indices.astype(np.int32)
        model.a_matrix_.value_ = instance.matrix.data
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        # The scheduler is shared: whoever runs first in a process decides for all.
        self._highs.setOptionValue("threads", 1)
        self._highs.passModel(model)
        self._columns = np.arange(instance.n, dtype=np.int32)

    def unsafe(self, hidden: np.ndarray) -> tuple[np.ndarray, float] | None:
        """None if safe, else what each hidden cell allows a target at most (float64[n]), and the
        level that these don't add up to."""
        for known, cells, lpl, upl, spl in _attackers(self._instance):
            moving = hidden.copy()
            moving[known] = False
            low, high = np.where(moving, self._low, 0.0), np.where(moving, self._high, 0.0)
            self._highs.changeColsBounds(len(low), self._columns, low, high)
            for cell, down, up, width in zip(cells.tolist(), lpl, upl, spl, strict=True):
                rooms = []
                for side, level in ((-1, down), (1, up)):
                    if max(level, width) <= 0:
                        continue
                    reach, room = self._reach(cell, side)
                    room[known] = 0.0
                    rooms.append((reach, room))
                    if reach < level - 1e-7:
                        return room, float(level)
                if width > 0 and rooms[0][0] + rooms[1][0] < width - 1e-7:
                    return rooms[0][1] + rooms[1][1], float(width)
        return None

    def _reach(self, cell: int, side: int) -> tuple[float, np.ndarray]:
        cost = np.zeros(self._instance.n)
        cost[cell] = -side
        self._highs.changeColsCost(len(cost), self._columns, cost)
        self._highs.run()
        assert self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        solution = self._highs.getSolution()
        dual = -cost - self._matrix.T @ -np.array(solution.row_dual)
        dual[np.abs(dual) < 1e-9] = 0.0
        room = np.where(dual > 0, dual * self._high, dual * self._low)
        return side * float(np.array(solution.col_value)[cell]), room


def _attackers(instance: Instance) -> list[tuple]:
    own = instance.protected
    found = [([], own, instance.lpl[own], instance.upl[own], instance.spl[own])]
    found += [(i.known, i.targets, i.lpl, i.upl, i.spl) for i in instance.insiders]
    return found


def _reach(instance: Instance, moving: np.ndarray, cell: int, side: int) -> float:
    cost = np.zeros(instance.n)
    cost[cell] = -side
    low = np.where(moving, instance.lower_bound - instance.value, 0.0)
    high = np.where(moving, instance.upper_bound - instance.value, 0.0)
    matrix = instance.matrix
    answer = linprog(
        cost,
        A_eq=matrix if matrix.shape[0] else None,
        b_eq=np.zeros(matrix.shape[0]) if matrix.shape[0] else None,
        bounds=np.stack([low, high], axis=1),
        method="highs",
    )
    return np.inf if answer.status == 3 else float(-answer.fun)


def _table(rows: int, columns: int) -> np.ndarray:
    cells = np.arange((rows + 1) * (columns + 1)).reshape(rows + 1, columns + 1)
    lines = [*cells, *cells.T]
    relations = np.zeros((len(lines), cells.size))
    for relation, line in zip(relations, lines, strict=True):
        relation[line], relation[line[-1]] = 1.0, -1.0
    return relations


def _cube() -> np.ndarray:
    cells = np.arange(27).reshape(3, 3, 3)
    lines = [line for axis in range(3) for line in np.moveaxis(cells, axis, -1).reshape(-1, 3)]
    relations = np.zeros((len(lines), 27))
    for relation, line in zip(relations, lines, strict=True):
        relation[line] = (1.0, 1.0, -1.0)
    return relations


def _system(rng: np.random.Generator, n: int) -> np.ndarray:
    relations = np.zeros((int(rng.integers(1, 5)), n))
    for relation in relations:
        cells = rng.choice(n, size=int(rng.integers(1, min(n, 5))), replace=False)
        relation[cells] = rng.choice([-2.0, -1.0, 1.0, 1.0, 3.0], size=len(cells))
    return relations


def _solution(relations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Integer values with M y = 0: inner cells at random, totals added up, or a null vector."""
    n = relations.shape[1]
    if n == 27:
        cells = np.zeros((3, 3, 3))
        cells[:2, :2, :2] = rng.integers(0, 9, size=(2, 2, 2))
        for axis in range(3):
            index = [slice(None)] * 3
            index[axis] = 2
            cells[tuple(index)] = np.delete(cells, 2, axis).sum(axis=axis)
        return cells.ravel()
    shapes = {(r + c, r * c): (r, c) for r in (3, 4) for c in (3, 4)}
    if relations.shape in shapes and set(np.unique(relations)) <= {-1.0, 0.0, 1.0}:
        rows, columns = shapes[relations.shape]
        cells = np.zeros((rows, columns))
        cells[:-1, :-1] = rng.integers(-3 if rng.random() < 0.3 else 0, 9, size=(rows - 1, columns - 1))
        cells[:-1, -1] = cells[:-1, :-1].sum(axis=1)
        cells[-1] = cells[:-1].sum(axis=0)
        if np.allclose(relations @ cells.ravel(), 0):
            return cells.ravel()
    return np.zeros(n)


def _bounds(value: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = len(value)
    lower = np.where(value >= 0, 0.0, -np.inf)
    near = rng.random(n) < 0.15
    lower[near] = value[near] - rng.integers(0, 6, size=near.sum())
    lower[(value == 0) & ~near & (rng.random(n) < 0.5)] = -np.inf
    upper = rng.choice([np.inf, 1e9, np.nan], size=n, p=[0.6, 0.25, 0.15])
    close = np.isnan(upper)
    upper[close] = value[close] + rng.integers(0, 9, size=close.sum())
    return lower, upper


def _insiders(hidden: np.ndarray, rng: np.random.Generator) -> tuple[Insider, ...]:
    insiders = []
    for k in range(int(rng.integers(1, 3))):
        known = rng.choice(hidden, size=1)
        others = np.setdiff1d(hidden, known)
        targets = rng.choice(others, size=min(2, len(others)), replace=False)
        levels = rng.integers(0, 4, size=(3, len(targets))).astype(float)
        insiders.append(Insider(f"insider {k}", known, targets, *levels))
    return tuple(insiders)
