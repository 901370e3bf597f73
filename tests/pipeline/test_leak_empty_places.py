"""Cells that one measure shows to be empty tie those of another that stand on other sheets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pytest

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import ACTIVITIES, SIZES, TOWNS, write_office
from tests.pipeline.test_protection import Ran, sheet

PLACES = list(product(TOWNS, ACTIVITIES, SIZES))
REGIONS = {region: [town for town in TOWNS if town[0] == region.lower()] for region in "ABC"}
PUBLICATION = """
languages = ["en"]
title.en = "Small office"
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Turnover"]
with = "Firms"
weight = "value"
rules = [{ rule = "p-percent", p = 10 }]
"""
TOWN = "{[Place].[All], [Place].[Region].Members, [Place].[Town].Members}"
ACTIVITY = "{[Activity].[All], [Activity].[Activity].Members}"
SIZE = "{[Size].[All], [Size].[Size].Members}"

#: Axes on which the firms are counted, and those on which their turnover is shown.
WAYS = {
    "other table": ([(TOWN, ACTIVITY)], [(TOWN, SIZE), (ACTIVITY, SIZE)]),
    "left out": ([(f"NON EMPTY {TOWN}", "[Activity].[Activity].&[{}]")], [(TOWN, SIZE), (ACTIVITY, SIZE)]),
    "finest": (
        [("[Place].[Town].Members", "CrossJoin([Activity].[Activity].Members, [Size].[Size].Members)")],
        [(TOWN, SIZE), (ACTIVITY, SIZE)],
    ),
    "two tables": ([(TOWN, ACTIVITY), (ACTIVITY, SIZE)], [(TOWN, SIZE), (ACTIVITY, SIZE)]),
}


def rows(seed: int, filled: float, alone: float = 0.35) -> list[dict[str, object]]:
    """Firms at some of the places, at some of them one or two."""
    chance = random.Random(seed)
    pairs = [pair for pair in product(TOWNS, ACTIVITIES) if chance.random() < filled]
    made: list[dict[str, object]] = []
    for (town, activity), size in product(pairs, SIZES):
        if chance.random() < 0.7:
            for _ in range(chance.choice((1, 2)) if chance.random() < alone else chance.randint(3, 9)):
                firm = {"firm": len(made), "holding": "", "town": town, "activity": activity, "size": size}
                made.append({**firm, "turnover": chance.randint(200, 900)})
    return made


def queries(measure: str, tables: list[tuple[str, str]], activities: list[str]) -> Iterator[str]:
    for one, other in tables:
        for activity in activities if "{}" in other else ("",):
            columns = other.replace("{}", activity)
            yield f"SELECT {columns} ON COLUMNS, {one} ON ROWS FROM [Firms] WHERE ([Measures].[{measure}])"


def inside(parts: list[str]) -> np.ndarray:
    """Which places lie in a cell with these parts of a key."""
    mark = np.ones(len(PLACES), dtype=bool)
    for part in parts:
        level, member = part.split(".&[")
        member = member.rstrip("]")
        for place, names in enumerate(PLACES):
            mark[place] &= names[0] in REGIONS[member] if "[Region]" in level else member in names
    return mark


def told(ran: Ran, filled: np.ndarray) -> np.ndarray:
    """What readers know of turnover, as a basis of sums over places: what is shown, and what is empty.

    That a town has no firm of an activity is known in every way, also where no row says so.
    """
    pairs = {names[:2] for names, some in zip(PLACES, filled, strict=True) if some}
    known = [*np.eye(len(PLACES))[[names[:2] not in pairs for names in PLACES]]]
    for row, key in enumerate(ran.cells.keys(np.arange(ran.cells.n_published))):
        _, measure, *parts = key.split(" | ")
        mark = inside(parts)
        if ran.shown(row) is CellStatus.CONFIDENTIAL:
            continue
        if not (mark & filled).any():
            known.extend(np.eye(len(PLACES))[mark])
        elif "Turnover" in measure:
            known.append(mark.astype(float))
    return np.linalg.svd(np.array(known), full_matrices=False)[2][: np.linalg.matrix_rank(np.array(known))]


def groups() -> Iterator[list[tuple[str, str, str]]]:
    """Sets of places that differ in one hierarchy."""
    axes = (TOWNS, ACTIVITIES, SIZES)
    for which in range(3):
        others = [axis for number, axis in enumerate(axes) if number != which]
        for rest in product(*others):
            line = [(*rest[:which], item, *rest[which:]) for item in axes[which]]
            yield from map(list, chain(*(combinations(line, k) for k in (1, 2, 3))))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", WAYS)
def test_no_few_firms_are_told_by_empty_cells(tmp_path: Path, store: Store, way: str, seed: int) -> None:
    counted, amounts = WAYS[way]
    firms = rows(seed, filled=0.4 + 0.1 * seed)
    activities = sorted({str(firm["activity"]) for firm in firms})
    mdx = [*queries("Firms", counted, activities), *queries("Turnover", amounts, activities)]
    sheets = {f"s{number}": sheet(query) for number, query in enumerate(mdx)}
    ran = Ran(write_office(tmp_path / "office", firms, PUBLICATION, sheets=sheets), store)
    count = dict.fromkeys(PLACES, 0)
    for firm in firms:
        count[str(firm["town"]), str(firm["activity"]), str(firm["size"])] += 1
    basis = told(ran, np.array([count[place] > 0 for place in PLACES]))
    for group in groups():
        few = sum(count[place] for place in group)
        if 0 < few < 3 and all(count[place] for place in group):
            wanted = np.array([float(place in group) for place in PLACES])
            left = np.linalg.norm(wanted - basis.T @ (basis @ wanted))
            assert left > 1e-6, (group, few)


@pytest.mark.parametrize("few", [1, 2])
def test_what_several_members_tell_together_is_no_few_firms(tmp_path: Path, store: Store, few: int) -> None:
    """Two towns have two activities, which nobody else has, and a shop besides: the difference is its own."""
    chance = random.Random(few)
    sizes = {
        place: chance.randint(4, 9) for place in PLACES if (place[0] in "a1b1") == (place[1] in "farmill")
    }
    sizes["a1", "shop", "small"] = few
    firms = [
        {"firm": f"{place}{i}", "holding": "", "town": place[0], "activity": place[1], "size": place[2]}
        | {"turnover": chance.randint(200, 900)}
        for place, n in sizes.items()
        for i in range(n)
    ]
    counted, amounts = WAYS["other table"]
    mdx = [*queries("Firms", counted, []), *queries("Turnover", amounts, [])]
    sheets = {f"s{number}": sheet(query) for number, query in enumerate(mdx)}
    ran = Ran(write_office(tmp_path / "office", firms, PUBLICATION, sheets=sheets), store)
    basis = told(ran, np.array([place in sizes for place in PLACES]))
    wanted = np.array([float(place == ("a1", "shop", "small")) for place in PLACES])
    assert np.linalg.norm(wanted - basis.T @ (basis @ wanted)) > 1e-6
