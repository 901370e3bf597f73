"""Values of formulas from those of the cells that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from app.cube.arrays import can_be_filled, compute
from app.domain.cellset import FloatArray
from app.domain.formula import Apply, Formula, Linear, Recompute, Text, Withheld

Leaf = Linear | Recompute


def work_out(formula: Formula, n: int, of_leaf: Callable[[Leaf], FloatArray]) -> FloatArray:
    """Value of a formula at ``n`` cells, from those of its leaves (in the order of `leaves_of`)."""
    if isinstance(formula, Apply):
        return compute(formula.function, [work_out(part, n, of_leaf) for part in formula.arguments])
    if isinstance(formula, (Text, Withheld)):
        return np.full(n, np.nan)
    if isinstance(formula, Linear) and formula.is_constant:
        return np.full(n, np.nan if formula.constant is None else float(formula.constant))
    return of_leaf(formula)


def words_of(formula: Formula, n: int, of_leaf: Callable[[Leaf], FloatArray]) -> NDArray[np.object_]:
    """Texts that a formula of texts and conditions gives at ``n`` cells; None where it gives none."""
    if isinstance(formula, Text):
        return np.full(n, formula.words, dtype=np.object_)
    if isinstance(formula, Apply) and formula.function == "if":
        truth = np.nan_to_num(work_out(formula.arguments[0], n, of_leaf)) != 0
        yes, no = (words_of(part, n, of_leaf) for part in formula.arguments[1:])
        return np.where(truth, yes, no)
    work_out(formula, n, of_leaf)
    return np.full(n, None, dtype=np.object_)


def has_words(formula: Formula) -> bool:
    """Whether a text is among what a formula can give."""
    if isinstance(formula, Apply):
        return formula.function == "if" and any(map(has_words, formula.arguments[1:]))
    return isinstance(formula, Text)


def may_be_filled(formula: Formula, n: int, leaves: Iterator[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Whether a formula can have a value at ``n`` cells; ``leaves``: whether a cell of each leaf can."""
    if isinstance(formula, Apply):
        parts = [may_be_filled(part, n, leaves) for part in formula.arguments]
        return can_be_filled(formula.function, parts)
    if isinstance(formula, (Text, Withheld)):
        return np.ones(n, dtype=np.bool_)
    if isinstance(formula, Linear) and formula.is_constant:
        return np.full(n, not formula.is_empty)
    some = next(leaves)
    if isinstance(formula, Linear) and formula.constant is not None:
        return np.ones(n, dtype=np.bool_)
    return some


def leaves_of(formula: Formula) -> Iterator[Leaf]:
    if isinstance(formula, Apply):
        for argument in formula.arguments:
            yield from leaves_of(argument)
    elif isinstance(formula, Recompute) or (isinstance(formula, Linear) and formula.terms):
        yield formula


def combine(formula: Linear, operands: FloatArray) -> FloatArray:
    """Σ coefficient · operand; empty operands count for nothing, and alone for empty."""
    coefs = np.array([float(value) for value in formula.terms.values()])
    total: FloatArray = (np.nan_to_num(operands) * coefs).sum(axis=1)
    if formula.constant is not None:
        return total + float(formula.constant)
    return np.where(np.isnan(operands).all(axis=1), np.nan, total)


def is_whole(formula: Linear) -> bool:
    numbers = [*formula.terms.values(), formula.constant or 0]
    return all(number.denominator == 1 for number in numbers)
