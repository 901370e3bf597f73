"""Places that readers know to be empty, and what that makes of the cells around them.

Where the firms of each region and activity are shown and Mining has some in the West alone, its small firms
are the West's small miners, though no sheet crosses the three: whoever takes their turnover off that of the
small firms of the West has the others'. So a cell is tied to its *nearest* name: at each hierarchy the lowest
member that has all that may be in the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Entries, same_cells
from app.domain.lattice import Bools, Longs, Space, Tree

#: Combinations of members of several hierarchies up to which it is remembered which of them are empty.
MOST_PLACES = 1_000_000
#: The same for hierarchies that no shown empty cell is at together.
MOST_TOGETHER = 200_000

#: Combinations of leaves (int32[k, columns]) of some columns that have facts, None where nobody knows.
Occupied = Callable[[tuple[int, ...]], IntArray | None]


@dataclass(frozen=True, eq=False)
class Emptiness:
    """Where a measure may have something, as far as readers know.

    Attributes
    ----------
    measure : int
        Its number; -1 for what is so for all measures.
    columns : tuple of int
        Hierarchies' columns.
    possible : bool[sizes of the columns]
        For each combination of own members whether there may be something below them.
    """

    measure: int
    columns: tuple[int, ...]
    possible: Bools

    def concerns(self, coords: IntArray) -> Bools:
        """Rows of coordinates that it says something of."""
        every = np.ones(len(coords), dtype=np.bool_)
        return every if self.measure < 0 else coords[:, 0] == self.measure

    def ends(self, tree: Tree, place: int) -> tuple[Longs, Longs]:
        """The first and last leaf that may have something below each combination, in the hierarchy at a
        place among the columns (int64[sizes]); where there is none the last is -1.
        """
        moved = np.moveaxis(self.possible, place, 0)
        shape = (tree.size, *(1,) * (moved.ndim - 1))
        member = np.arange(tree.size).reshape(shape)
        some = moved & (tree.last.reshape(shape) == member)
        after = np.minimum.accumulate(np.where(some, member, tree.size)[::-1], axis=0)[::-1]
        before = np.maximum.accumulate(np.where(some, member, -1), axis=0)[tree.last]
        last = np.where(before >= member, before, -1)
        return np.moveaxis(after, 0, place), np.moveaxis(last, 0, place)


def known_empty(
    space: Space, has_all: Sequence[bool], boxes: IntArray, occupied: Occupied
) -> tuple[Emptiness, ...]:
    """What readers know of where there is nothing.

    Parameters
    ----------
    space
    has_all
        Which hierarchies have a total.
    boxes : int32[k, space.columns]
        Cells of own measures and members that are known to have nothing; measure -1: that have no facts.
    occupied
        Where boxes without facts have some they aren't believed.
    """
    fixed = np.array([not has for has in has_all], dtype=np.bool_)

    def tables(boxes: IntArray) -> dict[tuple[int, ...], Bools]:
        found = {}
        masks, which = np.unique((boxes[:, 1:] != 0) | fixed, axis=0, return_inverse=True)
        for number, mask in enumerate(masks):
            columns = tuple((np.flatnonzero(mask) + 1).tolist())
            empty = _table(space, columns, boxes[which.reshape(-1) == number])
            if empty is not None:
                found[columns] = empty
        return found

    common = {}
    for columns, empty in tables(boxes[boxes[:, 0] < 0]).items():
        seen = occupied(columns)
        common[columns] = empty if seen is None else empty & ~_lifted(space, columns, seen)
    common = {columns: empty for columns, empty in common.items() if empty.any()}
    result = [_joined(space, -1, columns, [common]) for columns in _together(space, list(common))]
    for measure in np.unique(boxes[boxes[:, 0] >= 0, 0]).tolist():
        mine = tables(boxes[boxes[:, 0] == measure])
        if any(
            (empty & ~common[columns]).any() if columns in common else True for columns, empty in mine.items()
        ):
            listed = sorted({*common, *mine})
            result += [
                _joined(space, measure, columns, [common, mine]) for columns in _together(space, listed)
            ]
    return tuple(result)


def left_out(space: Space, coords: IntArray) -> IntArray:
    """Cells that an answer may have left out for having no facts (int32[k, space.columns]).

    They are at any members beside those that cells of the answer (``coords``) are at, crossed. None where
    these are more than `MOST_PLACES`.
    """
    coords = coords[(coords < space.own).all(axis=1)]
    if not len(coords):
        return coords
    listed = [coords[:1, 0].astype(np.int64)]
    for column, tree in enumerate(space.trees, 1):
        members = np.unique(coords[:, column])
        beside = np.flatnonzero(np.isin(tree.parent, np.unique(tree.parent[members])))
        listed.append(beside)
    if np.prod([len(members) for members in listed], dtype=np.float64) > MOST_PLACES:
        return coords[:0]
    grid = np.meshgrid(*listed, indexing="ij")
    return np.stack([part.reshape(-1) for part in grid], axis=1).astype(np.int32)


def _sizes(space: Space, columns: Sequence[int]) -> tuple[int, ...]:
    return tuple(space.trees[column - 1].size for column in columns)


def _table(space: Space, columns: tuple[int, ...], boxes: IntArray) -> Bools | None:
    sizes = _sizes(space, columns)
    if not columns or np.prod(sizes, dtype=np.float64) > MOST_PLACES:
        return None
    empty = np.zeros(sizes, dtype=np.bool_)
    empty[tuple(boxes[:, np.array(columns)].T)] = True
    return empty


def _lifted(space: Space, columns: tuple[int, ...], leaves: IntArray) -> Bools:
    """Combinations of members below which some combination of leaves is."""
    some = np.zeros(_sizes(space, columns), dtype=np.bool_)
    some[tuple(leaves.T)] = True
    for place, column in enumerate(columns):
        some = _above(space.trees[column - 1], np.moveaxis(some, place, 0), place)
    return some


def _above(tree: Tree, some: Bools, place: int) -> Bools:
    """Members with a marked leaf below them, along the first axis, which is put back to its place."""
    running = np.concatenate([np.zeros((1, *some.shape[1:]), dtype=np.int32), np.cumsum(some, 0, np.int32)])
    found: Bools = running[tree.last + 1] > running[np.arange(tree.size)]
    return np.moveaxis(found, 0, place)


def _together(space: Space, listed: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The columns of the tables: all of them in one if that is small, else by two; none within another."""
    tried = [tuple(sorted({column for columns in listed for column in columns}))]
    tried += [tuple(sorted({*one, *other})) for one, other in combinations(listed, 2)]
    small = [
        columns
        for columns in tried
        if columns and np.prod(_sizes(space, columns), dtype=np.float64) <= MOST_TOGETHER
    ]
    kept: list[tuple[int, ...]] = []
    for columns in sorted({*small, *listed}, key=lambda columns: (-len(columns), columns)):
        if not any(set(columns) <= set(other) for other in kept):
            kept.append(columns)
    return kept


