"""Limits of seconds, on a clock that runs with every look at it: no machine is too slow for that."""

from __future__ import annotations

import time
from itertools import count

import numpy as np
import pytest

from solver import audit, solve
from solver.generate import generate
from solver.heuristics.methods import HEURISTICS
from solver.instance import Insider, Instance

TICK = 0.02
# What a run may take beyond its limit: the answer's last steps look at the clock a few times.
GRACE = 1.0


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock takes a moment, and nothing else does."""
    ticks = count()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks) * TICK)
    return


def with_insiders(instance: Instance) -> Instance:
    """Every sensitive cell has a contributor who knows it and must not learn the others."""
    own = instance.protected
    insiders = []
    for cell in own.tolist():
        others = own[own != cell]
        levels = (instance.lpl[others], instance.upl[others], instance.spl[others])
        insiders.append(Insider(f"knows {cell}", np.array([cell]), others, *(level / 2 for level in levels)))
    return instance.replace(insiders=tuple(insiders))


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("limit", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("method", ["auto", "exact", *HEURISTICS])
def test_every_method_keeps_its_limit_with_an_audited_answer(method: str, limit: float) -> None:
    instance = generate("random", "7x6x5", primaries=15, seed=1)
    found = solve(instance, method, time_limit=limit)
    assert found.seconds <= limit * 1.05 + GRACE
    assert audit(instance, found.hidden).ok
    assert found.lower_bound <= found.cost


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("limit", [0.1, 2.0, 10.0])
@pytest.mark.parametrize("shape", ["30x25", "4.4x5.3x4", "4x4x4x4"])
def test_limits_are_kept_on_every_kind_of_table(shape: str, limit: float) -> None:
    instance = generate("random", shape, primaries=20, seed=2)
    found = solve(instance, time_limit=limit)
    assert found.seconds <= limit * 1.05 + GRACE
    assert audit(instance, found.hidden).ok


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("limit", [0.1, 2.0, 10.0])
def test_limits_are_kept_with_many_insiders(limit: float) -> None:
    instance = with_insiders(generate("random", "8x7x3", primaries=12, level=0.05, seed=3))
    found = solve(instance, time_limit=limit)
    assert found.seconds <= limit * 1.05 + GRACE
    assert audit(instance, found.hidden).ok


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("method", ["auto", "exact", "light", "gauss"])
def test_next_to_no_time_is_exceeded_by_little(
    method: str, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In seconds of the processor: hundreds of cells to protect in four dimensions, with slow programs."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    instance = generate("p-percent", "6x6x6x6", seed=1)
    found = solve(instance, method, time_limit=limit)
    assert found.seconds <= limit * 1.05 + GRACE


@pytest.mark.usefixtures("ticking")
def test_limits_are_kept_where_the_levels_slide() -> None:
    plain = generate("random", "8x8x4", primaries=15, seed=4)
    sliding = plain.lpl + plain.upl
    instance = plain.replace(lpl=plain.lpl * 0, upl=plain.upl * 0, spl=sliding)
    found = solve(instance, time_limit=2.0)
    assert found.seconds <= 2.0 * 1.05 + GRACE
    assert audit(instance, found.hidden).ok
