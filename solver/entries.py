"""Numbers of the entries of sparse matrices in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_of(indptr: NDArray[Any]) -> NDArray[np.int64]:
    """The row of each entry (int64[entries]) of compressed rows (offsets int[m + 1])."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
    """start, start + 1, … of each length, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.repeat(starts - before, lengths) + np.arange(int(lengths.sum())), dtype=np.int64)
