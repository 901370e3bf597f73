"""Hierarchies that divide the same things and cut across each other: one cell has several names.

Where nobody under 15 is of age, those under 15 of all legal ages are the minors under 15. A reader who sees
children by one division and minors by another subtracts them, so each cell is tied to its *tightest* name:
the same facts, at no member that they don't reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.domain.cube import IntArray
from app.domain.lattice import Bools, Longs, Space, Tree

Floats = NDArray[np.float64]

#: Pairs times leaves that are looked at together.
MOST_MARKS = 4_000_000


@dataclass(frozen=True, eq=False)
class Overlap:
    """Columns of two hierarchies; ``meets`` (bool[size, size]) marks pairs of leaves with facts together.

    Where there is a ``column``, that is said of cells whose member of it has no leaves but those ``inside``
    (bool[size]).
    """

    first: int
    second: int
    meets: Bools
    column: int = 0
    inside: Bools | None = None


def tightened(space: Space, overlaps: Sequence[Overlap], coords: IntArray) -> IntArray:
    """The tightest name of each cell of own members and groups (int32[n, columns])."""
    coords = coords.copy()
    for overlap in overlaps:
        rows = np.flatnonzero(within(space, coords, overlap.column, overlap.inside))
        (ones, one), (others, other) = (
            np.unique(coords[rows, column], return_inverse=True) for column in (overlap.first, overlap.second)
        )
        pairs, place = np.unique(one * len(others) + other, return_inverse=True)
        first, second = np.divmod(pairs, max(len(others), 1))
        sides = (
            _Side(space, overlap.first, ones, first, overlap.meets),
            _Side(space, overlap.second, others, second, overlap.meets.T),
        )
        coords[rows, overlap.first] = sides[0].narrowed(sides[1])[place]
        coords[rows, overlap.second] = sides[1].narrowed(sides[0])[place]
    return coords


class _Side:
    """One hierarchy of an overlap: its members of some pairs, and which leaves have facts with the other's.

    ``members`` (int[u]) are distinct, ``place`` (int64[pairs]) is the one of each pair, ``meets``
    (bool[size, size]) stands with this hierarchy's leaves first.
    """

    def __init__(self, space: Space, column: int, members: IntArray, place: Longs, meets: Bools) -> None:
        self._space, self._column, self._members, self._place = space, column, members, place
        self._meets, self._known = meets, np.logical_or.reduce(meets, axis=1)
        weights = [leaf_weights(space, column, member) for member in members.tolist()]
        self._adds_up = np.array([weight is not None for weight in weights], dtype=np.bool_)
        self._leaves = np.zeros((len(members), len(meets)), dtype=np.bool_)
        for row, weight in zip(self._leaves, weights, strict=True):
            row[:] = False if weight is None else weight != 0

    def _met(self) -> Bools:
        """Which leaves of the other hierarchy have facts with each member's (bool[u, size])."""
        leaves, meets = (sparse.csr_array(marks.astype(np.int32)) for marks in (self._leaves, self._meets))
        met: Bools = (leaves @ meets).toarray() > 0
        return met

    def narrowed(self, other: _Side) -> IntArray:
        """The member of each pair, or the group of its leaves that have facts with the other's."""
        found = self._members[self._place].astype(np.int32)
        asked = np.flatnonzero(self._adds_up[self._place] & other._adds_up[other._place])
        met, known = other._met(), self._leaves & self._known
        numbers: dict[bytes, int] = {}
        for pairs in np.array_split(asked, len(asked) * len(self._known) // MOST_MARKS + 1):
            place = self._place[pairs]
            reached = self._leaves[place] & met[other._place[pairs]]
            narrower = reached.any(axis=1) & (reached != known[place]).any(axis=1)
            found[pairs[narrower]] = self._groups(reached[narrower], numbers)
        return found

    def _groups(self, leaves: Bools, numbers: dict[bytes, int]) -> list[int]:
        """The groups of some leaves (bool[k, size]); those met before are in ``numbers``."""
        keys = [marks.tobytes() for marks in np.packbits(leaves, axis=1)]
        fresh = {key: row for row, key in enumerate(keys) if key not in numbers}
        tree, weights = self._space.trees[self._column - 1], leaves[list(fresh.values())].astype(np.float64)
        for key, terms in zip(fresh, gathered_each(tree, weights, self._known), strict=True):
            numbers[key] = self._space.number(self._column, terms, "", is_formula=False)
        return [numbers[key] for key in keys]


def leaf_weights(space: Space, column: int, number: int) -> Floats | None:
    """How often each leaf of a hierarchy counts in a member (float64[size]); None if it is no sum of them."""
    tree = space.trees[column - 1]
    terms = ((number, 1.0),) if number < tree.size else space.extra(column, number).terms
    if terms is None:
        return None
    weights = np.zeros(tree.size)
    for member, factor in terms:
        weights[member : tree.last[member] + 1] += factor
    weights[tree.last != np.arange(tree.size)] = 0
    return weights


def within(space: Space, coords: IntArray, column: int, inside: Bools | None) -> Bools:
    """The cells (bool[n]) whose member of a column has no leaves but those ``inside`` (bool[size])."""
    if inside is None:
        return np.ones(len(coords), dtype=np.bool_)
    members, place = np.unique(coords[:, column], return_inverse=True)
    weights = [leaf_weights(space, column, int(member)) for member in members]
    told = [weight is not None and not (weight != 0)[~inside].any() for weight in weights]
    return np.array(told, dtype=np.bool_)[place.reshape(-1)]


def gathered(tree: Tree, weights: Floats, known: Bools) -> list[tuple[int, float]]:
    """Leaves by weight as terms, whole branches of one weight as their top; leaves not ``known`` are none."""
    return gathered_each(tree, weights[None], known)[0]


def gathered_each(tree: Tree, weights: Floats, known: Bools) -> list[list[tuple[int, float]]]:
    """As `gathered`, for several weights of each leaf (float64[k, size])."""
    found: list[list[tuple[int, float]]] = [[] for _ in weights]
    listed = weights[:, known]
    if not listed.any():
        return found
    ends = np.concatenate([[0], np.cumsum(known)])
    filled = ends[tree.last + 1] > ends[:-1]
    first, last = np.minimum(ends[:-1], listed.shape[1] - 1), np.maximum(ends[tree.last + 1], 1) - 1
    changes = np.zeros(listed.shape, dtype=np.int64)
    np.cumsum(listed[:, 1:] != listed[:, :-1], axis=1, out=changes[:, 1:])
    even = filled & (changes[:, last] == changes[:, first]) & (listed[:, first] != 0)
    # Branches come one after the other or one in the other: a top is in none of those before it.
    reach = np.maximum.accumulate(np.where(even, tree.last, -1), axis=1)
    even[:, 1:] &= reach[:, :-1] < np.arange(1, tree.size)
    rows, tops = np.nonzero(even)
    for row, top, weight in zip(
        rows.tolist(), tops.tolist(), listed[rows, first[tops]].tolist(), strict=True
    ):
        found[row].append((top, weight))
    return found
