"""Rows of coordinates as keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray

Ints = NDArray[np.int64]


def unique_rows(coords: IntArray, sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """First occurrence of each distinct row, in order, and which of them each row equals."""
    key = np.zeros(len(coords), dtype=np.int64)
    room = 2**62
    for column, size in enumerate(sizes):
        if size > room:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            room = 2**62 // max(1, len(coords))
        key = key * size + coords[:, column]
        room //= max(1, size)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return first[order].astype(np.int64), rank[inverse]
