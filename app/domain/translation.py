"""Cells of an earlier table by the coordinates of a later one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from app.domain.crawled import CubeCells
from app.domain.cube import Cube, Hierarchy, IntArray
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
        has &= space.adds_up(coords) | (coords < space.own).all(axis=1)
        found.append(coords[has])
    return np.concatenate(found)


def translated(space: Space, cube: Cube, cells: CubeCells, rows: Longs) -> tuple[IntArray, Bools]:
    """Coordinates of another table's rows in this cube's, and whether the cube has all their members.

    A member that is gone is the group of those beneath it that are still there, as a level that was given up
    leaves them; a group is that of its members which are there.
    """
    result = np.zeros((len(rows), space.columns), dtype=np.int32)
    has = np.ones(len(rows), dtype=np.bool_)
    theirs = {tree.unique_name: 1 + place for place, tree in enumerate(cells.cube.hierarchies)}
    ours = {tree.unique_name for tree in cube.hierarchies}
    measures = {measure.unique_name: place for place, measure in enumerate(cube.measures)}
    names: list[tuple[int, int | None, Hierarchy | None]] = [(0, 0, None)]
    for h, tree in enumerate(cube.hierarchies):
        names.append((1 + h, theirs.get(tree.unique_name), tree))
    for tree, column in ((tree, theirs[tree.unique_name]) for tree in cells.cube.hierarchies):
        if tree.unique_name not in ours:
            has &= (cells.coords[rows, column] == 0) & tree.has_all
    for column, other, ours_too in names:
        if other is None:
            has &= ours_too is not None and ours_too.has_all
            continue
        numbers, place = np.unique(cells.coords[rows, other], return_inverse=True)
        mapped = np.array(
            [
                measures.get(cells.space.name(0, number), -1)
                if ours_too is None
                else _number(space, column, cells, other, number, ours_too)
                for number in numbers.tolist()
            ],
            dtype=np.int64,
        )
        has &= mapped[place.reshape(-1)] >= 0
        result[:, column] = np.maximum(mapped, 0)[place.reshape(-1)]
    return result, has


def _number(space: Space, column: int, cells: CubeCells, other: int, number: int, tree: Hierarchy) -> int:
    """This space's number of another table's member; -1 when it is gone or it is no plain group."""
    old = cells.cube.hierarchies[other - 1]
    if number < old.size:
        wanted = [number]
    else:
        extra = cells.space.extra(other, number)
        if not extra.is_group:
            return -1
        wanted = [member for member, _ in extra.terms or ()]
    found: set[int] = set()
    while wanted:
        member = wanted.pop()
        here = tree.index_of.get(old.unique_names[member], -1)
        if here >= 0:
            found.add(here)
        else:
            wanted.extend(old.child_lists[member].tolist())
    # Who has come to stand beneath another of them is in it already.
    last = -1
    members = [m for m in sorted(found) if m > last and (last := int(tree.last_descendant[m])) >= 0]
    return space.number(column, [(m, 1.0) for m in members], "", is_formula=False) if members else -1
