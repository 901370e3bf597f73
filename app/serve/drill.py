"""Going a level deeper in a published table, as far as the release has the cells.

The cells that come in stand on other sheets of the release: they are found by their coordinates, or by their
keys where a calculated member is met. One that the release doesn't have is -1, which `mask` hides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Cube, Hierarchy
from app.domain.masked import Axis, AxisMember, Layout
from app.domain.places import SEPARATOR, Places
from app.domain.release import Release

Rows = NDArray[np.int64]
Position = tuple[AxisMember, ...]

#: Larger tables don't offer to be opened, and as many cells are looked up to see what can be.
MOST = 200_000


def open_members(
    layout: Layout, names: Sequence[str], cube: Cube, places: Places, release: Release
) -> Layout:
    """The layout with the children of some of its members below them.

    Parameters
    ----------
    names : sequence of str
        Unique names; parents before their children. Those that the table doesn't hold, or whose children it
        holds already, are passed over.
    """
    for name in names:
        layout = _open(layout, name, cube, places, release)
    return layout


def openable(layout: Layout, cube: Cube, places: Places) -> frozenset[str]:
    """Unique names of the members whose parts the release has, at least half of their cells.

    Fewer would open rows that say little but that they weren't released.
    """
    if not layout.axes or layout.cell.size > MOST:
        return frozenset()
    found: set[str] = set()
    looked_up = 0
    for number, axis in enumerate(layout.axes):
        for column, name in enumerate(axis.hierarchies):
            hierarchy = _hierarchy(cube, name)
            if hierarchy is None:
                continue
            parents = {position[column].parent for position in axis.positions}
            first = {position[column].unique_name: position for position in reversed(axis.positions)}
            for member, position in first.items():
                children = _children(hierarchy, member)
                if member in parents or not children:
                    continue
                own = [replaced(position, column, child) for child in children]
                others = layout.cell.size // max(1, len(axis.positions))
                looked_up += len(own) * others
                if looked_up > MOST:
                    return frozenset(found)
                if (
                    2 * np.count_nonzero(_rows_of(layout, number, own, cube, places) >= 0)
                    >= len(own) * others
                ):
                    found.add(member)
    return frozenset(found)


def replaced(position: Position, column: int, member: AxisMember) -> Position:
    """A position with another member in one place."""
    return (*position[:column], member, *position[column + 1 :])


def _hierarchy(cube: Cube, name: str) -> Hierarchy | None:
    index = cube.hierarchy_index.get(name)
    return None if index is None else cube.hierarchies[index]


def _children(hierarchy: Hierarchy, name: str) -> list[AxisMember]:
    at = hierarchy.index_of.get(name)
    children = [] if at is None else hierarchy.child_lists[at].tolist()
    return [_member(hierarchy, child) for child in children if child not in hierarchy.unlisted]


def _member(hierarchy: Hierarchy, at: int) -> AxisMember:
    level = hierarchy.levels[0 if hierarchy.parent_child else int(hierarchy.depth[at])]
    return AxisMember(
        hierarchy=hierarchy.unique_name,
        unique_name=hierarchy.unique_names[at],
        captions={code: column[at] for code, column in hierarchy.member_captions.items()},
        level=level.unique_name,
        depth=int(hierarchy.depth[at]),
        parent=hierarchy.unique_names[int(hierarchy.parent[at])],
    )


def _open(layout: Layout, name: str, cube: Cube, places: Places, release: Release) -> Layout:
    for number, axis in enumerate(layout.axes):
        for column, owner in enumerate(axis.hierarchies):
            hierarchy = _hierarchy(cube, owner)
            if hierarchy is None or not any(p[column].unique_name == name for p in axis.positions):
                continue
            children = _children(hierarchy, name)
            if not children or any(p[column].parent == name for p in axis.positions):
                return layout
            return _inserted(layout, number, column, name, children, cube, places, release)
    return layout


def _inserted(
    layout: Layout,
    number: int,
    column: int,
    name: str,
    children: list[AxisMember],
    cube: Cube,
    places: Places,
    release: Release,
) -> Layout:
    positions: list[Position] = []
    source: list[int] = []
    axis = layout.axes[number]
    start = 0
    for prefix, run in groupby(axis.positions, key=lambda p: [m.unique_name for m in p[: column + 1]]):
        inside = list(run)
        whole = list(range(start, start + len(inside)))
        positions += inside
        source += whole
        start += len(inside)
        if prefix[-1] == name:
            for child in children:
                positions += [replaced(position, column, child) for position in inside]
                source += [-1 - at for at in whole]
    shape = [len(a.positions) for a in reversed(layout.axes)]
    along = len(layout.axes) - 1 - number
    taken = np.array([at if at >= 0 else -1 - at for at in source])
    cell = np.take(layout.cell.reshape(shape), taken, axis=along)
    style = np.take(layout.style.reshape(shape), taken, axis=along)
    new = np.array(source) < 0
    fresh = [position for position, is_new in zip(positions, new.tolist(), strict=True) if is_new]
    rows = _rows_of(layout, number, fresh, cube, places)
    inside_key = [position[column].unique_name for position in fresh]
    index: list[slice | NDArray[np.bool_]] = [slice(None)] * len(shape)
    index[along] = new
    old = cell[tuple(index)]
    rows = np.where(rows >= 0, rows, _by_key(old, along, name, inside_key, places, release))
    cell = cell.copy()
    cell[tuple(index)] = rows
    axes = (*layout.axes[:number], Axis(tuple(positions)), *layout.axes[number + 1 :])
    return replace(layout, axes=axes, cell=cell.reshape(-1), style=style.reshape(-1))


def _rows_of(layout: Layout, number: int, own: list[Position], cube: Cube, places: Places) -> Rows:
    """Rows in the release of the cells of some positions of an axis, in the shape of the axes reversed."""
    sides = [own if k == number else list(axis.positions) for k, axis in enumerate(layout.axes)]
    order = {name: place for place, name in enumerate(["[Measures]", *cube.hierarchy_index])}
    numbers = [cube.measure_index, *(hierarchy.index_of for hierarchy in cube.hierarchies)]
    base = np.array([0, *(h.default_member for h in cube.hierarchies)], dtype=np.int64)
    for member in layout.slicer:
        place = order[member.hierarchy]
        base[place] = numbers[place].get(member.unique_name, -1)
    shape = [len(side) for side in reversed(sides)]
    coords = np.empty((*shape, len(base)), dtype=np.int32)
    coords[...] = base
    for k, side in enumerate(sides):
        along = len(sides) - 1 - k
        for column, name in enumerate(member.hierarchy for member in side[0]) if side else ():
            place = order[name]
            told = np.array([numbers[place].get(p[column].unique_name, -1) for p in side], dtype=np.int32)
            coords[..., place] = told.reshape([-1 if axis == along else 1 for axis in range(len(shape))])
    flat = coords.reshape(-1, len(base))
    found = _Index.of(places).rows(flat)
    found[np.any(flat < 0, axis=1)] = -1
    return found.reshape(shape)


def _by_key(
    above: Rows, along: int, parent: str, children: list[str], places: Places, release: Release
) -> Rows:
    """Rows of cells whose parents' rows are known, by the parents' keys with the child's name in them.

    That finds cells at calculated members, whose keys hold formulas.
    """
    keys = _keys_of(places)
    found = np.full(above.shape, -1, dtype=np.int64)
    if not keys:
        return found
    for at in product(*map(range, above.shape)):
        row = int(above[at])
        parts = release.keys[row].split(SEPARATOR) if 0 <= row < len(release.keys) else []
        if parts.count(parent) == 1:
            child = SEPARATOR.join(children[at[along]] if part == parent else part for part in parts)
            found[at] = keys.get(child, -1)
    return found


@lru_cache(maxsize=8)
def _keys_of(places: Places) -> Mapping[str, int]:
    return dict(zip(places.keys, places.key_row.tolist(), strict=True))


class _Index:
    """Rows by coordinates."""

    def __init__(self, places: Places) -> None:
        keys = self._keys(places.coords)
        order = np.argsort(keys, kind="stable")
        self._sorted, self._row = keys[order], places.row[order]

    @staticmethod
    @lru_cache(maxsize=8)
    def of(places: Places) -> _Index:
        return _Index(places)

    @staticmethod
    def _keys(coords: NDArray[np.int32]) -> NDArray[np.void]:
        # Big-endian bytes stand in the order of their numbers.
        wide = np.ascontiguousarray(coords, dtype=">u4")
        return wide.view(np.dtype((np.void, wide.dtype.itemsize * wide.shape[1]))).reshape(-1)

    def rows(self, coords: NDArray[np.int32]) -> Rows:
        """Row of each coordinate, -1 where there is none."""
        found = np.full(len(coords), -1, dtype=np.int64)
        if not len(self._sorted) or not len(coords):
            return found
        keys = self._keys(coords)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        same = self._sorted[at] == keys
        found[same] = self._row[at[same]]
        return found
