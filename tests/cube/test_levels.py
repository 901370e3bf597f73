"""How deep formulas lie within one another, and that none of them lies within itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cube.levels import CircleError, by_level, levels

N = 12
REFERENCES = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=40)


def columns(references: set[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    listed = sorted(references)
    return tuple(np.array([pair[side] for pair in listed], dtype=np.int64) for side in (0, 1))  # type: ignore[return-value]


@given(REFERENCES, st.sets(st.integers(0, N - 1)))
def test_a_formula_lies_one_above_the_deepest_that_it_refers_to(
    references: set[tuple[int, int]], constants: set[int]
) -> None:
    references = {(max(pair), min(pair)) for pair in references if pair[0] != pair[1]}
    calculated = np.isin(np.arange(N), [row for row, _ in references] + list(constants))
    found = levels(calculated, *columns(references))
    for row in range(N):
        beneath = [found[operand] for user, operand in references if user == row]
        assert found[row] == (1 + max(beneath, default=0) if calculated[row] else 0)
    blocks = [np.flatnonzero(calculated)[::2], np.flatnonzero(calculated)[1::2]]
    done = set(np.flatnonzero(~calculated).tolist())
    for number, places in by_level(found, blocks):
        rows = blocks[number][places].tolist()
        assert all(operand in done for user, operand in references if user in rows)
        done |= set(rows)
    assert done == set(range(N))


@given(REFERENCES)
def test_a_circle_is_told_by_one_of_its_own(references: set[tuple[int, int]]) -> None:
    calculated = np.isin(np.arange(N), [row for row, _ in references])
    reached = {row: {operand for user, operand in references if user == row} for row in range(N)}
    for _ in range(N):
        reached = {row: found.union(*(reached[other] for other in found)) for row, found in reached.items()}
    circles = {row for row in range(N) if row in reached[row]}
    if not circles:
        levels(calculated, *columns(references))
        return
    with pytest.raises(CircleError) as caught:
        levels(calculated, *columns(references))
    assert caught.value.row in circles
