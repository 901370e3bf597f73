"""Random small instances, and their optimum by trying every pattern with a plain LP per attacker."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from solver import Insider, Instance, Status


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
    """Cost of the cheapest safe pattern, None if there is none."""
    free = np.flatnonzero(instance.status == Status.FREE)
    weight = instance.weight[free]
    choices = [list(c) for size in range(len(free) + 1) for c in combinations(range(len(free)), size)]
    if not _safe(instance, np.array(instance.may_hide)):
        return None
    for choice in sorted(choices, key=lambda c: weight[c].sum()):
        hidden = instance.always_hidden.copy()
        hidden[free[choice]] = True
        if _safe(instance, hidden):
            return float(weight[choice].sum())
    return None


def _safe(instance: Instance, hidden: np.ndarray) -> bool:
    for known, cells, lpl, upl, spl in _attackers(instance):
        moving = hidden.copy()
        moving[known] = False
        for cell, low, high, width in zip(cells, lpl, upl, spl, strict=True):
            down, up = (_reach(instance, moving, int(cell), side) for side in (-1, 1))
            if down < low - 1e-7 or up < high - 1e-7 or down + up < width - 1e-7:
                return False
    return True


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
