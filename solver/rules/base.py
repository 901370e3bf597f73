"""What every sensitivity rule is: a frozen value that is applied to profiles and gives hits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol, runtime_checkable

from solver.arguments import MOST, as_number, told
from solver.errors import InputError
from solver.rules.profiles import TIE, Bools, Floats, Profiles


@dataclass(frozen=True, eq=False)
class Hits:
    """Cells hit by one rule and the protection levels that it asks for there (zero elsewhere)."""

    hit: Bools
    lpl: Floats
    upl: Floats
    spl: Floats


@runtime_checkable
class Rule(Protocol):
    """A sensitivity rule."""

    @property
    def name(self) -> str:
        """How the reason is written, such as ``freq<3`` or ``(1,85)``."""

    @property
    def flag(self) -> str:
        """One-letter reason of Eurostat transmissions: A few units, B one dominates, C several dominate,
        F p%-rule, R request, M manual, Z zero."""

    @property
    def depth(self) -> int:
        """How many of the largest contributions the rule looks at."""

    def apply(self, profiles: Profiles) -> Hits:
        """Find the cells that the rule hits."""


def exceeds(left: Floats, right: Floats) -> Bools:
    """Strictly greater, elementwise, with a tie where the difference is only rounding of a sum."""
    result: Bools = left > right + TIE * abs(right)
    return result


def is_whole(number: object) -> bool:
    """Whether it is a whole number, of whatever type."""
    if isinstance(number, bool):
        return False
    if isinstance(number, Integral):
        return abs(int(number)) <= MOST
    return isinstance(number, Real) and abs(float(number)) <= MOST and float(number).is_integer()


def percentage(name: str, value: float, at_most: float = float("inf")) -> float:
    """The value, if it is a percentage in (0, at_most].

    Raises
    ------
    InputError
        If it is not.
    """
    limit = "" if at_most == float("inf") else f" and at most {at_most:g}"
    remedy = f"Give a percentage above 0{limit}."
    number = as_number(value, name, math.ulp(0.0), remedy, finite=True)
    if number > at_most:
        raise InputError(f"{name} is {told(value)}.", remedy)
    return number
