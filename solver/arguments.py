"""Arguments of the doors: of the right kind, or one error that names them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import InputError

#: Characters of a wrong argument that are told.
_TOLD = 60
#: Whole numbers are no larger.
MOST = 2**63 - 1


def told(value: object) -> str:
    """A wrong argument as it is told: shortened, and in letters that every terminal takes."""
    if isinstance(value, Integral) and abs(int(value)) > MOST:
        return "a number of too many digits"
    text = ascii(value) if isinstance(value, str | bytes | Real) else f"a {type(value).__name__}"
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def require(value: object, kind: type | tuple[type, ...], name: str, remedy: str) -> None:
    """An argument of some kind.

    Raises
    ------
    InputError
        If it is of another.
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} is {told(value)}.", remedy)


def as_number(value: Any, name: str, least: float, remedy: str, *, finite: bool = False) -> float:
    """A number, ``least`` or more.

    Raises
    ------
    InputError
        If it is none, or less, or infinite where it has to be ``finite``.
    """
    try:
        given = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        given = math.nan
    if not given >= least or (finite and math.isinf(given)):
        raise InputError(f"{name} is {told(value)}.", remedy)
    return given


def whole(value: Any, name: str, least: int) -> int:
    """A whole number, ``least`` or more.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= MOST:
        raise InputError(f"{name} is {told(value)}.", f"Give a whole number, {least} or more.")
    return int(value)


def choice(value: Any, name: str, words: Sequence[str]) -> None:
    """One of some words.

    Raises
    ------
    InputError
        If it is none of them.
    """
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{name} is {told(value)}.", f"Use one of {', '.join(words)}.")


def text(value: Any, name: str) -> str:
    """A text.

    Raises
    ------
    InputError
        If it is none.
    """
    require(value, str, name, "Give a text.")
    return str(value)


def listed(values: Any, name: str, what: str, kind: type | tuple[type, ...] = str) -> tuple[Any, ...]:
    """A list of things of one kind, called ``what``; a single text is none.

    Raises
    ------
    InputError
        If it is none, or one of them is of another kind.
    """
    remedy = f"Give a list of {what}."
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name} is {told(values)}.", remedy)
    found = tuple(values)
    for value in found:
        if not isinstance(value, kind):
            raise InputError(f"{name} holds {told(value)}.", remedy)
    return found


def as_path(value: Any, name: str) -> Path:
    """The path of a file.

    Raises
    ------
    InputError
        If it can be none.
    """
    require(value, (str, os.PathLike), name, "Give the name of a file.")
    written = os.fspath(value)
    try:
        named = os.fsencode(written)
    except UnicodeEncodeError:
        named = b"\0"
    if not isinstance(written, str) or b"\0" in named:
        raise InputError(f"{name} is {told(written)}, which no file can be called.", "Give its name.")
    return Path(written)


def numbers(values: Any, name: str) -> NDArray[np.float64]:
    """An array of numbers (float64, of any shape).

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} holds what is no number.", "Give an array of numbers.") from None


def wholes(values: Any, name: str) -> NDArray[np.int64]:
    """An array of whole numbers (int64, of any shape).

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return values.astype(np.int64)
    array = numbers(values, name)
    # Doubles are as exact as that.
    if not (np.abs(array) <= 2**53).all() or (array != np.floor(array)).any():
        raise InputError(f"{name} holds what is no whole number.", "Give an array of whole numbers.")
    return array.astype(np.int64)


def pattern(values: Any, name: str, n: int) -> NDArray[np.bool_]:
    """Which cells a pattern hides (bool[n]).

    Raises
    ------
    InputError
        If it doesn't say true or false of each cell.
    """
    array = values if isinstance(values, np.ndarray) else numbers(values, name)
    if array.shape != (n,):
        raise InputError(
            f"{name} of shape {array.shape} does not fit {n} cells.", "Give a truth value for each."
        )
    if array.dtype.kind != "b" and not np.isin(numbers(array, name), (0, 1)).all():
        raise InputError(f"{name} holds what is neither true nor false.", "Give a truth value for each cell.")
    return array.astype(np.bool_)
