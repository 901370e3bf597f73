"""What readers know of one cell's statistics together: each bounds the others.

A cell has as many records as it has different owners, or more; its total is at least its maximum and at most
as many times the maximum as it has records; the median of two is half their total. So a statistic that is
shown bounds one that is hidden, though no formula ties them. Each bound is a relation with a slack, as in
`app.domain.bounds`.

Whoever looks is taken to know how many records a cell has: they stand in these relations as numbers.

A measure that is part of another in every record is so in every cell, also in those of groups of members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product

import numpy as np

from app.domain.bounds import Bounds
from app.domain.cube import IntArray, Measure
from app.domain.equation import Equations, Floats
from app.domain.lattice import Longs, Space

#: A term of ``Σ coefficient · measure ≤ 0``: measure, and its coefficient in cells of so many records.
Term = tuple[int, Callable[[Floats], Floats]]
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
    # Differences and other formulas of cells keep no such order.
    there = ~np.isnan(values) & space.has_contributors(coords)
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
        involved = [number for number, _ in terms] + ([] if counted is None else [counted])
        shared = rows[involved[0]]
        for number in involved[1:]:
            shared = shared[np.isin(place[shared], place[rows[number]])]
        if not len(shared):
            continue
        met = [_at(place, rows[number], place[shared]) for number in involved]
        count = values[met[-1]] if counted is not None else np.zeros(len(shared))
        coefs = np.stack([factor(count) for _, factor in terms], axis=1)
        cells = np.stack(met[: len(terms)], axis=1)
        told = coefs.any(axis=1)
        cells, coefs = cells[told], coefs[told]
        gap = -(coefs * values[cells]).sum(axis=1)
        if np.any(gap < -ROUNDING * (1 + np.abs(coefs * values[cells]).sum(axis=1))):
            continue
        start = n + sum(map(len, slacks))
        cells = np.concatenate([cells, start + np.arange(len(cells))[:, None]], axis=1)
        coefs = np.concatenate([coefs, np.ones((len(cells), 1))], axis=1)
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


def _always(factor: float) -> Callable[[Floats], Floats]:
    return lambda n: np.full(len(n), factor, dtype=np.float64)


def _below(part: int, whole: int) -> tuple[Term, ...]:
    return (part, _always(1)), (whole, _always(-1))


def _parts(measures: Sequence[Measure]) -> Iterator[Rule]:
    number = {measure.name: place for place, measure in enumerate(measures)}
    for place, measure in enumerate(measures):
        for whole in measure.of_which:
            yield _below(place, number[whole]), None


def _rules(measures: Sequence[Measure]) -> Iterator[Rule]:
    kinds: dict[str, list[int]] = {}
    for number, measure in enumerate(measures):
        kinds.setdefault(measure.aggregator, []).append(number)
    counts = kinds.get("count", [])
    for distinct, count in product(kinds.get("distinct-count", []), counts):
        yield _below(distinct, count), None

    def alike(*wanted: str) -> Iterator[tuple[int, ...]]:
        for found in product(*(kinds.get(kind, []) for kind in wanted)):
            if len({measures[number].column for number in found}) == 1:
                yield found

    for low, high in (("min", "max"), ("min", "median"), ("median", "max")):
        for a, b in alike(low, high):
            yield _below(a, b), None
    for total, most in alike("sum", "max"):
        if measures[total].nonnegative:
            yield _below(most, total), None
    one, less = _always(1), _always(-1)
    for count in counts:
        for total, most in alike("sum", "max"):
            yield ((total, one), (most, lambda n: -n)), count
            yield ((most, _alone), (total, lambda n: -_alone(n))), count
        for total, least in alike("sum", "min"):
            yield ((least, lambda n: n), (total, less)), count
            yield ((total, _alone), (least, lambda n: -_alone(n))), count
        for total, least, most in alike("sum", "min", "max"):
            yield ((most, one), (least, lambda n: n - 1), (total, less)), count
            yield ((total, one), (least, less), (most, lambda n: 1 - n)), count
        for total, middle in alike("sum", "median"):
            # The median of one or two is their mean.
            yield ((total, _few), (middle, lambda n: -n * _few(n))), count
            yield ((middle, lambda n: n * _few(n)), (total, lambda n: -_few(n))), count
            if measures[total].nonnegative:
                yield ((middle, _upper), (total, less)), count
        for total, middle, most in alike("sum", "median", "max"):
            yield ((total, one), (middle, lambda n: -_upper(n)), (most, lambda n: _upper(n) - n)), count
            if measures[total].nonnegative:
                above = (middle, lambda n: (_upper(n) - 1) * _many(n))
                yield ((most, _many), above, (total, lambda n: -_many(n))), count
        for total, least, middle in alike("sum", "min", "median"):
            yield ((least, lambda n: n - _upper(n)), (middle, _upper), (total, less)), count
        for total, least, middle, most in alike("sum", "min", "median", "max"):
            yield (
                (
                    (total, _many),
                    (least, lambda n: -_many(n)),
                    (middle, lambda n: (1 - _upper(n)) * _many(n)),
                    (most, lambda n: (_upper(n) - n) * _many(n)),
                ),
                count,
            )
            yield (
                (
                    (most, _many),
                    (middle, lambda n: (_upper(n) - 1) * _many(n)),
                    (least, lambda n: (n - _upper(n)) * _many(n)),
                    (total, lambda n: -_many(n)),
                ),
                count,
            )


def _alone(n: Floats) -> Floats:
    return (n <= 1).astype(np.float64)


def _few(n: Floats) -> Floats:
    return (n <= 2).astype(np.float64)


def _many(n: Floats) -> Floats:
    return (n > 2).astype(np.float64)


def _upper(n: Floats) -> Floats:
    """How many medians the median and all above it come to at least, of n records."""
    found: Floats = np.floor(n / 2) + 1
    return found
