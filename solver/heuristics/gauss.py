"""Gaussian elimination: show cells in order of preference unless a primary would depend on them.

Langsrud 2024. A movement that leaves every shown cell still must reach each primary; the space of
such movements is kept by a basis. Showing a cell takes one dimension away (a pivot), and is refused
when a primary could then move no longer. Elimination knows directions, not amounts: levels and
insiders are met afterwards by the cheapest movements.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from solver.clock import Clock
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.nearby import Nearby
from solver.heuristics.needs import Cover
from solver.instance import FloatArray, IntArray

# Largest basis, in numbers; beyond, only the columns nearest the primaries take part.
_LARGEST = 4_000_000
# With a limit of seconds, the cube of the number of columns is at most so many times these.
_PER_SECOND = 1e8
_ZERO = 1e-9


def protect_gauss(cover: Cover, clock: Clock) -> None:
    """Hide by elimination, then meet the levels.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    columns = _columns(cover, clock)
    basis = _movements(cover, columns)
    clock.charge(float(basis.size))
    cover.hidden[columns[_eliminate(cover, columns, basis, clock)]] = True
    meet_within(cover, clock)
    protect_lp(cover, clock)


def _columns(cover: Cover, clock: Clock) -> IntArray:
    problem = cover.problem
    most = int(np.sqrt(_LARGEST))
    if clock.seconds_left is not None:
        # Nothing stops the factorisation of their matrix once it has begun.
        most = min(most, int(np.cbrt(clock.seconds_left * _PER_SECOND)))
    if problem.n <= most:
        return np.arange(problem.n)
    nearby = Nearby(problem)
    cells = np.unique(cover.needs.cell)
    each = max(most // len(cells), 4)
    none = np.empty(0, dtype=np.int64)
    near = [none]
    for cell in cells[: most // 4].tolist():
        clock.check()
        near.append(nearby.columns(cell, 0.0, problem.weight, each, none))
    return np.unique(np.concatenate(near))[:most]


def _movements(cover: Cover, columns: IntArray) -> FloatArray:
    """Basis of the movements of some columns (float64[k, dimension])."""
    part = cover.problem.matrix[:, columns]
    part = part[np.diff(part.indptr) > 0].toarray()
    _, triangle, order = linalg.qr(part, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > _ZERO * max(float(diagonal.max(initial=0.0)), 1.0)).sum())
    basis = np.zeros((len(columns), len(columns) - rank))
    basis[order[rank:], np.arange(len(columns) - rank)] = 1.0
    if rank:
        basis[order[:rank]] = -linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    basis[np.abs(basis) < _ZERO] = 0.0
    return basis


def _eliminate(cover: Cover, columns: IntArray, basis: FloatArray, clock: Clock) -> IntArray:
    """Positions that stay hidden."""
    problem = cover.problem
    position = np.full(problem.n, -1, dtype=np.int64)
    position[columns] = np.arange(len(columns))
    cells = position[np.unique(cover.needs.cell)]
    cells = cells[cells >= 0]
    cells = cells[(np.abs(basis[cells]) > _ZERO).any(axis=1)]
    free = np.flatnonzero(~cover.hidden[columns])
    stay: list[int] = []
    if not basis.shape[1]:
        # Columns that only move with others, which do not take part.
        return np.array(stay, dtype=np.int64)
    for at in free[np.lexsort((free, -problem.weight[columns[free]]))].tolist():
        clock.check()
        row = basis[at]
        pivot = int(np.argmax(np.abs(row)))
        if abs(row[pivot]) <= _ZERO:
            continue
        factor = row / row[pivot]
        factor[pivot] = 0.0
        after = basis[cells] - np.outer(basis[cells, pivot], factor)
        after[:, pivot] = 0.0
        if (np.abs(after).max(axis=1, initial=0.0) <= _ZERO).any():
            stay.append(at)
            continue
        using = np.flatnonzero(np.abs(basis[:, pivot]) > 0)
        changed = np.flatnonzero(factor)
        basis[np.ix_(using, changed)] -= np.outer(basis[using, pivot], factor[changed])
        basis[:, pivot] = 0.0
    return np.array(stay, dtype=np.int64)
