"""Rows of coordinates as keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray

Ints = NDArray[np.int64]

#: Up to so many possible keys for each row, rows are told apart without sorting.
_SCATTERED = 8


def unique_rows(coords: IntArray, sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """First occurrence of each distinct row, in order, and which of them each row equals."""
    key = np.zeros(len(coords), dtype=np.int64)
    room = 2**62
    varied = (coords != coords[:1]).any(axis=0).tolist()
    for column, size in enumerate(sizes):
        if not varied[column]:
            continue
        if size > room:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            room = 2**62 // max(1, len(coords))
        key = key * size + coords[:, column]
        room //= max(1, size)
    span = 2**62 // max(1, room)
    if room and span <= _SCATTERED * len(key):
        return _scattered(key, span)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return first[order].astype(np.int64), rank[inverse]


def _scattered(key: Ints, span: int) -> tuple[Ints, Ints]:
    """As `unique_rows`, of small numbers: written to their places instead of sorted."""
    first = np.full(span, -1, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    starts = np.flatnonzero(first[key] == np.arange(len(key)))
    rank = np.empty(span, dtype=np.int64)
    rank[key[starts]] = np.arange(len(starts))
    return starts, rank[key]


class RowIndex:
    """Finds rows of coordinates among known ones, each of which stands there once.

    Parameters
    ----------
    coords : int32[n, k]
    sizes
        Numbers below which each column stays.
    """

    def __init__(self, coords: IntArray, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        #: What the columns so far amount to, wherever they would outgrow a number.
        self._cuts: dict[int, Ints] = {}
        key = np.zeros(len(coords), dtype=np.int64)
        room = 2**62
        for column, size in enumerate(self._sizes):
            if size > room:
                self._cuts[column], key = np.unique(key, return_inverse=True)
                room = 2**62 // max(1, len(coords))
            key = key * size + coords[:, column]
            room //= max(1, size)
        self._order = np.argsort(key)
        self._keys = key[self._order]

    def find(self, coords: IntArray) -> Ints:
        """Place of each row among the known ones, -1 where it isn't there: int64[m]."""
        key = np.zeros(len(coords), dtype=np.int64)
        there = np.ones(len(coords), dtype=np.bool_)
        for column, size in enumerate(self._sizes):
            if column in self._cuts:
                key, met = _search(self._cuts[column], key)
                there &= met
            key = key * size + coords[:, column]
        place, met = _search(self._keys, key)
        return np.where(there & met, self._order[place] if len(self._order) else -1, -1)


def _search(known: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each wanted number stands in an ascending list, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return place, known[place] == wanted
