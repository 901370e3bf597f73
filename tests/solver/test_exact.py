"""The exact method against trying every pattern, and what may not change its answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from brute import cheapest, random_instance
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import instance_file

from solver import InfeasibleError, Insider, Instance, Progress, Status, UnreachableLevelError, audit, solve
from solver.generate import generate
from solver.heuristics.methods import HEURISTICS


def _cost(instance: Instance, method: str = "exact") -> float | None:
    try:
        solution = solve(instance, method)
    except InfeasibleError as error:
        return None if error.obstacles else float("nan")
    assert audit(instance, solution.hidden).ok
    if method == "exact":
        assert solution.status == "optimal"
        assert solution.lower_bound == pytest.approx(solution.cost)
    return solution.cost


@pytest.mark.parametrize("part", range(4))
@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_equals_brute_force(part: int, seed: int) -> None:
    instance = random_instance(4 * seed + part, largest=14)
    assert _cost(instance) == pytest.approx(cheapest(instance))


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9), unit=st.sampled_from([1.0, 0.25, np.pi]))
def test_the_tree_alone_equals_brute_force(seed: int, unit: float) -> None:
    """One round of cuts at the root and none of HiGHS's: the rest is for the tree."""
    instance = random_instance(seed, largest=14)
    instance = instance.replace(weight=unit * instance.weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("solver.exact._ROOT_ROUNDS", 1)
        patch.setattr("solver.exact._ATTEMPTS", 0)
        found = _cost(instance)
    assert found == pytest.approx(cheapest(instance))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_order_of_cells_and_relations_never_changes_the_cost(seed: int) -> None:
    instance = random_instance(seed, largest=14)
    assert _cost(_shuffled(instance, seed)) == pytest.approx(_cost(instance))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_auto_is_safe_and_its_bound_holds(seed: int) -> None:
    instance = random_instance(seed, largest=14)
    exact = _cost(instance)
    if exact is None:
        assert _cost(instance, "auto") is None
        return
    solution = solve(instance, "auto")
    assert audit(instance, solution.hidden).ok
    assert solution.lower_bound <= exact * (1 + 1e-9) + 1e-9 <= solution.cost * (1 + 1e-9) + 2e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(sorted(HEURISTICS)))
def test_the_bound_of_a_heuristic_holds_for_sliding_levels(seed: int, method: str) -> None:
    plain = random_instance(seed, largest=12)
    none = np.zeros(plain.n)
    wide = np.where(plain.always_hidden, plain.lpl + plain.upl + plain.spl, 0.0)
    instance = plain.replace(lpl=none, upl=none, spl=wide, insiders=()).clipped()
    exact = _cost(instance)
    if exact is None:
        assert _cost(instance, method) is None
        return
    solution = solve(instance, method)
    assert solution.lower_bound <= exact * (1 + 1e-9) + 1e-9
    assert solution.cost >= exact - 1e-9
    assert solution.status == "feasible" or solution.cost == pytest.approx(exact)


@pytest.mark.parametrize("shape", ["3x3x3", "2x2x2x2"])
@pytest.mark.parametrize("seed", range(4))
def test_the_tree_closes_on_its_own_where_many_patterns_cost_the_same(
    shape: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.exact._ROOT_ROUNDS", 1)
    monkeypatch.setattr("solver.exact._ATTEMPTS", 0)
    table = generate("random", shape, primaries=1, seed=seed)
    solution = solve(table.replace(weight=np.ones(table.n)), "exact")
    # A cell of a table of d dimensions needs company in every direction: a box of 2^d cells.
    assert (solution.status, solution.cost) == ("optimal", 2 ** (shape.count("x") + 1) - 1)


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("rta_ex1", 5333),
        ("r10x10_p5", 828),
        ("pp_h13x10", 7910),
        ("h2d_13x10_p8", 4558),
        ("hier7x7x7_p15", 37173),
        ("linked_AB_AC", 5240),
        ("rta_ex2_act_size_opt", 5387),
        ("rta_ex3_act_cj", 6953),
        ("r50x50_p50", 2551),
        ("ssb_d53_age3_fst3_sex_t4", 7390),
        ("r3x3x3x3_p8", 18366),
    ],
)
def test_handed_instances(name: str, optimum: float) -> None:
    assert _cost(Instance.from_jj(instance_file(name))) == optimum


