"""Controlled tabular adjustment against every table there is, and what becomes of odd input."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import instance_file

from solver import (
    InfeasibleError,
    InputError,
    Insider,
    Instance,
    Status,
    UndecidedError,
    UnreachableLevelError,
    adjust,
    audit,
    audit_adjustment,
    publish_intervals,
    round_table,
)

_REACH = 6
# Inner movements of a table of two rows and two columns, and of all its cells.
_INNER = np.array(list(itertools.product(range(-_REACH, _REACH + 1), repeat=4)))
_ADD = np.array(
    [
        *([1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]),
        *([0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1]),
        *([1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]),
    ]
)
_MOVES = _INNER @ _ADD.T
_LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8]])


def _relations() -> np.ndarray:
    relations = np.zeros((6, 9))
    for relation, line in zip(relations, _LINES, strict=True):
        relation[line] = (1, 1, -1)
    return relations


@st.composite
def tables(draw: st.DrawFn) -> Instance:
    """A table of 2×2 with totals, one or two cells to protect, and anything for the others."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    value = _ADD @ rng.integers(0, 7, size=4)
    status = rng.choice([1, 2, 3, 4], p=[0.8, 0.1, 0.05, 0.05], size=9)
    primary = rng.choice(9, size=rng.integers(1, 3), replace=False)
    status[primary] = rng.choice([0, 0, 3, 4], size=len(primary))
    lower = np.minimum(rng.choice([0, -np.inf], size=9, p=[0.8, 0.2]), value)
    upper = value + rng.choice([2, 5, np.inf], size=9, p=[0.2, 0.3, 0.5])
    levels = np.zeros((3, 9))
    levels[:, primary] = rng.integers(0, 4, size=(3, len(primary)))
    levels[2] *= rng.random() < 0.3
    levels[0, primary] = np.maximum(levels[0, primary], levels[:, primary].sum(axis=0) == 0)
    instance = Instance.from_arrays(
        value,
        _relations(),
        status=status,
        weight=rng.integers(0, 9, size=9),
        lower_bound=lower,
        upper_bound=upper,
        lpl=levels[0],
        upl=levels[1],
        spl=levels[2],
    ).clipped()
    bare = (status == Status.SENSITIVE) & (instance.lpl + instance.upl + instance.spl == 0)
    return instance.replace(status=np.where(bare, Status.FREE, status))


def _keeps(instance: Instance) -> np.ndarray:
    return (instance.status == Status.SHOWN) | ((instance.value == 0) & ~instance.always_hidden)


def _cheapest(instance: Instance) -> float | None:
    """By trying every movement of the inner cells."""
    value = instance.value + _MOVES
    good = ((value >= instance.lower_bound) & (value <= instance.upper_bound)).all(axis=1)
    good &= (_MOVES[:, _keeps(instance)] == 0).all(axis=1)
    for cell in instance.protected:
        low, high = instance.lpl[cell], instance.upl[cell]
        more = max(instance.spl[cell] - low - high, 0) / 2
        away = np.zeros(len(_MOVES), dtype=np.bool_)
        for way, level in ((-1, low + more), (1, high + more)):
            if level > 0:
                away |= way * _MOVES[:, cell] >= level
        good &= away
    weight = np.where(np.isin(instance.status, (Status.HIDDEN, Status.VIRTUAL)), 0, instance.weight)
    return float((np.abs(_MOVES[good]) @ weight).min()) if good.any() else None


@settings(max_examples=20, deadline=None)
@given(tables())
def test_no_table_is_closer(instance: Instance) -> None:
    exposed = bool(audit(instance, ~_keeps(instance)).exposures)
    nearest = _cheapest(instance)
    try:
        done = adjust(instance)
    except UnreachableLevelError:
        raise AssertionError("levels were clipped") from None
    except InfeasibleError as error:
        assert nearest is None or exposed
        told = str(error)
        assert "stays within" in told or "can't change together" in told
    else:
        assert not exposed
        assert (done.cost, done.lower_bound, done.status) == (nearest, nearest, "optimal")
        assert audit_adjustment(instance, done.decimals).ok
        assert not (_relations() @ done.value).any()


