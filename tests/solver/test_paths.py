"""Movements along paths of a network: real ones, at the prices they are given, in rounds of a search too."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver import audit, solve
from solver.attack import check_pattern
from solver.clock import Clock
from solver.generate import generate
from solver.heuristics.auto import improve_pattern
from solver.heuristics.lp import protect_lp
from solver.heuristics.merge import Pool
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.network import Network, find_network
from solver.heuristics.recreate import Recreation
from solver.heuristics.shortest_path import Paths
from solver.presolve import Problem, reduce_instance
from tests.solver.test_peel import of_all_sizes

SHAPES = pytest.mark.parametrize("shape", ["5x6", "3.2x5", "8x8"])


def networks(shape: str, seed: int, all_sizes: bool) -> list[tuple[Problem, Network]]:
    instance = generate("random", shape, primaries=5, seed=seed)
    problems = of_all_sizes(instance, seed) if all_sizes else list(reduce_instance(instance).problems)
    found = [(problem, find_network(problem)) for problem in problems]
    return [(problem, network) for problem, network in found if network is not None]


@SHAPES
@given(seed=st.integers(0, 300), all_sizes=st.booleans(), per_node=st.integers(1, 20))
def test_needs_met_along_paths_are_met_by_what_is_hidden(
    shape: str, seed: int, all_sizes: bool, per_node: int
) -> None:
    rng = np.random.default_rng(seed)
    for problem, network in networks(shape, seed, all_sizes):
        needs, paths = gather_needs(problem, Clock()), Paths(problem, network, per_node)
        # Twice: what was chosen for the first cover serves the second.
        for _ in range(2):
            cover = Cover(problem, needs)
            paths.follow(cover, Clock(), problem.weight * rng.uniform(0.5, 1.5, problem.n))
            unmet = set(needs.cell[cover.unmet].tolist())
            short = check_pattern(problem, cover.hidden, Clock())
            assert unmet.issuperset(problem.targets.cell[[each.target for each in short]].tolist())


@SHAPES
@given(seed=st.integers(0, 300))
def test_paths_avoid_what_the_given_prices_make_dear(shape: str, seed: int) -> None:
    for problem, network in networks(shape, seed, all_sizes=False):
        needs, paths = gather_needs(problem, Clock()), Paths(problem, network)
        plain = Cover(problem, needs)
        paths.follow(plain, Clock())
        for dear in plain.secondaries[:3].tolist():
            weight = problem.weight.copy()
            weight[dear] = 1e5 * problem.weight.sum()
            other = Cover(problem, needs)
            paths.follow(other, Clock(), weight)
            if other.hidden[dear]:
                # Only what nothing else can stand in for is taken at such a price.
                spared = Cover(problem, needs)
                closed = np.ones(problem.n, dtype=np.bool_)
                closed[dear] = False
                protect_lp(spared, Clock(), None, closed, lenient=True)
                assert spared.unmet.any()


@given(seed=st.integers(0, 60), guided=st.booleans())
def test_rounds_leave_a_safe_pattern_that_is_no_dearer(seed: int, guided: bool) -> None:
    rng = np.random.default_rng(seed)
    for problem, _ in networks("8x8", seed, all_sizes=False):
        cover = Cover(problem, gather_needs(problem, Clock()))
        protect_lp(cover, Clock())
        before, pool = cover.cost, Pool(seed)
        guide = rng.random(problem.n) if guided else None
        clock = Clock(work=0.05)
        Recreation(cover, clock, seed, pool, guide).run(cover, clock, patience=5)
        assert cover.cost <= before
        assert not check_pattern(problem, cover.hidden, Clock())


@pytest.mark.parametrize("shape", ["12x12", "3.3x8", "6x6x4"])
def test_a_search_of_as_much_work_is_the_same_each_time(shape: str) -> None:
    instance = generate("random", shape, primaries=12, seed=5)
    first, second = (solve(instance, "auto", work_limit=0.5, seed=3) for _ in range(2))
    assert first.cost == second.cost
    assert (first.hidden == second.hidden).all()
    assert not audit(instance, first.hidden).exposures


@given(exponent=st.integers(-20, 20))
def test_cells_chosen_for_a_level_serve_it_again(exponent: int) -> None:
    # Powers of the step between levels, where rounding may put a level below its own step.
    problem, network = networks("5x6", 1, all_sizes=False)[0]
    paths, level = Paths(problem, network), 0.8**exponent
    cells, until = paths.cheapest(level)
    assert until <= level * (1 + 1e-12)
    assert paths.cheapest(level)[0] is cells


def test_mergers_wait_for_patterns_enough_and_have_their_turn_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """That there were too few patterns at first is no reason to give them up."""
    merged, asked = list[int](), count()
    real = Pool.merge

    def merge(self: Pool, cover: Cover, clock: Clock) -> bool:
        merged.append(1)
        return real(self, cover, clock)

    monkeypatch.setattr(Pool, "merge", merge)
    monkeypatch.setattr(Pool, "enough", property(lambda self: next(asked) >= 2))
    instance = generate("random", "5x5x4", primaries=8, seed=5)
    problem = reduce_instance(instance).problems[0]
    hidden, cheapest = problem.forced.copy(), solve(instance, "exact", work_limit=3.0).hidden
    hidden[problem.column[cheapest[problem.cells]]] = True
    improve_pattern(problem, hidden, Clock(work=1.0), seed=1)
    assert merged
