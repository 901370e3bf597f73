"""Weights of any size: a proof holds of tiny ones, and comes about of huge ones, within the work allowed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solver import Instance, Progress, audit, solve
from solver.generate import generate

FACTORS = pytest.mark.parametrize("factor", [1e-14, 1e-9, 1e12, 1e20, 1e30])
METHODS = pytest.mark.parametrize("method", ["exact", "auto", "light"])


@METHODS
@FACTORS
def test_weights_in_another_unit_give_the_same_cost_and_proof(method: str, factor: float) -> None:
    for shape, seed in (("5x5x3", 0), ("6x5", 1), ("3.2x5", 2)):
        instance = generate("random", shape, primaries=6, seed=seed)
        plain = solve(instance, method)
        heard: list[Progress] = []
        told = solve(instance.replace(weight=instance.weight * factor), method, progress=heard.append)
        if method != "light":
            assert (told.status, plain.status) == ("optimal", "optimal")
            assert told.cost == pytest.approx(plain.cost * factor, rel=1e-9)
        assert told.lower_bound <= told.cost
        assert told.cost >= plain.lower_bound * factor * (1 - 1e-9)
        assert told.cost == pytest.approx(instance.cost(told.hidden) * factor, rel=1e-9)
        for lower, upper in [(found.lower, found.upper) for found in heard] + [t[1:] for t in told.trace]:
            assert lower <= upper * (1 + 1e-9)
            assert upper >= told.cost * (1 - 1e-9)


@pytest.mark.parametrize(
    "parts",
    [
        (2.3e30, 2e30),
        (5.7e30, 1.3e31),
        (3.5e27, 7.9e23),
        (1.1e19, 6.7e22),
        (1634.0, 2648983253.0),
        (2.72593326e30, 3.98170960e30),
    ],
)
def test_a_few_cells_of_any_size_are_settled_at_once(parts: tuple[float, ...]) -> None:
    value = np.array([*parts, sum(parts)])
    relations = np.array([[1.0, 1.0, -1.0]])
    for sensitive in range(3):
        status = np.array(["s"] * 3)
        status[sensitive] = "u"
        level = np.where(status == "u", value.min() / 20, 0.0)
        instance = Instance.from_arrays(
            value,
            relations,
            status=status.tolist(),
            lower_bound=value / 2,
            upper_bound=value * 2,
            lpl=level,
            upl=level,
            weight=value,
            tolerance=1e20,
        )
        found = solve(instance, work_limit=1.0)
        assert found.status == "optimal"
        assert found.statistics["work"] < 0.1
        assert found.cost == min(value[np.arange(3) != sensitive])


def of_very_different_size(seed: int) -> Instance:
    """42 cells from units to millions of millions."""
    rng = np.random.default_rng(seed)
    inner = np.round(10.0 ** rng.uniform(0, [9, 12, 15][seed % 3], (5, 6)))
    table = np.zeros((6, 7))
    table[:5, :6], table[5, :6], table[:5, 6], table[5, 6] = inner, inner.sum(0), inner.sum(1), inner.sum()
    lines = []
    for row in range(6):
        lines.append(np.zeros((6, 7)))
        lines[-1][row] = [1, 1, 1, 1, 1, 1, -1]
    for column in range(7):
        lines.append(np.zeros((6, 7)))
        lines[-1][:, column] = [1, 1, 1, 1, 1, -1]
    sensitive = np.zeros((6, 7), dtype=np.bool_)
    sensitive[:5, :6].flat[rng.choice(30, 8, replace=False)] = True
    level = np.where(sensitive, table / 10, 0.0).ravel()
    return Instance.from_arrays(
        table.ravel(),
        np.array([line.ravel() for line in lines]),
        status=np.where(sensitive, "u", "s").ravel().tolist(),
        lower_bound=np.zeros(42),
        upper_bound=2 * table.ravel(),
        lpl=level,
        upl=level,
        weight=np.maximum(table.ravel(), 1.0),
        tolerance=1e3,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_work_is_about_seconds_on_small_tables_too(seed: int, limit: float) -> None:
    instance = of_very_different_size(seed)
    began = time.process_time()
    found = solve(instance, work_limit=limit)
    # What is made of it is a fifth more at most, on a quiet machine; others are slower.
    assert time.process_time() - began <= 4 * limit + 0.4
    assert audit(instance, found.hidden).ok


def test_a_gap_that_arithmetic_takes_back_is_closed() -> None:
    """Both others are needed; the dear one's weight is whole, and the bound a thousand-millionth below."""
    for value, level, weight in (
        ([1634.0, 2648983253.0], [0.1, 0.001], [1634.0, 2648983253.0]),
        ([2.72593326e30, 3.9817096e30], [0.3, 0.3], [2.72593326e30, 3.9817096e30]),
    ):
        cells = np.array([*value, sum(value)])
        instance = Instance.from_arrays(
            cells,
            np.array([[1.0, 1.0, -1.0]]),
            status=list("ssu"),
            lower_bound=cells / 2,
            upper_bound=cells * 1.5,
            lpl=np.array([0.0, 0.0, level[0] * cells[2]]),
            upl=np.array([0.0, 0.0, level[1] * cells[2]]),
            weight=np.array([*weight, cells[2]]),
            tolerance=1e20,
        )
        found = solve(instance, work_limit=5.0)
        assert found.status == "optimal"
        assert found.statistics["work"] < 1.0
