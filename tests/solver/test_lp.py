"""The linear programming layer: warm changes, limits, interval problems."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

from solver import InternalError
from solver.lp import LinearProgram, bound_cells


def _covering() -> LinearProgram:
    """min x + 2y, x + y ≥ 1, 0 ≤ x, y ≤ 1."""
    return LinearProgram(
        np.array([1.0, 2.0]),
        np.zeros(2),
        np.ones(2),
        np.array([0, 2]),
        np.array([0, 1]),
        np.ones(2),
        np.ones(1),
        np.array([np.inf]),
    )


def test_changes_keep_the_program_warm_and_right() -> None:
    program = _covering()
    first = program.solve()
    assert first.objective == pytest.approx(1)
    assert first.primal == pytest.approx([1, 0])
    assert first.row_duals == pytest.approx([1])
    program.set_bounds(np.array([0]), np.zeros(1), np.zeros(1))
    assert program.solve().objective == pytest.approx(2)
    program.add_rows(np.array([0, 1]), np.array([1]), np.ones(1), np.zeros(1), np.array([0.5]))
    assert program.solve().status == "infeasible"
    program.delete_rows(np.array([1]))
    program.set_costs(np.array([1]), np.array([5.0]))
    assert program.solve().objective == pytest.approx(5)
    assert program.work > 0


def test_a_mixed_integer_program_gives_a_bound() -> None:
    program = LinearProgram(
        np.array([-1.0, -1.0]),
        np.zeros(2),
        np.full(2, 9.0),
        np.array([0, 2]),
        np.array([0, 1]),
        np.array([2.0, 2.0]),
        np.array([-np.inf]),
        np.array([7.0]),
        integral=np.ones(2, dtype=bool),
    )
    result = program.solve(gap=0.0)
    assert (result.status, result.objective, result.bound) == ("optimal", -3, -3)


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


def test_another_user_of_highs_in_the_process_may_have_other_threads() -> None:
    program = """
import highspy
from solver import solve
from solver.generate import generate

other = highspy.Highs()
other.setOptionValue("threads", 2)
other.addVar(0.0, 1.0)
other.run()
print(solve(generate("random", "5x5", primaries=3, seed=1), "exact").status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "optimal"
