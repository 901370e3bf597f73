"""Controlled rounding against every rounded table there is, and what readers find out all the same."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import instance_file

from solver import InfeasibleError, InputError, Instance, publish_intervals, round_table, solve

# A table of two rows and two columns: all its cells from the inner ones.
_ADD = np.array(
    [
        *([1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]),
        *([0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1]),
        *([1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]),
    ]
)
_LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8]])
_INNER = np.array(list(itertools.product(range(5), repeat=4)))


def _relations() -> np.ndarray:
    relations = np.zeros((6, 9))
    for relation, line in zip(relations, _LINES, strict=True):
        relation[line] = (1, 1, -1)
    return relations


def _table(seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    value = _ADD @ rng.integers(0, 13, size=4)
    status = np.ones(9, dtype=int)
    status[rng.integers(9)] = 0
    return Instance.from_arrays(
        value,
        _relations(),
        status=status,
        weight=rng.integers(0, 9, size=9),
        lpl=2 * (status == 0),
        upl=2 * (status == 0),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 5]))
def test_no_rounded_table_is_closer(seed: int, base: int) -> None:
    instance = _table(seed)
    rounded = base * (_INNER @ _ADD.T)
    beside = (np.abs(rounded - instance.value) < base).all(axis=1)
    nearest = (np.abs(rounded - instance.value)[beside] @ instance.weight).min()
    done = round_table(instance, base)
    # In two dimensions there always is one.
    assert (done.steps, done.cost, done.status) == (1, nearest, "optimal")
    assert not (_relations() @ done.value).any()
    assert not (done.value % base).any()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_what_readers_find_out_is_the_interval_of_tables_that_round_so(seed: int) -> None:
    """Every original table with the cells less than a base away is possible for them."""
    instance = _table(seed)
    done = round_table(instance, 3)
    near = np.array(list(itertools.product(range(-2, 3), repeat=4))) + done.value[[0, 1, 3, 4]]
    tables = near @ _ADD.T
    possible = tables[((np.abs(tables - done.value) < 3) & (tables >= 0)).all(axis=1)]
    (known,) = done.report.intervals
    values = possible[:, known.cell]
    assert known.interval == pytest.approx((values.min(), values.max()))
    value = instance.value[known.cell]
    inside = values.min() <= value - 2 and values.max() >= value + 2
    assert (known.attacker, done.report.ok) == ("outsider", inside)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.permutations(range(9)))
def test_the_order_of_cells_changes_nothing(seed: int, order: list[int]) -> None:
    instance = _table(seed)
    turned = Instance.from_arrays(
        instance.value[order],
        _relations()[::-1][:, order],
        status=instance.status[order],
        weight=instance.weight[order],
    )
    assert round_table(turned, 5).cost == round_table(instance, 5).cost


@pytest.mark.parametrize(
    ("name", "base"), [("rta_ex1", 5), ("pp_h13x10", 100), ("tau_pp_tab", "0.5"), ("r10x10_p5", 10)]
)
def test_handed_tables_add_up_in_multiples(name: str, base: object) -> None:
    instance = Instance.from_jj(instance_file(name))
    done, again = (round_table(instance, base) for _ in range(2))
    values = [Fraction(text) for text in done.decimals]
    assert (done.status, done.decimals, done.table().decimals) == ("optimal", again.decimals, done.decimals)
    assert not [value for value in values if value % Fraction(str(base))]
    for relation in range(instance.m):
        part = slice(instance.indptr[relation], instance.indptr[relation + 1])
        terms = zip(instance.indices[part], instance.coefs[part], strict=True)
        assert sum(values[i] * Fraction(c) for i, c in terms) == Fraction(instance.rhs[relation])
    assert (np.abs(done.value - instance.value) < done.steps * float(done.base)).all()
    assert not done.value[instance.value == 0].any()
    assert len(done.report.intervals) == len(instance.protected)


def _line(value: list[float], relation: list[float], rhs: float = 0, status: str = "sss") -> Instance:
    return Instance.from_arrays(
        value, [relation], rhs=[rhs], status=list(status), weight=np.ones(3), lower_bound=-np.inf
    )


def test_farther_multiples_are_taken_where_the_nearest_do_not_add_up() -> None:
    """2 · 4 − 8 = 0 holds for multiples of 5 only if 8 goes to 0 or to 10, and 4 with it."""
    near = round_table(_line([8, 4, 0], [1, -2, 0]), 5)
    assert (near.steps, near.value.tolist()) == (1, [10, 5, 0])
    # 14 = 3 · 4 + 2 with 14 in {10, 15}, 4 in {0, 5} and 2 in {0, 5}.
    far = round_table(_line([28, 4, 12], [1, -4, -1]), 5)
    assert (far.steps, far.value[0]) == (1, 4 * far.value[1] + far.value[2])
    farther = round_table(_line([24, 4, 0], [1, -6, 0]), 5)
    assert (farther.steps, farther.value.tolist()) == (2, [30, 5, 0])


def test_where_no_multiples_add_up_the_relation_is_named() -> None:
    with pytest.raises(InfeasibleError) as caught:
        round_table(_line([7, 3, 3], [1, -1, -1], rhs=1), 5)
    assert (caught.value.conflict.cells, caught.value.conflict.relations) == (("0", "1", "2"), (0,))
    assert "no rounded table adds up" in str(caught.value)
    with pytest.raises(InfeasibleError) as caught:
        round_table(_line([5, 5, 0], [1, 0, 0], rhs=5), 3)
    assert caught.value.conflict.cells


def test_cells_hidden_beforehand_may_take_any_multiple() -> None:
    done = round_table(_line([8, 1, 7], [1, -1, -1], status="ssx"), 5)
    assert (done.value.tolist(), done.columns()["cell"].tolist()) == ([10, 0, 10], ["0", "1"])
    assert done.cost == 3


def test_amounts_of_thirteen_digits_round_exactly() -> None:
    done = round_table(_line([3580246791357.46, 1234567890123.45, 2345678901234.01], [1, -1, -1]), "0.25")
    assert sum(map(Fraction, done.decimals[1:])) == Fraction(done.decimals[0])
    assert done.steps == 1


def test_input_without_sense_is_refused_in_words() -> None:
    instance = _line([8, 1, 7], [1, -1, -1])
    for base in (0, -5, "x", None, float("inf"), True, "1/3"):
        with pytest.raises(InputError, match="base"):
            round_table(instance, base)
    for options in ({"time_limit": -1}, {"threads": 0}, {"seed": "1"}, {"progress": 1}):
        with pytest.raises(InputError, match=next(iter(options))):
            round_table(instance, 5, **options)


def test_intervals_are_those_of_the_audit_rounded_outwards() -> None:
    instance = Instance.from_jj(instance_file("tau_pp_tab"))
    pattern = solve(instance, "lp").hidden
    told = publish_intervals(instance, pattern)
    assert (told.unit, len(told.cells)) == (Fraction(1, 100), instance.n)
    assert (np.isnan(told.value) == pattern).all()
    assert (np.isnan(told.lower) == ~pattern).all()
    assert (told.lower[pattern] <= told.report.lower + 1e-6).all()
    assert (told.upper[pattern] >= told.report.upper - 1e-6).all()
    assert (told.upper[pattern] - told.report.upper < 0.011).all()
    with pytest.raises(InputError, match="exposes"):
        publish_intervals(instance, instance.always_hidden)
