"""Cells moved together: a movement that the relations and the room allow, however columns are joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from solver.clock import Clock
from solver.generate import generate
from solver.heuristics.together import Together
from solver.presolve import reduce_instance


@pytest.mark.parametrize("shape", ["4x5", "3.2x4", "3x3x3"])
@given(seed=st.integers(0, 200), alone=st.booleans())
def test_a_movement_keeps_to_the_room_and_takes_a_cell_as_far_as_it_goes(
    shape: str, seed: int, alone: bool
) -> None:
    rng = np.random.default_rng(seed)
    for problem in reduce_instance(generate("random", shape, primaries=5, seed=seed)).problems:
        hidden = problem.forced | (rng.random(problem.n) < 0.7)
        lo, hi = problem.lo * hidden, problem.hi * hidden
        cells = np.unique(problem.targets.cell)[: 1 if alone else None]
        wanted = rng.choice([-1.0, 1.0], len(cells)) * rng.integers(1, 50, len(cells))
        found = Together(problem, lo, hi, Clock()).move(cells, wanted)
        move = np.zeros(problem.n) if found is None else found
        matrix = problem.matrix.toarray()
        assert np.abs(matrix @ move).max(initial=0.0) <= 1e-6
        assert (move >= -lo - 1e-6).all()
        assert (move <= hi + 1e-6).all()
        if alone:
            cost = np.zeros(problem.n)
            cost[cells] = -np.sign(wanted)
            bounds = np.stack([-lo, hi], axis=1)
            far = -linprog(cost, A_eq=matrix, b_eq=np.zeros(problem.m), bounds=bounds).fun
            reached = float(np.sign(wanted) @ move[cells])
            assert reached == pytest.approx(min(far, float(np.abs(wanted).sum())), rel=1e-5, abs=1e-6)
