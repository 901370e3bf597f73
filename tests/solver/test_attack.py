"""Presolve, attackers and cuts: what they claim holds for every pattern."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from brute import _attackers, _reach, random_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.attack import Region, check_pattern
from solver.clock import Clock
from solver.cuts import exposed_in_relations, knapsack_cuts, relation_cuts
from solver.generate import generate
from solver.instance import Instance
from solver.presolve import FrozenTargetError, Problem, Reduction, Targets, reduce_instance
from solver.separate import Separator


def _reduced(seed: int) -> tuple[Instance, Reduction] | None:
    instance = random_instance(seed)
    try:
        return instance, reduce_instance(instance)
    except FrozenTargetError:
        return None


def _patterns(problem: Problem, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [problem.forced | (rng.random(problem.n) < share) for share in rng.random(count)]


def _plainly_safe(instance: Instance, hidden: np.ndarray) -> bool:
    for known, cells, lpl, upl, spl in _attackers(instance):
        moving = hidden.copy()
        moving[known] = False
        for cell, low, high, width in zip(cells, lpl, upl, spl, strict=True):
            down, up = (_reach(instance, moving, int(cell), side) for side in (-1, 1))
            if down < low - 1e-7 or up < high - 1e-7 or down + up < width - 1e-7:
                return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_reduced_and_plain_problem_agree_on_what_is_safe(seed: int) -> None:
    found = _reduced(seed)
    if found is None:
        return
    instance, reduction = found
    rng = np.random.default_rng(seed)
    for _ in range(4):
        patterns = [_patterns(problem, rng, 1)[0] for problem in reduction.problems]
        safe = all(
            not check_pattern(p, x, Clock()) for p, x in zip(reduction.problems, patterns, strict=True)
        )
        assert safe == _plainly_safe(instance, reduction.expand(patterns))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["4x5", "2.2x4", "6x3", "3.2x2"]),
    st.integers(1, 6),
    st.integers(0, 10**6),
)
def test_what_an_attacker_by_itself_cannot_move_far_enough_is_cut_when_all_are_asked_together(
    shape: str, primaries: int, seed: int
) -> None:
    """On networks, where a cut is as good as the program of its attacker, and at equal levels, as a movement
    by a higher one has more room.
    """
    rng = np.random.default_rng(seed)
    for unequal in reduce_instance(generate("random", shape, primaries=primaries, seed=seed)).problems:
        old = unequal.targets
        same = np.full(len(old), old.upper.min())
        targets = Targets(old.attacker, old.cell, same, same, np.zeros(len(old)))
        problem = replace(unequal, targets=targets)
        for part in (0.2, 0.5, 0.9):
            x = np.where(rng.random(problem.n) < part, rng.random(problem.n), 0.0)
            x = np.where(problem.forced, 1.0, x)
            cuts = Separator(problem, Clock()).separate(x, least=1e-6)
            # Bridgeless inequalities are of no attacker.
            found_one = any(cut.violation(x) > 1e-6 for cut in cuts if (cut.coefs >= 0).all())
            assert found_one or not _held(problem, x)


def _held(problem: Problem, x: np.ndarray) -> bool:
    """Does some cell miss a level by far, with room in units of that level and capped at it?"""
    targets = problem.targets
    for levels, sides in ((targets.upper, (1,)), (targets.lower, (-1,)), (targets.sliding, (1, -1))):
        for t in np.flatnonzero(levels > 0).tolist():
            lo, hi = (np.minimum(room / levels[t], 1.0) * x for room in (problem.lo, problem.hi))
            region = Region(problem, lo, hi, Clock())
            region.use(int(targets.attacker[t]))
            if sum(region.push(int(targets.cell[t]), side).value for side in sides) < 1 - 1e-4:
                return True
    return False


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_no_cut_excludes_a_safe_pattern_and_every_shortfall_is_cut(seed: int) -> None:
    found = _reduced(seed)
    if found is None:
        return
    rng = np.random.default_rng(seed)
    for problem in found[1].problems:
        patterns = _patterns(problem, rng, 12)
        safe = [x for x in patterns if not check_pattern(problem, x, Clock())]
        points = [np.where(problem.forced, 1.0, rng.random(problem.n) ** 2) for _ in range(4)]
        # What is hidden at such a point falls into parts, which are asked side by side.
        points += [np.where(rng.random(problem.n) < 0.6, problem.forced.astype(float), x) for x in points]
        points += [x.astype(float) for x in patterns]
        separator = Separator(problem, Clock())
        # Bridgeless inequalities hold for the cheapest patterns only: leave them out.
        cuts = [c for x in points for c in separator.separate(x, least=1e-6) if (c.coefs >= 0).all()]
        cuts += relation_cuts(problem)
        failed = {shortfall.target for shortfall in check_pattern(problem, problem.forced, Clock())}
        assert set(np.flatnonzero(exposed_in_relations(problem))) <= failed
        for x in patterns:
            for shortfall in check_pattern(problem, x, Clock()):
                point = x.astype(float)
                level = np.array([shortfall.level])
                new = knapsack_cuts(shortfall.coefs[None, :], level, problem.forced, point, 1e-9)[0]
                assert new
                assert new[0].violation(point) > 0
                cuts += new
        for x in safe:
            assert all(cut.violation(x.astype(float)) <= 1e-6 for cut in cuts)


@pytest.mark.parametrize("seed", range(12))
def test_no_cut_excludes_a_safe_pattern_wherever_time_ends(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels that slide are asked both ways, and half an answer is none."""
    rng = np.random.default_rng(seed)
    (problem,) = reduce_instance(generate("random", "4x4", primaries=3, seed=seed)).problems
    old = problem.targets
    nothing = np.zeros(len(old))
    problem = replace(
        problem, targets=Targets(old.attacker, old.cell, nothing, nothing, old.upper + old.lower)
    )
    safe = [x for x in _patterns(problem, rng, 40) if not check_pattern(problem, x, Clock())]
    assert safe
    x = np.where(problem.forced, 1.0, np.where(rng.random(problem.n) < 0.4, rng.random(problem.n), 0.0))
    # Every look at the clock takes a second.
    looks = count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(looks)))
    for seconds in range(1, 60):
        cuts = Separator(problem, Clock(float(seconds))).separate(x, least=1e-6)
        for cut in cuts:
            assert (cut.coefs < 0).any() or all(cut.violation(pattern * 1.0) <= 1e-6 for pattern in safe)
