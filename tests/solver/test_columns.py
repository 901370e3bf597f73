"""Parts of matrices are what SciPy's indexing gives."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from solver.columns import keep_entries, keep_rows, take_columns, without_repeats


@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_parts_are_those_of_the_matrix(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(-1, 2, (m, n)).astype(np.float64)
    matrix = sparse.csr_array(dense)
    columns = rng.permutation(n)[: rng.integers(0, n + 1)]
    part = take_columns(matrix, columns)
    found = sparse.csr_array((part.coefs, part.indices, part.indptr), shape=(len(part.rows), len(columns)))
    wanted = dense[:, columns]
    assert part.rows.tolist() == np.flatnonzero((wanted != 0).any(axis=1)).tolist()
    assert (found.toarray() == wanted[part.rows]).all()
    kept = rng.random(len(matrix.data)) < 0.5
    rest = matrix.copy()
    rest.data[~kept] = 0.0
    assert (keep_entries(matrix, kept).toarray() == rest.toarray()).all()
    rows = rng.random(m) < 0.5
    assert (keep_rows(matrix, rows).toarray() == dense[rows]).all()
    assert (matrix.toarray() == dense).all()


@given(st.floats(-300, 300), st.permutations(range(3)), st.permutations(range(3)))
def test_rows_that_differ_in_one_coefficient_stay(power: float, first: list[int], second: list[int]) -> None:
    # Rows that differ by hardly more than rounding may stay or go.
    assume(power == 0 or abs(power) > 1e-6)
    coefs = np.array([10.0**power, 1.0, 2.0])
    dense = np.array([coefs[first], coefs[second]])
    alike = np.allclose(dense[0] / dense[0, 0], dense[1] / dense[1, 0], rtol=1e-9, atol=0.0)
    assert without_repeats(sparse.csr_array(dense)).shape[0] == (1 if alike else 2)


@given(st.integers(1, 8), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_rows_said_again_go(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(-1, 2, (m, n)).astype(np.float64)
    dense[~dense.any(axis=1), 0] = 1.0
    factors = rng.choice([-3.0, 0.1, 1.0, 7.0], m)
    matrix = sparse.csr_array(dense * factors[:, None])
    kept = without_repeats(matrix).toarray()
    lines = {tuple(row / row[row != 0][0]) for row in dense}
    assert len(kept) == len(lines)
    assert {tuple(np.round(row / row[row != 0][0], 9)) for row in kept} == lines
    firsts: dict[tuple[float, ...], list[float]] = {}
    for row in matrix.toarray():
        firsts.setdefault(tuple(np.round(row / row[row != 0][0], 9)), row.tolist())
    assert kept.tolist() == list(firsts.values())
