"""Rows of coordinates are found again, however large their cube is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.cube.keys import RowIndex, unique_rows

ROWS = arrays(np.int32, st.tuples(st.integers(0, 30), st.just(4)), elements=st.integers(0, 3))


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (2**31, 2**31, 2**31, 4)])
@given(known=ROWS, wanted=ROWS)
def test_rows_are_found_again(sizes: tuple[int, ...], known: np.ndarray, wanted: np.ndarray) -> None:
    known = np.unique(known, axis=0)
    places = {tuple(row): place for place, row in enumerate(known.tolist())}
    expected = [places.get(tuple(row), -1) for row in wanted.tolist()]
    assert RowIndex(known, sizes).find(wanted).tolist() == expected


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (2**31, 2**31, 2**31, 4)])
@given(rows=ROWS)
def test_equal_rows_are_one_row_in_order_of_appearance(sizes: tuple[int, ...], rows: np.ndarray) -> None:
    first, place = unique_rows(rows, sizes)
    seen = list(dict.fromkeys(map(tuple, rows.tolist())))
    assert [tuple(row) for row in rows[first].tolist()] == seen
    assert [seen[number] for number in place.tolist()] == list(map(tuple, rows.tolist()))
    assert all(
        tuple(row) not in map(tuple, rows[:at].tolist()) for at, row in zip(first, rows[first], strict=True)
    )
