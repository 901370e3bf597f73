"""Measures that add up to one another in every record: what is sold at home and abroad is what is sold.

Whoever sees two of them has the third, though no formula says so: they are tied wherever two are met.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Entries, Floats
from app.domain.lattice import Longs, Space

#: Measures and their coefficients, of which the sum is zero in every record.
Identity = tuple[tuple[int, float], ...]


def identity_sums(
    space: Space, identities: Sequence[Identity], cells: IntArray, rows: Longs
) -> list[Entries]:
    """The identities at the places of some rows at which two of their measures are met."""
    parts = []
    for identity in identities:
        measures = [measure for measure, _ in identity]
        mine = _places_of(space, measures, cells, rows)
        if len(mine):
            factors = np.tile([factor for _, factor in identity], (len(mine), 1))
            parts.append(_sums(measures, factors, cells[mine]))
    return parts


def pair_sums(
    space: Space, pair: tuple[int, int], cells: IntArray, rows: Longs, times: Floats
) -> list[Entries]:
    """That one measure is so many times another (``times``, by row) at the places at which both are met."""
    mine = _places_of(space, pair, cells, rows)
    if not len(mine):
        return []
    factor = np.zeros(len(cells))
    factor[rows] = times
    return [_sums(pair, np.stack([np.ones(len(mine)), -factor[mine]], axis=1), cells[mine])]


def _places_of(space: Space, measures: Sequence[int], cells: IntArray, rows: Longs) -> Longs:
    """One of the rows for each of their places at which two of the measures are met."""
    mine = rows[np.isin(cells[rows, 0], measures)]
    if not len(mine):
        return mine
    (place,) = space.pack(cells, without=0)
    met = np.isin(cells[:, 0], measures)
    places, counts = np.unique(place[met], return_counts=True)
    wanted, first = np.unique(place[mine], return_index=True)
    return mine[first[counts[np.searchsorted(places, wanted)] > 1]]


def _sums(measures: Sequence[int], factors: Floats, cells: IntArray) -> Entries:
    """Relations of measures with their factors (float64[k, measures]) at the places of k cells."""
    k, width = factors.shape
    coords = np.repeat(cells, width, axis=0)
    coords[:, 0] = np.tile(measures, k)
    return Entries(
        relation=np.repeat(np.arange(k), width),
        coords=coords,
        coef=factors.reshape(-1),
        optional=np.ones(k * width, dtype=np.bool_),
        rhs=np.zeros(k),
        completes=np.zeros(k, dtype=np.bool_),
    )
