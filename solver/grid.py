"""A table as whole numbers: values, bounds and levels counted in steps of a decimal unit, exactly.

What leaves the house has to add up to the last digit, so no double decides here: arrays of Python's own
integers do (infinite bounds stay infinite). Doubles are made of them for the linear programs alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arguments import told
from solver.errors import InputError
from solver.instance import BoolArray, FloatArray, Instance, IntArray, Status

#: Whole numbers of any size, or ±inf.
WholeArray = NDArray[Any]
#: Doubles are whole numbers exactly up to this.
_EXACT = 2.0**53
#: Levels are doubles, often a percentage: what misses one by less than this (relative) meets it.
_MET = 1 - Fraction(1, 10**9)
#: What a unit looks like: no more digits, so that it is read at once.
_DECIMAL = re.compile(r"\+?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
#: A level is at least about so many units, or the unit is as fine as the values are written.
_FINE = 10**9


def exact(amounts: FloatArray, texts: Sequence[str] | None = None) -> WholeArray:
    """Amounts as integers or fractions, as their decimals say; ±inf stays."""
    whole = np.abs(amounts) <= _EXACT
    if texts is None and bool((whole & (amounts == np.rint(amounts))).all()):
        return np.asarray(amounts.astype(np.int64).astype(object))
    listed = texts if texts is not None else [repr(x) for x in amounts.tolist()]
    found = np.empty(len(amounts), dtype=object)
    found[:] = [float(x) if x in ("inf", "-inf") else Fraction(x) for x in listed]
    return found


def as_unit(value: Any, name: str) -> Fraction:
    """A decimal number from 10⁻¹⁵ to 10¹⁵, given as a number or as text.

    Raises
    ------
    InputError
        It is none.
    """
    text = "" if isinstance(value, bool) else str(value)
    unit = Fraction(text) if _DECIMAL.fullmatch(text) else Fraction(0)
    if not Fraction(1, 10**15) <= unit <= 10**15:
        raise InputError(f"{name} is {told(value)}.", "Give a positive decimal number, from 1e-15 to 1e15.")
    return unit


def places(number: Fraction) -> int | None:
    """Decimals that write a number in full; None if no number of them does."""
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def written(number: Fraction) -> str:
    """A decimal number in full."""
    decimals = places(number) or 0
    digits = str(abs(number.numerator) * 10**decimals // number.denominator).rjust(decimals + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits)


def finest(values: WholeArray) -> Fraction:
    """The largest of 1, 0.1, 0.01, … of which all values are multiples."""
    decimals = max(
        (places(Fraction(x)) or 0 for x in values.tolist() if getattr(x, "denominator", 1) > 1), default=0
    )
    return Fraction(1, 10**decimals)


def published(instance: Instance) -> BoolArray:
    """Cells that a perturbed table shows: all but virtual ones and those hidden beforehand (bool[n])."""
    return np.isin(instance.status, (Status.HIDDEN, Status.VIRTUAL), invert=True)


@dataclass(frozen=True, eq=False)
class Relations:
    """The relations with whole coefficients.

    Attributes
    ----------
    factor : int[m]
        What each relation was multiplied by.
    coefs : int[entries]
        As in the instance, so multiplied.
    """

    instance: Instance
    factor: WholeArray
    coefs: WholeArray

    @classmethod
    def of(cls, instance: Instance) -> Relations:
        """Clear the denominators of each relation."""
        coefs = exact(instance.coefs)
        factor = np.ones(instance.m, dtype=object)
        denominator = np.array([x.denominator for x in coefs.tolist()], dtype=object)
        for entry in np.flatnonzero(denominator != 1).tolist():
            row = int(instance.relation[entry])
            factor[row] = math.lcm(factor[row], denominator[entry])
        whole = coefs * factor[instance.relation]
        return cls(instance, factor, np.array([int(x) for x in whole.tolist()], dtype=object))

    def sums(self, amounts: WholeArray) -> WholeArray:
        """What each relation adds up to with these amounts of the cells ([n] → [m])."""
        found = np.zeros(self.instance.m, dtype=object)
        starts = self.instance.indptr
        filled = np.flatnonzero(np.diff(starts) > 0)
        if len(filled):
            products = self.coefs * amounts[self.instance.indices]
            found[filled] = np.add.reduceat(products, starts[filled])
        return found


@dataclass(frozen=True, eq=False)
class Grid:
    """How far each cell may move and must move, in units.

    Attributes
    ----------
    instance, unit
        The table, and the amount of one step.
    moving : bool[n]
        Cells that may move.
    low, high : int[n]
        Least and greatest movement: 0 for cells that keep their value, ±inf where nothing limits it.
    must : int64[p]
        Cells that must leave their protection interval.
    down, up : int[p]
        How far at least, either way; inf where that way is no way out.
    """

    instance: Instance
    unit: Fraction
    moving: BoolArray
    low: WholeArray
    high: WholeArray
    must: IntArray
    down: WholeArray
    up: WholeArray

    @cached_property
    def relations(self) -> Relations:
        """The relations that movements have to keep."""
        return Relations.of(self.instance)

    @cached_property
    def weight(self) -> FloatArray:
        """Cost of one unit of movement (float64[n]); of what isn't published, none."""
        return np.where(published(self.instance), self.instance.weight, 0.0) * float(self.unit)

    def cost(self, steps: WholeArray) -> float:
        """Weighted distance of a movement, the same in every order of the cells."""
        return float(np.sort(self.weight * np.abs(steps).astype(np.float64)).sum())


