"""Measures that add up but for rounding, or but for one record, give one another away, unless tied."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Cube, Measure
from app.domain.known import FactRows
from app.domain.nearly import Tendency, bounds_nearly, nearly_at, sums_at
from app.pipeline.nearly import find_nearly
from tests.pipeline.offices import CUBE, PUBLICATION, write_office
from tests.pipeline.test_equation import TREES, make_space
from tests.pipeline.test_protection import Ran, sheet

NAMES = ("Turnover", "Home", "Abroad")
MEASURE = '[[measure]]\nname = "{name}"\naggregator = "sum"\ncolumn = "{column}"\n'
RULES = "".join(
    f'[confidentiality.Firms."{name}"]\nrules = [{{ rule = "threshold", n = 3, p = 20 }}]\n' for name in NAMES
)
SIZES = {"a1": 2, "a2": 8, "a3": 9, "b1": 12, "b2": 9, "c1": 10}


def firms_selling(seed: int, kind: str) -> list[dict[str, object]]:
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for town, n in SIZES.items():
        share = chance.random()
        for _ in range(n):
            exact = chance.uniform(20_000, 200_000)
            whole, home = round(exact), round(exact * share)
            abroad = round(exact - exact * share) if kind == "rounding" else whole - home
            rows.append(
                {"firm": len(rows), "holding": "", "town": town, "activity": "farm", "size": "small"}
                | {"turnover": whole, "home": home, "abroad": abroad}
            )
    if kind == "one record":
        rows[20]["abroad"] = 7
    return rows


@pytest.mark.parametrize("published", [NAMES, NAMES[:2], NAMES[1:]])
@pytest.mark.parametrize("kind", ["rounding", "one record"])
def test_no_part_is_worked_out_from_the_other_and_the_whole(
    tmp_path: Path, store: Store, published: tuple[str, ...], kind: str
) -> None:
    rows = firms_selling(4, kind)
    more = "".join(MEASURE.format(name=name, column=name.lower()) for name in NAMES[1:])
    measures = ", ".join(f"[Measures].[{name}]" for name in published)
    query = f"SELECT {{{measures}}} ON 0, {{[Place].[All], [Place].[Town].Members}} ON 1 FROM [Firms]"
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index('[confidentiality.Firms."Turnover"]')] + RULES,
        CUBE.replace("[[calculated]]", f"{more}[[calculated]]", 1),
        {"a": sheet(query)},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    lines = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = ran.release.values[layout.cell].reshape(-1, len(published))
    leaves = [(name, town) for name in NAMES for town in SIZES]
    told, values, most, room = [], [], [], []
    for line, numbers in zip(lines, seen.tolist(), strict=True):
        for name, value in zip(published, numbers, strict=True):
            if not np.isnan(value):
                told.append([name == m and line in ("All", town) for m, town in leaves])
                values.append(value)
    for town, n in SIZES.items():
        # Readers know that each firm misses by a euro at most, and the one record that doesn't.
        sums = {name: sum(float(str(r[name.lower()])) for r in rows if r["town"] == town) for name in NAMES}
        miss = abs(sums["Turnover"] - sums["Home"] - sums["Abroad"])
        row = np.array([(t == town) * (1.0 if m == "Turnover" else -1.0) for m, t in leaves])
        most += [row, -row]
        room += [max(n if kind == "rounding" else 0, miss)] * 2
    for name in NAMES:
        wanted = np.array([float(leaf == (name, "a1")) for leaf in leaves])
        truth = sum(float(str(row[name.lower()])) for row in rows if row["town"] == "a1")
        top = linprog(-wanted, A_ub=most, b_ub=room, A_eq=told, b_eq=values)
        assert top.status == 3 or -top.fun >= 1.2 * truth - 2 * len(rows), name


def cube_of(kinds: dict[str, str]) -> Cube:
    measures = tuple(
        Measure(name, f"[Measures].[{name}]", {"en": name}, kind, {}, "0", 0, False)
        for name, kind in kinds.items()
    )
    return Cube("C", {"en": "C"}, (), measures)


def found_in(columns: dict[str, np.ndarray]) -> list[tuple[dict[str, float], np.ndarray]]:
    cube = cube_of({name: "count" if name == "count" else "sum" for name in columns})
    found = find_nearly(cube, FactRows(cube, (), tuple(columns.values()), None))
    names = list(columns)
    return [({names[place]: factor for place, factor in item.terms}, item.room) for item in found]


def test_what_nearly_all_records_say_is_found_with_what_they_miss_by() -> None:
    chance = np.random.default_rng(1)
    a, b, c = (np.round(chance.lognormal(9, 1, 400), 2) for _ in range(3))
    ones = np.ones(400)
    ((terms, room),) = found_in({"a": a, "b": b, "all": np.round(a + b), "c": c, "count": ones})
    assert {name: abs(factor) for name, factor in terms.items()} == {"a": 1, "b": 1, "all": 1}
    assert 0.4 < room[0] <= 0.51
    assert np.all(room == room[0])
    ((terms, room),) = found_in({"a": a, "thousands": np.round(a / 1000, 1), "count": ones})
    assert set(terms) == {"a", "thousands"}
    wrong = a + b + 7 * (np.arange(400) == 30)
    ((terms, room),) = found_in({"a": a, "b": b, "all": wrong})
    assert set(terms) == {"a", "b", "all"}
    assert np.flatnonzero(room).tolist() == [30]
    # Of two measures that agree by and by, by chance, or in part nothing is said.
    assert not found_in({"a": a, "b": b, "c": c, "count": ones})
    assert not found_in({"a": a, "other": a * chance.uniform(0.99, 1.01, 400), "count": ones})
    assert not found_in({"a": a, "mostly": np.where(np.arange(400) % 20, a, b)})
    few = chance.integers(0, 3, (2, 400)).astype(float)
    assert not found_in({"few": few[0], "others": few[1], "count": ones})
    assert not found_in({"a": a[:20], "b": b[:20], "all": np.round(a + b)[:20]})
    # What holds in every record is an identity.
    assert not found_in({"a": np.round(a), "b": np.round(b), "all": np.round(a) + np.round(b)})


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0, 1, 2]), st.integers(0, 4))
def test_no_record_misses_by_more_than_is_said(seed: int, k: int, digits: int, wrong: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(30, 300))
    columns = {str(place): chance.lognormal(7, 1.5, n) * (chance.random(n) < 0.8) for place in range(k)}
    factors = chance.choice([0.21, 1.0, 1.0, 3.0], k)
    whole = sum(factor * column for factor, column in zip(factors, columns.values(), strict=True))
    columns = {name: np.round(column, digits) for name, column in columns.items()} | {"all": whole.round(2)}
    columns["all"][chance.choice(n, wrong, replace=False)] += chance.lognormal(3, 3, wrong)
    for terms, room in found_in(columns):
        left = sum(factor * columns[name] for name, factor in terms.items())
        assert np.all(np.abs(left) <= room + 1e-8 * (1 + whole))


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_a_cell_misses_by_no_more_than_its_records(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    space = make_space(kinds)
    space = type(space)(space.trees, np.array([True] * 3), [["a", "b", "c"], *space.names[1:]])
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = int(chance.integers(1, 12))
    leaf = [chance.integers(0, tree.size, n).astype(np.int32) for tree in space.trees]
    amount = np.round(chance.normal(0, 50, (3, n)))
    amount[2] = amount[0] + amount[1] + chance.integers(-1, 2, n)
    room = np.abs(amount[0] + amount[1] - amount[2]) + chance.integers(0, 2, n)
    for h, tree in enumerate(space.trees):
        space.number(1 + h, [(member, 1.0) for member in range(tree.size) if tree.last[member] == member], "")
    places = np.unique(
        np.stack(
            [np.zeros(8, dtype=np.int32), *(chance.integers(0, size, 8) for size in space.sizes[1:])], 1
        ),
        axis=0,
    ).astype(np.int32)

    def inside(place: np.ndarray) -> np.ndarray:
        times = np.ones(n)
        for h, (tree, leaves) in enumerate(zip(space.trees, leaf, strict=True)):
            number = int(place[1 + h])
            own = number < tree.size
            members = [number] if own else [member for member, _ in space.extra(1 + h, number).terms or ()]
            times = times * sum((leaves >= m) & (leaves <= tree.last[m]) for m in members)
        return times

    times = np.stack([inside(place) for place in places])
    assert np.allclose(sums_at(space, leaf, room, places), times @ room)
    table = np.repeat(places, 3, axis=0)
    table[:, 0] = np.tile(np.arange(3), len(places))
    values = (times @ amount.T).reshape(-1)
    tendency = Tendency(((0, 1.0), (1, 1.0), (2, -1.0)), room)
    order = chance.permutation(len(table))
    nearly = nearly_at(space, tendency.named(space, table[order]), room, leaf, table[order])
    bounds = bounds_nearly(values[order], (nearly, nearly))
    whole = np.concatenate([values[order], bounds.slack])
    assert np.all(bounds.slack >= 0)
    assert np.allclose(bounds.equations.matrix(len(whole)) @ whole, bounds.equations.rhs)