def test_same_input_same_pattern() -> None:
    instance = Instance.from_jj(instance_file("r5x5x5_p10"))
    first, second = (solve(instance, "auto", work_limit=1.0) for _ in range(2))
    assert (first.hidden == second.hidden).all()
    assert first.lower_bound == second.lower_bound


def test_auto_goes_on_with_a_search_that_is_near_its_proof() -> None:
    """A quarter of this effort isn't enough for the exact search, and nearly all of it is."""
    instance = generate("random", "4.4.4x12", primaries=60)
    best = solve(instance, "exact")
    assert solve(instance, "exact", work_limit=0.2).status == "feasible"
    auto = solve(instance, "auto", work_limit=0.8)
    assert (auto.status, auto.cost) == ("optimal", best.cost)
    # Where time ends before that, what HiGHS found is made safe: it is nearer than any heuristic comes.
    assert solve(instance, "auto", work_limit=0.3).cost <= 1.03 * best.cost


def test_safe_patterns_are_found_among_few_columns() -> None:
    """Of all columns, HiGHS gives one unsafe pattern after the other: that takes twice this effort."""
    instance = Instance.from_jj(instance_file("r50x50_p50_u"))
    solution = solve(instance, "exact")
    assert (solution.status, solution.cost) == ("optimal", 21)
    assert solution.statistics["work"] <= 0.5
    assert audit(instance, solution.hidden).ok


@pytest.mark.parametrize(("shape", "primaries"), [("4.4.4x12", 60), ("13x10", 8), ("40x40", 80)])
@pytest.mark.parametrize("seconds", [0.03, 0.1, 0.3, 0.9])
def test_in_a_hurry_the_pattern_is_safe_whether_or_not_the_search_ends(
    shape: str, primaries: int, seconds: float
) -> None:
    instance = generate("random", shape, primaries=primaries, seed=5)
    solution = solve(instance, "auto", time_limit=seconds)
    assert audit(instance, solution.hidden).ok
    assert solution.lower_bound <= solution.cost


def test_on_a_small_table_auto_proves_its_pattern() -> None:
    instance = generate("random", "4x4x4", primaries=12, seed=3)
    exact = solve(instance, "exact")
    auto = solve(instance, "auto", time_limit=60)
    assert (auto.status, auto.cost) == ("optimal", exact.cost)


