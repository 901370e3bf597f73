"""What is left of a cell when cells within it are taken off that differ from it in several hierarchies.

Of all firms and the large ones of the West, shown without the West and the large ones, a reader has the rest:
no product of members, and so no cell of the table. Which cells lie in which is told by their leaves; between
a cell and those taken off stands no other one, for else the rest is made of two that are looked at by
themselves. Taken off together are cells that don't overlap, as many as there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from app.domain.cube import IntArray
from app.domain.known import row_hashes
from app.domain.lattice import Bools, Longs, Space, ranges, row_of
from app.domain.maxima import branches_of

#: Pairs of cells of which one lies in the other, up to which they are looked at.
MOST_PAIRS = 5_000_000
#: Cells directly within one up to which it is found out which of them overlap.
MOST_WITHIN = 1_000
#: Pairs of members and groups with a leaf in common, times these leaves, up to which cells at groups are
#: looked at.
MOST_SHARED = 500_000_000
CHUNK = 5_000


@dataclass(frozen=True, eq=False)
class Rest:
    """A cell less others in it (rows of a table, ascending); ``least``: nothing more can be taken off."""

    total: int
    less: Longs
    least: bool


@dataclass(frozen=True, eq=False)
class _Column:
    """The numbers of a column that some cells have.

    ``which`` (int64[n]) is the set of leaves of each cell, ``outer`` (csr[k, k]) marks the sets that each set
    lies in, ``meets`` (csr[k, k]) those that it shares leaves with.
    """

    which: Longs
    outer: sparse.csr_array
    meets: sparse.csr_array

    @property
    def size(self) -> int:
        return int(self.outer.shape[0])


def rests(space: Space, coords: IntArray) -> Iterator[Rest]:
    """What is left of each cell, for the largest sets of cells to take off, and for each of these alone.

    Parameters
    ----------
    space
    coords : int32[n, space.columns]
        Distinct cells of one measure, with contributors. Nothing where more than `MOST_PAIRS` lie in others.
    """
    usable = np.arange(len(coords))
    for column in range(1, space.columns):
        _, inside = _leaves(space, coords[usable], column)
        if (np.bincount(inside.indices, minlength=1).astype(np.float64) ** 2).sum() > MOST_SHARED:
            usable = usable[coords[usable, column] < space.own[column]]
    for rest in _rests(space, coords[usable]):
        yield Rest(int(usable[rest.total]), usable[rest.less], rest.least)


def _rests(space: Space, coords: IntArray) -> Iterator[Rest]:
    columns = [_column(space, coords, column) for column in range(1, space.columns)]
    sets = np.stack([column.which for column in columns], axis=1)
    _, first = np.unique(sets, axis=0, return_index=True)
    rows = np.sort(first)
    pairs = _containing(columns, rows)
    if pairs is None:
        return
    inner, outer = pairs
    within = sparse.csr_array(
        (np.ones(len(inner), dtype=np.int32), (outer, inner)), shape=(len(rows), len(rows))
    )
    between = within @ within
    direct = sparse.csr_array(within - within.multiply(between > 0))
    direct.eliminate_zeros()
    total = row_of(direct.indptr.astype(np.int64))
    crossing = (sets[rows[total]] != sets[rows[direct.indices]]).sum(axis=1) > 1
    total, part = total[crossing], direct.indices[crossing].astype(np.int64)
    for start, end in _runs(total):
        mine = rows[np.sort(part[start:end])]
        for less, least in _families(columns, mine):
            yield Rest(int(rows[total[start]]), less, least)


def _leaves(space: Space, coords: IntArray, column: int) -> tuple[Longs, sparse.csr_array]:
    """The numbers that cells have in a column: which one each cell has, and the leaves of each (csr)."""
    numbers, which = np.unique(coords[:, column].astype(np.int64), return_inverse=True)
    tree = space.trees[column - 1]
    before = np.concatenate([[0], np.cumsum(tree.last == np.arange(tree.size))])
    owner, low, high = branches_of(space, column, numbers)
    count = before[high + 1] - before[low]
    leaf = ranges(before[low], count)
    inside = sparse.csr_array(
        (np.ones(len(leaf), dtype=np.int32), (np.repeat(owner, count), leaf)),
        shape=(len(numbers), int(before[-1])),
    )
    return which.reshape(-1), inside


def _column(space: Space, coords: IntArray, column: int) -> _Column:
    which, inside = _leaves(space, coords, column)
    mark = row_hashes([np.arange(inside.shape[1])])
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mark[inside.indices], dtype=np.uint64)])
    _, same, kind = np.unique(
        sums[inside.indptr[1:]] - sums[inside.indptr[:-1]], return_index=True, return_inverse=True
    )
    inside = sparse.csr_array(inside[same])
    shared = sparse.coo_array(inside @ inside.T)
    whole = shared.data == np.diff(inside.indptr)[shared.row]
    outer = sparse.csr_array((shared.data[whole], (shared.row[whole], shared.col[whole])), shape=shared.shape)
    return _Column(kind.reshape(-1)[which].astype(np.int64), outer, sparse.csr_array(shared))


def _containing(columns: list[_Column], rows: Longs) -> tuple[Longs, Longs] | None:
    """Pairs of cells (places among the rows) of which the first lies in the second; None for too many."""
    keys: list[Longs] = []
    place = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        found, place = np.unique(place * column.size + column.which[rows], return_inverse=True)
        keys.append(found)
        place = place.reshape(-1)
    row_at = np.argsort(place)
    inner, outer, size = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for start in range(0, len(rows), CHUNK):
        cell = np.arange(start, min(start + CHUNK, len(rows)))
        at = np.zeros(len(cell), dtype=np.int64)
        for column, known in zip(columns, keys, strict=True):
            mine = column.which[rows[cell]]
            counts = np.diff(column.outer.indptr)[mine].astype(np.int64)
            wider = column.outer.indices[ranges(column.outer.indptr[mine].astype(np.int64), counts)]
            wanted = np.repeat(at, counts) * column.size + wider
            found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            met = known[found] == wanted
            cell, at = np.repeat(cell, counts)[met], found[met]
        other = row_at[at]
        inner.append(cell[other != cell])
        outer.append(other[other != cell])
        size += len(inner[-1])
        if size > MOST_PAIRS:
            return None
    return np.concatenate(inner), np.concatenate(outer)


def _families(columns: list[_Column], rows: Longs) -> Iterator[tuple[Longs, bool]]:
    """Sets of cells that don't overlap: the largest that begins with each (True), and each cell alone."""
    seen: set[bytes] = set()
    if len(rows) <= MOST_WITHIN:
        overlap = np.ones((len(rows), len(rows)), dtype=np.bool_)
        for column in columns:
            mine = column.which[rows]
            overlap &= column.meets[mine][:, mine].toarray() > 0
        for begin in range(len(rows)):
            family = _largest(overlap, begin)
            if family.tobytes() not in seen:
                seen.add(family.tobytes())
                yield rows[family], True
    for alone in range(len(rows)):
        if np.array([alone]).tobytes() not in seen:
            yield rows[alone : alone + 1], False


def _largest(overlap: Bools, begin: int) -> Longs:
    """The places of cells that don't overlap, from one on, those that overlap fewest first."""
    taken = np.zeros(len(overlap), dtype=np.bool_)
    blocked = overlap[begin].copy()
    taken[begin] = True
    for place in np.argsort(overlap.sum(axis=1), kind="stable").tolist():
        if not blocked[place]:
            taken[place] = True
            blocked |= overlap[place]
    return np.flatnonzero(taken)


def _runs(labels: Longs) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(labels)) + 1
    ends = [0, *edges.tolist(), len(labels)]
    return ((start, end) for start, end in pairwise(ends) if end > start)
