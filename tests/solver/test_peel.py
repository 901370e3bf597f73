"""Movements in which what costs nothing moves both ways in one column, and patterns peeled batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver import Instance, audit, solve
from solver.attack import check_pattern
from solver.clock import Clock, Strict
from solver.errors import NumericalError
from solver.generate import generate
from solver.heuristics import mover as moving
from solver.heuristics.cleanup import clean_up
from solver.heuristics.lp import protect_lp
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.peel import peel
from solver.lp import FloatArray, IntArray, LinearProgram, LpResult
from solver.presolve import Problem, reduce_instance
from tests.solver.shared import instance_file

SHAPES = pytest.mark.parametrize("shape", ["5x6", "3.2x5", "3x3x3", "2x2x2x2"])


def of_all_sizes(instance: Instance, seed: int) -> list[Problem]:
    """Its problems, with values of one unit beside others of billions, and cells that can't go down."""
    rng = np.random.default_rng(seed)
    problems = []
    for problem in reduce_instance(instance).problems:
        scale = 10.0 ** rng.integers(-3, 7, problem.n)
        lo = np.where(rng.random(problem.n) < 0.2, 0.0, problem.lo * scale)
        lo[problem.targets.cell] = problem.lo[problem.targets.cell]
        problem.lo[:], problem.hi[:] = lo, np.maximum(problem.hi * scale, problem.hi)
        problems.append(problem)
    return problems


