"""What the labels give: relations, remainders, formulas; and the intervals that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.redteam.algebra import Meaning
from app.redteam.bounds import interval_of_cells
from app.redteam.knowledge import Knowledge, Observation
from app.redteam.relations import build_system
from app.redteam.structure import Structure
from tests.redteam.world import KINDS, PLACES, every_place, kind, place, structure, total

COUNT, SUM = "[Measures].[Count]", "[Measures].[Sum]"
TOWNS = [town for towns in PLACES.values() for town in towns]
Seen = Mapping[tuple[str, ...], float | None]


def intervals(
    world: Structure, seen: Seen, half: float = 0.5, formulas: Mapping[str, str] | None = None
) -> dict[tuple[str, ...], tuple[float, float]]:
    """The interval of each cell when ``seen`` shows these numbers (None: hidden)."""
    knowledge = Knowledge(world)
    knowledge.learn(
        Meaning(world, formulas or {}),
        [Observation(cell, value, half, value is None, "here") for cell, value in seen.items()],
    )
    system = build_system(knowledge)
    assert not system.not_understood
    found = interval_of_cells(system)
    assert not found.failed
    return {
        identity: (round(float(found.lower[n]), 6), round(float(found.upper[n]), 6))
        for identity, n in system.numbers.items()
    }


def cells(
    measure: str, pairs: Iterable[tuple[str, str, float | None]]
) -> dict[tuple[str, ...], float | None]:
    return {(measure, place(p), kind(k)): value for p, k, value in pairs}


def test_total_less_its_parts_gives_the_hidden_one() -> None:
    seen = cells(COUNT, [("N", "all", 10), ("N1", "all", 6), ("N2", "all", 3), ("N3", "all", None)])
    assert intervals(structure(), seen)[COUNT, place("N3"), kind("all")] == (1, 1)


def test_unpublished_parts_are_one_remainder() -> None:
    seen = cells(COUNT, [("N", "all", 10), ("N1", "all", 8)])
    found = intervals(structure(), seen)
    assert found[COUNT, f"{place('N2')} + {place('N3')}", kind("all")] == (2, 2)


def test_a_remainder_adds_up_in_the_other_hierarchy() -> None:
    # Of town N3 nothing is shown but the total over kinds; N's rows without it give the rest by kind.
    seen = cells(
        COUNT,
        [(p, k, 5) for p in ("N1", "N2") for k in (*KINDS,)]
        + [("N", "a", 11), ("N", "b", None), ("N", "c", None), ("N3", "all", 4)],
    )
    found = intervals(structure(), seen)
    assert found[COUNT, place("N"), kind("b")] == (10, 13)


def test_tables_without_a_common_cell_meet_in_the_total_that_neither_shows() -> None:
    seen = cells(COUNT, [("N", "all", 7), ("S", "all", None), *((("all", k, 5)) for k in KINDS)])
    assert intervals(structure(), seen)[COUNT, place("S"), kind("all")] == (8, 8)


def test_a_part_is_no_more_than_its_whole_in_cells_that_are_shown_and_in_remainders() -> None:
    world = structure()
    part = replace(world.measures[SUM], of_which=(COUNT,))
    world = replace(world, measures={**world.measures, SUM: part})
    seen = cells(COUNT, [("N", "all", 10), ("N1", "all", 6), ("N2", "all", None)])
    seen |= cells(SUM, [("N", "all", 9), ("N1", "all", None), ("N2", "all", 3)])
    found = intervals(world, seen)
    assert found[SUM, place("N1"), kind("all")] == (5, 6)
    assert found[COUNT, place("N2"), kind("all")] == (3, 4)


def test_group_and_difference_become_equations() -> None:
    formulas = {
        "[Place].[Pair]": "Aggregate({[Place].[Town].&[N1], [Place].[Town].&[S1]})",
        "[Place].[Gap]": "[Place].[Town].&[N2] - [Place].[Town].&[N3]",
    }
    world = structure(formulas)
    seen = cells(COUNT, [("N1", "all", 4), ("S1", "all", None), ("N2", "all", 9), ("N3", "all", None)])
    seen[COUNT, "[Place].[Pair]", kind("all")] = 10
    seen[COUNT, "[Place].[Gap]", kind("all")] = 7
    found = intervals(world, seen)
    assert found[COUNT, place("S1"), kind("all")] == (6, 6)
    assert found[COUNT, place("N3"), kind("all")] == (2, 2)


def test_shown_ratio_bounds_its_hidden_operand_by_its_rounding() -> None:
    world = structure({"[Measures].[Mean]": "[Measures].[Sum] / [Measures].[Count]"})
    at = (place("N1"), kind("all"))
    seen: Seen = {(COUNT, *at): 20, (SUM, *at): None, ("[Measures].[Mean]", *at): 15.2}
    assert intervals(world, seen, half=0.05)[SUM, *at] == (303, 305)


def test_growth_and_percentage_are_quotients() -> None:
    share = "100 * ([Measures].[Sum] / ([Measures].[Sum], [Place].[All]) - 1)"
    world = structure({"[Measures].[Share]": share})
    seen = cells(SUM, [("all", "all", 2000), ("N", "all", None)])
    seen["[Measures].[Share]", place("N"), kind("all")] = -75.0
    low, high = intervals(world, seen, half=0.5)[SUM, place("N"), kind("all")]
    assert (low, high) == (490, 510)


def test_rounded_sums_do_not_break_the_attack() -> None:
    seen = cells(SUM, [("N", "all", 10.0), ("N1", "all", 3.3), ("N2", "all", 3.3), ("N3", "all", 3.3)])
    seen |= cells(SUM, [("S", "all", 7.0), ("S1", "all", 5.1), ("S2", "all", None)])
    low, high = intervals(structure(), seen, half=0.05)[SUM, place("S2"), kind("all")]
    assert (low, high) == (pytest.approx(1.8), pytest.approx(2.0))


@given(
    leaves=st.lists(st.integers(0, 9), min_size=15, max_size=15),
    hidden=st.lists(st.integers(0, 31), min_size=1, max_size=14),
)
@settings(max_examples=60, deadline=None)
def test_intervals_are_those_of_the_whole_polytope(leaves: list[int], hidden: list[int]) -> None:
    """With every cell published, no knowledge of towns and kinds may say more than the relations do."""
    truth = dict(zip([(t, k) for t in TOWNS for k in KINDS], leaves, strict=True))
    every = [(p, k) for p in every_place() for k in ("all", *KINDS)]
    concealed = {every[i] for i in hidden if total(truth, *every[i]) > 0}
    seen = cells(COUNT, [(p, k, None if (p, k) in concealed else total(truth, p, k)) for p, k in every])
    found = intervals(structure(), seen)
    order = list(truth)
    matrix = np.array(
        [[float(total({t: int(t == leaf) for t in order}, *at)) for leaf in order] for at in every]
    )
    shown = np.array([at not in concealed for at in every])
    values = np.array([total(truth, *at) for at in every], dtype=float)
    for number, at in enumerate(every):
        if at not in concealed:
            continue
        low, high = found[COUNT, place(at[0]), kind(at[1])]
        for sign, edge in ((1.0, low), (-1.0, high)):
            best = linprog(
                sign * matrix[number],
                A_ub=-matrix[~shown],
                b_ub=-np.ones(int((~shown).sum())),
                A_eq=matrix[shown],
                b_eq=values[shown],
            )
            bound = sign * best.fun if best.status == 0 else sign * -np.inf
            assert edge == pytest.approx(bound, abs=1e-5)
