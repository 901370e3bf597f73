"""crawl: two cubes of the same records under other names: what one hides, the other may show.

They needn't be the same in full: the one may have its contributors' quarters and the other their years, both
may have the same totals, or a member of the one may be a part of the other (`app.pipeline.shared_part`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product

import numpy as np

from app.cube.port import CubeServer
from app.domain.errors import Mistake
from app.domain.known import FactRows
from app.domain.publication import Publication
from app.pipeline.brought import (
    ENOUGH,
    EXACT,
    NEAR,
    SHARE,
    TOLD_APART,
    Brought,
    contained,
    measures_of,
    most_within,
    places_of,
)
from app.pipeline.shared_part import shared_part

#: By which records of the smaller and of the larger cube a factor is looked for: the largest.
FEW, MANY = 40, 50_000
#: Up to so many times as many records don't hold the others' amounts by chance, as far as these differ.
AS_MANY = 1.5
#: Places that two cubes have the same totals at, and the digits that these have together, as the logarithm of
#: how many other totals there could have been.
LEAST_TOTALS = 3
SURE = 25.0


def same_facts(publication: Publication, servers: Mapping[str, CubeServer]) -> Iterator[Mistake]:
    """Pairs of cubes that have records in common, where the engines give their facts."""
    if len(servers) < 2:
        return
    facts = {name: server.facts() for name, server in servers.items()}
    for one, other in combinations([cube for cube in publication.cubes if cube.name in servers], 2):
        first, second = facts[one.name], facts[other.name]
        cause = in_common(first, second) if first is not None and second is not None else None
        if cause is not None:
            at = other.at
            remedy = "Make one cube of them, which all their sheets use."
            yield Mistake(at.file, at.line, at.column, cause, remedy)


def in_common(one: FactRows, other: FactRows) -> str | None:
    """What two cubes have in common though they are protected apart, if anything."""
    names = one.cube.name, other.cube.name
    if alike(one, other):
        return f"Cubes {names[0]} and {names[1]} read the same facts, but are protected apart."
    here, there = places_of(one, other)
    mine, theirs = measures_of(one, here), measures_of(other, there)
    for a, b in product(mine, theirs):
        both = f"{a.name} of cube {names[0]} and {b.name} of cube {names[1]}"
        if a.aggregator != b.aggregator:
            continue
        if a.aggregator == "sum" and _same_amounts(a.by_contributor, b.by_contributor):
            return f"Each contributor brings the same to {both}, which are protected apart."
        if here and _same_totals(a, b):
            return f"The totals of {both} are the same, but are protected apart."
    for facts, a_side, b_side, whole in ((one, mine, theirs, names[1]), (other, theirs, mine, names[0])):
        member = shared_part(facts, a_side, b_side)
        if member is not None:
            part = f"What cube {facts.cube.name} has at {member}"
            return f"{part} is in cube {whole} too, but they are protected apart."
    return None


def alike(one: FactRows, other: FactRows) -> bool:
    """Whether all but all records of the smaller cube are records of the other.

    Records are the same if the same contributor brings as much at the same members to some measure of each;
    only hierarchies that both have are looked at, by their members' names. Amounts that hardly two records
    have in common tell the same records under other names of contributors, too. Amounts may be so many times
    the other's, as thousands beside units: what one cube hides, the other shows in other units. They may be
    rounded there, as long as contributors go by the same names.
    """
    here, there = places_of(one, other)
    named = one.who is not None and other.who is not None
    mine, theirs = measures_of(one, here), measures_of(other, there)
    return any(
        (named and (contained(a.named, b.named) or _proportional(a, b)))
        or (a.aggregator == "sum" and _same_amounts(a, b))
        for a, b in product(mine, theirs)
        if a.aggregator == b.aggregator
    )


def _proportional(one: Brought, other: Brought) -> bool:
    """Whether the contributors of the smaller bring so many times as much to the other."""
    (mine, amounts), (theirs, others) = one.brought, other.brought
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    told = amounts[a] * others[b] > 0
    times = np.sort(np.log(np.abs(amounts[a][told])) - np.log(np.abs(others[b][told])))
    small = min(len(mine), len(theirs))
    return small >= ENOUGH and most_within(times, NEAR)[0] >= SHARE * small


def _same_amounts(one: Brought, other: Brought) -> bool:
    """Whether the amounts of the smaller, be it in other units, are amounts of the other at the same places.

    Where a larger cube's lie so close that the next ones up would be, too, they tell nothing.
    """
    small, large = sorted((one, other), key=lambda measure: len(measure.amount))
    factor = 0.0
    if len(small.amount) < ENOUGH:
        return False
    if not contained(small.unnamed, large.unnamed):
        found = _factor(small, large)
        if found is None or not contained(small.times(found), large.unnamed):
            return False
        factor = found
    if len(large.amount) <= AS_MANY * len(small.amount) or not small.unit:
        return True
    return not contained(small.times(factor, small.unit), large.unnamed, TOLD_APART)


def _factor(small: Brought, large: Brought) -> float | None:
    """The logarithm by which most of the largest amounts of the one are amounts of the other, if any."""
    few = np.argsort(-np.abs(small.amount), kind="stable")[:FEW]
    there = np.flatnonzero(np.isin(large.place, small.place[few]))
    there = there[np.argsort(-np.abs(large.amount[there]), kind="stable")[:MANY]]
    row, column = np.nonzero(small.place[few][:, None] == large.place[there])
    times = np.log(np.abs(large.amount[there[column]])) - np.log(np.abs(small.amount[few[row]]))
    times = np.sort(times)
    many, first = most_within(times, EXACT / 1e4)
    return float(times[first + many // 2]) if many and many >= SHARE * len(few) else None


def _same_totals(one: Brought, other: Brought) -> bool:
    """Whether both have the same at nearly all places, be it in other units.

    How sure that is told by the digits of different totals: those of samples drawn alike are few.
    """
    (mine, first), (theirs, second) = one.totals, other.totals
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    told = first[a] * second[b] > 0
    sizes, twins = np.abs(first[a][told]), np.abs(second[b][told])
    times = np.log(sizes) - np.log(twins)
    order = np.argsort(times)
    many, start = most_within(times[order], EXACT)
    if many < max(SHARE * max(len(mine), len(theirs)), LEAST_TOTALS) or not (one.unit and other.unit):
        return False
    equal = order[start : start + many]
    digits = np.log1p(np.unique(np.minimum(sizes / one.unit, twins / other.unit)[equal]))
    # One of them goes for the units.
    return bool(digits[:-1].sum() >= SURE)
