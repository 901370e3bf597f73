"""The linear programming layer: warm changes, limits, other users."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from solver import solve
from solver.generate import generate
from solver.lp import LinearProgram


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


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_primal_simplex_that_goes_round_in_circles_gets_out(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    instance = generate("random", "5x5x4", primaries=8, seed=2)
    expected = solve(instance, "exact").cost
    monkeypatch.setattr("solver.lp._SMALL", 0)
    monkeypatch.setattr(LinearProgram, "_turns", turns)
    assert solve(instance, "exact").cost == expected


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
