"""A pattern in haste: boxes around all cells are movements, and no time at all gives an audited answer."""

from __future__ import annotations

import importlib
import signal
import time
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solver import Progress, audit, solve
from solver.attack import check_pattern, within_room
from solver.clock import Clock
from solver.generate import generate
from solver.heuristics import gauss, haste
from solver.heuristics.boxes import Boxes
from solver.heuristics.haste import finish_in_haste, protect_boxes
from solver.heuristics.needs import Cover, gather_needs
from solver.presolve import Problem, reduce_instance

SHAPES = ("9x8", "4.3x5", "5x4x4", "2.2x2.2x3", "3x3x3x3")


def only_problem(shape: str, seed: int, primaries: int = 6) -> Problem:
    return reduce_instance(generate("random", shape, primaries=primaries, seed=seed)).problems[0]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 1000), st.sampled_from([0.0, 0.5, 1.0]))
def test_boxes_are_movements_of_their_cells_within_all_room(shape: str, seed: int, roomy: float) -> None:
    problem = only_problem(shape, seed)
    targets = problem.targets
    levels = np.maximum(targets.upper, targets.lower)
    closed = np.random.default_rng(seed).random(problem.n) < 0.1
    prices = np.where(closed & ~problem.forced, np.inf, problem.weight)
    found = Boxes(problem).find(
        targets.cell,
        levels,
        prices,
        np.random.default_rng(seed),
        attackers=targets.attacker,
        noise=1.0,
        roomy=roomy,
    )
    moves = sparse.csr_array(
        (found.amounts, found.columns, found.indptr), shape=(len(found.of), problem.n)
    ).toarray()
    room = np.minimum(problem.lo, problem.hi)
    assert (np.abs(moves) <= room * (1 + 1e-8)).all()
    assert np.abs(moves @ problem.matrix.T.toarray()).max(initial=0.0) <= 1e-8 * levels.max()
    assert np.allclose(moves[np.arange(len(found.of)), targets.cell[found.of]], levels[found.of])
    assert not (moves[:, np.isinf(prices)] != 0).any()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 1000))
def test_a_cover_made_in_haste_meets_every_need(shape: str, seed: int) -> None:
    problem = only_problem(shape, seed)
    cover = Cover(problem, gather_needs(problem, Clock()))
    finish_in_haste(cover, Clock(0.0))
    assert not cover.unmet.any()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 1000))
def test_a_cover_borrows_the_moves_of_another_for_what_it_lacks(shape: str, seed: int) -> None:
    problem = only_problem(shape, seed)
    needs = gather_needs(problem, Clock())
    full, cover = Cover(problem, needs), Cover(problem, needs)
    finish_in_haste(full, Clock(0.0))
    cover.borrow(full)
    assert not cover.unmet.any()
    assert not (cover.hidden & ~full.hidden).any()
    assert not check_pattern(problem, cover.hidden, Clock())


