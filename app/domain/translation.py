"""Cells of an earlier table by the coordinates of a later one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from app.domain.crawled import CubeCells
from app.domain.cube import Cube, IntArray
from app.domain.known import ShownCells
from app.domain.lattice import Bools, Longs, Space


def earlier_rows(space: Space, cube: Cube, past: Iterable[ShownCells]) -> IntArray:
    """Coordinates of all cells that earlier releases had on a sheet or told by ratios, as far as the cube
    still has their members; groups of members become extras of the space."""
    found = [np.zeros((0, space.columns), dtype=np.int32)]
    for shown in past:
        cells = shown.cells
        usable = cells.has_contributors & ~cells.is_derived
        # Nobody can add up what doesn't add up: groups of such measures stand on sheets only.
        usable &= cells.space.adds_up(cells.coords) | (cells.coords < cells.space.own).all(axis=1)
        rows = np.flatnonzero(usable[: cells.n_given])
        coords, has = translated(space, cube, cells, rows)
        found.append(coords[has])
    return np.concatenate(found)


def translated(space: Space, cube: Cube, cells: CubeCells, rows: Longs) -> tuple[IntArray, Bools]:
    """Coordinates of another table's rows in this cube's, and whether the cube has all their members."""
    result = np.zeros((len(rows), space.columns), dtype=np.int32)
    has = np.ones(len(rows), dtype=np.bool_)
    theirs = {tree.unique_name: 1 + place for place, tree in enumerate(cells.cube.hierarchies)}
    ours = {tree.unique_name for tree in cube.hierarchies}
    names: list[tuple[int, int | None, Mapping[str, int], bool]] = [
        (0, 0, {measure.unique_name: place for place, measure in enumerate(cube.measures)}, False)
    ]
    for h, tree in enumerate(cube.hierarchies):
        names.append((1 + h, theirs.get(tree.unique_name), tree.index_of, tree.has_all))
    for tree, column in ((tree, theirs[tree.unique_name]) for tree in cells.cube.hierarchies):
        if tree.unique_name not in ours:
            has &= (cells.coords[rows, column] == 0) & tree.has_all
    for column, other, index_of, has_all in names:
        if other is None:
            has &= has_all
            continue
        numbers, place = np.unique(cells.coords[rows, other], return_inverse=True)
        mapped = np.array(
            [_number(space, column, cells, other, int(number), index_of) for number in numbers],
            dtype=np.int64,
        )
        has &= mapped[place.reshape(-1)] >= 0
        result[:, column] = np.maximum(mapped, 0)[place.reshape(-1)]
    return result, has


def _number(
    space: Space, column: int, cells: CubeCells, other: int, number: int, index_of: Mapping[str, int]
) -> int:
    """This space's number of another table's member; -1 when a member is gone or it is no plain group."""
    if number < cells.space.own[other]:
        return index_of.get(cells.space.name(other, number), -1)
    extra = cells.space.extra(other, number)
    if not extra.is_group:
        return -1
    members = [index_of.get(cells.space.name(other, member), -1) for member, _ in extra.terms or ()]
    if min(members) < 0:
        return -1
    return space.number(column, [(member, 1.0) for member in members], "", is_formula=False)
