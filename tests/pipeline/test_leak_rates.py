"""A tax that is the turnover times the rate of the activity tells the turnover, and the reverse."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Hierarchy, Level
from app.domain.known import FactRows
from app.domain.lattice import Space, unique_rows
from app.domain.masked import CellStatus
from app.domain.nearly import bounds_nearly, nearly_at
from app.domain.rates import Rates
from app.pipeline.rates import find_rates
from tests.pipeline.offices import ACTIVITIES, CUBE, PUBLICATION, TOWNS, firms, write_office
from tests.pipeline.test_leak_nearly import cube_of
from tests.pipeline.test_protection import Ran, sheet

RATE = {"farm": 0.04, "mill": 0.1, "shop": 0.21, "bank": 0.01}
MEASURE = '[[measure]]\nname = "Tax"\naggregator = "sum"\ncolumn = "tax"\n'
RULES = "".join(
    f'[confidentiality.Firms."{name}"]\nweight = "value"\nrules = [{{ rule = "p-percent", p = 10 }}]\n'
    for name in ("Turnover", "Tax")
)
QUERY = """SELECT {{[Activity].[All], [Activity].[Activity].Members}} ON 0,
  {{[Place].[All], [Place].[Town].Members}} ON 1 FROM [Firms] WHERE ([Measures].[{name}])"""


@pytest.mark.parametrize("digits", [2, 0])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_turnover_is_worked_out_from_the_tax(tmp_path: Path, store: Store, seed: int, digits: int) -> None:
    rows = firms(seed, 120)
    for row in rows:
        row["turnover"] = int(str(row["turnover"])) * 100
        row["tax"] = round(int(str(row["turnover"])) * RATE[str(row["activity"])], digits)
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index('[confidentiality.Firms."Turnover"]')] + RULES,
        CUBE.replace("[[calculated]]", f"{MEASURE}[[calculated]]", 1),
        {name: sheet(QUERY.format(name=name)) for name in ("Turnover", "Tax")},
    )
    ran = Ran(office, store)
    (cells,) = ran.crawl.cubes
    (verdicts,) = ran.primaries.cubes
    leaves = [(town, activity) for town in TOWNS for activity in ACTIVITIES]
    vectors, told, values, sensitive = [], [], [], []
    most = np.full(len(leaves), np.inf)
    for row, key in enumerate(cells.keys(np.arange(cells.n_published))):
        town, activity = (re.search(rf"\[{level}\]\.&\[(\w+)\]", key) for level in ("Town", "Activity"))
        here = [
            (town is None or town[1] == place) and (activity is None or activity[1] == kind)
            for place, kind in leaves
        ]
        rate = [RATE[leaf[1]] if "[Tax]" in key else 1.0 for leaf in leaves]
        vectors.append(np.array(here) * np.array(rate))
        if ran.release.status[row] == CellStatus.EMPTY:
            most[np.array(here)] = 0
        elif ran.release.status[row] == CellStatus.SHOWN:
            told.append(vectors[-1])
            values.append(cells.values[row])
        elif verdicts.sensitive[row]:
            sensitive.append(row)
    # Each record's tax is rounded; all of them together miss by so much.
    room = len(rows) * 10.0**-digits
    matrix, seen = np.array(told), np.array(values)
    limits = np.vstack([matrix, -matrix]), np.concatenate([seen + room, room - seen])
    bounds = np.stack([np.zeros(len(leaves)), most], axis=1)
    assert len(sensitive) > 3
    for row in sensitive:
        true = cells.values[row]
        low, high = (
            sign * best.fun if best.status == 0 else -sign * np.inf
            for sign in (1.0, -1.0)
            for best in [linprog(sign * vectors[row], A_ub=limits[0], b_ub=limits[1], bounds=bounds)]
        )
        assert low <= true - verdicts.lpl[row] + 1, cells.keys(np.array([row]))
        assert high >= true + verdicts.upl[row] - 1, cells.keys(np.array([row]))


def kinds_of(members: int) -> Hierarchy:
    keys = ("all", *map(str, range(members)))
    levels = (Level("All", "[Kind].[All]", {}), Level("Kind", "[Kind].[Kind]", {}))
    parent = np.array([-1] + [0] * members, dtype=np.int32)
    depth = np.minimum(np.arange(members + 1), 1).astype(np.int32)
    return Hierarchy("Kind", "Kind", "[Kind]", {}, levels, True, 0, keys, keys, {"en": keys}, parent, depth)


def rates_in(kind: np.ndarray, columns: dict[str, np.ndarray]) -> tuple[FactRows, tuple[Rates, ...]]:
    cube = cube_of({name: "count" if name == "count" else "sum" for name in columns})
    cube = replace(cube, hierarchies=(kinds_of(int(kind.max())),))
    facts = FactRows(cube, (kind.astype(np.int32),), tuple(columns.values()), None)
    return facts, find_rates(cube, facts)


def test_rates_are_found_where_records_say_them() -> None:
    chance = np.random.default_rng(1)
    kind = chance.integers(1, 5, 300)
    ones, amount = np.ones(300), np.round(chance.lognormal(8, 1, 300))
    share = np.array([0, 0.04, 0.21, 0.1, 0.0])[kind]
    for tax in (np.round(share * amount, 2), np.round(share * amount), share * amount):
        (found,) = rates_in(kind, {"amount": amount, "tax": tax, "count": ones})[1]
        assert (found.base, found.made) == (0, 1)
        assert np.allclose(found.rate[1:], [0.04, 0.21, 0.1, 0.0], atol=0.001)
    (found,) = rates_in(kind, {"count": ones, "fours": 1.0 * (kind == 4)})[1]
    assert found.rate[1:].tolist() == [0, 0, 0, 1]
    assert not found.room.any()
    tax = np.round(share * amount, 2) + 9 * (np.arange(300) == 77)
    (found,) = rates_in(kind, {"amount": amount, "tax": tax, "count": ones})[1]
    assert found.room[77] > 8
    # Rates that are the same in all, those of a third of the records, and what a few say by chance.
    assert not rates_in(kind, {"amount": amount, "tax": np.round(0.21 * amount, 2)})[1]
    mixed = np.where(np.arange(300) % 3, share * amount, amount)
    assert not rates_in(kind, {"amount": amount, "tax": mixed})[1]
    assert not rates_in(np.arange(1, 301), {"amount": amount, "tax": mixed})[1]
    rare = chance.integers(0, 2, 12).astype(float)
    assert not rates_in(np.arange(12) % 6 + 1, {"amount": amount[:12], "tax": rare * amount[:12]})[1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(0, 2), st.integers(0, 2))
def test_what_is_said_of_cells_is_true(seed: int, members: int, digits: int, wrong: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(30, 200))
    kind = np.concatenate([[members], chance.integers(1, members + 1, n - 1)])
    amount = np.round(chance.lognormal(7, 1.5, n) * (chance.random(n) < 0.8), digits)
    rate = chance.choice([0.0, 0.04, 0.21, 1 / 3, 2.0], members + 1)
    tax = np.round(rate[kind] * amount, digits)
    tax[chance.choice(n, wrong, replace=False)] += np.round(chance.lognormal(3, 3, wrong))
    facts, found = rates_in(kind, {"amount": amount, "tax": tax})
    space = Space.of(facts.cube)
    group = space.number(1, [(1, 1.0), (2, 1.0)], "")
    table = np.array([[m, k] for m in (0, 1) for k in (*range(members + 1), group)], dtype=np.int32)
    for item in found:
        coords = unique_rows(space, np.concatenate([table, item.named(space, table).coords]))[0]

        def value(cell: np.ndarray) -> float:
            own = cell[1] <= members
            inside = [int(cell[1])] if own else [m for m, _ in space.extra(1, int(cell[1])).terms or ()]
            return float(facts.amounts[cell[0]][np.isin(kind, inside) | (0 in inside)].sum())

        values = np.array([value(cell) for cell in coords])
        named = item.named(space, coords)
        nearly = nearly_at(space, named, item.room, facts.leaf, coords)
        gap = nearly.equations.matrix(len(coords)) @ values
        assert np.all(np.abs(gap) <= nearly.room + 1e-6 * (1 + values.max()))
        bounds = bounds_nearly(values, (nearly,))
        whole = np.concatenate([values, bounds.slack])
        assert np.all(bounds.slack >= 0)
        assert np.allclose(bounds.equations.matrix(len(whole)) @ whole, bounds.equations.rhs)