def _joined(
    space: Space, measure: int, columns: tuple[int, ...], tables: Sequence[Mapping[tuple[int, ...], Bools]]
) -> Emptiness:
    """One table of what those say whose columns are among its."""
    empty = np.zeros(_sizes(space, columns), dtype=np.bool_)
    for mine, table in (item for listed in tables for item in listed.items()):
        if set(mine) <= set(columns):
            shape = [size if column in mine else 1 for column, size in zip(columns, empty.shape, strict=True)]
            empty |= table.reshape(shape)
    leaf = np.ones_like(empty)
    for place, column in enumerate(columns):
        tree = space.trees[column - 1]
        moved = np.moveaxis(empty, place, 0)
        parent = tree.parent
        while (parent >= 0).any():
            moved = moved | (moved[parent] & (parent >= 0).reshape(-1, *(1,) * (moved.ndim - 1)))
            parent = np.where(parent >= 0, tree.parent[parent], -1)
        empty = np.moveaxis(moved, 0, place)
        shape = [-1 if other == place else 1 for other in range(len(columns))]
        leaf &= (tree.last == np.arange(tree.size)).reshape(shape)
    possible: Bools = leaf & ~empty
    for place, column in enumerate(columns):
        possible = _above(space.trees[column - 1], np.moveaxis(possible, place, 0), place)
    return Emptiness(measure, columns, possible)


