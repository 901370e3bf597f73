"""Functions of MDX over arrays of cell values; nan is an empty cell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube import regression
from app.domain.cellset import FloatArray
from app.domain.numbers import rounded

Arrays = Sequence[FloatArray]


def _table(arrays: Arrays) -> FloatArray:
    return np.stack(np.broadcast_arrays(*arrays))


def _skipping_empties(reduce: Callable[..., Any], least: int = 1) -> Callable[[Arrays], FloatArray]:
    """A statistic of the cells that aren't empty; empty where fewer than ``least`` are left."""

    def apply(arrays: Arrays) -> FloatArray:
        table = _table(arrays)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            result = reduce(table, axis=0)
        return np.where((~np.isnan(table)).sum(axis=0) >= least, result, np.nan)

    return apply


def _spread(power: bool, freedom: int) -> Callable[[Arrays], FloatArray]:
    def spread(table: FloatArray, axis: int) -> Any:
        reduce: Callable[..., Any] = np.nanvar if power else np.nanstd
        return reduce(table, axis=axis, ddof=freedom)

    return _skipping_empties(spread, 1 + freedom)


def _ratio(arrays: Arrays) -> FloatArray:
    top, bottom = arrays
    usable = ~np.isnan(bottom) & (bottom != 0)
    return np.where(usable, top / np.where(usable, bottom, 1.0), np.nan)


def _product(arrays: Arrays) -> FloatArray:
    return arrays[0] * arrays[1]


def _compare(test: Callable[[FloatArray, FloatArray], NDArray[np.bool_]]) -> Callable[[Arrays], FloatArray]:
    def apply(arrays: Arrays) -> FloatArray:
        left, right = (np.nan_to_num(array) for array in arrays)
        return test(left, right).astype(np.float64)

    return apply


def _if(arrays: Arrays) -> FloatArray:
    condition, yes, no = arrays
    return np.where(np.nan_to_num(condition) != 0, yes, no)


def _coalesce(arrays: Arrays) -> FloatArray:
    result = arrays[0]
    for array in arrays[1:]:
        result = np.where(np.isnan(result), array, result)
    return result


def _rank(arrays: Arrays) -> FloatArray:
    own, others = arrays[0], _table(arrays[1:]) if len(arrays) > 1 else np.zeros((0, len(arrays[0])))
    better: FloatArray = (np.nan_to_num(others, nan=-np.inf) > np.nan_to_num(own, nan=-np.inf)).sum(axis=0)
    return 1.0 + better


def _truths(arrays: Arrays) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = np.nan_to_num(_table(arrays)) != 0
    return result


def _round(arrays: Arrays) -> FloatArray:
    """Halves away from zero, as numbers are printed and published."""
    if len(arrays) == 1:
        return rounded(arrays[0], 0)
    values, digits = np.broadcast_arrays(arrays[0], np.floor(arrays[1]))
    result = np.full(values.shape, np.nan)
    for number in np.unique(digits[~np.isnan(digits)]):
        mine = digits == number
        # Beyond these no float has a digit.
        result[mine] = rounded(values[mine], int(np.clip(number, -308, 308)))
    return result


def _root(arrays: Arrays) -> FloatArray:
    result: FloatArray = np.sqrt(np.where(arrays[0] >= 0, arrays[0], np.nan))
    return result


def _log(arrays: Arrays) -> FloatArray:
    positive = np.where(arrays[0] > 0, arrays[0], np.nan)
    result: FloatArray = np.log(positive)
    return result if len(arrays) == 1 else result / np.log(arrays[1])


def _power(arrays: Arrays) -> FloatArray:
    result: FloatArray = np.power(arrays[0], arrays[1])
    return result


def _of_one(what: Callable[[FloatArray], Any]) -> Callable[[Arrays], FloatArray]:
    def apply(arrays: Arrays) -> FloatArray:
        return np.asarray(what(arrays[0]), dtype=np.float64)

    return apply


def _remainder(arrays: Arrays) -> FloatArray:
    """With the sign of the divisor; of zero there is none."""
    value, divisor = arrays
    result: FloatArray = value - divisor * np.floor(_ratio([value, divisor]))
    return result


