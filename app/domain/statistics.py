"""What readers know of one cell's statistics together: each bounds the others.

A cell has as many records as it has different owners, or more; its total is at least its maximum and at most
as many times the maximum as it has records. So a statistic that is shown bounds one that is hidden, though
no formula ties them. Each bound is a relation with a slack, as in `app.domain.bounds`.

Whoever looks is taken to know how many records a cell has: they stand in these relations as numbers.

A measure that is part of another in every record is so in every cell, also in those of groups of members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

import numpy as np

from app.domain.bounds import Bounds
from app.domain.cube import IntArray, Measure
from app.domain.equation import Equations, Floats
from app.domain.lattice import Longs, Space

#: Terms of ``Σ coefficient · measure ≤ 0``: measure, coefficient, and the same by the number of records.
Term = tuple[int, float, float]
#: A bound, and the measure that counts the records that it speaks of.
Rule = tuple[tuple[Term, ...], int | None]
ROUNDING = 1e-9


def bounds_between(space: Space, coords: IntArray, values: Floats, measures: Sequence[Measure]) -> Bounds:
    """Bounds between measures of the same place.

    Parameters
    ----------
    coords : int32[n, columns]
    values : float64[n]
        nan where a cell has no facts.

    A bound that some cell of the data breaks doesn't hold for these measures, as where sampling weights are
    below one or amounts are missing; it is left out everywhere.
    """
    there = ~np.isnan(values)
    own = (coords < space.own).all(axis=1) & there
    (place,) = space.pack(coords, without=0)
    of_members = [np.flatnonzero(own & (coords[:, 0] == number)) for number in range(len(measures))]
    of_all = [np.flatnonzero(there & (coords[:, 0] == number)) for number in range(len(measures))]
    relations: list[tuple[Longs, Floats]] = []
    slacks: list[Floats] = []
    n = len(coords)
    rules = chain(
        ((rule, of_members) for rule in _rules(measures)), ((rule, of_all) for rule in _parts(measures))
    )
    for (terms, counted), rows in rules:
        involved = [number for number, *_ in terms] + ([] if counted is None else [counted])
        shared = rows[involved[0]]
        for number in involved[1:]:
            shared = shared[np.isin(place[shared], place[rows[number]])]
        if not len(shared):
            continue
        met = [_at(place, rows[number], place[shared]) for number in involved]
        count = values[met[-1]] if counted is not None else np.zeros(len(shared))
        coefs = np.stack([plain + by_count * count for _, plain, by_count in terms], axis=1)
        cells = np.stack(met[: len(terms)], axis=1)
        gap = -(coefs * values[cells]).sum(axis=1)
        if np.any(gap < -ROUNDING * (1 + np.abs(coefs * values[cells]).sum(axis=1))):
            continue
        start = n + sum(map(len, slacks))
        cells = np.concatenate([cells, start + np.arange(len(shared))[:, None]], axis=1)
        coefs = np.concatenate([coefs, np.ones((len(shared), 1))], axis=1)
        relations.extend(
            (row[factor != 0], factor[factor != 0]) for row, factor in zip(cells, coefs, strict=True)
        )
        slacks.append(np.maximum(gap, 0.0))
    sizes = np.array([len(cells) for cells, _ in relations], dtype=np.int64)
    return Bounds(
        Equations(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([np.zeros(0, dtype=np.int64), *(cells for cells, _ in relations)]),
            np.concatenate([np.zeros(0), *(coefs for _, coefs in relations)]),
            np.zeros(len(relations)),
        ),
        np.concatenate([np.zeros(0), *slacks]),
    )


def _at(place: Longs, rows: Longs, wanted: Longs) -> Longs:
    order = np.argsort(place[rows])
    return rows[order[np.searchsorted(place[rows][order], wanted)]]


def _parts(measures: Sequence[Measure]) -> Iterator[Rule]:
    number = {measure.name: place for place, measure in enumerate(measures)}
    for place, measure in enumerate(measures):
        for whole in measure.of_which:
            yield ((place, 1, 0), (number[whole], -1, 0)), None


def _rules(measures: Sequence[Measure]) -> Iterator[Rule]:
    kinds: dict[str, list[int]] = {}
    for number, measure in enumerate(measures):
        kinds.setdefault(measure.aggregator, []).append(number)
    counts = kinds.get("count", [])
    for distinct, count in product(kinds.get("distinct-count", []), counts):
        yield ((distinct, 1, 0), (count, -1, 0)), None

    def alike(*wanted: str) -> Iterator[tuple[int, ...]]:
        for found in product(*(kinds.get(kind, []) for kind in wanted)):
            if len({measures[number].column for number in found}) == 1:
                yield found

    for low, high in (("min", "max"), ("min", "median"), ("median", "max")):
        for a, b in alike(low, high):
            yield ((a, 1, 0), (b, -1, 0)), None
    for total, most in alike("sum", "max"):
        if measures[total].nonnegative:
            yield ((most, 1, 0), (total, -1, 0)), None
    for count in counts:
        for total, most in alike("sum", "max"):
            yield ((total, 1, 0), (most, 0, -1)), count
        for total, least in alike("sum", "min"):
            yield ((least, 0, 1), (total, -1, 0)), count
        for total, least, most in alike("sum", "min", "max"):
            yield ((most, 1, 0), (least, -1, 1), (total, -1, 0)), count
            yield ((total, 1, 0), (least, -1, 0), (most, 1, -1)), count
        for total, middle in alike("sum", "median"):
            if measures[total].nonnegative:
                yield ((middle, 0, 0.5), (total, -1, 0)), count
        for total, middle, most in alike("sum", "median", "max"):
            yield ((total, 1, 0), (middle, 0, -0.5), (most, 0, -0.5)), count
        for total, least, middle in alike("sum", "min", "median"):
            yield ((least, 0, 0.5), (middle, 0, 0.5), (total, -1, 0)), count
