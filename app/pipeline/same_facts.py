"""crawl: two cubes of the same records under other names: what one hides, the other may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cube import Hierarchy
from app.domain.equation import Floats
from app.domain.errors import Mistake
from app.domain.known import FactRows, row_hashes
from app.domain.publication import Publication

Hashes = NDArray[np.uint64]
#: Distinct hashes, rising, and how many records have each.
Kinds = tuple[Hashes, NDArray[np.int64]]

#: Records that can't be alike by chance, and the share of the smaller cube's that must be in the other.
ENOUGH = 20
SHARE = 0.95
#: Records of one kind may be alike; most have to be told apart for a likeness to mean anything.
TOLD_APART = 0.5
#: How far the logarithms of one factor may lie apart: closer than rules protect, and where nothing but the
#: amount tells a record.
NEAR, EXACT = 0.1, 1e-9
#: By which records of the smaller and of the larger cube a factor is looked for: the largest.
FEW, MANY = 40, 50_000
#: Up to so many times as many records don't hold the others' amounts by chance, as far as these differ.
AS_MANY = 1.5
MOST_DECIMALS = 6


def same_facts(publication: Publication, servers: Mapping[str, CubeServer]) -> Iterator[Mistake]:
    """Pairs of cubes of which the one holds the other's records, where the engines give their facts."""
    if len(servers) < 2:
        return
    facts = {name: server.facts() for name, server in servers.items()}
    for one, other in combinations([cube for cube in publication.cubes if cube.name in servers], 2):
        first, second = facts[one.name], facts[other.name]
        if first is not None and second is not None and alike(first, second):
            at = other.at
            cause = f"Cubes {one.name} and {other.name} read the same facts, but are protected apart."
            remedy = "Make one cube of them, which all their sheets use."
            yield Mistake(at.file, at.line, at.column, cause, remedy)


def alike(one: FactRows, other: FactRows) -> bool:
    """Whether all but all records of the smaller cube are records of the other.

    Records are the same if the same contributor brings as much at the same members to some measure of each;
    only hierarchies that both have are looked at, by their members' names. Amounts that hardly two records
    have in common tell the same records under other names of contributors, too. Amounts may be so many times
    the other's, as thousands beside units: what one cube hides, the other shows in other units. They may be
    rounded there, as long as contributors go by the same names.
    """
    here, there = _places(one, other)
    named = one.who is not None and other.who is not None
    mine, theirs = _measures(one, here), _measures(other, there)
    return any(
        (named and (contained(a.named, b.named) or _proportional(a, b)))
        or (a.aggregator == "sum" and _same_amounts(a, b))
        for a, b in product(mine, theirs)
        if a.aggregator == b.aggregator
    )


@dataclass(frozen=True, eq=False)
class _Measure:
    """The records that bring something to a measure: contributors, a hash of each place, and amounts."""

    aggregator: str
    who: Hashes | None
    place: Hashes
    amount: Floats

    @cached_property
    def named(self) -> Kinds:
        """The kinds of records."""
        assert self.who is not None
        return kinds([self.who.view(np.int64), self.place.view(np.int64), self.amount])

    @cached_property
    def unnamed(self) -> Kinds:
        """The kinds of records without their contributors."""
        return self.times(0.0)

    def times(self, factor: float, more: float = 0.0) -> Kinds:
        """The kinds of records without their contributors, each with ``more``, and in other units.

        ``factor`` is the logarithm of what one unit is in the others.
        """
        amount = self.amount + more
        with np.errstate(divide="ignore"):
            size = np.maximum(np.log(np.abs(amount)), -1e3) + factor
        return kinds([self.place.view(np.int64), np.sign(amount), np.rint(size / EXACT)])

    @cached_property
    def brought(self) -> tuple[Hashes, Floats]:
        """What each contributor brings to each place (hashes, rising), and how much."""
        assert self.who is not None
        key, row = np.unique(
            row_hashes([self.who.view(np.int64), self.place.view(np.int64)]), return_inverse=True
        )
        return key, np.bincount(row.reshape(-1), self.amount, len(key)).astype(np.float64)

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