@pytest.mark.parametrize("seconds", [0.0, 0.01])
@pytest.mark.parametrize("shape", SHAPES)
def test_programs_that_time_does_not_suffice_for_leave_a_cover_that_meets_every_need(
    shape: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_QUICK": 1e6, "_PROGRAMS": seconds, "_SLOW": seconds, "_LAST": 0.0}.items():
        monkeypatch.setattr(haste, name, value)
    problem = only_problem(shape, seed=4, primaries=12)
    cover = Cover(problem, gather_needs(problem, Clock()))
    finish_in_haste(cover, Clock(0.0))
    assert not cover.unmet.any()
    assert not check_pattern(problem, cover.hidden, Clock())


@pytest.mark.parametrize("share", [1.0, 1e2, 1e4, 1e5])
def test_elimination_among_few_columns_ends_with_a_safe_pattern(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little time so few take part that none of them may be able to move."""
    monkeypatch.setattr(gauss, "_PER_SECOND", share)
    instance = generate("p-percent", "4x4x4x4", seed=1)
    assert audit(instance, solve(instance, "gauss", time_limit=4.0).hidden).ok


def test_boxes_alone_protect_a_roomy_table_cheaply() -> None:
    problem = only_problem("40x30", seed=5, primaries=60)
    cover = Cover(problem, gather_needs(problem, Clock()))
    protect_boxes(cover, Clock(0.0))
    # So few cells are left to programs.
    assert len(np.unique(cover.needs.cell[cover.unmet])) <= 16
    assert cover.cost < 0.1 * problem.weight.sum()


def test_a_movement_beyond_the_room_goes_as_far_as_that() -> None:
    lo, hi = np.array([1.0, 5.0, 0.0]), np.array([2.0, 1.0, 0.0])
    assert within_room(np.array([4.0, -4.0, 0.0]), lo, hi).tolist() == [2.0, -2.0, 0.0]
    assert within_room(np.array([1.0, -4.0, 0.0]), lo, hi).tolist() == [1.0, -4.0, 0.0]
    assert within_room(np.array([1.0, -4.0, 0.1]), lo, hi).tolist() == [0.0, 0.0, 0.0]


def test_cells_that_an_attacker_knows_stay_where_they_are() -> None:
    problem = only_problem("7x6x5", seed=3)
    known = np.setdiff1d(np.arange(problem.n), problem.targets.cell)[::5]
    problem = replace(problem, known=(problem.known[0], known))
    targets = problem.targets
    found = Boxes(problem).find(
        targets.cell,
        targets.upper,
        problem.weight,
        np.random.default_rng(0),
        attackers=np.ones(len(targets), dtype=np.int64),
    )
    assert len(found.of)
    assert not np.isin(found.columns, known).any()


@pytest.mark.parametrize("method", ["auto", "exact", "lp", "modular", "gauss"])
@pytest.mark.parametrize("shape", ["30x25", "3.3x3.3x3", "3x3x3x3x3"])
def test_no_time_at_all_gives_an_audited_answer(method: str, shape: str) -> None:
    instance = generate("random", shape, primaries=15, seed=1)
    found = solve(instance, method, time_limit=0.0)
    assert audit(instance, found.hidden).ok
    assert found.cost < instance.weight[instance.status == 1].sum()


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The look at the clock of this number is interrupted, as by Ctrl-C."""
    looks, at, clock = count(), [10**9], time.perf_counter

    def look() -> float:
        if next(looks) == at[0]:
            signal.raise_signal(signal.SIGINT)
        return clock()

    monkeypatch.setattr(time, "perf_counter", look)
    return at


@pytest.mark.parametrize("number", [0, 2, 4, 8, 16, 40, 100, 300, 1000])
@pytest.mark.parametrize("method", ["auto", "exact", "lp"])
def test_an_interrupt_at_any_look_at_the_clock_ends_well(
    interrupting: list[int], method: str, number: int
) -> None:
    instance = generate("random", "5x5x4", primaries=8, seed=2)
    interrupting[0] = number
    try:
        found = solve(instance, method, time_limit=2.0)
    except KeyboardInterrupt:
        # Before there was anything to return.
        return
    finally:
        # What ends before that look is not interrupted afterwards.
        interrupting[0] = -1
    assert audit(instance, found.hidden).ok


def test_an_interrupt_from_the_progress_callback_returns_what_there_is() -> None:
    instance = generate("random", "6x5x5", primaries=10, seed=2)
    heard = count()

    def stop(_: Progress) -> None:
        if next(heard) == 0:
            signal.raise_signal(signal.SIGINT)

    found = solve(instance, "exact", progress=stop, work_limit=50.0)
    assert found.statistics["stopped"] == "interrupt"
    assert audit(instance, found.hidden).ok


def test_an_interrupt_in_the_audit_audits_again_and_returns_the_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The package's own name `solve` is the function.
    door = importlib.import_module("solver.solve")
    calls, real = count(), door.find_exposures

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == 0:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(door, "find_exposures", interrupted)
    instance = generate("random", "5x5x4", primaries=8, seed=2)
    found = solve(instance, "lp")
    assert found.statistics["stopped"] == "interrupt"
    assert audit(instance, found.hidden).ok