_FUNCTIONS: dict[str, Callable[[Arrays], FloatArray]] = {
    "sum": _skipping_empties(np.nansum),
    "scale": _product,
    "product": _product,
    "ratio": _ratio,
    "average": _skipping_empties(np.nanmean),
    "min": _skipping_empties(np.nanmin),
    "max": _skipping_empties(np.nanmax),
    "median": _skipping_empties(np.nanmedian),
    "stdev": _spread(False, 1),
    "stdevp": _spread(False, 0),
    "var": _spread(True, 1),
    "varp": _spread(True, 0),
    "nonempty-count": lambda arrays: (~np.isnan(_table(arrays))).sum(axis=0).astype(np.float64),
    "if": _if,
    "is-empty": lambda arrays: np.isnan(arrays[0]).astype(np.float64),
    "coalesce": _coalesce,
    "rank": _rank,
    "=": _compare(np.equal),
    "<>": _compare(np.not_equal),
    "<": _compare(np.less),
    ">": _compare(np.greater),
    "<=": _compare(np.less_equal),
    ">=": _compare(np.greater_equal),
    "and": lambda arrays: np.asarray(_truths(arrays).all(axis=0), dtype=np.float64),
    "or": lambda arrays: np.asarray(_truths(arrays).any(axis=0), dtype=np.float64),
    "xor": lambda arrays: (_truths(arrays).sum(axis=0) % 2).astype(np.float64),
    "not": lambda arrays: (~_truths(arrays)[0]).astype(np.float64),
    "abs": lambda arrays: np.abs(arrays[0]).astype(np.float64),
    "int": lambda arrays: np.floor(arrays[0]).astype(np.float64),
    "round": _round,
    "sqrt": _root,
    "sqr": _root,
    "exp": lambda arrays: np.exp(arrays[0]).astype(np.float64),
    "ln": _log,
    "log": _log,
    "power": _power,
    "quantile": regression.quantile,
    "correlation": regression.correlation,
    "covariance": regression.covariance,
    "covariance-n": regression.covariance_of_sample,
    "slope": regression.slope,
    "intercept": regression.intercept,
    "point": regression.point,
    "r2": regression.determination,
    "error-variance": regression.error_variance,
    "sin": _of_one(np.sin),
    "cos": _of_one(np.cos),
    "tan": _of_one(np.tan),
    "asin": _of_one(np.arcsin),
    "acos": _of_one(np.arccos),
    "atn": _of_one(np.arctan),
    "sinh": _of_one(np.sinh),
    "cosh": _of_one(np.cosh),
    "tanh": _of_one(np.tanh),
    "asinh": _of_one(np.arcsinh),
    "acosh": _of_one(np.arccosh),
    "atanh": _of_one(np.arctanh),
    "degrees": _of_one(np.degrees),
    "radians": _of_one(np.radians),
    "sgn": _of_one(np.sign),
    "fix": _of_one(np.trunc),
    "ceiling": _of_one(np.ceil),
    "cint": _of_one(np.rint),
    "log10": lambda arrays: _log([arrays[0]]) / np.log(10.0),
    "sqrtpi": lambda arrays: _root([arrays[0] * np.pi]),
    "atan2": lambda arrays: np.asarray(np.arctan2(arrays[1], arrays[0]), dtype=np.float64),
    "mod": _remainder,
}


#: Functions that are empty where all their arguments are, and those that never are; others where one is.
_EMPTY_WITH_ALL = frozenset(
    [
        *("if", "sum", "average", "min", "max", "median", "stdev", "stdevp", "var", "varp", "coalesce"),
        *("quantile", "correlation", "covariance", "covariance-n"),
        *("slope", "intercept", "point", "r2", "error-variance"),
    ]
)
_NEVER_EMPTY = frozenset(
    ["nonempty-count", "is-empty", "rank", "=", "<>", "<", ">", "<=", ">=", "and", "or", "xor", "not"]
)
#: Functions of all their arguments.
_KEEPING = frozenset(["sum", "scale", "product", "ratio"])


def can_be_filled(function: str, arrays: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Whether a function of `Apply` can have a value, from whether its arguments can: bool[n].

    Says nothing about the numbers: a comparison may come out either way, a divisor is not zero.
    """
    table = np.stack(np.broadcast_arrays(*arrays))
    if function in _NEVER_EMPTY:
        return np.ones(table.shape[1], dtype=np.bool_)
    if function == "if":
        table = table[1:]
    reduce = np.logical_or if function in _EMPTY_WITH_ALL else np.logical_and
    result: NDArray[np.bool_] = reduce.reduce(table, axis=0)
    return result


def compute(function: str, arrays: Arrays) -> FloatArray:
    """Value of a function of `Apply` at each cell, float64[n]; empty where it has none.

    It is infinite where it is larger than any float.
    """
    with np.errstate(all="ignore"):
        result = _FUNCTIONS[function](arrays)
        beyond = np.isinf(result)
        if beyond.any():
            # Of zero there is no negative power, and to the base of one no logarithm.
            none = arrays[0] == 0 if function == "power" else np.full(len(result), function == "log")
            result = np.where(beyond & none, np.nan, result)
        if function in _KEEPING and np.isnan(result).any():
            # What takes infinities from one another isn't empty.
            lost = np.isnan(result) & np.isinf(_table(arrays)).any(axis=0)
            result = np.where(lost, np.inf, result)
    return result
