"""Fixed-point columns, so that sums are exact and two runs give identical bits.

A column of numbers is held as one or two int64 "limbs" that add up without rounding, in any order:
``value = (high · 2**shift + low) / scale``. Integers and decimals are exact. Doubles are exact when they
are decimals of few digits; else both limbs together hold them to 2**-110 of the largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.cellset import FloatArray

Ints = NDArray[np.int64]
#: Largest sum of absolute values that one limb may reach.
LIMIT = 2.0**62
_MOST_DECIMALS = 6


@dataclass(frozen=True)
class FixedPoint:
    """How a column is held: ``decimals`` of a decimal scale, or ``exponent`` of a binary one."""

    decimals: int | None
    exponent: int = 0
    shift: int = 0
    limbs: int = 1

    def to_float(self, limbs: Ints) -> FloatArray:
        """Values of sums of limbs, int64[n, limbs]."""
        value = limbs[:, 0].astype(np.float64)
        if self.limbs == 2:
            value = value * 2.0**self.shift + limbs[:, 1].astype(np.float64)
        if self.decimals is None:
            return np.ldexp(value, -self.exponent)
        return value / 10.0**self.decimals


def encode(values: FloatArray) -> tuple[FixedPoint, Ints]:
    """Limbs of finite doubles, int64[n, limbs]."""
    largest = float(np.max(np.abs(values), initial=0.0))
    room = LIMIT / max(1, len(values))
    for decimals in range(_MOST_DECIMALS + 1):
        power = 10.0**decimals
        if largest * power >= min(room, 2.0**53):
            break
        scaled = np.rint(values * power)
        if np.array_equal(scaled / power, values):
            return FixedPoint(decimals), scaled.astype(np.int64)[:, None]
    # Binary: the high limb takes what fits, the low limb the rest. Exponents are powers of two, so
    # scaling is free of rounding.
    bits = int(np.floor(np.log2(room))) - 1
    exponent = bits - int(np.ceil(np.log2(largest)))
    scaled = np.ldexp(values, exponent)
    high = np.rint(scaled)
    low = np.rint(np.ldexp(scaled - high, bits))
    limbs = np.stack([high.astype(np.int64), low.astype(np.int64)], axis=1)
    return FixedPoint(None, exponent + bits, shift=bits, limbs=2), limbs


def encode_integers(values: Ints, decimals: int) -> tuple[FixedPoint, Ints]:
    """Limbs of integers that count units of ``10**-decimals``."""
    largest = float(np.max(np.abs(values.astype(np.float64)), initial=0.0))
    if largest * max(1, len(values)) < LIMIT:
        return FixedPoint(decimals), values[:, None]
    low = values & (2**31 - 1)
    return FixedPoint(decimals, shift=31, limbs=2), np.stack([values >> 31, low], axis=1)
