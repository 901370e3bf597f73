"""Rows of coordinates are found again, however large their cube is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.cube.keys import RowIndex

ROWS = arrays(np.int32, st.tuples(st.integers(0, 30), st.just(4)), elements=st.integers(0, 3))


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (2**31, 2**31, 2**31, 4)])
@given(known=ROWS, wanted=ROWS)
def test_rows_are_found_again(sizes: tuple[int, ...], known: np.ndarray, wanted: np.ndarray) -> None:
    known = np.unique(known, axis=0)
    places = {tuple(row): place for place, row in enumerate(known.tolist())}
    expected = [places.get(tuple(row), -1) for row in wanted.tolist()]
    assert RowIndex(known, sizes).find(wanted).tolist() == expected
