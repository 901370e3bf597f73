"""Intervals of relation systems, beside plain linear programs of another make."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from app.redteam.bounds import bound_cells
from solver import InternalError


@pytest.mark.parametrize("seed", range(8))
def test_intervals_of_a_relation_system(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 4, 9
    matrix = rng.integers(-1, 2, size=(m, n)).astype(float)
    inside = rng.integers(0, 6, size=n).astype(float)
    lower, upper = inside - rng.integers(0, 4, n), inside + rng.integers(0, 4, n)
    upper[0], lower[1] = np.inf, -np.inf
    row_lower, row_upper = matrix @ inside, matrix @ inside + rng.integers(0, 2, m)
    indptr, (rows, indices) = np.zeros(m + 1, dtype=np.int64), np.nonzero(matrix)
    indptr[1:] = np.cumsum(np.bincount(rows, minlength=m))
    found = bound_cells(
        lower, upper, indptr, indices, matrix[rows, indices], row_lower, row_upper, np.arange(n)
    )
    for cell in range(n):
        for side, sign in ((0, 1.0), (1, -1.0)):
            cost = np.zeros(n)
            cost[cell] = sign
            plain = linprog(
                cost,
                A_ub=np.vstack([matrix, -matrix]),
                b_ub=np.concatenate([row_upper, -row_lower]),
                bounds=np.stack([lower, upper], axis=1),
            )
            expected = -sign * np.inf if plain.status == 3 else sign * plain.fun
            assert found[side][cell] == pytest.approx(expected, abs=1e-7)


def test_a_system_without_solution_is_loud() -> None:
    with pytest.raises(InternalError):
        bound_cells(
            np.zeros(1),
            np.ones(1),
            np.array([0, 1]),
            np.array([0]),
            np.ones(1),
            np.array([3.0]),
            np.array([3.0]),
            np.array([0]),
        )