@settings(max_examples=8, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_cells_and_relations_changes_nothing(instance: Instance, random: object) -> None:
    order, rows = list(range(9)), list(range(6))
    random.shuffle(order)
    random.shuffle(rows)
    columns = ("value", "status", "weight", "lower_bound", "upper_bound", "lpl", "upl", "spl")
    given_so = {name: getattr(instance, name)[order] for name in columns}
    value = given_so.pop("value")
    turned = Instance.from_arrays(value, _relations()[rows][:, order], **given_so)
    costs = []
    for problem in (instance, turned):
        try:
            costs.append(adjust(problem).cost)
        except InfeasibleError:
            costs.append(None)
    assert costs[0] == costs[1]


@pytest.mark.parametrize("name", ["rta_ex1", "pp_h13x10", "tau_pp_tab", "r10x10_p5"])
def test_handed_tables_add_up_to_the_last_digit(name: str) -> None:
    instance = Instance.from_jj(instance_file(name))
    done, again = (adjust(instance) for _ in range(2))
    assert (done.status, done.report.ok, done.decimals) == ("optimal", True, again.decimals)
    values = [Fraction(text) for text in done.decimals]
    for relation in range(instance.m):
        part = slice(instance.indptr[relation], instance.indptr[relation + 1])
        terms = zip(instance.indices[part], instance.coefs[part], strict=True)
        assert sum(values[i] * Fraction(c) for i, c in terms) == Fraction(instance.rhs[relation])
    moved = np.abs(done.value - instance.value)
    assert (moved[instance.protected] >= instance.lpl[instance.protected] * (1 - 1e-9)).all()
    assert not moved[_keeps(instance)].any()
    table = done.table()
    assert table.decimals == done.decimals
    assert not table.lpl.any()


def _line(parts: list[str], status: str, level: float, **more: object) -> Instance:
    """A total and its parts, given as decimal texts."""
    total = sum(map(Fraction, parts))
    return Instance.from_arrays(
        [float(total), *map(float, parts)],
        [[-1.0, *[1.0] * len(parts)]],
        status=list(status),
        weight=np.ones(len(parts) + 1),
        lpl=[level * (s == "u") for s in status],
        upl=[level * (s == "u") for s in status],
        **more,
    )


def test_amounts_of_thirteen_digits_and_decimals_add_up() -> None:
    instance = _line(["1234567890123.45", "0.07", "2345678901234.01", "12.5"], "zuuss", 0.03)
    done = adjust(instance)
    assert (done.unit, done.status) == (Fraction(1, 100), "optimal")
    assert done.cost == pytest.approx(0.06)
    assert sum(map(Fraction, done.decimals[1:])) == Fraction(done.decimals[0])
    large = _line(["1234567890123.45", "0.07", "2345678901234.01", "12.5"], "suusu", 0.03)
    large = large.replace(lpl=large.lpl * [0, 4e12, 1, 0, 1], upl=large.upl * [0, 4e12, 1, 0, 1])
    done = adjust(large)
    assert sum(map(Fraction, done.decimals[1:])) == Fraction(done.decimals[0])
    assert done.report.ok


def test_changes_are_multiples_of_the_unit_asked_for() -> None:
    instance = _line(["20", "30", "50"], "zuss", 2.5)
    assert adjust(instance).cost == 6
    finer = adjust(instance, unit="0.5")
    assert (finer.cost, sorted(finer.decimals)) == (5, sorted(finer.decimals))
    assert {Fraction(text) % Fraction(1, 2) for text in finer.decimals} == {0}
    assert adjust(instance, unit=5).cost == 10


def test_where_the_relaxation_stops_between_units_whole_ones_are_found_and_proven() -> None:
    """10 = a + b / 2: b moves by 3 at least, so by 4, and a by 2."""
    half = Instance.from_arrays(
        [10, 4, 12], [[-1, 1, 0.5]], status=list("zsu"), weight=np.ones(3), lpl=[0, 0, 3], upl=[0, 0, 3]
    )
    done = adjust(half)
    assert (done.cost, done.status, sorted(np.abs(done.value - half.value))) == (6, "optimal", [0, 2, 4])
    assert adjust(half, unit="0.5").cost == 4.5


def test_a_cell_that_protection_takes_down_only_goes_down() -> None:
    instance = _line(["20", "30", "50"], "zuss", 4)
    assert adjust(instance.replace(upl=np.zeros(4))).value[1] == 16
    assert adjust(instance.replace(lpl=np.zeros(4))).value[1] == 24
    wide = instance.replace(spl=np.array([0, 12.0, 0, 0]))
    assert abs(adjust(wide).value[1] - 20) == 6


def test_zeros_move_on_demand_only() -> None:
    instance = _line(["20", "0", "0"], "zuss", 2, lower_bound=[0, 0, -9, -9])
    with pytest.raises(InfeasibleError, match=r"cell 1 .*stays within"):
        adjust(instance)
    assert adjust(instance, move_zeros=True).cost == 4


def test_what_insiders_know_counts() -> None:
    instance = _line(["20", "30", "50"], "zuus", 3)
    one = np.ones(1)
    owner = Insider("owner", np.array([2]), np.array([1]), 5 * one, 5 * one, 0 * one)
    assert abs(adjust(instance.replace(insiders=(owner,))).value[1] - 20) == 5
    instance = _line(["20", "30"], "zuu", 3).replace(insiders=(owner,))
    with pytest.raises(InfeasibleError) as caught:
        adjust(instance)
    assert caught.value.obstacles[0].attacker == "owner"


def test_who_stands_in_each_others_way_is_told() -> None:
    """Two parts of a kept total go opposite ways; three parts of one level can't."""
    instance = _line(["20", "30", "50"], "zuuu", 5)
    tight = instance.replace(
        lower_bound=instance.value - instance.lpl, upper_bound=instance.value + instance.upl
    )
    with pytest.raises(InfeasibleError) as caught:
        adjust(tight)
    assert caught.value.conflict.cells == ("1", "2", "3")
    assert caught.value.conflict.kept == ("0",)
    assert "cells 1, 2, 3 can't change together by 0 = 1 + 2 + 3" in str(caught.value)
    assert "suppression" not in str(caught.value)
    assert adjust(_line(["20", "30", "50"], "zuuu", 5)).cost == 20


def test_a_wrong_table_is_found_out() -> None:
    instance = _line(["20", "30", "50"], "zuss", 4)
    good = list(adjust(instance).decimals)
    assert audit_adjustment(instance, good).ok
    assert audit_adjustment(instance, ["100", "23.9", "26.1", "50"]).near == ("1",)
    assert audit_adjustment(instance, ["104", "24", "30", "50"]).changed == ("0",)
    assert audit_adjustment(instance, ["100", "24", "30", "50"]).relations == {0: 4}
    assert audit_adjustment(instance, ["100", "-4", "54", "50"]).beyond == ("1",)
    with pytest.raises(InputError, match="no number"):
        audit_adjustment(instance, ["a", "1", "1", "1"])
    with pytest.raises(InputError, match="3 entries for 4 cells"):
        audit_adjustment(instance, good[:3])


def test_input_without_sense_is_refused_in_words() -> None:
    instance = _line(["20", "30", "50"], "zuss", 4)
    with pytest.raises(InputError, match="cell 1: a sensitive cell has no protection level"):
        adjust(instance.replace(lpl=np.zeros(4), upl=np.zeros(4)))
    with pytest.raises(UnreachableLevelError, match="no adjusted table is safe"):
        adjust(instance.replace(lpl=np.array([0, 21.0, 0, 0])))
    wrong = (
        {"unit": 0},
        {"unit": "x"},
        {"unit": float("nan")},
        {"unit": True},
        {"unit": "1/3"},
        {"time_limit": -1},
        {"threads": 0},
        {"seed": -1},
        {"progress": 3},
        {"move_zeros": 1},
    )
    for options in wrong:
        with pytest.raises(InputError, match=next(iter(options))):
            adjust(instance, **options)
    with pytest.raises(InputError, match="Give an Instance"):
        adjust(None)


def test_no_time_at_all_still_gives_a_table_and_nothing_to_protect_leaves_it_as_it_is() -> None:
    instance = _line(["20", "30", "50"], "zuss", 4)
    assert adjust(instance, time_limit=0).report.ok
    free = adjust(_line(["20", "30"], "sss", 4))
    assert (free.cost, free.decimals) == (0, ("50", "20", "30"))


def test_the_audit_takes_a_table_in_finer_units_than_the_original() -> None:
    instance = _three(1.2)
    adjusted = adjust(instance, unit="0.1")
    assert adjusted.decimals == ("20", "6.8", "13.2")
    assert audit_adjustment(instance, adjusted.decimals).ok


def test_a_whole_level_is_met_to_the_last_unit() -> None:
    level = 5_000_000_000_000
    instance = Instance.from_arrays(
        [6e12 + 30.25, 6e12 + 0.25, 10, 20],
        [[-1, 1, 1, 1]],
        status=["s", "u", "u", "s"],
        lpl=[0, level, 1, 0],
        upl=[0, level, 1, 0],
    )
    moved = Fraction(adjust(instance).decimals[1]) - Fraction("6000000000000.25")
    assert abs(moved) >= level


@pytest.mark.parametrize(
    "unit",
    ["1e-400", "1e400", "1e9999999", "1e-16", "1e16", "1_0", "\u0661", "0", "-1", "nan", "inf", True],
)
def test_a_unit_is_a_decimal_number_of_usual_size(unit: object) -> None:
    with pytest.raises(InputError, match="from 1e-15 to 1e15"):
        adjust(_three(1.0), unit=unit)
    with pytest.raises(InputError, match="from 1e-15 to 1e15"):
        round_table(_three(1.0), unit)


def test_what_is_unbounded_or_empty_needs_no_exception() -> None:
    nothing = Instance.from_arrays([], np.zeros((0, 0)), status=[])
    assert round_table(nothing, 5).decimals == ()
    one = Instance.from_arrays([5.0], np.zeros((0, 1)), status=["u"], lpl=[1], upl=[1], lower_bound=[-np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = publish_intervals(one, np.ones(1, dtype=np.bool_))
    assert np.isinf([table.lower[0], table.upper[0]]).all()


def _three(level: float) -> Instance:
    """A total of two cells, one of them sensitive."""
    return Instance.from_arrays(
        [20, 8, 12], [[-1, 1, 1]], status=["s", "u", "s"], lpl=[0, level, 0], upl=[0, level, 0]
    )


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_numbers_of_any_size_are_adjusted_and_rounded_or_it_is_told_why_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = _ADD @ np.floor(10.0 ** rng.integers(-3, 20, size=4) * rng.uniform(1, 9, size=4))
    levels = np.zeros(9)
    primary = rng.choice(9, size=2, replace=False)
    levels[primary] = np.minimum(10.0 ** rng.integers(-6, 18, size=2), value[primary])
    status = np.where(levels > 0, "u", "s")
    instance = Instance.from_arrays(
        value, _relations(), status=status, lpl=levels, upl=levels, tolerance=1e-9 * float(value.max())
    )
    try:
        adjusted = adjust(instance, time_limit=1.0)
    except (UndecidedError, InfeasibleError):
        pass
    else:
        assert audit_adjustment(instance, adjusted.decimals).ok
    try:
        rounded = round_table(instance, base=f"1e{rng.integers(0, 18)}", time_limit=1.0)
    except (UndecidedError, InfeasibleError, InputError):
        pass
    else:
        new = np.array([Fraction(text) for text in rounded.decimals])
        assert not any((_relations().astype(int) * new).sum(axis=1))
