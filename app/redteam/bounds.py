"""The interval of every unknown cell, one linear program after another over each connected part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from app.redteam.relations import System
from app.redteam.structure import Coordinates
from solver.errors import InternalError
from solver.lp import LinearProgram

#: Sums of shown numbers may miss their total by this share before they count as rounded.
RELATIVE = 1e-9


@dataclass(frozen=True, eq=False)
class Intervals:
    """``lower`` and ``upper`` (float64[n]) of every cell; ``failed`` cells' relations contradict."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    failed: frozenset[int]


def interval_of_cells(system: System) -> Intervals:
    """Bound every cell of a system.

    Notes
    -----
    Known cells leave the relations first: a few hundred unknowns remain of tens of thousands of cells.
    """
    lower, upper = np.array(system.lower), np.array(system.upper)
    known = lower == upper
    half = np.array(system.half)
    rows: list[dict[int, float]] = []
    sides: list[tuple[float, float]] = []
    for row, low, high in system.rows:
        shift = sum(coefficient * lower[cell] for cell, coefficient in row.items() if known[cell])
        unknown = {cell: coefficient for cell, coefficient in row.items() if not known[cell] and coefficient}
        if not unknown:
            continue
        rows.append(unknown)
        sides.append((low - shift, high - shift))
    slack = _rounding(system, known, lower, half)
    if slack:
        # The site prints rounded numbers that don't add up exactly: each side gives by their rounding.
        widths = [
            sum(abs(k) * half[cell] for cell, k in row.items() if known[cell])
            for row, _, _ in system.rows
            if any(not known[cell] and k for cell, k in row.items())
        ]
        sides = [(low - w, high + w) for (low, high), w in zip(sides, widths, strict=True)]
    failed: set[int] = set()
    for part in _parts(len(lower), rows, known):
        try:
            low_part, high_part = _bound(part, rows, sides, lower, upper)
        except InternalError:
            failed.update(part.cells.tolist())
            continue
        lower[part.cells], upper[part.cells] = low_part, high_part
    return Intervals(lower, upper, frozenset(failed))


def narrowed(
    intervals: Intervals, system: System, told: Mapping[Coordinates, tuple[float, float]]
) -> Intervals:
    """The intervals, each within what is told of its cell besides the relations."""
    lower, upper = intervals.lower.copy(), intervals.upper.copy()
    for identity, (low, high) in told.items():
        number = system.numbers.get(identity)
        if number is not None:
            lower[number], upper[number] = max(lower[number], low), min(upper[number], high)
    return Intervals(lower, upper, intervals.failed)


def _rounding(
    system: System, known: NDArray[np.bool_], value: NDArray[np.float64], half: NDArray[np.float64]
) -> bool:
    """Whether some relation among known cells holds only up to the rounding of its numbers."""
    for row, low, high in system.rows:
        if low != high or not all(known[cell] for cell in row):
            continue
        total = sum(coefficient * value[cell] for cell, coefficient in row.items())
        size = sum(abs(coefficient * value[cell]) for cell, coefficient in row.items())
        if abs(total - low) > RELATIVE * max(1.0, size):
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Part:
    cells: NDArray[np.int64]
    rows: Sequence[int]


def _parts(n: int, rows: Sequence[dict[int, float]], known: NDArray[np.bool_]) -> list[_Part]:
    heads = [row_number for row_number, row in enumerate(rows) for _ in row]
    cells = [cell for row in rows for cell in row]
    graph = coo_array(
        (np.ones(len(cells)), (np.array(heads, dtype=np.int64) + n, np.array(cells, dtype=np.int64))),
        shape=(n + len(rows), n + len(rows)),
    )
    _, labels = connected_components(graph, directed=False)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for cell in np.flatnonzero(~known).tolist():
        parts.setdefault(int(labels[cell]), ([], []))[0].append(cell)
    for number in range(len(rows)):
        parts[int(labels[n + number])][1].append(number)
    return [
        _Part(np.array(members, dtype=np.int64), numbers) for members, numbers in parts.values() if numbers
    ]


def _bound(
    part: _Part,
    rows: Sequence[dict[int, float]],
    sides: Sequence[tuple[float, float]],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    place = {cell: index for index, cell in enumerate(part.cells.tolist())}
    indptr, indices, coefs = [0], [], []
    for number in part.rows:
        for cell, coefficient in rows[number].items():
            indices.append(place[cell])
            coefs.append(coefficient)
        indptr.append(len(indices))
    return bound_cells(
        lower[part.cells],
        upper[part.cells],
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(coefs),
        np.array([sides[number][0] for number in part.rows]),
        np.array([sides[number][1] for number in part.rows]),
        np.arange(len(part.cells), dtype=np.int64),
    )


def bound_cells(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    coefs: NDArray[np.float64],
    row_lower: NDArray[np.float64],
    row_upper: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval of each cell over lower ≤ y ≤ upper, row_lower ≤ M y ≤ row_upper.

    Parameters
    ----------
    lower, upper : float64[n]
        Bounds, ±inf allowed; equal for a known value.
    indptr, indices, coefs, row_lower, row_upper
        The relation system in compressed rows; equal sides make an equation.
    cells : int64[k]
        Cells whose interval is wanted.

    Returns
    -------
    lower, upper : float64[k]
        ±inf where unbounded.

    Raises
    ------
    InternalError
        The system has no solution.

    Notes
    -----
    One warm primal simplex: all problems share the feasible region, and a point met on the way
    that touches a cell's own bound settles that side of it.
    """
    program = LinearProgram(
        np.zeros(len(lower)),
        np.where(np.isfinite(lower), lower, -np.inf),
        np.where(np.isfinite(upper), upper, np.inf),
        indptr,
        indices,
        coefs,
        row_lower,
        row_upper,
        primal_simplex=True,
    )
    cells = np.asarray(cells, dtype=np.int64)
    found = (np.full(len(cells), np.inf), np.full(len(cells), -np.inf))
    settled = (lower[cells] == upper[cells], lower[cells] == upper[cells])
    found[0][settled[0]], found[1][settled[1]] = lower[cells][settled[0]], upper[cells][settled[1]]
    scale = np.maximum(1.0, np.abs(np.where(np.isfinite(lower), lower, 0.0))[cells])
    for side, sign in ((0, 1.0), (1, -1.0)):
        limit = lower[cells] if side == 0 else upper[cells]
        for k in range(len(cells)):
            if settled[side][k]:
                continue
            target = cells[k : k + 1]
            program.set_costs(target, np.array([sign]))
            result = program.solve()
            if result.status == "unbounded" and not program.recedes(lower, upper):
                result = program.solve(afresh=True)
            if result.status == "infeasible" or result.status == "limit":
                raise InternalError("the relation system of an interval problem has no solution")
            program.set_costs(target, np.zeros(1))
            settled[side][k] = True
            if result.status == "unbounded":
                found[side][k] = -sign * np.inf
                continue
            found[side][k] = result.primal[cells[k]]
            touch = np.abs(result.primal[cells] - limit) <= 1e-9 * scale
            found[side][touch & ~settled[side]] = limit[touch & ~settled[side]]
            settled[side][touch] = True
    return found