@SHAPES
@given(seed=st.integers(0, 300))
def test_a_movement_meets_its_need_at_the_same_price_both_ways_in_one_or_not(shape: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for problem in of_all_sizes(generate("random", shape, primaries=4, seed=seed), seed):
        needs = gather_needs(problem, Clock())
        price = np.where(rng.random(problem.n) < 0.6, 0.0, problem.weight)
        movers = [Mover(problem, needs, in_one=in_one) for in_one in (False, True)]
        for mover in movers:
            mover.set_unit_prices(price)
        for need in range(len(needs)):
            costs = []
            for mover in movers:
                move = mover.move(need, Clock())
                if move is None:
                    continue
                costs.append(float(price @ np.abs(move)))
                cover = Cover(problem, needs)
                cover.add(mover.columns, move)
                assert not cover.unmet[need]
            if len(costs) == 2:
                assert costs[1] == pytest.approx(costs[0], rel=1e-5, abs=1e-5 * max(1.0, needs.level[need]))


@SHAPES
@given(seed=st.integers(0, 300))
def test_what_is_left_of_a_pattern_is_safe_and_no_dearer(shape: str, seed: int) -> None:
    for problem in reduce_instance(generate("random", shape, primaries=6, seed=seed)).problems:
        cover = Cover(problem, gather_needs(problem, Clock()))
        protect_lp(cover, Clock(), np.random.default_rng(seed).random(problem.n))
        before = cover.hidden.copy()
        peel(cover, Clock())
        assert not cover.unmet.any()
        assert not (cover.hidden & ~before).any()
        assert not check_pattern(problem, cover.hidden, Clock())
        clean_up(cover, Clock())
        assert cover.minimal
        assert not check_pattern(problem, cover.hidden, Clock())


def test_out_of_time_it_leaves_a_pattern_as_it_was() -> None:
    (problem,) = reduce_instance(generate("random", "4x4x4", primaries=10, seed=3)).problems
    cover = Cover(problem, gather_needs(problem, Clock()))
    protect_lp(cover, Clock())
    before = cover.hidden.copy()
    peel(cover, Clock(0.0))
    assert (cover.hidden == before).all()
    assert not cover.unmet.any()


@pytest.mark.parametrize("work", [0.0, 0.002, 0.01, 0.1, None])
def test_a_wide_pattern_is_safe_and_no_dearer_wherever_time_ends(
    work: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.heuristics.peel.WIDE", 0)
    (problem,) = reduce_instance(generate("random", "5x5x5", primaries=12, seed=4)).problems
    cover = Cover(problem, gather_needs(problem, Clock()))
    protect_lp(cover, Clock(), np.random.default_rng(4).random(problem.n))
    before = cover.hidden.copy()
    peel(cover, Strict(Clock(work=work)))
    assert not (cover.hidden & ~before).any()
    assert not check_pattern(problem, cover.hidden, Clock())
    if work is None:
        assert cover.cost < problem.cost(before)


@pytest.mark.parametrize("seed", [1, 3])
def test_a_movement_of_values_of_all_sizes_meets_its_need(seed: int) -> None:
    """Cells of hundreds of millions beside cells of ten: what can't move doesn't, not by a hair."""
    (problem,) = reduce_instance(Instance.from_jj(instance_file("rta_pizza_datatest1_4d"))).problems
    needs = gather_needs(problem, Clock())
    some = np.random.default_rng(seed).random(problem.n) < 0.55
    some[problem.targets.cell] = True
    mover = Mover(problem, needs, np.flatnonzero(some | problem.forced), in_one=True)
    mover.set_unit_prices(np.zeros(problem.n))
    moves = {need: mover.move(need, Clock()) for need in range(len(needs))}
    assert sum(move is not None for move in moves.values()) >= 10
    for need, move in moves.items():
        if move is not None:
            cover = Cover(problem, needs)
            cover.add(mover.columns, move)
            assert not cover.unmet[need]


@pytest.mark.parametrize("shape", ["4x5", "3x3x3", "3x4x4"])
@pytest.mark.parametrize("method", ["lp", "hypercube", "light"])
def test_no_secondary_is_in_vain_where_levels_take_all_the_room(shape: str, method: str) -> None:
    """Counts: a level is often all that a neighbour can move, and not a hair may be lost of it."""
    for seed in range(12):
        instance = generate("counts", shape, seed=seed)
        hidden = solve(instance, method).hidden
        for cell in np.flatnonzero(hidden & ~instance.always_hidden).tolist():
            without = hidden.copy()
            without[cell] = False
            assert audit(instance, without).exposures


@pytest.mark.parametrize("method", ["lp", "light", "hypercube", "shortest-path", "auto", "exact"])
def test_without_any_work_allowed_there_is_a_safe_pattern(method: str) -> None:
    instance = generate("random", "4x4", primaries=4, seed=1)
    assert not audit(instance, solve(instance, method, work_limit=0.0).hidden).exposures


class _Stubborn(LinearProgram):
    """A program that comes to nothing, after very many steps, while any column may move both ways."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lower = np.zeros(self.columns)
        self._refused = False

    @property
    def steps(self) -> int:
        return 10**9 if self._refused else self.rows

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._lower[columns] = lower
        super().set_bounds(columns, lower, upper)

    def solve(self, **limits: Any) -> LpResult:
        self._refused = bool((self._lower < 0).any())
        if self._refused:
            raise NumericalError("both ways")
        return super().solve(**limits)


@SHAPES
def test_a_movement_not_found_both_ways_in_one_column_is_sought_each_way(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the very failure tells that columns had better move one way."""
    monkeypatch.setattr(moving, "LinearProgram", _Stubborn)
    for seed in range(5):
        for problem in reduce_instance(generate("random", shape, primaries=6, seed=seed)).problems:
            cover = Cover(problem, gather_needs(problem, Clock()))
            protect_lp(cover, Clock(), slopes=0)
            assert not cover.unmet.any()


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e8, 1e10])
def test_levels_of_very_different_size_are_not_met_by_one_program(
    ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In units of the highest, low ones would be rounding: they would move with nothing to balance them."""
    monkeypatch.setattr("solver.heuristics.peel.WIDE", 0)
    for seed in range(4):
        instance = generate("random", "20x20", primaries=30, seed=seed)
        low = np.random.default_rng(seed).permutation(instance.protected)[2:]
        lpl, upl = instance.lpl.copy(), instance.upl.copy()
        lpl[low] /= ratio
        upl[low] /= ratio
        (problem,) = reduce_instance(instance.replace(lpl=lpl, upl=upl)).problems
        cover = Cover(problem, gather_needs(problem, Clock()), np.ones(problem.n, dtype=np.bool_))
        protect_lp(cover, Clock())
        peel(cover, Clock())
        assert not cover.unmet.any()
        assert not check_pattern(problem, cover.hidden, Clock())
