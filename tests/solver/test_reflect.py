"""Movements found by reflections: real ones, within the room, and not one that a linear program denies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver import audit, solve
from solver.attack import check_pattern
from solver.clock import Clock
from solver.generate import generate
from solver.heuristics import reflect
from solver.heuristics.cleanup import clean_up
from solver.heuristics.joint import Joint
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.reflect import Reflections, meet_at_once
from solver.instance import FloatArray, Insider, IntArray
from solver.presolve import Problem, reduce_instance
from tests.solver.test_peel import of_all_sizes

SHAPES = pytest.mark.parametrize("shape", ["5x6", "3.2x5", "3x3x3", "2x2x2x2"])


def problems(shape: str, seed: int, all_sizes: bool) -> list[Problem]:
    instance = generate("random", shape, primaries=5, seed=seed)
    return of_all_sizes(instance, seed) if all_sizes else list(reduce_instance(instance).problems)


@SHAPES
@given(seed=st.integers(0, 300), all_sizes=st.booleans())
def test_what_is_found_keeps_the_relations_and_the_room_and_spares_what_it_must(
    shape: str, seed: int, all_sizes: bool
) -> None:
    rng = np.random.default_rng(seed)
    for problem in problems(shape, seed, all_sizes):
        needs = gather_needs(problem, Clock())
        some = problem.forced | (rng.random(problem.n) < 0.7)
        joint = Joint(problem, np.flatnonzero(some))
        if not len(joint):
            continue
        reflections = Reflections(joint, needs)
        shown = some & ~problem.forced & (rng.random(problem.n) < 0.2)
        left = np.flatnonzero(some & ~shown & ~problem.forced)
        # Twice: the second time, where the last movements went is where it begins.
        for without in [-1, *rng.permutation(left)[:3].tolist()]:
            reflections.drop(shown)
            moves, beyond = reflections.move(np.arange(len(needs)), Clock(), without)
            for need in np.flatnonzero(beyond == 0).tolist():
                move = np.zeros(problem.n)
                move[joint.columns] = moves[need]
                level = needs.level[need]
                assert move[needs.cell[need]] == pytest.approx(needs.side[need] * level, rel=1e-8)
                assert np.abs(problem.matrix @ move).max(initial=0.0) <= 1e-7 * max(level, np.abs(move).max())
                assert (move <= problem.hi * (1 + 1e-12)).all()
                assert (move >= -problem.lo * (1 + 1e-12)).all()
                assert (move[shown] == 0).all()
                assert without < 0 or move[without] == 0


@SHAPES
@given(seed=st.integers(0, 300), all_sizes=st.booleans())
def test_no_need_is_met_at_once_that_programs_do_not_meet(shape: str, seed: int, all_sizes: bool) -> None:
    rng = np.random.default_rng(seed)
    for problem in problems(shape, seed, all_sizes):
        needs = gather_needs(problem, Clock())
        hidden = problem.forced | (rng.random(problem.n) < 0.8)
        at_once, one_by_one = Cover(problem, needs, hidden), Cover(problem, needs, hidden)
        meet_at_once(at_once, Clock())
        meet_within(one_by_one, Clock())
        assert not (one_by_one.unmet & ~at_once.unmet).any()
        assert (at_once.hidden == hidden).all()


def test_most_needs_of_a_safe_pattern_are_met_at_once() -> None:
    """Where it meets nothing, nothing above would fail."""
    met = count = 0
    for seed in range(5):
        (problem,) = reduce_instance(generate("random", "6x6x6", primaries=20, seed=seed)).problems
        needs = gather_needs(problem, Clock())
        cover = Cover(problem, needs)
        protect_lp(cover, Clock(), np.random.default_rng(seed).random(problem.n))
        again = Cover(problem, needs, cover.hidden)
        meet_at_once(again, Clock())
        met, count = met + int((~again.unmet).sum()), count + len(needs)
    assert met > 0.8 * count


def test_who_knows_a_cell_needs_a_program() -> None:
    instance = generate("random", "6x6", primaries=8, seed=2)
    targets = instance.protected
    others = targets[1:]
    levels = (instance.lpl[others], instance.upl[others], instance.spl[others])
    knows = Insider("one of them", targets[:1], others, *levels)
    for problem in reduce_instance(instance.replace(insiders=(knows,))).problems:
        needs = gather_needs(problem, Clock())
        joint = Joint(problem)
        _, beyond = Reflections(joint, needs).move(np.arange(len(needs)), Clock())
        assert (beyond[needs.attacker > 0] > 0).all()


@pytest.mark.parametrize("shape", ["6x6x6", "4x4x4x4"])
def test_clean_up_leaves_as_little_with_reflections_as_without(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minimal either way: no secondary is left that programs could spare."""
    asked, move = list[int](), Reflections.move

    def counted(reflections: Reflections, needs: IntArray, *given: Any) -> tuple[FloatArray, FloatArray]:
        asked.append(len(needs))
        return move(reflections, needs, *given)

    monkeypatch.setattr(Reflections, "move", counted)
    for seed in range(3):
        (problem,) = reduce_instance(generate("random", shape, primaries=20, seed=seed)).problems
        cover = Cover(problem, gather_needs(problem, Clock()))
        protect_lp(cover, Clock(), np.random.default_rng(seed).random(problem.n), slopes=0)
        clean_up(cover, Clock())
        assert cover.minimal
        assert not check_pattern(problem, cover.hidden, Clock())
        for column in cover.secondaries.tolist():
            without = cover.hidden.copy()
            without[column] = False
            assert check_pattern(problem, without, Clock(), stop_at=1)
    assert asked


