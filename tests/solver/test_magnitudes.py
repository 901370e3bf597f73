"""Values of very different size beside each other: floating point gives up, the solver doesn't."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute import random_instance
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from solver import InfeasibleError, InputError, Insider, Instance, Status, audit, protect, solve
from solver.__main__ import main
from solver.audit import find_exposures
from solver.rules import Dominance, PPercent, Threshold

Frame = dict[str, list[object]]


def mixed_frame(seed: int) -> tuple[Frame, list[str], bool]:
    """Records of two or three dimensions, of amounts from units to millions of millions."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(2, 4))
    shape = tuple(rng.integers(2, 6, dims))
    n = int(np.prod(shape) * rng.uniform(1, 4))
    spread = rng.choice([1, 3, 6, 9])
    value = np.minimum(np.rint(np.exp(rng.normal(2, spread, n))) + rng.integers(0, 2), 1e13)
    kind = rng.integers(3)
    if kind == 1:
        value = value / 100
    frame: Frame = {f"d{i}": [str(x) for x in rng.integers(0, size, n)] for i, size in enumerate(shape)}
    if kind == 2:
        value = value * rng.choice([1, 1, 1, -1], n)
    return {**frame, "v": value.tolist()}, [f"d{i}" for i in range(dims)], bool(kind == 2)


# On the first the simplex ended without a status.
@pytest.mark.parametrize("seed", [13, 26])
def test_mixed_magnitudes_are_protected(seed: int) -> None:
    frame, dims, losses = mixed_frame(seed)
    rules = [[Threshold(3), PPercent(10)], [Dominance(1, 80)], [Threshold(2)]][seed % 3]
    result = protect(frame, dims, {}, "v", rules, negative_values=losses, seed=seed)
    assert result.audit.ok
    assert too_close(result.problem.instance, np.asarray(result.solution.hidden)) == []


def too_close(instance: Instance, hidden: np.ndarray) -> list[str]:
    """Cells that a linear program of another make doesn't get as far from their values as they must be."""
    cells = np.flatnonzero(hidden)
    shape = (len(instance.rhs), instance.n)
    relations = sparse.csr_array((instance.coefs, instance.indices, instance.indptr), shape=shape)[:, cells]
    low = np.maximum(instance.lower_bound[cells] - instance.value[cells], -1e30)
    high = np.minimum(instance.upper_bound[cells] - instance.value[cells], 1e30)
    found = []
    for k, cell in enumerate(cells.tolist()):
        for side, level in ((-1, instance.lpl[cell]), (1, instance.upl[cell])):
            if level <= 0:
                continue
            # In units of the level, and no farther than its hundred thousandfold: less is still a proof.
            bounds = np.stack([np.clip(low / level, -1e5, 0), np.clip(high / level, 0, 1e5)], axis=1)
            cost = np.where(np.arange(len(cells)) == k, -side, 0)
            reached = linprog(
                cost, A_eq=relations, b_eq=np.zeros(relations.shape[0]), bounds=bounds, method="highs"
            )
            if reached.status != 0 or -reached.fun < 1 - 1e-6:
                found.append(f"{instance.name(cell)} {side:+d}")
    return found


@pytest.mark.parametrize("method", ["exact", "auto", "lp"])
def test_a_relation_that_nothing_can_meet_is_infeasible(method: str) -> None:
    """Its cut has no column, which left HiGHS without a status."""
    inf = np.inf
    relations = [
        [0.015625, 512.0, 0.125, 64.0, 0, 0],
        [-3.0, 0, 0.03125, -6.0, 0, 0],
        [-0.00390625, -0.001953125, 16.0, 256.0, 256.0, -64.0],
    ]
    instance = Instance.from_arrays(
        [12616466432.0, 8388608.0, 3670016.0, 14680064.0, 88.0, 2048.0],
        relations,
        rhs=[5432082432.0, -37937364992.0, 3767408640.0],
        status=list("sssuus"),
        lower_bound=[12603849965.568, 8388608.0, 3669016.0, 0.0, -912.0, 1024.0],
        upper_bound=[12629082898.432, 8396996.608, inf, inf, 176.0, 3072.0],
        lpl=[0, 0, 0, 14680064.0, 0, 0],
        upl=[0, 0, 0, 7340032.0, 8.8, 0],
    )
    with pytest.raises(InfeasibleError, match="cell 3"):
        solve(instance, method)


