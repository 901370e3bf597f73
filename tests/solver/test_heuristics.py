"""Every heuristic protects every cell on any linear relations, and hides nothing in vain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from solver import InfeasibleError, Insider, Instance, Status, audit, solve
from solver.attack import check_pattern
from solver.clock import Clock
from solver.generate import generate
from solver.heuristics.bound import relations_bound
from solver.heuristics.merge import Pool, merge_lightest
from solver.heuristics.methods import HEURISTICS, protect
from solver.heuristics.network import find_network
from solver.heuristics.relations import find_company
from solver.presolve import reduce_instance
from solver.swaps import worthwhile

SHAPES = ("4x4", "5x3", "2.2x4", "3x3x3", "2.2x2.2", "2x2x2x2")


def _varied(shape: str, seed: int) -> Instance:
    """A random table with insiders, hidden and shown cells, sliding levels, and perhaps negative values."""
    plain = generate("random", shape, primaries=3, seed=seed)
    generator = np.random.default_rng(seed)
    status = plain.status.copy()
    free = np.flatnonzero(status == Status.FREE)
    drawn = generator.permutation(free)
    status[drawn[:1]] = Status.SHOWN
    status[drawn[1:2]] = Status.HIDDEN
    status[drawn[2:3]] = Status.VIRTUAL
    upl, spl = plain.upl.copy(), plain.spl.copy()
    upl[drawn[2]] = 5.0
    sensitive = np.flatnonzero(plain.status == Status.SENSITIVE)
    if seed % 5 == 0:
        spl[sensitive[0]] = 3 * upl[sensitive[0]]
    insiders = (
        Insider(
            "one",
            known=sensitive[:1],
            targets=sensitive[1:],
            lpl=np.zeros(2),
            upl=np.minimum(plain.upl[sensitive[1:]], 3.0),
            spl=np.zeros(2),
        ),
    )
    value, lower, upper = plain.value, plain.lower_bound, plain.upper_bound
    matrix, coefs = plain.matrix, plain.coefs
    if seed % 3 == 0:
        # A mirrored table: every value negative.
        value, lower, upper = -value, -upper, -lower
        upl, lpl = plain.lpl.copy(), plain.upl.copy()
    else:
        lpl = plain.lpl
    if seed % 2 == 0:
        # A relation with other coefficients than one: the doubled first relation.
        coefs = coefs.copy()
        coefs[matrix.indptr[0] : matrix.indptr[1]] *= 2.0
    return plain.replace(
        value=value,
        lower_bound=lower,
        upper_bound=upper,
        status=status,
        lpl=lpl,
        upl=upl,
        spl=spl,
        coefs=coefs,
        insiders=insiders,
        decimals=None,
    )


@pytest.mark.parametrize("method", HEURISTICS)
@settings(max_examples=15, deadline=None)
@given(shape=st.sampled_from(SHAPES), seed=st.integers(0, 10_000))
# A cell that has less room than its level: nothing protects it, and no path may say so.
@example(shape="2.2x4", seed=4017)
@example(shape="2.2x4", seed=7835)
def test_every_pattern_is_safe_and_no_secondary_is_in_vain(method: str, shape: str, seed: int) -> None:
    instance = _varied(shape, seed)
    try:
        solution = solve(instance, method, work_limit=0.05 if method == "tabu" else None, seed=seed)
    except InfeasibleError:
        everything = instance.may_hide
        assert not audit(instance, everything).ok
        return
    assert audit(instance, solution.hidden).ok
    assert not (solution.hidden & (instance.status == Status.SHOWN)).any()
    assert solution.hidden[instance.always_hidden].all()
    # How a sliding level is split between up and down is settled beforehand.
    if method != "tabu" and not instance.spl.any():
        for cell in np.flatnonzero(solution.hidden & (instance.status == Status.FREE)):
            fewer = solution.hidden.copy()
            fewer[cell] = False
            assert not audit(instance, fewer).ok or instance.weight[cell] == 0


@settings(max_examples=20, deadline=None)
@given(shape=st.sampled_from(SHAPES), seed=st.integers(0, 10_000))
def test_heuristics_cost_no_less_than_the_optimum_nor_the_bound(shape: str, seed: int) -> None:
    instance = generate("random", shape, primaries=3, seed=seed)
    best = solve(instance, "exact")
    assert best.status == "optimal"
    for method in ("lp", "shortest-path", "gauss", "auto"):
        assert solve(instance, method, work_limit=1.0).cost >= best.cost - 1e-6
    reduction = reduce_instance(instance)
    bound = reduction.base_cost + sum(relations_bound(problem, Clock()) for problem in reduction.problems)
    assert bound <= best.cost + 1e-6


@settings(max_examples=20, deadline=None)
@given(shape=st.sampled_from(SHAPES), primaries=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_what_single_relations_need_costs_no_more_than_a_safe_pattern(
    shape: str, primaries: int, seed: int
) -> None:
    instance = generate("random", shape, primaries=primaries, seed=seed)
    reduction = reduce_instance(instance)
    bound = reduction.base_cost + sum(find_company(problem, Clock()).bound for problem in reduction.problems)
    assert bound <= solve(instance, "exact").cost + 1e-6


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 5),
    n=st.integers(1, 9),
    few=st.floats(0.1, 1.0),
    taken=st.sampled_from([0.0, 0.0, -0.5]),
)
def test_the_columns_left_out_of_a_program_of_cuts_make_it_no_cheaper(
    seed: int, count: int, n: int, few: float, taken: float
) -> None:
    generator = np.random.default_rng(seed)
    kinds = np.array([0.0, 0.3, 0.6, 1.0, taken])
    rows = generator.choice(kinds, (count, n)) * (generator.random((count, n)) < few)
    rhs = np.where((rows < 0).any(axis=1), 0.0, generator.choice([0.5, 1.0], count))
    weight = generator.integers(0, 6, n).astype(np.float64)
    points = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    meets = (points @ rows.T >= rhs - 1e-9).all(axis=1)
    kept = worthwhile(sparse.csr_array(rows), rhs, weight)
    among = meets & (np.delete(points, kept, axis=1) == 0).all(axis=1)
    costs = points @ weight
    assert meets.any() == among.any()
    assert costs[meets].min(initial=np.inf) == costs[among].min(initial=np.inf)


def test_a_large_network_is_protected_near_its_bound() -> None:
    instance = generate("random", "75x75", primaries=225)
    solution = solve(instance, "shortest-path")
    assert audit(instance, solution.hidden).ok
    assert solution.gap < 0.05


@pytest.mark.parametrize("shape", ["5x5x5", "4.3x4x3", "3x3x3x3"])
def test_auto_costs_no_more_than_the_methods_it_begins_with(shape: str) -> None:
    instance = generate("random", shape, primaries=12, seed=5)
    found = solve(instance, work_limit=3.0)
    others = [solve(instance, method).cost for method in ("lp", "light", "modular")]
    assert audit(instance, found.hidden).ok
    assert found.cost <= min(others)


@pytest.mark.parametrize("shape", ["4x4x4", "3.2x4x3", "8x6"])
def test_a_merger_is_as_cheap_as_any_of_its_patterns_and_meets_every_need(shape: str) -> None:
    problem = reduce_instance(generate("random", shape, primaries=8, seed=3)).problems[0]
    covers = [protect(problem, method, Clock()) for method in ("hypercube", "lp", "modular")]
    pool = Pool(seed=1)
    for cover in covers:
        pool.add(cover)
    merged = max(covers, key=lambda cover: cover.cost).copy()
    least = min(cover.cost for cover in covers)
    for _ in range(5):
        before = merged.cost
        assert pool.merge(merged, Clock()), "without a limit it is searched to the end"
        assert merged.cost <= before
    assert merged.cost <= least
    assert not merged.unmet.any()
    assert check_pattern(problem, merged.hidden, Clock()) == []


def test_the_lightest_columns_searched_together_are_cheaper_than_one_cell_after_the_other() -> None:
    problem = reduce_instance(generate("random", "30x30", primaries=20, seed=6)).problems[0]
    cover = protect(problem, "lp", Clock())
    before = cover.cost
    merge_lightest(cover, Clock())
    assert cover.cost < before
    assert check_pattern(problem, cover.hidden, Clock()) == []


@pytest.mark.parametrize("method", ["auto", *HEURISTICS])
def test_the_same_call_gives_the_same_pattern(method: str) -> None:
    instance = generate("random", "3.2x5", primaries=6, seed=4)
    first, second = (solve(instance, method, work_limit=1.0, seed=7) for _ in range(2))
    assert (first.hidden == second.hidden).all()


@pytest.mark.parametrize("method", ["auto", *HEURISTICS])
def test_a_start_is_never_made_worse(method: str) -> None:
    instance = generate("random", "6x6", primaries=5, seed=2)
    best = solve(instance, "exact")
    again = solve(instance, method, start=best.hidden, work_limit=1.0)
    assert again.cost == best.cost


@pytest.mark.parametrize("method", ["auto", *HEURISTICS])
def test_what_cannot_be_protected_is_refused_with_the_cell_named(method: str) -> None:
    plain = generate("random", "3x3", primaries=1, seed=0)
    status = np.where(plain.status == Status.FREE, Status.SHOWN, plain.status).astype(np.int8)
    instance = plain.replace(status=status)
    with pytest.raises(InfeasibleError) as refused:
        solve(instance, method)
    assert refused.value.obstacles[0].cell == instance.name(int(instance.protected[0]))


@pytest.mark.parametrize(
    ("shape", "network"),
    [
        ("6x5", True),
        ("3.3x6", True),
        ("6x3.3", True),
        ("3.2.2x4", True),
        ("4x4x4", False),
        ("3.3x3.3", False),
    ],
)
def test_a_network_is_found_where_there_is_one(shape: str, network: bool) -> None:
    instance = generate("random", shape, primaries=4, seed=1)
    problems = reduce_instance(instance).problems
    assert all((find_network(problem) is not None) == network for problem in problems)


def test_a_network_carries_what_the_relations_allow() -> None:
    instance = generate("random", "3.3x6", primaries=4, seed=3)
    for problem in reduce_instance(instance).problems:
        network = find_network(problem)
        assert network is not None
        incidence = np.zeros((network.nodes, problem.n))
        columns = np.arange(problem.n)
        incidence[network.head, columns] += 1
        incidence[network.tail, columns] -= 1
        relations = problem.matrix.toarray()
        both = np.vstack([relations, incidence[:-1]])
        rank = np.linalg.matrix_rank
        assert rank(relations) == rank(incidence[:-1]) == rank(both)


@pytest.mark.parametrize("method", ["tabu", "shortest-path", "auto"])
def test_the_effort_told_is_that_of_the_whole_call(method: str) -> None:
    instance = generate("random", "6x5x5", primaries=10, seed=2)
    little, more = (solve(instance, method, work_limit=limit) for limit in (1e-6, 0.2))
    assert 0 < little.statistics["work"] < more.statistics["work"]
    assert little.statistics["stopped"] == "work"
