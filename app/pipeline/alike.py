"""crawl: hierarchies of which one nearly says the other (`app.domain.alike`).

Where it says so in every record and leaf, the one is a `Twin` of the other; here are those with few records
astray, and those that say the other's coarser levels alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.domain.alike import Alike
from app.domain.cube import Cube, IntArray
from app.domain.known import FactRows, row_hashes
from app.domain.lattice import Longs
from app.domain.overlaps import Overlap
from app.pipeline.levels import levels_of
from app.pipeline.together import Together
from app.pipeline.twins import Twin

#: Share of those that a leaf might have put elsewhere by chance who may be astray; one always may.
SHARE = 0.05
#: How unlikely chance must be, as the logarithm of its inverse.
SURE = 20.0


def find_alike(
    together: Together,
    cube: Cube,
    facts: FactRows | None,
    twins: Sequence[Twin] = (),
    overlaps: Sequence[Overlap] = (),
) -> tuple[Alike, ...]:
    """Pairs of hierarchies of which the first nearly says the second, or the finest level of it that it does.

    Cells of a hierarchy that a third one decides are looked for there. Where ``overlaps`` say of a pair which
    leaves meet, those astray are cells of their own.
    """
    if facts is None or not facts.size:
        return ()
    measures = [number for number, measure in enumerate(cube.measures) if measure.additive]
    coarse = {twin.coarse for twin in twins}
    totalled = [
        column
        for column, (hierarchy, leaf) in enumerate(zip(cube.hierarchies, facts.leaf, strict=True), 1)
        if hierarchy.has_all and not np.isin(leaf, hierarchy.parent).any()
    ]
    known_pairs = {pair for o in overlaps for pair in ((o.first, o.second), (o.second, o.first))}
    found: list[Alike] = []
    for other in totalled:
        place, base = _recorded(cube, twins, other)
        for column in totalled:
            apart = column not in coarse and column != place and (column, place) not in known_pairs
            met = together(_ordered(column, other)) if apart else None
            if met is None:
                continue
            pairs, counts = met[0] if column < other else met[0][:, ::-1], met[1]
            for level in reversed(list(levels_of(cube.hierarchies[other - 1]))):
                if not _says(pairs[:, 0], level[pairs[:, 1]], counts):
                    continue
                one, two = facts.leaf[column - 1], level[facts.leaf[other - 1]]
                if facts.who is not None and not _says(*_people(one, two, facts)):
                    continue
                classes = np.full(cube.hierarchies[column - 1].size, -1, dtype=np.int64)
                leaves, most = _mostly(pairs[:, 0], level[pairs[:, 1]], counts)[:2]
                classes[leaves] = most
                known = np.where(base >= 0, level[base], -1)
                astray = classes[one] != two
                found += [
                    Alike(number, column, place, classes, known, np.where(astray, np.abs(amounts), 0.0))
                    for number in measures
                    for amounts in [np.nan_to_num(facts.amounts[number]).astype(np.float64)]
                ]
                break
    return tuple(found)


def _recorded(cube: Cube, twins: Sequence[Twin], column: int) -> tuple[int, Longs]:
    """The column in which cells of a hierarchy are recorded, and the leaf of each leaf there (-1: none)."""
    size = cube.hierarchies[column - 1].size
    place, leaf = column, np.arange(size, dtype=np.int64)
    for twin in twins:
        if twin.coarse == place:
            place, leaf = twin.fine, np.where(twin.leaf >= 0, leaf[twin.leaf], -1)
    if place == column:
        leaf[np.isin(leaf, cube.hierarchies[column - 1].parent)] = -1
    return place, leaf


def _ordered(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _people(one: IntArray, other: Longs, facts: FactRows) -> tuple[Longs, Longs, Longs]:
    """Leaves, classes, and how many contributors both have: one who is there each year says it once."""
    assert facts.who is not None
    size = int(other.max()) + 1
    pair = one.astype(np.int64) * size + other
    key = row_hashes([pair.view(np.uint64), facts.who])
    pair, counts = np.unique(pair[np.unique(key, return_index=True)[1]], return_counts=True)
    return pair // size, pair % size, counts.astype(np.int64)


def _mostly(one: IntArray | Longs, other: Longs, counts: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    """Distinct leaves, the class that most of each one's records are of, how many these are, and how many in
    all."""
    size = int(other.max(initial=0)) + 1
    pair, place = np.unique(one.astype(np.int64) * size + other, return_inverse=True)
    n = np.bincount(place.reshape(-1), weights=counts).astype(np.int64)
    leaf = pair // size
    order = np.lexsort((n, leaf))
    ends = np.flatnonzero(np.diff(np.append(leaf[order], -1)))
    total = np.bincount(leaf, weights=n).astype(np.int64)
    return leaf[order][ends], (pair % size)[order][ends], n[order][ends], total[leaf[order][ends]]


def _says(one: IntArray | Longs, other: Longs, counts: Longs) -> bool:
    """Whether nearly all records of each leaf are of one class, more than chance would have it."""
    _, most, same, total = _mostly(one, other, counts)
    shares = np.bincount(other, weights=counts) / counts.sum()
    alike = float((shares**2).sum())
    # The first record of a leaf says nothing.
    spare = float((same - 1).sum())
    astray = float((total - same).sum())
    return (
        len(np.unique(most)) > 1
        and spare * -math.log(alike) >= SURE
        and astray <= max(1.0, SHARE * spare * (1 - alike))
    )
