"""Intervals against plain linear programs, monotony, proofs that anyone can check; explanations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute import _reach, random_instance
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import null_space
from shared import instance_file

from solver import InfeasibleError, InputError, Insider, Instance, audit, explain, solve
from solver.audit import exposures_among, find_exposures
from solver.generate import generate


def _some_pattern(instance: Instance, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return instance.always_hidden | (instance.may_hide & (rng.random(instance.n) < 0.6))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9))
def test_intervals_equal_plain_programs(seed: int) -> None:
    instance = random_instance(seed)
    hidden = _some_pattern(instance, seed)
    report = audit(instance, hidden)
    assert report.complete
    assert (report.cells == np.flatnonzero(hidden)).all()
    for k, cell in enumerate(report.cells):
        down, up = (_reach(instance, hidden, int(cell), side) for side in (-1, 1))
        assert report.lower[k] == pytest.approx(instance.value[cell] - down, abs=1e-6)
        assert report.upper[k] == pytest.approx(instance.value[cell] + up, abs=1e-6)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9))
def test_movements_offered_to_the_audit_are_not_trusted(seed: int) -> None:
    """Made up, right, or right for a wider pattern: what is exposed stays exposed."""
    instance = random_instance(seed)
    hidden = _some_pattern(instance, seed)
    rng = np.random.default_rng(seed)
    basis = null_space(instance.matrix.toarray()) if instance.m else np.eye(instance.n)
    honest = (basis @ rng.normal(size=(basis.shape[1], 4)) * rng.choice([0.1, 1.0, 50.0])).T
    wider = np.where(instance.may_hide, honest, 0.0)
    moves = sparse.csr_array(np.vstack([honest, wider, rng.normal(size=(4, instance.n)) * 10]))
    expected = [(e.cell, e.attacker) for e in audit(instance, hidden).exposures]
    assert [(e.cell, e.attacker) for e in find_exposures(instance, hidden, moves)] == expected


@pytest.mark.parametrize("most", [1e9, 1e12])
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
@pytest.mark.parametrize("inside", [False, True], ids=["outsider", "insiders"])
def test_small_levels_are_judged_beside_amounts_of_many_digits(most: float, seed: int, inside: bool) -> None:
    """A table of whole amounts and its margins: intervals end in whole units (total unimodularity)."""
    rng = np.random.default_rng(seed)
    size = 12
    table = np.zeros((size + 1, size + 1))
    table[:-1, :-1] = np.minimum(np.floor(rng.lognormal(0, 9, (size, size)) * 10 ** rng.uniform(1, 4)), most)
    table[-1] = table[:-1].sum(axis=0)
    table[:, -1] = table[:, :-1].sum(axis=1)
    number = np.arange(table.size).reshape(table.shape)
    relations = np.zeros((2 * len(table), table.size))
    for row, line in enumerate([*number, *number.T]):
        relations[row, line[:-1]], relations[row, line[-1]] = 1, -1
    hidden = np.zeros(table.shape, dtype=np.bool_)
    hidden[:-1, :-1] = rng.random((size, size)) < 0.5
    hidden = hidden.ravel()
    cells = np.flatnonzero(hidden)
    level = np.where(hidden & ~inside, 0.5, 0.0)
    others = {int(cell): np.setdiff1d(cells, [cell]) for cell in cells[:6] if inside}
    instance = Instance.from_arrays(
        table.ravel(),
        relations,
        status=np.where(hidden, "u", "s"),
        lpl=level,
        upl=level,
        insiders=[
            Insider(f"owner of {cell}", [cell], targets, *np.full((3, len(targets)), 0.5))
            for cell, targets in others.items()
        ],
    )
    report = audit(instance, hidden)
    assert report.complete
    ends = np.concatenate([report.lower, report.upper])
    assert np.abs(ends - np.round(ends))[np.isfinite(ends)].max() < 1e-2
    told = [(exposure.cell, exposure.attacker) for exposure in report.exposures]
    assert [(e.cell, e.attacker) for e in find_exposures(instance, hidden)] == told


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_hiding_more_never_narrows_an_interval(seed: int) -> None:
    instance = random_instance(seed)
    hidden = _some_pattern(instance, seed)
    less, more = audit(instance, hidden), audit(instance, hidden | _some_pattern(instance, seed + 1))
    at = np.searchsorted(more.cells, less.cells)
    assert (more.lower[at] <= less.lower + 1e-6).all()
    assert (more.upper[at] >= less.upper - 1e-6).all()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9))
def test_every_exposure_is_proven_by_adding_up_relations(seed: int) -> None:
    instance = random_instance(seed)
    hidden = instance.always_hidden
    report = audit(instance, hidden)
    known_by = {insider.name: insider.known for insider in instance.insiders}
    for exposure in report.exposures:
        reach = []
        for direction, proof in zip((-1, 1), exposure.certificate, strict=True):
            d = np.zeros(instance.n)
            d[exposure.cell] = direction
            for relation, multiplier in proof.items():
                part = slice(instance.indptr[relation], instance.indptr[relation + 1])
                d[instance.indices[part]] -= multiplier * instance.coefs[part]
            d[~hidden] = 0
            d[known_by.get(exposure.attacker, [])] = 0
            d[np.abs(d) < 1e-7] = 0
            room = np.where(
                d > 0, instance.upper_bound - instance.value, instance.value - instance.lower_bound
            )
            reach.append(float((np.abs(d[d != 0]) * room[d != 0]).sum()))
        value, (low, high, width) = instance.value[exposure.cell], exposure.required
        assert reach[0] < value - low - 1e-9 or reach[1] < high - value - 1e-9 or sum(reach) < width - 1e-9


def test_a_shortfall_of_a_billionth_part_is_found_and_an_equal_level_is_not() -> None:
    def instance(level: float) -> Instance:
        return Instance.from_arrays(
            [30.0, 10.0, 20.0],
            [[1, -1, -1]],
            status=["z", "u", "x"],
            upper_bound=[np.inf, np.inf, np.inf],
            lower_bound=[0, 0, 20 - 1.5],
            upl=[0, level, 0],
        )

    hidden = np.array([False, True, True])
    assert audit(instance(1.5), hidden).ok
    assert not audit(instance(1.5 * (1 + 1e-8)), hidden).ok


def test_a_cell_that_must_be_hidden_and_is_not_is_exposed() -> None:
    instance = Instance.from_arrays([3.0, 1.0, 2.0], [[1, -1, -1]], status=["s", "u", "s"])
    report = audit(instance, np.zeros(3, dtype=bool))
    assert [(e.cell, e.interval) for e in report.exposures] == [(1, (1.0, 1.0))]


def test_a_pattern_of_another_shape_is_refused() -> None:
    instance = Instance.from_arrays([3.0, 1.0, 2.0], [[1, -1, -1]], status=["s", "u", "s"])
    with pytest.raises(InputError, match="shape"):
        audit(instance, np.zeros(4, dtype=bool))


def test_thirteen_digits_and_ten_decimals() -> None:
    """Hiding nothing else leaves the small cell exactly known; hiding its neighbour frees it."""
    cells = [
        {"id": "t", "value": "1234567890123.4500000001", "status": "z"},
        {"id": "a", "value": "1000000000000.01", "status": "s"},
        {"id": "b", "value": "234567890000", "status": "s"},
        {"id": "c", "value": "123.4400000001", "status": "u", "lpl": "12.34", "upl": "12.34"},
    ]
    for cell in cells:
        cell["lb"] = 0
    case = {"cells": cells, "equations": [{"total": "t", "parts": [[1, "a"], [1, "b"], [1, "c"]], "rhs": 0}]}
    instance = Instance.from_case(case)
    assert instance.exact(3) == Fraction("123.4400000001")
    assert not audit(instance, instance.always_hidden).ok
    solution = solve(instance, "exact")
    assert solution.hidden.tolist() == [False, False, True, True]


def test_explain_tells_what_showing_a_secondary_would_expose() -> None:
    instance = Instance.from_jj(instance_file("rta_ex1"))
    solution = solve(instance, "exact")
    for cell in np.flatnonzero(solution.hidden & (instance.status == 1)):
        found = explain(instance, solution.hidden, int(cell))
        assert found.necessary
        assert found.exposes
        assert found.relations
    shown = int(np.flatnonzero(~solution.hidden)[0])
    assert not explain(instance, solution.hidden, shown).exposes
    with pytest.raises(InputError, match="no cell"):
        explain(instance, solution.hidden, "absent")


def test_infeasibility_names_cells_relations_and_what_is_shown() -> None:
    instance = Instance.from_arrays(
        [10.0, 4.0, 6.0],
        [[1, -1, -1]],
        status=["z", "u", "z"],
        upl=[0, 1, 0],
        names=["total", "small", "rest"],
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(instance)
    (obstacle,) = caught.value.obstacles
    assert (obstacle.cell, obstacle.shown, obstacle.relations) == ("small", ("total", "rest"), (0,))
    assert obstacle.spelled == ("small + rest = total",)
    assert "by small + rest = total" in str(caught.value)


def test_no_bound_is_missed_from_far_away() -> None:
    """Up to a bound of a thousand million and back: the way down still ends at the other cell's bound."""
    instance = Instance.from_arrays(
        [0.0, 0.0],
        [[1, -2]],
        status=["x", "u"],
        lower_bound=[0, -np.inf],
        upper_bound=[np.inf, 1e9],
        lpl=[0, 0.5],
        upl=[0, 1.5],
    )
    (exposure,) = exposures_among(instance, np.ones(2, dtype=np.bool_), np.array([0, 1]))
    assert exposure.interval == (0, 1e9)
    with pytest.raises(InfeasibleError) as raised:
        solve(instance)
    assert [obstacle.cell for obstacle in raised.value.obstacles] == ["1"]


@pytest.mark.parametrize("cell", ["-1", "-3", "-64", "63", -1, 63])
def test_explain_knows_no_cell_of_a_number_outside_the_table(cell: int | str) -> None:
    instance = generate("random", "8x6", primaries=5)
    with pytest.raises(InputError, match=f"cell.* {cell}"):
        explain(instance, instance.may_hide, cell)
