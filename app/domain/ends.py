"""Where one band ends and the next begins: at a number of the labels, or at the roundest there is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_NUMBER = re.compile(r"(?P<minus>[-−–]\s?)?(?P<digits>\d+(?:[.,'’   ]\d+)*)")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,'’   ])\d{3})(?:\1\d{3})*")
#: Digits, and decimals, after which a number isn't round any more.
_FINEST = 12


def numbers_in(text: str) -> frozenset[float]:
    """The numbers that a label may mean: signs between thousands and before decimals differ by language."""
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        for number in _readings(match["digits"]):
            found.add(number)
            if match["minus"]:
                # Or a dash between two numbers.
                found.add(-number)
    return frozenset(found)


def _readings(digits: str) -> Iterable[float]:
    if _THOUSANDS.fullmatch(digits):
        yield float(re.sub(r"\D", "", digits))
        return
    parts = re.split(r"[.,'’   ]", digits)
    if len(parts) == 1:
        yield float(digits)
        return
    # Thousands and decimals, or numbers side by side.
    yield float("".join(parts[:-1]) + "." + parts[-1])
    yield from map(float, parts)


def roundest(low: float, high: float) -> tuple[float, float]:
    """The least and the largest of the roundest numbers from ``low`` to ``high``."""
    if low <= 0 <= high:
        return 0.0, 0.0
    top = math.floor(math.log10(max(abs(low), abs(high))))
    for exponent in range(top, max(top, 0) - _FINEST, -1):
        first, last = (
            _times(side(_over(end, exponent)), exponent)
            for side, end in ((math.ceil, low), (math.floor, high))
        )
        if low <= first <= last <= high:
            return first, last
    return low, high


def _over(number: float, exponent: int) -> float:
    return number / 10.0**exponent if exponent >= 0 else number * 10.0**-exponent


def _times(number: int, exponent: int) -> float:
    return number * 10.0**exponent if exponent >= 0 else number / 10.0**-exponent


def ends_between(
    most: float, least: float, below: frozenset[float], above: frozenset[float], unit: float
) -> tuple[float, float]:
    """The upper end of a band and the lower end of the next one.

    Parameters
    ----------
    most, least
        The largest value in the one and the smallest in the other.
    below, above
        Numbers on their labels.
    unit
        What all values are multiples of, 0 if there is no such thing: of a number that both bands end with,
        the one that doesn't reach it ends a unit before.
    """
    inside = {number for number in below | above if most <= number <= least}
    upper, lower = (min(inside), max(inside)) if inside else roundest(most, least)
    if upper == lower and unit:
        if most <= upper - unit:
            upper -= unit
        elif least >= lower + unit:
            lower += unit
    return upper, lower
