"""What the formula of a calculated member became: a fixed linear combination of cells, or more.

A formula is evaluated in part: sets, members and constants are worked out, references to cells stay. A
reference says which coordinates differ from those of the cell that the formula is for, so one formula
serves every cell that it depends on in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, product

#: Coordinates that a referenced cell has instead of the cell's own: (column, number), by column.
Overrides = tuple[tuple[int, int], ...]
#: Larger exponents of numbers are worked out as floating-point numbers.
_LARGEST_EXPONENT = 64
#: Bits of the numerator and denominator of a number.
_MOST_BITS = 2_000
#: The largest number, as a power of two.
_LARGEST = 1_000
#: Functions of cells within one another.
_MOST_DEPTH = 120


class FormulaError(ArithmeticError):
    """A formula that can't be worked with; the text says why, for whoever wrote it."""


def _bounded(value: Fraction) -> Fraction:
    above, below = value.numerator.bit_length(), value.denominator.bit_length()
    if above - below > _LARGEST:
        raise FormulaError("A number of the formula is too large.")
    if max(above, below) > _MOST_BITS:
        raise FormulaError("A number of the formula has too many digits.")
    return value


@dataclass(frozen=True)
class Linear:
    """``constant + Σ coefficient · reference``, exactly.

    ``constant`` is None where there is none: an empty reference plus no constant is empty, but plus a
    constant of zero it is zero. References with coefficient zero stay, because emptiness hangs on them.
    """

    constant: Fraction | None = None
    terms: Mapping[Overrides, Fraction] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_empty(self) -> bool:
        return not self.terms and self.constant is None


@dataclass(frozen=True)
class Apply:
    """A function of formulas that isn't linear in cells; ``function`` as in `app.cube.arrays`."""

    function: str
    arguments: tuple[Formula, ...]
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        deepest = max((part.depth for part in self.arguments if isinstance(part, Apply)), default=0)
        if deepest >= _MOST_DEPTH:
            raise FormulaError(f"The formula takes functions of functions more than {_MOST_DEPTH} deep.")
        object.__setattr__(self, "depth", deepest + 1)

    @property
    def kind(self) -> str:
        """What kind of formula it is, in one word: that of its innermost part that isn't a mere sum."""
        if self.function in ("sum", "scale"):
            for argument in self.arguments:
                if isinstance(argument, Apply):
                    return argument.kind
        return self.function


@dataclass(frozen=True)
class Recompute:
    """A measure that doesn't add up, taken over members together, from the facts.

    ``groups`` are what is taken together, all combinations of it: columns with tuples of their members, none
    beneath another one. No column is in two groups.
    """

    function: str
    groups: tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...]
    elsewhere: Overrides

    @property
    def references(self) -> tuple[Overrides, ...]:
        """The cells of the single combinations."""
        columns = [column for group, _ in self.groups for column in group]
        combinations = (chain.from_iterable(parts) for parts in product(*(rows for _, rows in self.groups)))
        return tuple((*self.elsewhere, *zip(columns, numbers, strict=True)) for numbers in combinations)

    @property
    def width(self) -> int:
        """How many cells it refers to."""
        return math.prod(len(rows) for _, rows in self.groups)

    @property
    def kind(self) -> str:
        return self.function


@dataclass(frozen=True)
class Text:
    """Words instead of a value: for the analyst's eyes, never published."""

    words: str

    @property
    def kind(self) -> str:
        return "text"


@dataclass(frozen=True)
class Withheld:
    """What hangs on cells that may be confidential: told, if at all, once it is known which of them are.

    It isn't ``secret`` where they are merely not released.
    """

    kind: str
    secret: bool = True


Formula = Linear | Apply | Recompute | Text | Withheld

EMPTY = Linear()


def constant(value: Fraction | int) -> Linear:
    return Linear(Fraction(value))


def add(formulas: Sequence[Formula], signs: Sequence[int] | None = None) -> Formula:
    """Sum of formulas, each taken with its sign."""
    signed = list(zip(formulas, signs or [1] * len(formulas), strict=True))
    total: Fraction | None = None
    terms: dict[Overrides, Fraction] = {}
    rest: list[Formula] = []
    for formula, sign in signed:
        if not isinstance(formula, Linear):
            rest.append(scale(formula, Fraction(sign)))
            continue
        if formula.constant is not None:
            total = _bounded((total or Fraction(0)) + sign * formula.constant)
        for reference, coefficient in formula.terms.items():
            known = terms.get(reference)
            signed_one = coefficient if sign == 1 else -coefficient
            terms[reference] = signed_one if known is None else _bounded(known + signed_one)
    linear = Linear(total, terms)
    if not rest:
        return linear
    if not linear.is_empty:
        rest.append(linear)
    return rest[0] if len(rest) == 1 else Apply("sum", tuple(rest))


def scale(formula: Formula, factor: Fraction) -> Formula:
    """A formula times a number."""
    if isinstance(formula, Linear):
        scaled = None if formula.constant is None else _bounded(formula.constant * factor)
        return Linear(scaled, {key: _bounded(value * factor) for key, value in formula.terms.items()})
    return formula if factor == 1 else Apply("scale", (formula, Linear(factor)))


def multiply(left: Formula, right: Formula) -> Formula:
    """Product: empty when either is; linear when either is a number."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Linear) and one.is_empty:
            return EMPTY
        if isinstance(one, Linear) and one.is_constant and one.constant is not None:
            return scale(other, one.constant)
    return Apply("product", (left, right))


def divide(left: Formula, right: Formula) -> Formula:
    """Quotient: empty when either is empty or the divisor is zero; linear when the divisor is a number."""
    if isinstance(right, Linear) and right.is_constant:
        return scale(left, 1 / right.constant) if right.constant else EMPTY
    if isinstance(left, Linear) and left.is_empty:
        return EMPTY
    return Apply("ratio", (left, right))


def power(left: Formula, right: Formula) -> Formula:
    """Power: empty when either is empty; linear when the exponent is one, a number when both are."""
    if any(isinstance(side, Linear) and side.is_empty for side in (left, right)):
        return EMPTY
    if isinstance(right, Linear) and right.is_constant and right.constant is not None:
        if right.constant == 1:
            return left
        exponent, base = right.constant, left.constant if isinstance(left, Linear) else None
        small = exponent.denominator == 1 and abs(exponent) <= _LARGEST_EXPONENT
        if isinstance(left, Linear) and left.is_constant and base is not None and small:
            return Linear(_bounded(base**exponent.numerator)) if base or exponent >= 0 else EMPTY
    return Apply("power", (left, right))


def is_withheld(formula: Formula, secret: bool = False) -> bool:
    """Whether something withheld is in a formula, or something ``secret``."""
    if isinstance(formula, Apply):
        return any(is_withheld(part, secret) for part in formula.arguments)
    return isinstance(formula, Withheld) and (formula.secret or not secret)
