"""Weights of a size that programs take: HiGHS counts no cost from 1e20 on, and below 1e-9 none differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solver.instance import FloatArray, Instance
from solver.solution import Progress, ProgressCallback, Solution

# The largest weight may be between these; beyond, it becomes the third.
_SMALL, _LARGE, _USUAL = 2.0**-14, 2.0**36, 2.0**24


def cost_unit(weight: FloatArray) -> float:
    """What one unit of cost is in a search: a power of two, which rounds nothing; mostly 1."""
    largest = float(weight.max(initial=0.0))
    if largest == 0.0 or _SMALL <= largest <= _LARGE:
        return 1.0
    # The smallest power of two for the smallest weights that there are.
    return float(max(2.0 ** (np.floor(np.log2(largest)) - np.log2(_USUAL)), 2.0**-1022))


def in_units(instance: Instance, unit: float) -> Instance:
    """The instance with weights in such units."""
    return instance if unit == 1.0 else instance.replace(weight=instance.weight / unit)


def told_in_full(progress: ProgressCallback | None, unit: float) -> ProgressCallback | None:
    """Tells the progress of a search in such units in those of its weights."""
    if progress is None or unit == 1.0:
        return progress
    tell = progress

    def told(found: Progress) -> None:
        tell(replace(found, lower=found.lower * unit, upper=found.upper * unit))

    return told


def in_full(found: Solution, instance: Instance, unit: float) -> Solution:
    """A solution of the instance in such units, in those of its weights."""
    if unit == 1.0:
        return found
    cost = instance.cost(found.hidden)
    return replace(
        found,
        cost=cost,
        lower_bound=cost if found.lower_bound == found.cost else min(found.lower_bound * unit, cost),
        trace=tuple((seconds, lower * unit, upper * unit) for seconds, lower, upper in found.trace),
    )
