"""crawl: weighted sums of small whole numbers, which may have one solution only.

Counts are whole numbers, and few: 5 a + 11 b = 54 has one solution, however far the real numbers between
reach. So it is with amounts that are whole numbers, such as persons employed, as long as they aren't large
beside the steps in which the weights let them move.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from app.domain.cellset import Relations
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Bools, Longs, row_of
from app.domain.least import SAME, unit_of

#: The digits of a weight.
FINEST = 10**6
#: Steps of which an amount has so many leave it as uncertain as any rule asks.
STEPS = 100.0


class Telling:
    """Asked for the linear formulas of answers.

    Parameters
    ----------
    coords : int32[n, 1+H]
        Cells.
    values : float64[n]
        Theirs, nan where a cell has no facts.
    """

    def __init__(self, cube: Cube, coords: IntArray, values: NDArray[np.float64]) -> None:
        self._measure = np.where(coords[:, 0] < len(cube.measures), coords[:, 0], -1)
        self._size = np.abs(np.nan_to_num(values))
        self._count = np.array([measure.is_frequency for measure in cube.measures] + [False], dtype=np.bool_)
        amounts = [place for place, measure in enumerate(cube.measures) if measure.aggregator == "sum"]
        #: What the amounts of each measure are counted in, 0 where they aren't.
        self._unit = np.zeros(len(cube.measures) + 1)
        for place in amounts:
            self._unit[place] = unit_of(self._size[self._measure == place])

    def __call__(self, linear: Relations, operands: Longs) -> tuple[Bools, Bools]:
        """Which formulas (bool[f]), and their entries (bool[k]), tell of operands (int64[k], cells)."""
        n = len(linear.cell)
        relation = row_of(linear.indptr)
        size = np.abs(linear.coefs)
        measure = self._measure[operands]
        counted = self._count[measure] & (size > 0)
        telling = _unequal(relation[counted], size[counted], n)
        whole = (counted | (self._unit[measure] > 0)) & (size > 0)
        for number in np.flatnonzero(_unequal(relation[whole], size[whole], n) & ~telling).tolist():
            start, end = linear.indptr[number : number + 2].tolist()
            mine = start + np.flatnonzero(whole[start:end])
            units = np.where(self._count[measure[mine]], 1.0, self._unit[measure[mine]])
            step = _largest_step(tuple((size[mine] * units).tolist()))
            telling[number] = bool((self._size[operands[mine]] < STEPS * step * units).any())
        return telling, telling[relation]


def _unequal(relation: Longs, size: NDArray[np.float64], n: int) -> Bools:
    least, most = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(least, relation, size)
    np.maximum.at(most, relation, size)
    found: Bools = most > least * (1 + SAME)
    return found


@cache
def _largest_step(weights: tuple[float, ...]) -> float:
    """By how many units some operand moves at most if the others are to keep the sum."""
    fractions = [Fraction(weight).limit_denominator(FINEST) for weight in weights]
    below = lcm(*(fraction.denominator for fraction in fractions))
    whole = [int(fraction * below) for fraction in fractions]
    return max(whole) / max(gcd(*whole), 1)
