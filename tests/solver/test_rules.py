"""The sensitivity rules: levels, ties, weights, holdings, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.errors import InputError
from solver.rules import (
    Dominance,
    Manual,
    PPercent,
    Profiles,
    Request,
    Rule,
    Threshold,
    Zero,
    assess,
    check_contributions,
    hide_derived,
    profiles_of,
)

AMOUNTS = st.lists(st.integers(0, 1000), min_size=1, max_size=8)


def one_cell(values: list[int], depth: int = 3, **more: object) -> Profiles:
    return profiles_of([0] * len(values), values, cells=1, depth=depth, **more)  # type: ignore[arg-type]


def test_threshold_levels_of_a_frequency_cell_reach_from_1_to_n() -> None:
    profiles = Profiles(value=[0, 1, 2, 4, 5], count=[0, 1, 2, 4, 5], kind="frequency")
    verdict = assess(profiles, [Threshold(5)])
    assert verdict.sensitive.tolist() == [False, True, True, True, False]
    assert (profiles.value - verdict.lpl)[1:4].tolist() == [1, 1, 1]
    assert (profiles.value + verdict.upl)[1:4].tolist() == [5, 5, 5]
    assert verdict.lpl[[0, 4]].tolist() == [0, 0]


def test_threshold_levels_of_a_magnitude_cell_are_relative() -> None:
    profiles = Profiles(value=[200.0, -50.0], count=[1, 2], negative_values=True)
    verdict = assess(profiles, [Threshold(3, percent=20)])
    assert verdict.lpl.tolist() == verdict.upl.tolist() == [40, 10]


def test_levels_are_the_largest_over_rules_and_reasons_are_kept() -> None:
    profiles = one_cell([100])
    verdict = assess(profiles, [Threshold(3), PPercent(20), Dominance(1, 80), Manual([0], lpl=3, upl=1)])
    assert verdict.reasons_of(0) == ("freq<3", "p%20", "(1,80)", "manual")
    assert verdict.upl[0] == pytest.approx(25)
    assert verdict.lpl[0] == pytest.approx(25)


def test_lower_level_stops_at_zero_unless_negative_values_are_declared() -> None:
    verdict = assess(one_cell([10]), [Dominance(1, 20)])
    assert (verdict.lpl[0], verdict.upl[0]) == (10, 40)
    declared = assess(one_cell([10], negative_values=True), [Dominance(1, 20)])
    assert declared.lpl[0] == 40


@given(AMOUNTS, st.integers(1, 3), st.integers(1, 99))
def test_dominance_is_strict_as_in_exact_arithmetic(values: list[int], n: int, k: int) -> None:
    verdict = assess(one_cell(values), [Dominance(n, k)])
    largest, total = sum(sorted(values)[::-1][:n]), sum(values)
    assert verdict.sensitive[0] == (100 * largest > k * total)
    if verdict.sensitive[0]:
        assert verdict.upl[0] == pytest.approx(float(Fraction(100 * largest, k) - total))


@given(AMOUNTS, st.integers(1, 300))
def test_p_percent_is_strict_as_in_exact_arithmetic(values: list[int], p: int) -> None:
    verdict = assess(one_cell(values), [PPercent(p)])
    x = [*sorted(values)[::-1], 0]
    rest = sum(values) - x[0] - x[1]
    assert verdict.sensitive[0] == (100 * rest < p * x[0])
    if verdict.sensitive[0]:
        assert verdict.upl[0] == pytest.approx(float(Fraction(p * x[0], 100) - rest))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), min_size=1, max_size=6), st.integers(1, 4))
def test_an_integer_weight_is_repetition(units: list[tuple[int, int]], depth: int) -> None:
    values, weights = [v for v, _ in units], [w for _, w in units]
    repeated = one_cell([v for v, w in units for _ in range(w)], depth)
    weighted = one_cell(values, depth, weight=weights)
    assert weighted.top.tolist() == repeated.top.tolist()
    assert weighted.value.tolist() == repeated.value.tolist()
    assert weighted.weighted_count[0] == repeated.count[0]
    assert weighted.count[0] == len(units)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0.25, 4)), min_size=1, max_size=6), st.integers(1, 30)
)
def test_fractional_weights_keep_the_total(units: list[tuple[int, float]], depth: int) -> None:
    profiles = one_cell([v for v, _ in units], depth, weight=[w for _, w in units])
    assert (np.diff(profiles.top[0]) <= 1e-9).all()
    if depth >= sum(w for _, w in units):
        assert profiles.top.sum() == pytest.approx(profiles.value[0])


def test_ties_of_decimals_are_ties() -> None:
    # 0.1 + 0.2 is above 0.3 in double precision; 90 % of the total is no more than 90 %.
    profiles = profiles_of([0, 0, 0], [0.1, 0.2, 0.7 / 21], cells=1, depth=2)
    assert not assess(profiles, [Dominance(2, 90)]).sensitive[0]


def test_units_of_one_holding_are_one_contributor() -> None:
    profiles = profiles_of([0, 0, 0, 1], [30, 20, 10, 5], cells=2, depth=2, holding=["h", "g", "h", "h"])
    assert profiles.count.tolist() == [2, 1]
    assert profiles.top.tolist() == [[40, 20], [5, 0]]
    weighted = profiles_of([0, 0], [4, 2], cells=1, depth=2, weight=[2, 2], holding=["h", "h"])
    assert weighted.count[0] == 1
    assert weighted.value[0] == 12
    assert weighted.top[0].tolist() == [6, 6]


def test_a_holding_asks_if_one_of_its_units_does() -> None:
    profiles = profiles_of(
        [0, 0, 0], [30, 20, 10], cells=1, depth=1, holding=["h", "g", "h"], request=["", "", "1"]
    )
    assert profiles.request[0] == "1"


def test_of_equal_contributors_the_one_that_asked_counts_as_largest() -> None:
    profiles = profiles_of([0, 0], [5, 5], cells=1, depth=1, request=["", "1"])
    assert assess(profiles, [Request({"1": 40})]).sensitive[0]


def test_negative_contributions_count_by_size() -> None:
    profiles = profiles_of([0, 0, 0], [-90, 60, 35], cells=1, depth=2, negative_values=True)
    assert profiles.value[0] == 5
    assert profiles.mass[0] == 185
    assert profiles.top[0].tolist() == [90, 60]
    assert assess(profiles, [Dominance(2, 80)]).sensitive[0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), max_size=12), st.randoms())
def test_order_of_units_does_not_matter(units: list[tuple[int, int]], random: object) -> None:
    shuffled = list(units)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    a, b = (profiles_of([c for c, _ in u], [v for _, v in u], cells=4, depth=3) for u in (units, shuffled))
    assert a.top.tolist() == b.top.tolist()
    assert a.value.tolist() == b.value.tolist()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=10))
def test_empty_cells_are_never_sensitive(counts: list[int]) -> None:
    rules: list[Rule] = [Threshold(3), PPercent(10), Dominance(1, 50), Zero(5)]
    profiles = Profiles(value=np.zeros(len(counts)), count=counts, top=np.zeros((len(counts), 2)))
    assert not assess(profiles, rules).sensitive[np.array(counts) == 0].any()


def test_manual_keeps_the_larger_level_of_a_cell_named_twice() -> None:
    verdict = assess(Profiles(value=[10, 20], count=[5, 5]), [Manual([1, 1], lpl=[3, 1], upl=[np.nan, 9])])
    assert verdict.lpl.tolist() == [0, 3]
    assert verdict.upl.tolist() == [0, 9]


def test_secondary_flag() -> None:
    verdict = assess(Profiles(value=[1, 9, 9], count=[1, 9, 9]), [Threshold(3)])
    assert verdict.flags(np.array([True, True, False])).tolist() == ["A", "D", "V"]


def test_no_rules_no_primaries() -> None:
    assert not assess(Profiles(value=[1], count=[1]), []).sensitive.any()


def test_the_callers_arrays_stay_writable() -> None:
    value = np.array([1.0])
    Profiles(value=value, count=np.array([1]))
    value[0] = 2


def test_a_derived_number_is_hidden_with_any_operand() -> None:
    assert hide_derived([True, False, False], [0, 2, 4], [1, 2, 0, 1]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Threshold(1), "threshold"),
        (lambda: Threshold(3, percent=0), "percent"),
        (lambda: Dominance(0, 80), "n of the dominance"),
        (lambda: Dominance(1, 100), "k of the dominance"),
        (lambda: PPercent(0), "p of the p%"),
        (lambda: Request({}), "no request code"),
        (lambda: Request({"1": 170}), "request code '1'"),
        (lambda: Zero(0), "zero rule"),
        (lambda: Manual([0], lpl=-1), "negative"),
        (lambda: Profiles(value=[1], count=[1, 2]), "shape"),
        (lambda: Profiles(value=[np.nan], count=[1]), "finite"),
        (lambda: Profiles(value=[1], count=[-1]), "negative"),
        (lambda: Profiles(value=[40], count=[2], top=[[10, 30]]), "descending"),
        (lambda: assess(Profiles(value=[1], count=[1]), [Manual([1])]), "there are 1 cells"),
        (lambda: assess(Profiles(value=[1], count=[1]), [Threshold(3), Threshold(3)]), "twice"),
        (lambda: assess(Profiles(value=[9], count=[3], top=[[4]]), [PPercent(5)]), "2 largest"),
        (
            lambda: assess(Profiles(value=[9], count=[1], top=[[9]], request=["7"]), [Request({"1": 70})]),
            "'7'",
        ),
        (lambda: profiles_of([0], [-1], cells=1, depth=1), "negative"),
        (lambda: profiles_of([0], [1], cells=1, depth=1, weight=[0]), "weight"),
        (lambda: profiles_of([3], [1], cells=1, depth=1), "none of the 1 cells"),
        (lambda: hide_derived([True], [0, 0], []), "no operand"),
        (lambda: check_contributions([1], [1, 2], [[1]]), "shape"),
    ],
)
def test_wrong_input_is_refused_with_its_cause(wrong: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        wrong()  # type: ignore[operator]
    assert told in str(caught.value)
