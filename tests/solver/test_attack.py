"""Presolve, attackers and cuts: what they claim holds for every pattern."""

from __future__ import annotations

import numpy as np
from brute import _attackers, _reach, random_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.attack import check_pattern
from solver.clock import Clock
from solver.cuts import exposed_in_relations, knapsack_cuts, relation_cuts
from solver.instance import Instance
from solver.presolve import FrozenTargetError, Problem, Reduction, reduce_instance
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
@given(st.integers(0, 10**9))
def test_requirements_asked_together_are_as_violated_as_each_by_itself(seed: int) -> None:
    found = _reduced(seed)
    if found is None:
        return
    rng = np.random.default_rng(seed)
    for problem in found[1].problems:
        for part in (0.2, 0.5, 0.9):
            x = np.where(rng.random(problem.n) < part, rng.random(problem.n), 0.0)
            x = np.where(problem.forced, 1.0, x)
            together = Separator(problem, Clock()).separate(x, least=1e-6)
            alone = [
                cut
                for k in range(len(problem.targets))
                for cut in Separator(problem, Clock()).separate(x, least=1e-6, only=np.array([k]))
            ]
            # Bridgeless inequalities are of no requirement.
            far = [
                max((cut.violation(x) for cut in cuts if (cut.coefs >= 0).all()), default=0.0)
                for cuts in (together, alone)
            ]
            assert (far[0] > 1e-5) == (far[1] > 1e-5)


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