def _measures(rows: FactRows, places: Sequence[NDArray[np.int64]]) -> list[_Measure]:
    place = row_hashes([np.zeros(rows.size, dtype=np.int64), *places])
    found = []
    for measure, amounts in zip(rows.cube.measures, rows.amounts, strict=True):
        if measure.additive:
            amount = np.asarray(amounts, dtype=np.float64)
            kept = np.flatnonzero(np.isfinite(amount) & (amount != 0))
            who = rows.who[kept] if rows.who is not None else None
            found.append(_Measure(measure.aggregator, who, place[kept], amount[kept]))
    return [measure for measure in found if len(measure.amount) >= ENOUGH]


def _proportional(one: _Measure, other: _Measure) -> bool:
    """Whether the contributors of the smaller bring so many times as much to the other."""
    (mine, amounts), (theirs, others) = one.brought, other.brought
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    told = amounts[a] * others[b] > 0
    times = np.sort(np.log(np.abs(amounts[a][told])) - np.log(np.abs(others[b][told])))
    small = min(len(mine), len(theirs))
    return small >= ENOUGH and _most_within(times, NEAR)[0] >= SHARE * small


def _same_amounts(one: _Measure, other: _Measure) -> bool:
    """Whether the amounts of the smaller, be it in other units, are amounts of the other at the same places.

    Where a larger cube's lie so close that the next ones up would be, too, they tell nothing.
    """
    small, large = sorted((one, other), key=lambda measure: len(measure.amount))
    factor = 0.0
    if not contained(small.unnamed, large.unnamed):
        found = _factor(small, large)
        if found is None or not contained(small.times(found), large.unnamed):
            return False
        factor = found
    if len(large.amount) <= AS_MANY * len(small.amount) or not small.unit:
        return True
    return not contained(small.times(factor, small.unit), large.unnamed, TOLD_APART)


def _factor(small: _Measure, large: _Measure) -> float | None:
    """The logarithm by which most of the largest amounts of the one are amounts of the other, if any."""
    few = np.argsort(-np.abs(small.amount), kind="stable")[:FEW]
    there = np.flatnonzero(np.isin(large.place, small.place[few]))
    there = there[np.argsort(-np.abs(large.amount[there]), kind="stable")[:MANY]]
    row, column = np.nonzero(small.place[few][:, None] == large.place[there])
    times = np.log(np.abs(large.amount[there[column]])) - np.log(np.abs(small.amount[few[row]]))
    many, factor = _most_within(np.sort(times), EXACT / 1e4)
    return factor if many >= SHARE * len(few) else None


def _most_within(numbers: Floats, width: float) -> tuple[int, float]:
    """How many numbers, which rise, are within a width of one another at most, and the middle of these."""
    if not len(numbers):
        return 0, 0.0
    count = np.searchsorted(numbers, numbers + width, "right") - np.arange(len(numbers))
    first = int(np.argmax(count))
    most = int(count[first])
    return most, float(numbers[first + most // 2])


def _places(one: FactRows, other: FactRows) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The leaves of each row in hierarchies that both cubes have, numbered alike."""
    theirs = {tree.unique_name: h for h, tree in enumerate(other.cube.hierarchies)}
    found: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
    for h, tree in enumerate(one.cube.hierarchies):
        if tree.unique_name in theirs:
            g = theirs[tree.unique_name]
            found[0].append(one.leaf[h].astype(np.int64))
            found[1].append(_numbers(other.cube.hierarchies[g], tree)[other.leaf[g]])
    return found


def _numbers(tree: Hierarchy, other: Hierarchy) -> NDArray[np.int64]:
    """Each member's number in another hierarchy, or one that it doesn't have."""
    names = enumerate(tree.unique_names)
    return np.array([other.index_of.get(name, -1 - number) for number, name in names], dtype=np.int64)


def contained(one: Kinds, other: Kinds, share: float = SHARE) -> bool:
    """Whether so many of the fewer records, most of which have to be told apart, are among the others."""
    (mine, counts), (theirs, others) = one, other
    sizes = int(counts.sum()), int(others.sum())
    small = min(sizes)
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    met = int(np.minimum(counts[a], others[b]).sum())
    kinds = len(mine) if sizes[0] == small else len(theirs)
    return small >= ENOUGH and met >= share * small and kinds >= TOLD_APART * small
