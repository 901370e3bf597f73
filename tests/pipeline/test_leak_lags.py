"""Last year's figure as a measure of this year gives last year's table away, and the reverse, unless tied."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Hierarchy, Level
from app.domain.known import FactRows
from app.domain.lag import Lag
from app.domain.lattice import Space, unique_rows
from app.domain.masked import CellStatus
from app.domain.nearly import bounds_nearly, nearly_at
from app.pipeline.lags import find_lags
from tests.pipeline.offices import write_csv
from tests.pipeline.test_leak_nearly import cube_of
from tests.pipeline.test_protection import Ran, sheet

CUBE = """
name = "Firms"
[facts]
file = "../data/firms.csv"
{respondent}
[[dimension]]
name = "Place"
[[dimension.hierarchy]]
all.en = "All"
[[dimension.hierarchy.level]]
name = "Town"
key = "town"
[[dimension]]
name = "Time"
[[dimension.hierarchy]]
time = true
[[dimension.hierarchy.level]]
name = "Year"
key = "year"
{quarter}
[[measure]]
name = "Turnover"
aggregator = "sum"
column = "turnover"
[[measure]]
name = "Before"
aggregator = "sum"
column = "before"
[[measure]]
name = "Other"
aggregator = "sum"
column = "other"
"""
QUARTER = '[[dimension.hierarchy.level]]\nname = "Quarter"\nkey = "quarter"\nunique = false\n'
PUBLICATION = """
languages = ["en"]
title.en = "Office"
[confidentiality]
[confidentiality.Firms."Turnover"]
weight = "value"
rules = [{ rule = "p-percent", p = 10 }]
[confidentiality.Firms."Before"]
weight = { measure = "Other" }
rules = [{ rule = "p-percent", p = 10 }]
[confidentiality.Firms."Other"]
rules = []
"""
TOWNS = tuple(f"t{number}" for number in range(14))
YEARS = (2021, 2022, 2023, 2024)
Row = dict[str, object]


def panel(seed: int, kind: str) -> list[Row]:
    """Firms over four years, each with what it sold and what it had sold in the year before."""
    chance = random.Random(seed)
    quarters = (1, 2, 3, 4) if kind == "quarters" else (1,)
    rows: list[Row] = []
    firm = 0
    for number, town in enumerate(TOWNS):
        other_weight = 1000 // (1 + number)
        for _ in range(2 if number == 7 else chance.choice((9, 10, 12))):
            firm += 1
            here = [
                year for year in YEARS if kind != "new and gone" or chance.random() > 0.04 or year == 2022
            ]
            size = chance.lognormvariate(11 + number / 7, 0.5)
            sold = {key: round(size * chance.uniform(0.6, 1.6)) for key in product((2020, *YEARS), quarters)}
            for year, quarter in product(here, quarters):
                other = year + 1 if kind == "plan" else year - 1
                before = sold.get((other, quarter), 77_777)
                if kind == "thousands":
                    before = round(before / 1000)
                if kind == "new and gone" and other not in here and other in YEARS:
                    before = 0
                rows.append(
                    {"firm": firm, "town": town, "year": year, "quarter": quarter}
                    | {"turnover": sold[year, quarter], "before": before, "other": other_weight}
                )
    return rows


def office(folder: Path, rows: list[Row], kind: str) -> Path:
    write_csv(folder / "data/firms.csv", rows)
    lines = "{[Place].[All], [Place].[Town].Members}"
    cube = CUBE.format(
        respondent="" if kind == "nobody named" else 'respondent = "firm"',
        quarter=QUARTER if kind == "quarters" else "",
    )
    texts = {"publication.toml": PUBLICATION, "cubes/firms.toml": cube}
    for measure in ("Turnover", "Before"):
        query = (
            f"SELECT {{[Time].[Year].Members}} ON 0, {lines} ON 1 FROM [Firms] WHERE ([Measures].[{measure}])"
        )
        texts[f"sheets/{measure.lower()}.toml"] = sheet(query)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("exact", 1), ("plan", 2), ("thousands", 3), ("new and gone", 4), ("quarters", 5), ("nobody named", 6)],
)
def test_no_year_is_worked_out_from_the_next(tmp_path: Path, store: Store, kind: str, seed: int) -> None:
    rows = panel(seed, kind)
    ran = Ran(office(tmp_path, rows, kind), store)
    cells, verdicts = ran.cells, ran.verdicts
    rate = 1000.0 if kind == "thousands" else 1.0
    unknown = {key: place for place, key in enumerate(product(("Turnover", "Before"), YEARS, TOWNS))}
    told, values, sensitive = [], [], []
    for number, key in enumerate(cells.keys(np.arange(cells.n_published))):
        measure, year = re.search(r"\[Measures\]\.\[(\w+)\]", key), re.search(r"\[Year\]\.&\[(\d+)\]", key)
        town = re.search(r"\[Town\]\.&\[(\w+)\]", key)
        assert measure
        assert year
        vector = np.zeros(len(unknown))
        for some in TOWNS if town is None else (town[1],):
            vector[unknown[measure[1], int(year[1]), some]] = 1.0
        if ran.release.status[number] == CellStatus.SHOWN:
            told.append(vector)
            values.append(ran.release.values[number])
        elif verdicts.sensitive[number]:
            sensitive.append((number, vector))
    limits, room = [], []
    step = 1 if kind == "plan" else -1
    for year, town in product(YEARS, TOWNS):
        if year + step not in YEARS:
            continue
        vector = np.zeros(len(unknown))
        vector[unknown["Before", year, town]] = rate
        vector[unknown["Turnover", year + step, town]] = -1.0
        there = [row for row in rows if row["town"] == town]
        miss = sum(float(str(row["before"])) * rate for row in there if row["year"] == year)
        miss -= sum(float(str(row["turnover"])) for row in there if row["year"] == year + step)
        limits += [vector, -vector]
        # Readers know that each firm misses by half of a thousand at most, and what those gone had.
        room += [500.0 * len(there) if kind == "thousands" else abs(miss)] * 2
    assert len(sensitive) > 5
    for number, vector in sensitive:
        true = cells.values[number]
        ends = []
        for sign in (1.0, -1.0):
            best = linprog(sign * vector, A_ub=np.array(limits), b_ub=room, A_eq=np.array(told), b_eq=values)
            assert best.status in (0, 3), best.message
            ends.append(sign * best.fun if best.status == 0 else -sign * np.inf)
        slack = 0.02 * true if kind == "thousands" else 1e-6 * true
        assert ends[0] <= max(true - verdicts.lpl[number], 0) + slack, (cells.keys(np.array([number])), ends)
        assert ends[1] >= true + verdicts.upl[number] - slack, (cells.keys(np.array([number])), ends)


def years(n: int) -> Hierarchy:
    keys = tuple(str(2000 + number) for number in range(n))
    levels = (Level("Year", "[Time].[Year]", {}),)
    flat = np.zeros(n, dtype=np.int32)
    return Hierarchy("Time", "Time", "[Time]", {}, levels, False, 0, keys, keys, {"en": keys}, flat - 1, flat)


def towns(n: int) -> Hierarchy:
    keys = ("all", *map(str, range(n)))
    levels = (Level("All", "[Place].[All]", {}), Level("Town", "[Place].[Town]", {}))
    parent = np.array([-1] + [0] * n, dtype=np.int32)
    depth = np.minimum(np.arange(n + 1), 1).astype(np.int32)
    return Hierarchy(
        "Place", "Place", "[Place]", {}, levels, True, 0, keys, keys, {"en": keys}, parent, depth
    )


Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def facts_of(seed: int, change: Change, n: int = 60, named: bool = True) -> tuple[FactRows, np.ndarray]:
    """Firms in three years, and how a measure of the later ones is made of what they sold before."""
    chance = np.random.default_rng(seed)
    place = chance.integers(1, 9, n)
    sold = np.round(chance.lognormal(8, 1, (3, n)))
    before = np.zeros((3, n))
    for year in (1, 2):
        before[year] = change(sold[year - 1], chance)
    cube = cube_of({"sold": "sum", "before": "sum"})
    cube = type(cube)(cube.name, cube.captions, (years(3), towns(8)), cube.measures)
    year = np.repeat(np.arange(3), n)
    who = np.tile(np.arange(n), 3).astype(np.uint64) if named else None
    leaf = (year.astype(np.int32), np.tile(place, 3).astype(np.int32))
    return FactRows(cube, leaf, (sold.reshape(-1), before.reshape(-1)), who), place


def found_in(facts: FactRows) -> list[tuple[str, str, dict[int, int], set[float]]]:
    names = [measure.name for measure in facts.cube.measures]
    return [
        (
            names[lag.made],
            names[lag.base],
            {t: int(lag.source[t]) for t in np.flatnonzero(lag.source >= 0)},
            set(lag.rate[lag.source >= 0].tolist()),
        )
        for lag in find_lags(facts.cube, facts)
    ]


def test_what_a_measure_was_before_is_found_where_records_say_it() -> None:
    def same(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return sold

    def few_wrong(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return np.where(np.arange(len(sold)) % 30 == 3, 5.0, sold)

    def thousands(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return np.round(sold / 100)

    def near(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return np.round(sold * chance.uniform(0.9, 1.1, len(sold)))

    def other(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return np.round(chance.lognormal(8, 1, len(sold)))

    def ones(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        return np.ones(len(sold))

    for change, rate in ((same, 1.0), (few_wrong, 1.0), (thousands, 0.01)):
        for named in (True, False):
            if named or change is not few_wrong:
                found = found_in(facts_of(1, change, named=named)[0])
                assert found == [("before", "sold", {1: 0, 2: 1}, {rate})] or (
                    found == [("sold", "before", {0: 1, 1: 2}, {1 / rate})]
                ), (change, named, found)
    for change in (near, other, ones):
        assert not found_in(facts_of(1, change)[0])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.booleans(), st.booleans())
def test_what_is_said_of_cells_is_true(seed: int, wrong: int, rounded: bool, named: bool) -> None:
    def change(sold: np.ndarray, chance: np.random.Generator) -> np.ndarray:
        before = np.round(sold / 10) if rounded else sold.copy()
        before[chance.choice(len(sold), wrong, replace=False)] += np.round(chance.lognormal(5, 2, wrong))
        return before

    facts, place = facts_of(seed, change, named=named)
    space = Space.of(facts.cube)
    group = space.number(2, [(1, 1.0), (2, 1.0)], "")
    table = np.array(list(product((0, 1), range(3), (*range(9), group))), dtype=np.int32)
    lags = find_lags(facts.cube, facts)
    assert lags or not named
    for lag in lags:
        assert isinstance(lag, Lag)
        sums = lag.named(space, table)
        coords = unique_rows(space, np.concatenate([table, sums.coords]))[0]

        def value(cell: np.ndarray) -> float:
            own = cell[2] <= 8
            inside = [int(cell[2])] if own else [m for m, _ in space.extra(2, int(cell[2])).terms or ()]
            here = (facts.leaf[0] == cell[1]) & (np.isin(np.tile(place, 3), inside) | (0 in inside))
            return float(facts.amounts[cell[0]][here].sum())

        values = np.array([value(cell) for cell in coords])
        nearly = nearly_at(space, sums, lag.room, lag.leaf, coords)
        assert len(nearly.room) == (lag.source >= 0).sum() * 10
        gap = nearly.equations.matrix(len(coords)) @ values
        assert np.all(np.abs(gap) <= nearly.room + 1e-6 * (1 + values.max()))
        bounds = bounds_nearly(values, (nearly,))
        whole = np.concatenate([values, bounds.slack])
        assert np.all(bounds.slack >= 0)
        assert np.allclose(bounds.equations.matrix(len(whole)) @ whole, bounds.equations.rhs)
