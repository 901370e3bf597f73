"""What a hidden maximum must be because no other part of a shown whole can attain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.redteam.algebra import Meaning
from app.redteam.bounds import interval_of_cells, narrowed
from app.redteam.knowledge import Knowledge, Observation
from app.redteam.maxima import told_extremes
from app.redteam.relations import build_system
from app.redteam.structure import Coordinates, PublicMeasure
from tests.redteam.world import KINDS, PLACES, every_place, kind, place, structure

LARGEST = "[Measures].[Largest]"
TOWNS = [town for towns in PLACES.values() for town in towns]


def known(seen: Mapping[tuple[str, str], float | str], aggregator: str = "max") -> Knowledge:
    """``seen``: numbers that are shown, "hidden" or "empty", by place and kind."""
    measure = PublicMeasure(LARGEST, False, False, True, 0, aggregator=aggregator)
    world = structure()
    world = replace(world, measures={**world.measures, LARGEST: measure})
    knowledge = Knowledge(world)
    knowledge.learn(
        Meaning(world, {}),
        [
            Observation(
                (LARGEST, place(p), kind(k)), None if isinstance(v, str) else v, 0.5, v == "hidden", "here"
            )
            for (p, k), v in seen.items()
        ],
    )
    return knowledge


def at(p: str, k: str = "all") -> Coordinates:
    return (LARGEST, place(p), kind(k))


@pytest.mark.parametrize("aggregator", ["max", "min"])
def test_the_one_town_that_can_attain_it_does(aggregator: str) -> None:
    turned = 1 if aggregator == "max" else -1
    seen: dict[tuple[str, str], float | str] = {("N", "all"): 1000 + 900 * turned, ("N3", "all"): "hidden"}
    seen |= {(town, "all"): 1000 + 50 * turned for town in ("N1", "N2")}
    knowledge = known(seen, aggregator)
    told, notes = told_extremes(knowledge)
    assert not notes
    exact = 1000 + 900 * turned
    assert told == {at("N3"): (exact, exact)}
    system = build_system(knowledge)
    found = narrowed(interval_of_cells(system), system, told)
    number = system.numbers[at("N3")]
    assert found.lower[number] == found.upper[number] == exact


def test_an_empty_town_attains_nothing() -> None:
    seen: dict[tuple[str, str], float | str] = {("N", "all"): 900, ("N3", "all"): "hidden", ("N1", "all"): 50}
    assert told_extremes(known(seen))[0] == {at("N3"): (-np.inf, 900)}
    told, _ = told_extremes(known({**seen, ("N2", "all"): "empty"}))
    assert told == {at("N3"): (900, 900)}


@settings(max_examples=60)
@given(st.data())
def test_intervals_are_those_of_all_worlds_with_the_same_tables(data: st.DataObject) -> None:
    """Towns and kinds, as many as can be counted through."""
    pairs = sorted(
        data.draw(st.sets(st.sampled_from(list(product(("N1", "N2", "S1"), KINDS))), min_size=1, max_size=4))
    )
    amounts = data.draw(st.lists(st.integers(1, 3), min_size=len(pairs), max_size=len(pairs)))
    cells = list(product(every_place(), ("all", *KINDS)))
    within = {
        (p, k): np.array([(p in ("all", town, town[0])) and k in ("all", of) for town, of in pairs])
        for p, k in cells
    }
    states = data.draw(
        st.lists(st.sampled_from(["shown", "hidden", "left out"]), min_size=len(cells), max_size=len(cells))
    )
    seen: dict[tuple[str, str], float | str] = {
        (t, k): "empty" for t, k in product(TOWNS, KINDS) if (t, k) not in pairs
    }
    for cell, state in zip(cells, states, strict=True):
        if within[cell].any() and state != "left out":
            seen[cell] = state if state == "hidden" else float(np.array(amounts)[within[cell]].max())
    told, _ = told_extremes(known(seen))
    grid = np.array(list(product(range(5), repeat=len(pairs))))
    largest = {cell: np.where(mine, grid, -1).max(axis=1) for cell, mine in within.items()}
    fits = np.ones(len(grid), dtype=np.bool_)
    for cell, value in seen.items():
        if not isinstance(value, str):
            fits &= largest[cell] == value
    assert fits.any()
    for (p, k), value in seen.items():
        if value == "hidden":
            lower, upper = told[at(p, k)]
            assert largest[p, k][fits].min() == max(lower, 0)
            assert largest[p, k][fits].max() == min(upper, 4)
