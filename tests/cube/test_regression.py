"""Statistics of pairs and quantiles against Python's own."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cube.arrays import compute

CELL = st.none() | st.integers(-1_000, 1_000)
PAIRS = st.lists(st.tuples(CELL, CELL), min_size=1, max_size=12)


def applied(name: str, *values: float | None) -> float:
    arrays = [np.array([math.nan if value is None else float(value)]) for value in values]
    return float(compute(name, arrays)[0])


def line(ys: list[float], xs: list[float]) -> tuple[float, float]:
    return tuple(statistics.linear_regression(xs, ys))  # type: ignore[return-value]


def error(ys: list[float], xs: list[float]) -> float:
    slope, intercept = line(ys, xs)
    return sum((y - slope * x - intercept) ** 2 for y, x in zip(ys, xs, strict=True))


WANTED: dict[str, Callable[[list[float], list[float]], float]] = {
    "covariance-n": statistics.covariance,
    "covariance": lambda ys, xs: statistics.covariance(ys, xs) * (len(ys) - 1) / len(ys),
    "correlation": statistics.correlation,
    "slope": lambda ys, xs: line(ys, xs)[0],
    "intercept": lambda ys, xs: line(ys, xs)[1],
    "r2": lambda ys, xs: statistics.correlation(ys, xs) ** 2,
    "error-variance": lambda ys, xs: error(ys, xs) / (len(ys) - 2),
}


@pytest.mark.parametrize("name", WANTED)
@given(pairs=PAIRS)
def test_statistics_of_pairs_are_of_those_that_are_whole(
    name: str, pairs: list[tuple[int | None, int | None]]
) -> None:
    found = applied(name, *(y for y, _ in pairs), *(x for _, x in pairs))
    whole = [(float(y), float(x)) for y, x in pairs if y is not None and x is not None]
    ys, xs = [y for y, _ in whole], [x for _, x in whole]
    try:
        wanted = WANTED[name](ys, xs)
    except (statistics.StatisticsError, ZeroDivisionError):
        assert math.isnan(found) or len(whole) == 1
    else:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@given(pairs=PAIRS, at=st.integers(-50, 50))
def test_a_point_lies_on_the_line(pairs: list[tuple[int | None, int | None]], at: int) -> None:
    values = [*(y for y, _ in pairs), *(x for _, x in pairs)]
    on_line = applied("intercept", *values) + at * applied("slope", *values)
    assert applied("point", at, *values) == pytest.approx(on_line, rel=1e-6, abs=1e-6, nan_ok=True)


@given(values=st.lists(CELL, min_size=1, max_size=15), share=st.integers(1, 99))
def test_quantiles_lie_between_values_in_proportion(values: list[int | None], share: int) -> None:
    known = sorted(float(value) for value in values if value is not None)
    found = applied("quantile", share, *values)
    if len(known) < 2:
        assert math.isnan(found) if not known else found == known[0]
    else:
        wanted = statistics.quantiles(known, n=100, method="inclusive")[share - 1]
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


#: Functions of cells, and how many they take.
ODD = {1: "abs int exp log sqrt cint fix not sin log10", 3: "if quantile sum median stdev rank round point"}
ODD[2] = (
    f"quantile power ratio mod atan2 round log correlation covariance slope r2 error-variance rank {ODD[1]}"
)
NUMBERS = (math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 2.5, 50.0, 101.0, 1e308, -1e308, 1e-308)


@pytest.mark.parametrize(("name", "count"), [(name, n) for n, names in ODD.items() for name in names.split()])
def test_no_cell_however_odd_breaks_a_function(name: str, count: int) -> None:
    cells = [np.array(column) for column in zip(*itertools.product(NUMBERS, repeat=count), strict=True)]
    found = compute(name, cells)
    assert (found.dtype, found.shape) == (np.float64, cells[0].shape)
    if name == "quantile":
        assert np.isnan(found[np.isnan(cells[0])]).all()


@given(st.lists(CELL, min_size=1, max_size=15))
def test_the_middle_quantile_is_the_median(values: list[int | None]) -> None:
    assert applied("quantile", 50, *values) == pytest.approx(applied("median", *values), nan_ok=True)