def test_patterns_of_auto_are_safe_where_reflections_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflect, "_FEWEST", 1)
    for seed in range(3):
        instance = generate("random", "6x6x6", primaries=18, seed=seed)
        found = [solve(instance, "auto", work_limit=1.0, seed=seed) for _ in range(2)]
        assert not audit(instance, found[0].hidden).exposures
        assert (found[0].hidden == found[1].hidden).all()


@SHAPES
@given(seed=st.integers(0, 300))
def test_needs_met_by_one_program_are_all_met(shape: str, seed: int) -> None:
    for problem in problems(shape, seed, all_sizes=False):
        needs = gather_needs(problem, Clock())
        mover = Mover(problem, needs)
        mover.set_unit_prices(problem.weight)
        _, first = np.unique(needs.cell, return_index=True)
        asked = first[needs.attacker[first] == 0][:4].tolist()
        move = mover.move(asked[0], Clock(), others=asked[1:])
        if move is not None:
            cover = Cover(problem, needs)
            cover.add(mover.columns, move)
            assert not cover.unmet[asked].any()
        # Both sides of a cell can't be met by one movement.
        pair = np.flatnonzero(needs.cell == needs.cell[0])
        if len(pair) == 2:
            assert mover.move(int(pair[0]), Clock(), others=[int(pair[1])]) is None


@SHAPES
@given(seed=st.integers(0, 300))
def test_a_cover_knows_what_it_would_lose(shape: str, seed: int) -> None:
    """As one does that is made anew of the movements that are left."""
    rng = np.random.default_rng(seed)
    for problem in problems(shape, seed, all_sizes=False):
        needs = gather_needs(problem, Clock())
        cover = Cover(problem, needs)
        protect_lp(cover, Clock(), problem.weight * rng.random(problem.n), slopes=0)
        meet_within(cover, Clock())
        whole = cover.copy()
        for _ in range(4):
            twin = cover.copy()
            columns = rng.permutation(cover.secondaries)[: rng.integers(0, 3)]
            lost = cover.would_lose(columns)
            moves = cover.movements()
            left = Cover(problem, needs, cover.hidden)
            for moving, amounts in moves:
                if not np.isin(moving, columns).any():
                    left.add(moving, amounts)
            assert set(lost) == set(np.flatnonzero(left.unmet & ~cover.unmet))
            used = [moving for moving, _ in moves if np.isin(moving, columns).any()]
            assert set(np.concatenate([columns, *used])) <= set(cover.support(columns))
            cover.show(columns)
            assert (cover.unmet == left.unmet).all()
            assert not cover.hidden[columns].any()
            assert twin.hidden[columns].all()
        assert not whole.unmet.any()
