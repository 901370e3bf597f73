"""Where cells live: the trees of members, and the members that formulas and remainders add to them.

A coordinate below the size of its column is an own measure or member of the cube; larger ones are `Extra`
members, numbered in the order in which they were met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Cube, IntArray

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_KEY = 2**62


@dataclass(frozen=True, eq=False)
class Tree:
    """Members of a hierarchy in depth-first order: ``last[m]`` ends the branch of ``m``."""

    parent: IntArray
    last: IntArray
    child_start: Longs
    children: IntArray

    @classmethod
    def of(cls, parent: IntArray, last: IntArray) -> Tree:
        order = np.argsort(parent, kind="stable").astype(np.int32)
        starts = np.searchsorted(parent[order], np.arange(len(parent) + 1))
        return cls(parent, last, starts.astype(np.int64), order)

    @property
    def size(self) -> int:
        return len(self.parent)

    def children_of(self, members: Longs) -> tuple[Longs, Longs]:
        """Children of each member: (position in ``members``, child), both int64."""
        counts = self.child_start[members + 1] - self.child_start[members]
        owner = np.repeat(np.arange(len(members)), counts)
        return owner, self.children[ranges(self.child_start[members], counts)].astype(np.int64)


def lifted(parent: IntArray, depth: Longs | IntArray, wanted: int) -> Longs:
    """The member above each member at a depth, or itself where nothing is above it there (int64[n]).

    Parameters
    ----------
    parent : int32[n]
        -1 for none.
    depth : int[n]
        By levels or by steps, as the caller counts.
    """
    found = np.arange(len(parent), dtype=np.int64)
    while (low := (depth[found] > wanted) & (parent[found] >= 0)).any():
        found[low] = parent[found[low]]
    return found


@dataclass(frozen=True)
class Extra:
    """A member of one column that isn't the cube's own.

    Attributes
    ----------
    column
        0 for measures, ``1 + h`` for hierarchy ``h``.
    key
        Normal form: equal extras have equal keys.
    terms
        Own members (ascending) and coefficients that it adds up; None when it isn't such a sum.
    is_formula
        Whether a published formula names it, so that its operands are cells; False for a remainder.
    """

    column: int
    key: str
    terms: tuple[tuple[int, float], ...] | None
    is_formula: bool

    @property
    def is_group(self) -> bool:
        """Whether it is a plain set of members of a hierarchy, with contributors of its own."""
        return (
            self.column > 0
            and self.terms is not None
            and all(coefficient == 1 for _, coefficient in self.terms)
        )


class Space:
    """The columns of one cube's coordinates: own members, and extras as they are met.

    Parameters
    ----------
    trees
        One for each hierarchy.
    additive : bool[M]
        Which measures add up.
    names
        Unique names by column, for keys.
    counted : bool[M], optional
        Which measures count distinct values: they add up wherever no value is counted twice.
    """

    def __init__(
        self,
        trees: Sequence[Tree],
        additive: Bools,
        names: Sequence[Sequence[str]],
        counted: Bools | None = None,
    ) -> None:
        self.trees = tuple(trees)
        self.additive = additive
        self.counted = np.zeros(len(additive), dtype=np.bool_) if counted is None else counted
        self.names = tuple(names)
        self.own = np.array([len(additive), *(tree.size for tree in trees)], dtype=np.int64)
        self.extras: list[list[Extra]] = [[] for _ in self.own]
        self._numbers: dict[tuple[int, str], int] = {}

    @classmethod
    def of(cls, cube: Cube) -> Space:
        trees = [Tree.of(hierarchy.parent, hierarchy.last_descendant) for hierarchy in cube.hierarchies]
        names = [
            [measure.unique_name for measure in cube.measures],
            *(hierarchy.unique_names for hierarchy in cube.hierarchies),
        ]
        additive = np.array([measure.additive for measure in cube.measures], dtype=np.bool_)
        counted = np.array([m.aggregator == "distinct-count" for m in cube.measures], dtype=np.bool_)
        return cls(trees, additive, names, counted)

    @property
    def columns(self) -> int:
        return len(self.own)

    @property
    def sizes(self) -> Longs:
        """Members of each column so far, own and extra."""
        return self.own + np.array([len(extras) for extras in self.extras], dtype=np.int64)

    def number(
        self, column: int, terms: Sequence[tuple[int, float]] | None, key: str, is_formula: bool = True
    ) -> int:
        """Coordinate of an extra; a sum of one member taken once is that member itself."""
        if terms is not None:
            terms = tuple(sorted(terms))
            if len(terms) == 1 and terms[0][1] == 1:
                return terms[0][0]
            key = self._terms_key(column, terms)
        known = self._numbers.get((column, key))
        if known is not None:
            if is_formula and not self.extra(column, known).is_formula:
                place = known - int(self.own[column])
                self.extras[column][place] = Extra(column, key, terms, True)
            return known
        number = int(self.own[column]) + len(self.extras[column])
        self.extras[column].append(Extra(column, key, terms, is_formula))
        self._numbers[column, key] = number
        return number

    def extra(self, column: int, number: int) -> Extra:
        return self.extras[column][number - int(self.own[column])]

    def name(self, column: int, number: int) -> str:
        """Unique name of an own member, normal form of an extra."""
        if number < self.own[column]:
            return self.names[column][number]
        return self.extra(column, number).key

    def adds_up(self, coords: IntArray) -> Bools:
        """Rows of coordinates of an own measure that adds up."""
        result: Bools = coords[:, 0] < self.own[0]
        result[result] = self.additive[coords[result, 0]]
        return result

    def may_add_up(self, coords: IntArray) -> Bools:
        """Rows of coordinates of an own measure that adds up, or counts distinct values and so may."""
        result: Bools = coords[:, 0] < self.own[0]
        result[result] = (self.additive | self.counted)[coords[result, 0]]
        return result

    def has_contributors(self, coords: IntArray) -> Bools:
        """Rows of coordinates with contributors of their own: an own measure at own members and groups."""
        mark: Bools = coords[:, 0] < self.own[0]
        for column in range(1, self.columns):
            mark &= self.flags(column, lambda extra: extra.is_group)[coords[:, column]]
        return mark

    def flags(self, column: int, what: Any) -> Bools:
        """A property of every coordinate of a column; ``what`` asks an `Extra`, own members say True."""
        own = np.ones(self.own[column], dtype=np.bool_)
        return np.concatenate([own, np.array([what(extra) for extra in self.extras[column]], dtype=np.bool_)])

    def terms_of(self, column: int, numbers: Longs) -> tuple[Longs, Longs, NDArray[np.float64]]:
        """Terms of extras: (position in ``numbers``, own member, coefficient)."""
        listed = [self.extra(column, int(number)).terms or () for number in numbers]
        owner = np.repeat(np.arange(len(numbers)), [len(terms) for terms in listed])
        member = np.array([member for terms in listed for member, _ in terms], dtype=np.int64)
        coefficient = np.array([factor for terms in listed for _, factor in terms], dtype=np.float64)
        return owner, member, coefficient

    def pack(self, *blocks: NDArray[Any], without: int | None = None) -> list[Longs]:
        """Numbers for rows of coordinates: equal for equal rows, over all blocks; ascending with them.

        ``without`` leaves a column out.
        """
        stacked = np.concatenate(blocks).astype(np.int64)
        key = np.zeros(len(stacked), dtype=np.int64)
        span = 1
        for column, size in enumerate(self.sizes.tolist()):
            if column == without or size == 1:
                continue
            if span * size > MAX_KEY:
                _, key = np.unique(key, return_inverse=True)
                span = int(key.max(initial=0)) + 1
            key = key * size + stacked[:, column]
            span *= size
        return np.split(key, np.cumsum([len(block) for block in blocks])[:-1])

    def _terms_key(self, column: int, terms: Sequence[tuple[int, float]]) -> str:
        names = self.names[column]
        if all(coefficient == 1 for _, coefficient in terms):
            return "{" + ", ".join(names[member] for member, _ in terms) + "}"
        return " + ".join(f"{coefficient!r} * {names[member]}" for member, coefficient in terms)


def ranges(starts: Longs, counts: Longs) -> Longs:
    """``starts[i], starts[i]+1, …`` of ``counts[i]`` numbers each, one after another."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def row_of(indptr: Longs) -> Longs:
    """The row of each entry (int64[entries]) of compressed rows (offsets int64[m + 1])."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def unique_rows(space: Space, coords: IntArray) -> tuple[IntArray, Longs]:
    """Distinct rows in the order of their first occurrence, and the place of each row among them."""
    (key,) = space.pack(coords)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return coords[first[order]], rank[inverse]
