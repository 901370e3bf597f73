"""Round axis steps and class limits, from shown values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np


@dataclass(frozen=True)
class Scale:
    """A linear scale over round ticks; positions are shares of the axis from 0 to 1."""

    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return (value - low) / (high - low)


def scale_over(values: Sequence[float], steps: int = 5, with_zero: bool = True) -> Scale:
    """A scale over all values; ``with_zero`` makes it start or end at zero at the latest.

    Without, zero is still included when the values come close to it, so that a line isn't cut for
    little gain.
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if with_zero or (low >= 0 and low < 0.4 * high) or (high <= 0 and high > 0.4 * low):
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
    # Floats can't tell steps apart that are much finer than the values themselves.
    step = _round_step(max((high - low) / steps, 1e-9 * max(abs(low), abs(high)), 1e-300))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(tuple(float(f"{index * step:.12g}") for index in range(first, max(last, first + 1) + 1)))


def _round_step(rough: float) -> float:
    power = 10.0 ** floor(log10(rough))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0):
        if rough <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


def class_limits(values: Sequence[float], classes: int = 5) -> tuple[float, ...]:
    """Lower limits of at most ``classes`` classes with about equally many values in each."""
    if not values:
        return ()
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    if len(distinct) <= classes:
        return tuple(distinct.tolist())
    quantiles = np.quantile(np.asarray(values), np.linspace(0, 1, classes + 1)[:-1], method="inverted_cdf")
    return tuple(np.unique(quantiles).tolist())