def nearest_names(space: Space, known: Sequence[Emptiness], cells: IntArray, rows: Longs) -> list[Entries]:
    """Cells, at own members and groups, that are those of their nearest names."""
    if not known:
        return []
    names = cells[rows].copy()
    left = np.arange(len(names))
    while len(left):
        before = names[left].copy()
        for table in known:
            mine = left[table.concerns(names[left])]
            columns = np.array(table.columns)
            places, which = np.unique(names[mine][:, columns], axis=0, return_inverse=True)
            names[np.ix_(mine, columns)] = _narrowed(space, table, places)[which.reshape(-1)]
        left = left[(names[left] != before).any(axis=1)]
    return [same_cells(cells[rows], names)]


def _narrowed(space: Space, table: Emptiness, places: IntArray) -> IntArray:
    """Members and groups (int32[p, columns]) with each of them as low as what may be there."""
    owner, boxes = _spread(space, table.columns, places)
    result = places.copy()
    there = table.possible[tuple(boxes.T)]
    for place, column in enumerate(table.columns):
        tree = space.trees[column - 1]
        own = places[:, place] < tree.size
        first, last = (end[tuple(boxes.T)] for end in table.ends(tree, place))
        low, high = np.full(len(places), tree.size), np.full(len(places), -1)
        np.minimum.at(low, owner, first)
        np.maximum.at(high, owner, last)
        rows = np.flatnonzero(own & (high >= 0))
        member = places[rows, place]
        cover = _cover(tree, low[rows], high[rows])
        # A member that has but one below it is no narrower for that.
        narrower = cover != _cover(tree, _first_leaf(tree)[member], tree.last[member].astype(np.int64))
        result[rows[narrower], place] = cover[narrower]
        groups = there & ~own[owner]
        kept = np.unique(np.stack([owner[groups], boxes[groups, place]], axis=1), axis=0)
        grouped, start, count = np.unique(kept[:, 0], return_index=True, return_counts=True)
        size = np.array([len(extra.terms or ()) for extra in space.extras[column]], dtype=np.int64)
        fewer = count < size[places[grouped, place] - tree.size]
        for row, at, n in zip(grouped[fewer], start[fewer], count[fewer], strict=True):
            terms = [(int(member), 1.0) for member in kept[at : at + n, 1]]
            result[row, place] = space.number(column, terms, "", is_formula=False)
    return result


def _spread(space: Space, columns: tuple[int, ...], places: IntArray) -> tuple[Longs, IntArray]:
    """Places with groups as the products of own members that they are: (place, int32 members)."""
    owner, boxes = np.arange(len(places)), places
    for place, column in enumerate(columns):
        extra = boxes[:, place] >= space.own[column]
        if extra.any():
            which, member, _ = space.terms_of(column, boxes[extra, place].astype(np.int64))
            more = boxes[extra][which]
            more[:, place] = member
            owner = np.concatenate([owner[~extra], owner[extra][which]])
            boxes = np.concatenate([boxes[~extra], more])
    return owner, boxes


def _first_leaf(tree: Tree) -> Longs:
    leaf = tree.last == np.arange(tree.size)
    after = np.where(leaf, np.arange(tree.size), tree.size)
    return np.minimum.accumulate(after[::-1])[::-1].astype(np.int64)


def _cover(tree: Tree, low: Longs, high: Longs) -> Longs:
    """The lowest member above each two leaves, or the first of them where none is above both."""
    cover = low.astype(np.int64).copy()
    while (short := (tree.last[cover] < high) & (tree.parent[cover] >= 0)).any():
        cover[short] = tree.parent[cover[short]]
    return cover
