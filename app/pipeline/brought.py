"""What the records of a cube bring to its measures, so that two cubes can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Hierarchy
from app.domain.equation import Floats
from app.domain.known import FactRows, row_hashes
from app.domain.lattice import Longs

Hashes = NDArray[np.uint64]
#: Distinct hashes, rising, and how many records have each.
Kinds = tuple[Hashes, Longs]

#: Records that can't be alike by chance, and the share of the smaller cube's that must be in the other.
ENOUGH = 20
SHARE = 0.95
#: Records of one kind may be alike; most have to be told apart for a likeness to mean anything.
TOLD_APART = 0.5
#: How far the logarithms of one factor may lie apart: closer than rules protect, and where nothing but the
#: amount tells a record.
NEAR, EXACT = 0.1, 1e-9
MOST_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Brought:
    """The records that bring something to a measure.

    Attributes
    ----------
    name, aggregator : str
        The measure's.
    who : uint64[n] or None
        Hashes of contributors; None when the facts don't name any.
    place : uint64[n]
        Hashes of where the records are in hierarchies that both cubes have.
    amount : float64[n]
    row : int64[n]
        Their numbers among the facts.
    """

    name: str
    aggregator: str
    who: Hashes | None
    place: Hashes
    amount: Floats
    row: Longs

    @cached_property
    def named(self) -> Kinds:
        """The kinds of records."""
        assert self.who is not None
        return kinds([self.who.view(np.int64), self.place.view(np.int64), self.amount])

    @cached_property
    def kind(self) -> Hashes:
        """The kind of each record without its contributor."""
        return self._unnamed(0.0, 0.0)

    @cached_property
    def unnamed(self) -> Kinds:
        """The kinds of records without their contributors."""
        return np.unique(self.kind, return_counts=True)

    def times(self, factor: float, more: float = 0.0) -> Kinds:
        """The kinds of records without their contributors, each with ``more``, and in other units.

        ``factor`` is the logarithm of what one unit is in the others.
        """
        return np.unique(self._unnamed(factor, more), return_counts=True)

    def _unnamed(self, factor: float, more: float) -> Hashes:
        amount = self.amount + more
        with np.errstate(divide="ignore"):
            size = np.maximum(np.log(np.abs(amount)), -1e3) + factor
        return row_hashes([self.place.view(np.int64), np.sign(amount), np.rint(size / EXACT)])

    @cached_property
    def contribution(self) -> Hashes:
        """Who brings each record where."""
        assert self.who is not None
        return row_hashes([self.who.view(np.int64), self.place.view(np.int64)])

    @cached_property
    def brought(self) -> tuple[Hashes, Floats]:
        """What each contributor brings to each place (hashes, rising), and how much."""
        key, row = np.unique(self.contribution, return_inverse=True)
        return key, np.bincount(row.reshape(-1), self.amount, len(key)).astype(np.float64)

    @cached_property
    def by_contributor(self) -> Brought:
        """What each contributor brings to each place, names left out."""
        if self.who is None:
            return self
        _, first = np.unique(self.contribution, return_index=True)
        amount = self.brought[1]
        some = np.flatnonzero(amount != 0)
        return Brought(
            self.name, self.aggregator, None, self.place[first[some]], amount[some], self.row[first[some]]
        )

    @cached_property
    def totals(self) -> tuple[Hashes, Floats]:
        """What is brought to each place (hashes, rising), where that is anything."""
        place, row = np.unique(self.place, return_inverse=True)
        amount = np.bincount(row.reshape(-1), self.amount, len(place)).astype(np.float64)
        return place[amount != 0], amount[amount != 0]

    @cached_property
    def unit(self) -> float:
        """What all amounts are multiples of, 0 if there is no such thing."""
        for decimals in range(MOST_DECIMALS + 1):
            scaled = np.abs(self.amount) * 10.0**decimals
            whole = np.rint(scaled)
            if whole.max() < 2.0**53 and np.all(np.abs(scaled - whole) <= EXACT * scaled):
                return float(np.gcd.reduce(whole.astype(np.int64)) / 10.0**decimals)
        return 0.0


def kinds(columns: Sequence[NDArray[Any]]) -> Kinds:
    return np.unique(row_hashes(columns), return_counts=True)


def measures_of(rows: FactRows, places: Sequence[Longs]) -> list[Brought]:
    """What a cube's records bring to its measures that add up, where they are enough."""
    place = row_hashes([np.zeros(rows.size, dtype=np.int64), *places])
    found = []
    for measure, amounts in zip(rows.cube.measures, rows.amounts, strict=True):
        if measure.additive:
            amount = np.asarray(amounts, dtype=np.float64)
            kept = np.flatnonzero(np.isfinite(amount) & (amount != 0))
            who = rows.who[kept] if rows.who is not None else None
            found.append(Brought(measure.name, measure.aggregator, who, place[kept], amount[kept], kept))
    return [measure for measure in found if len(measure.amount) >= ENOUGH]


def places_of(one: FactRows, other: FactRows) -> tuple[list[Longs], list[Longs]]:
    """Where each row lies in hierarchies that both cubes have, numbered alike.

    That is the lowest member above its leaf that both have, so that quarters are told by their year where the
    other cube has years.
    """
    theirs = {tree.unique_name: h for h, tree in enumerate(other.cube.hierarchies)}
    found: tuple[list[Longs], list[Longs]] = ([], [])
    for h, tree in enumerate(one.cube.hierarchies):
        if tree.unique_name in theirs:
            g = theirs[tree.unique_name]
            twin = other.cube.hierarchies[g]
            own = -1 - np.arange(tree.size)
            found[0].append(_common(tree, twin, own)[one.leaf[h]])
            numbers = np.array([tree.index_of.get(name, -1) for name in twin.unique_names], dtype=np.int64)
            named = _common(twin, tree, -1 - tree.size - np.arange(twin.size))
            found[1].append(np.where(named >= 0, numbers[np.maximum(named, 0)], named)[other.leaf[g]])
    return found


def _common(tree: Hierarchy, other: Hierarchy, without: Longs) -> Longs:
    """The lowest member at or above each member that another hierarchy has too (int64[size]).

    Where that is the total or none, what ``without`` (int64[size]) says of it.
    """
    shared = np.array([name in other.index_of for name in tree.unique_names], dtype=np.bool_)
    if tree.has_all:
        shared[0] = False
    above = np.arange(tree.size)
    while (up := (above >= 0) & ~shared[above]).any():
        above[up] = tree.parent[above[up]]
    return np.where(above >= 0, above, without)


def most_within(numbers: Floats, width: float) -> tuple[int, int]:
    """How many numbers, which rise, are within a width of one another at most, and the first of these."""
    if not len(numbers):
        return 0, 0
    count = np.searchsorted(numbers, numbers + width, "right") - np.arange(len(numbers))
    first = int(np.argmax(count))
    return int(count[first]), first


def contained(one: Kinds, other: Kinds, share: float = SHARE) -> bool:
    """Whether so many of the fewer records, most of which have to be told apart, are among the others."""
    (mine, counts), (theirs, others) = one, other
    sizes = int(counts.sum()), int(others.sum())
    small = min(sizes)
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    met = int(np.minimum(counts[a], others[b]).sum())
    kinds = len(mine) if sizes[0] == small else len(theirs)
    return small >= ENOUGH and met >= share * small and kinds >= TOLD_APART * small