@pytest.mark.parametrize("size", [1e101, 1e300])
@pytest.mark.parametrize("what", ["value", "weight"])
def test_what_no_sum_of_doubles_holds_is_refused(size: float, what: str) -> None:
    value = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [5.0, 7.0, 12.0]]) * (size if what == "value" else 1)
    relations = np.zeros((6, 9))
    for k, line in enumerate(([0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8])):
        relations[k, line] = (1, 1, -1)
    weight, status = np.full(9, size if what == "weight" else 1.0), list("usssssssz")
    with pytest.raises(InputError, match=f"{what} is beyond 1e100"):
        Instance.from_arrays(value.ravel(), relations, status=status, weight=weight, tolerance=1e295)
    frame: Frame = {"a": ["x", "y"], "b": ["x", "y"], "v": [size, 2.0]}
    with pytest.raises(InputError):
        protect(frame, ["a", "b"], {}, "v", [Dominance(1, 80)])


def _scaled(size: str) -> dict[str, Any]:
    """A small table of two relations, the second one in coefficients of a size."""
    values = {"t": 100.0, "a": 30.0, "b": 70.0, "c": 10.0, "d": 20.0}
    status = dict.fromkeys(values, "s") | {"a": "u", "t": "z"}
    cells = [
        {"id": name, "value": value, "status": status[name], "lb": 0, "lpl": 3 * (name == "a"), "upl": 3.0}
        for name, value in values.items()
    ]
    equations = [
        {"total": "t", "parts": [[1, "a"], [1, "b"]]},
        {"total": None, "parts": [[f"-{size}", "a"], [size, "c"], [size, "d"]]},
    ]
    return {"case_type": "csp", "cells": cells, "equations": equations}