def levels(instance: Instance) -> tuple[IntArray, FloatArray, FloatArray]:
    """Cells that have to leave an interval (int64[p]), and how far that reaches below and above each.

    Of several attackers the widest counts. A sliding level that is wider than the other two together widens
    both, by equal parts.

    Raises
    ------
    InputError
        A sensitive cell has no level: nothing says how far it has to go.
    """
    lower, upper, sliding = instance.lpl.copy(), instance.upl.copy(), instance.spl.copy()
    for insider in instance.insiders:
        np.maximum.at(lower, insider.targets, insider.lpl)
        np.maximum.at(upper, insider.targets, insider.upl)
        np.maximum.at(sliding, insider.targets, insider.spl)
    wider = np.maximum(sliding - lower - upper, 0.0) / 2
    lower, upper = lower + wider, upper + wider
    some = (lower > 0) | (upper > 0)
    none = np.flatnonzero((instance.status == Status.SENSITIVE) & ~some)
    if len(none):
        more = f" (and {len(none) - 1} more cells)" if len(none) > 1 else ""
        raise InputError(
            f"a sensitive cell has no protection level{more}.",
            "Say how far it has to move: lpl, upl or spl.",
            cell=instance.name(int(none[0])),
        )
    must = np.flatnonzero(instance.always_hidden & some)
    return must, lower[must], upper[must]


def grid_of(instance: Instance, unit: Fraction | None, *, move_zeros: bool) -> Grid:
    """Count a table in units; without one, in the last decimal that the values are written with.

    Raises
    ------
    InputError
        A sensitive cell has no level.
    """
    must, lower, upper = levels(instance)
    value = exact(instance.value, instance.decimals)
    if unit is None:
        unit = finest(value)
        smallest = min([x for x in (*lower.tolist(), *upper.tolist()) if x > 0], default=1.0)
        # Doubles like 0.30000000000000004 have more decimals than anybody meant.
        unit = max(unit, min(Fraction(1), Fraction(10) ** math.floor(math.log10(smallest)) / _FINE))
    moving = np.array(instance.may_hide)
    if not move_zeros:
        moving &= instance.always_hidden | (instance.value != 0)
    low = rounded((exact(instance.lower_bound) - value) / unit, up=True)
    high = rounded((exact(instance.upper_bound) - value) / unit, up=False)
    down, up = (rounded(needed(level) / unit, up=True) for level in (lower, upper))
    # To stay where it is protects nobody, and neither does a place beyond what readers know is possible.
    down[(down == 0) | (down > -low[must])] = np.inf
    up[(up == 0) | (up > high[must])] = np.inf
    still = ~moving
    low[still], high[still] = 0, 0
    return Grid(instance, unit, moving, low, high, must, down, up)


def needed(levels: FloatArray) -> WholeArray:
    """What meets levels, exactly: whole ones themselves, others but for the rounding of a double."""
    found = exact(levels)
    found[levels != np.rint(levels)] *= _MET
    return found


def rounded(amounts: WholeArray, *, up: bool) -> WholeArray:
    """Rounded up or down to whole numbers; ±inf stays."""
    whole = math.ceil if up else math.floor
    found = np.empty(len(amounts), dtype=object)
    found[:] = [x if x in (math.inf, -math.inf) else whole(x) for x in amounts.tolist()]
    return found
