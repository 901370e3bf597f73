"""Statistics of pairs of cells, and quantiles; nan is an empty cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.cellset import FloatArray

Arrays = Sequence[FloatArray]


def quantile(arrays: Arrays) -> FloatArray:
    """The value that so many per cent (the first array) of the others aren't above, between two of them in
    proportion; cells that are empty don't count. Of an empty share there is none."""
    share = np.clip(arrays[0] / 100, 0, 1)
    table = np.sort(np.stack(np.broadcast_arrays(*arrays[1:])), axis=0)
    n = (~np.isnan(table)).sum(axis=0)
    place = np.nan_to_num(share) * np.maximum(n - 1, 0)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    column = np.arange(table.shape[1])
    below, above = table[low, column], table[high, column]
    found = (n > 0) & ~np.isnan(share)
    result: FloatArray = np.where(found, below + (above - below) * (place - low), np.nan)
    return result


class _Pairs:
    """Sums over the pairs of cells of which neither is empty, of each result.

    The first half of the arrays are the y, the second half the x.
    """

    def __init__(self, arrays: Arrays) -> None:
        half = len(arrays) // 2
        table = np.stack(np.broadcast_arrays(*arrays))
        self.both: NDArray[np.bool_] = ~(np.isnan(table[:half]) | np.isnan(table[half:]))
        self.n = self.both.sum(axis=0)
        # Taken from their mean, sums of squares don't lose their digits.
        self.mean_y, self.mean_x = (
            self._sum(part) / np.maximum(self.n, 1) for part in (table[:half], table[half:])
        )
        self.y, self.x = table[:half] - self.mean_y, table[half:] - self.mean_x
        self.xy, self.xx, self.yy = (
            self._sum(one * other) for one, other in ((self.x, self.y), (self.x, self.x), (self.y, self.y))
        )

    def _sum(self, values: FloatArray) -> FloatArray:
        result: FloatArray = np.where(self.both, values, 0.0).sum(axis=0)
        return result

    @property
    def slope(self) -> FloatArray:
        return _over(self.xy, self.xx)

    @property
    def errors(self) -> FloatArray:
        """Sum of the squares by which y misses the line."""
        return self._sum((self.y - self.slope * self.x) ** 2)


def _over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.nan)


def covariance(arrays: Arrays) -> FloatArray:
    pairs = _Pairs(arrays)
    return _over(pairs.xy, pairs.n.astype(np.float64))


def covariance_of_sample(arrays: Arrays) -> FloatArray:
    pairs = _Pairs(arrays)
    return _over(pairs.xy, pairs.n - 1.0)


def correlation(arrays: Arrays) -> FloatArray:
    pairs = _Pairs(arrays)
    return _over(pairs.xy, np.sqrt(pairs.xx) * np.sqrt(pairs.yy))


def slope(arrays: Arrays) -> FloatArray:
    return _Pairs(arrays).slope


def intercept(arrays: Arrays) -> FloatArray:
    pairs = _Pairs(arrays)
    result: FloatArray = pairs.mean_y - pairs.slope * pairs.mean_x
    return result


def point(arrays: Arrays) -> FloatArray:
    """Where the line is at an x, the first array."""
    pairs = _Pairs(arrays[1:])
    result: FloatArray = pairs.mean_y + pairs.slope * (arrays[0] - pairs.mean_x)
    return result


def determination(arrays: Arrays) -> FloatArray:
    """Share of the variance of y that the line has (R²)."""
    pairs = _Pairs(arrays)
    result: FloatArray = 1 - _over(pairs.errors, pairs.yy)
    return result


def error_variance(arrays: Arrays) -> FloatArray:
    """Variance of y about the line, of two degrees of freedom less than pairs."""
    pairs = _Pairs(arrays)
    return _over(pairs.errors, pairs.n - 2.0)
