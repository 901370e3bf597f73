"""Measures that add up to one another in every record: what is sold at home and abroad is what is sold.

Whoever sees two of them has the third, though no formula says so: they are tied wherever two are met.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Entries
from app.domain.lattice import Longs, Space

#: Measures and their coefficients, of which the sum is zero in every record.
Identity = tuple[tuple[int, float], ...]


def identity_sums(
    space: Space, identities: Sequence[Identity], cells: IntArray, rows: Longs
) -> list[Entries]:
    """The identities at the places of some rows at which two of their measures are met."""
    parts = []
    for identity in identities:
        measures = np.array([measure for measure, _ in identity])
        mine = rows[np.isin(cells[rows, 0], measures)]
        if not len(mine):
            continue
        (place,) = space.pack(cells, without=0)
        met = np.isin(cells[:, 0], measures)
        places, counts = np.unique(place[met], return_counts=True)
        wanted, first = np.unique(place[mine], return_index=True)
        mine = mine[first[counts[np.searchsorted(places, wanted)] > 1]]
        k = len(mine)
        if not k:
            continue
        coords = np.repeat(cells[mine], len(identity), axis=0)
        coords[:, 0] = np.tile(measures, k)
        parts.append(
            Entries(
                relation=np.repeat(np.arange(k), len(identity)),
                coords=coords,
                coef=np.tile([factor for _, factor in identity], k),
                optional=np.ones(k * len(identity), dtype=np.bool_),
                rhs=np.zeros(k),
                completes=np.zeros(k, dtype=np.bool_),
            )
        )
    return parts
