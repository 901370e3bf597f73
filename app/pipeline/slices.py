"""crawl: hierarchies of which one says the other given a member of a third.

A firm of a single site has its seat where its plant is, others have it anywhere. So the tables by seat and by
plant are one table of firms of a single site: cells there are tied as where hierarchies overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.joint import Joint
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs
from app.domain.overlaps import Overlap
from app.pipeline.given import LOOKED_AT, Parts, parts_by_level
from app.pipeline.twins import Twin

#: Members of a level given which hierarchies are compared.
MOST_GIVEN = 100
#: Pairs of members up to which two hierarchies are.
MOST_PAIRS = 250_000
#: How unlikely it must be that facts agree by chance, as the logarithm of its inverse; many are asked.
SURE = 30.0


def find_slices(
    cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = (), joints: Sequence[Joint] = ()
) -> tuple[Overlap, ...]:
    """Pairs of hierarchies of which one decides the other at some members of a third, at some of its levels.

    Those that a third hierarchy and the first decide everywhere are joints (`app.pipeline.joints`).
    """
    if facts is None or not facts.size:
        return ()
    levels = {
        of_one[0].columns[0]: of_one
        for of_one in parts_by_level(cube, facts, {twin.coarse for twin in twins})
        if of_one
    }
    everywhere = {(joint.column, frozenset((joint.first, joint.second))) for joint in joints}
    found: list[Overlap] = []
    for given, (first, second) in product(levels, combinations(levels, 2)):
        sizes = [cube.hierarchies[column - 1].size for column in (first, second)]
        if given in (first, second) or sizes[0] * sizes[1] > MOST_PAIRS:
            continue
        ways = [
            (one, other)
            for a, b in ((first, second), (second, first))
            if (b, frozenset((given, a))) not in everywhere
            for one, other in product(levels[a], levels[b])
            if min(one.count, other.count) > 1
        ]
        said = np.zeros(facts.size, dtype=np.bool_)
        for parts in levels[given]:
            if parts.count <= MOST_GIVEN and (inside := _decided(parts, ways, ~said)).any():
                said |= np.logical_or.reduce(inside)[parts.of]
                found.extend(_overlaps(parts, ways, inside, (first, second), facts))
    return tuple(found)


def _decided(parts: Parts, ways: Sequence[tuple[Parts, Parts]], asked: Bools) -> Bools:
    """At which parts the first level of each pair decides the second beyond chance (bool[ways, parts])."""
    found = np.zeros((len(ways), parts.count), dtype=np.bool_)
    n = len(parts.of)
    for number, (one, other) in enumerate(ways):
        looked = np.arange(0, n, max(n // LOOKED_AT, 1))
        looked = looked[asked[looked]]
        maybe = _is_decided(parts, one, other, looked, 0.0)
        if maybe.any():
            records = np.flatnonzero(asked & maybe[parts.of])
            found[number] = _is_decided(parts, one, other, records, SURE) & maybe
    return found


def _is_decided(parts: Parts, one: Parts, other: Parts, records: Longs, sure: float) -> Bools:
    given, a, b = parts.of[records], one.of[records], other.of[records]
    pair, triple = given * one.count + a, given * other.count + b
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    # Where all records of a pair have the leaf that its first one has.
    off = np.bincount(given, weights=b != b[first][place.reshape(-1)], minlength=parts.count)
    filled = np.bincount(given, minlength=parts.count)
    spare = filled - np.bincount(given[first], minlength=parts.count)
    keys, counts = np.unique(triple, return_counts=True)
    each: Floats = np.maximum(filled, 1).astype(np.float64)
    shares = np.bincount(keys // other.count, weights=counts.astype(np.float64) ** 2, minlength=parts.count)
    chance = -np.log(np.where(shares > 0, shares, 1.0) / each**2)
    told: Bools = (off == 0) & (spare * chance >= sure)
    return told


def _overlaps(
    parts: Parts,
    ways: Sequence[tuple[Parts, Parts]],
    inside: Bools,
    columns: tuple[int, int],
    facts: FactRows,
) -> list[Overlap]:
    """What is said of the parts, of those together that say the same of each other's members."""
    found: list[Overlap] = []
    for kind in np.unique(inside[:, inside.any(axis=0)], axis=1).T:
        mine = (inside == kind[:, None]).all(axis=0)
        together = [way for way, is_so in zip(ways, kind, strict=True) if is_so]
        groups = [mine] if _agree(parts, together, mine) else list(np.eye(parts.count, dtype=np.bool_)[mine])
        found.extend(_overlap(parts, together, group, columns, facts) for group in groups)
    return found


def _agree(parts: Parts, ways: Sequence[tuple[Parts, Parts]], mine: Bools) -> bool:
    """Whether each first level decides the second in some parts together."""
    records = np.flatnonzero(mine[parts.of])
    return all(
        len(np.unique(one.of[records] * other.count + other.of[records])) == len(np.unique(one.of[records]))
        for one, other in ways
    )


def _overlap(
    parts: Parts,
    ways: Sequence[tuple[Parts, Parts]],
    mine: Bools,
    columns: tuple[int, int],
    facts: FactRows,
) -> Overlap:
    records = np.flatnonzero(mine[parts.of])
    leaf = [facts.leaf[column - 1][records] for column in columns]
    there = [np.zeros(facts.cube.hierarchies[column - 1].size, dtype=np.bool_) for column in columns]
    for marks, leaves in zip(there, leaf, strict=True):
        marks[leaves] = True
    meets = np.outer(*there)
    for way in ways:
        one, other = way if way[0].columns == columns[:1] else way[::-1]
        met = np.zeros_like(meets)
        met[one.at[0][one.of[records]], other.at[0][other.of[records]]] = True
        meets &= met[np.ix_(one.member[0], other.member[0])]
    (given,) = parts.columns
    inside = np.ones(facts.cube.hierarchies[given - 1].size, dtype=np.bool_)
    inside[facts.leaf[given - 1]] = False
    inside[facts.leaf[given - 1][records]] = True
    return Overlap(*columns, meets, given, inside)