def test_a_time_limit_still_gives_a_safe_pattern_and_a_bound() -> None:
    instance = Instance.from_jj(instance_file("r9x9x9_p30"))
    seen: list[Progress] = []
    solution = solve(instance, "exact", time_limit=3.0, progress=seen.append)
    assert solution.status == "feasible"
    assert solution.statistics["stopped"] == "time"
    # How far the bound gets in that time is the machine's affair; that it is one isn't.
    assert 0 <= solution.lower_bound <= solution.cost
    assert audit(instance, solution.hidden).ok
    assert all(a.lower <= b.lower and a.upper >= b.upper for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("name", ["hier7x7x7_p15", "ssb_d53_age3_fst3_sex_t4", "r50x50_p125"])
def test_out_of_time_at_once_there_is_a_safe_pattern_nevertheless(name: str) -> None:
    instance = Instance.from_jj(instance_file(name))
    solution = solve(instance, "exact", work_limit=1e-9)
    assert solution.status == "feasible"
    assert audit(instance, solution.hidden).ok


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_an_interrupt_returns_the_incumbent(method: str) -> None:
    instance = Instance.from_jj(instance_file("r9x9x9_p30"))

    def interrupt(progress: Progress) -> None:
        if progress.phase == "bound":
            raise KeyboardInterrupt

    solution = solve(instance, method, progress=interrupt)
    assert solution.statistics["stopped"] == "interrupt"
    assert solution.statistics["work"] < 1.0, "there may be no pattern yet: one is found in haste"
    assert audit(instance, solution.hidden).ok


def test_a_start_is_never_made_worse() -> None:
    instance = Instance.from_jj(instance_file("rta_ex3_act_cj"))
    best = solve(instance, "exact").hidden
    again = solve(instance, "auto", start=best, work_limit=0.01)
    assert again.cost == instance.cost(best)


def test_on_a_large_network_it_is_never_dearer_than_where_it_starts() -> None:
    instance = generate("random", "75x75", primaries=25, seed=1)
    paths, exact = (solve(instance, method, work_limit=0.3) for method in ("shortest-path", "exact"))
    assert exact.cost <= paths.cost
    assert exact.lower_bound >= paths.lower_bound


def test_levels_beyond_the_bounds_are_refused_with_the_cell_or_clipped() -> None:
    instance = Instance.from_arrays(
        [10.0, 4.0, 6.0], [[1, -1, -1]], status=["s", "u", "s"], lpl=[0, 5, 0], upl=[0, 2, 0]
    )
    with pytest.raises(UnreachableLevelError, match=r"cell 1 .* by its own external bounds"):
        solve(instance)
    clipped = instance.clipped()
    assert clipped.lpl[1] == 4
    assert solve(clipped).status == "optimal"


def test_a_bound_far_away_takes_no_room_from_small_cells() -> None:
    """1e15 + 1e-8 is 1e15 in double precision; what the small cells of the relation lend is still there."""
    instance = Instance.from_arrays(
        [4e-8, 1e-8, 1e-8, 2e-8],
        [[-1, 1, 1, 1]],
        status=["s", "u", "s", "s"],
        lpl=[0, 1e-10, 0, 0],
        upl=[0, 1e-10, 0, 0],
        upper_bound=[5e-8, 1e15, 3e-8, 4e-8],
        weight=[9, 1, 1, 5],
    )
    assert solve(instance).cost == solve(instance, "exact").cost == 1


def test_a_level_missed_by_less_than_a_millionth_is_still_kept() -> None:
    """The search cannot tell 1.4999995 from 1.5; the audit can, and the pattern must satisfy it."""
    instance = Instance.from_arrays(
        [60.0, 10.0, 20.0, 30.0],
        [[1, -1, -1, -1]],
        status=["z", "u", "x", "s"],
        lower_bound=[0, 0, 20 - 1.4999995, 0],
        upl=[0, 1.5, 0, 0],
    )
    solution = solve(instance, "exact")
    assert solution.hidden.tolist() == [False, True, True, True]
    assert audit(instance, solution.hidden).ok


def test_an_insider_who_knows_what_moves_with_the_target_is_told_apart() -> None:
    """The target equals the known cell but for cells shown: nothing can protect it from that insider."""
    instance = Instance.from_arrays(
        [9.0, 4.0, 5.0, 3.0],
        [[1, -1, -1, 0]],
        status=["u", "z", "u", "s"],
        upl=[1, 0, 1, 0],
        lpl=[1, 0, 1, 0],
        insiders=[Insider("owner of 2", [2], [0], [1.0], [1.0], [0.0])],
    )
    with pytest.raises(InfeasibleError, match="owner of 2"):
        solve(instance)


def _shuffled(instance: Instance, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    cells, relations = rng.permutation(instance.n), rng.permutation(instance.m)
    place = np.argsort(cells)
    matrix = instance.matrix[relations][:, cells] if instance.m else np.zeros((0, instance.n))
    return Instance.from_arrays(
        instance.value[cells],
        matrix,
        status=instance.status[cells],
        weight=instance.weight[cells],
        lower_bound=instance.lower_bound[cells],
        upper_bound=instance.upper_bound[cells],
        lpl=instance.lpl[cells],
        upl=instance.upl[cells],
        spl=instance.spl[cells],
        rhs=instance.rhs[relations],
        insiders=[
            Insider(i.name, place[i.known], place[i.targets], i.lpl, i.upl, i.spl) for i in instance.insiders
        ],
    )


def test_status_letters_go_round() -> None:
    assert [Status.from_code(status.code) for status in Status] == list(Status)