@pytest.mark.parametrize("size", ["1.1e15", "1e17", "1e300", "1e400"])
def test_a_coefficient_that_no_program_takes_is_named(
    size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every format with file, relation and cell, before anything is computed."""
    case, jj = tmp_path / "table.json", tmp_path / "table.jj"
    case.write_text(json.dumps(_scaled(size)), "utf-8")
    jj.write_text(
        "0\n3\n0 30 30 u 0 99 3 3 0\n1 10 10 s 0 99 0 0 0\n2 20 20 s 0 99 0 0 0\n"
        f"2\n0 0 :\n0 3 : 0 (-{size}) 1 ({size}) 2 ({size})\n",
        "utf-8",
    )
    for path, cell in ((case, "a"), (jj, "0")):
        for command in ("solve", "audit", "adjust"):
            assert main([command, str(path)]) == 2
            told = capsys.readouterr().err
            assert f"{path}, cell {cell}: relation 1: the coefficient -" in told
            assert "is beyond 1e15 (and 2 more), more than linear programs take. Divide" in told
    matrix = np.array([[1.0, 0.0, 0.0], [-float(size), float(size), float(size)]])
    with pytest.raises(InputError, match="cell 0: relation 1: the coefficient"):
        Instance.from_arrays([0.0, 0.0, 0.0], matrix, status=["s", "s", "s"])


@pytest.mark.parametrize("size", ["1e-300", "1e-14", "1e-6", "1e6", "1e15"])
@pytest.mark.parametrize("method", ["auto", "exact", "shortest-path"])
def test_coefficients_up_to_the_greatest_are_solved(size: str, method: str) -> None:
    instance = Instance.from_case(_scaled(size))
    solution = solve(instance, method)
    assert audit(instance, solution.hidden).ok
    assert solution.cost == solve(Instance.from_case(_scaled("1")), method).cost


@pytest.mark.parametrize("size", ["1e-300", "1e-14", "1e-9", "1", "1e9", "1e15"])
def test_a_relation_tells_the_same_in_any_multiple(size: str) -> None:
    """Programs drop small coefficients: what a relation of small ones alone gives away was called safe."""
    instance = Instance.from_case(_scaled(size))
    report = audit(instance, np.array([False, True, True, False, False]))
    (exposure,) = report.exposures
    assert report.complete
    assert exposure.interval == (30.0, 30.0)
    # The proof is of relations as they are written: they add up to the cell alone.
    for side, proof in zip((-1, 1), exposure.certificate, strict=True):
        moved = instance.matrix.T @ np.array([proof.get(relation, 0.0) for relation in range(2)])
        assert moved[1:3] == pytest.approx([side, 0.0])


@pytest.mark.parametrize("row", [1e-13, 1e-7, 1.0, 1e2])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e11, 2e12, 1e13])
def test_the_coefficient_of_a_shown_cell_says_nothing_of_the_others(large: float, row: float) -> None:
    """Cell 0 stays within 9 and 11, as cell 3 within 4 and 6, whatever is hidden besides."""
    matrix = np.array([[1, 1, 1, 0, 0, 0, large], [0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0]])
    matrix[0] *= row
    values = np.array([10.0, 20, 30, 5, 4, 4, 1])
    instance = Instance.from_arrays(
        values,
        matrix,
        rhs=matrix @ values,
        status=list("usssssz"),
        lower_bound=[0, 0, 0, 4, 0, 0, 0],
        upper_bound=[99, 99, 99, 6, 9, 9, 9],
        lpl=[5, 0, 0, 0, 0, 0, 0],
        upl=[5, 0, 0, 0, 0, 0, 0],
    )
    for count in (4, 6):
        report = audit(instance, np.arange(7) < count)
        assert not report.ok
        assert [report.lower[0], report.upper[0]] == pytest.approx([9, 11])
    for method in ("exact", "auto", "lp"):
        with pytest.raises(InfeasibleError):
            solve(instance, method)


@pytest.mark.parametrize("method", ["exact", "auto", "lp"])
def test_a_large_coefficient_of_a_cell_that_may_be_hidden_leaves_the_others_theirs(method: str) -> None:
    """Cell 0 moves with cell 2, at a cost of 1; cell 1 hardly moves."""
    large = 5 * 2.0**39
    matrix = np.array([[-1.0, large, 5.0]])
    values = np.array([41.0, -20 * 2.0**-39, -17.0])
    instance = Instance.from_arrays(
        values,
        matrix,
        rhs=matrix @ values,
        status=list("ssu"),
        weight=[1.0, 10_000.0, 10_000.0],
        lower_bound=[15.0, -np.inf, -np.inf],
        upper_bound=[np.inf, -16 * 2.0**-39, np.inf],
        lpl=[0, 0, 3.0],
        upl=[0, 0, 5.5],
    )
    solution = solve(instance, method)
    assert solution.hidden.tolist() == [True, False, True]
    assert audit(instance, solution.hidden).ok


def in_another_unit(instance: Instance, cells: np.ndarray, unit: float | np.ndarray) -> Instance:
    """The same instance with some cells counted in other units: nothing about it is any other."""
    factor = np.ones(instance.n)
    factor[cells] = unit
    insiders = tuple(
        replace(who, **{key: getattr(who, key) / factor[who.targets] for key in ("lpl", "upl", "spl")})
        for who in instance.insiders
    )
    return Instance.from_arrays(
        instance.value / factor,
        instance.matrix.toarray() * factor,
        status=instance.status,
        weight=instance.weight,
        rhs=instance.rhs,
        insiders=insiders,
        **{
            key: getattr(instance, key) / factor
            for key in ("lower_bound", "upper_bound", "lpl", "upl", "spl")
        },
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(-6, 40))
def test_what_an_insider_finds_out_does_not_depend_on_the_unit_of_what_it_knows(
    seed: int, power: int
) -> None:
    instance = random_instance(seed)
    assume(len(instance.insiders) > 0)
    known = np.unique(np.concatenate([who.known for who in instance.insiders]))
    targets = np.unique(np.concatenate([who.targets for who in instance.insiders] + [instance.protected]))
    other = in_another_unit(instance, np.setdiff1d(known, targets), 2.0**power)
    hidden = instance.always_hidden | (np.random.default_rng(seed).random(instance.n) < 0.5)
    verdicts = [
        {(exposure.cell, exposure.attacker) for exposure in found}
        for each in (instance, other)
        for found in (audit(each, hidden).exposures, find_exposures(each, hidden))
    ]
    assert all(verdict == verdicts[0] for verdict in verdicts)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-9, 1e-12])
def test_what_an_insider_knows_stands_still_however_small_all_values_are(unit: float) -> None:
    one = np.array([unit])
    instance = Instance.from_arrays(
        np.full(2, 10 * unit),
        np.array([[1.0, -1.0]]),
        status=["u", "u"],
        lower_bound=[0.0, 0.0],
        upper_bound=[np.inf, np.inf],
        lpl=[unit, unit],
        upl=[unit, unit],
        insiders=[Insider("owner", np.array([1]), np.array([0]), one, one, 0 * one)],
    )
    hidden = np.ones(2, dtype=np.bool_)
    named = sparse.csr_array(unit * np.array([[1.0, 1.0], [-1.0, -1.0]]))
    for found in (audit(instance, hidden).exposures, find_exposures(instance, hidden, named)):
        assert [(exposure.cell, exposure.attacker) for exposure in found] == [(0, "owner")]


@pytest.mark.parametrize("coefficient", [1.0, 1e4, 1e8, 1e10, 1e12, 1e14])
def test_a_cell_that_an_insider_knows_stands_still_however_large_its_coefficient(coefficient: float) -> None:
    """It alone keeps the outsider from the target: a hair of it moves that as far as it must."""
    value = np.array([50.0, 2.0, 50.0 + 2 * coefficient])
    one = np.ones(1)
    instance = Instance.from_arrays(
        value,
        np.array([[1.0, coefficient, -1.0]]),
        status=["u", "u", "s"],
        lpl=[5.0, 0.0, 0.0],
        upl=[5.0, 0.0, 0.0],
        lower_bound=[40.0, 0.0, 0.0],
        upper_bound=[60.0, 4.0, 1e18],
        insiders=[Insider("owner", np.array([1]), np.array([0]), 5 * one, 5 * one, 0 * one)],
    )
    hidden = instance.always_hidden
    for found in (audit(instance, hidden).exposures, find_exposures(instance, hidden)):
        # One as large as the target's stops at its own bounds, for everybody.
        beside = {"outsider"} if coefficient == 1.0 else set()
        assert {exposure.attacker for exposure in found} == {"owner"} | beside
    with pytest.raises(InfeasibleError):
        solve(instance.replace(status=np.where(hidden, instance.status, Status.SHOWN)))


@pytest.mark.parametrize("method", ["exact", "auto", "lp"])
def test_what_stands_in_the_way_is_told_where_floating_point_blames_the_wrong_cells(method: str) -> None:
    instance = random_instance(310305)
    units = 2.0 ** np.array([-20, 34, 31, 36])
    for each in (instance, in_another_unit(instance, np.array([1, 9, 10, 11]), units)):
        with pytest.raises(InfeasibleError) as caught:
            solve(each, method)
        exposed = {exposure.name for exposure in audit(each, np.array(each.may_hide)).exposures}
        assert {obstacle.cell for obstacle in caught.value.obstacles} <= exposed
