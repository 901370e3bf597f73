"""A measure that is part of another in every record bounds it in every cell: salaries bound the income."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Cube, Measure
from app.domain.errors import UserError
from app.domain.known import FactRows
from app.domain.lattice import Space, Tree
from app.domain.statistics import bounds_between
from app.pipeline.define import draft_publication
from app.pipeline.parts import ENOUGH, with_parts
from tests.pipeline.offices import CUBE, PUBLICATION, write_office
from tests.pipeline.test_protection import Ran, sheet

TOWNS = ("a1", "a2", "a3", "b1", "b2", "c1")
MEASURE = '[[measure]]\nname = "Home"\naggregator = "sum"\ncolumn = "home"\n{part}'
RULE = '[{ rule = "threshold", n = 3, p = 20 }]'


def facts(seed: int, found: bool) -> list[dict[str, object]]:
    """Firms whose turnover is mostly at home; to be ``found`` in the data, in many all of it."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for town, n in zip(TOWNS, (2, 8, 9, 12, 9, 10), strict=True):
        for i in range(n):
            whole = chance.randint(40, 200)
            home = whole if found and i % 2 else whole - chance.randint(1, 3)
            rows.append(
                {"firm": f"{town}{i}", "holding": "", "town": town, "activity": "farm", "size": "small"}
                | {"turnover": whole, "home": home}
            )
    return rows


@pytest.mark.parametrize("sensitive", ["Turnover", "Home"])
@pytest.mark.parametrize("found", [False, True], ids=["said", "found"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_part_that_is_shown_does_not_bound_its_hidden_whole_nor_the_whole_its_part(
    tmp_path: Path, store: Store, sensitive: str, found: bool, seed: int
) -> None:
    rows = facts(seed, found)
    measure = MEASURE.format(part="" if found else 'of_which = "Turnover"\n')
    rules = "".join(
        f'[confidentiality.Firms."{name}"]\nrules = {RULE if name == sensitive else "[]"}\n'
        for name in ("Turnover", "Home")
    )
    query = (
        "SELECT {[Measures].[Turnover], [Measures].[Home]} ON 0, "
        "{[Place].[All], [Place].[Town].Members} ON 1 FROM [Firms]"
    )
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index('[confidentiality.Firms."Turnover"]')] + rules,
        CUBE.replace("[[calculated]]", f"{measure}[[calculated]]", 1),
        {"a": sheet(query)},
    )
    ran = Ran(office, store)
    whole, part = ran.cells.cube.measures[1], ran.cells.cube.measures[-1]
    assert (part.name, part.of_which, whole.of_which) == ("Home", ("Turnover",), ())
    (layout,) = ran.crawl.layouts.values()
    lines = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = ran.release.values[layout.cell].reshape(-1, 2)
    # Unknown are turnover and turnover at home of each town, this no more than that.
    equal, values = [], []
    for line, told in zip(lines, seen.tolist(), strict=True):
        for column, value in enumerate(told):
            if not np.isnan(value):
                inside = [float(line in ("All", town)) for town in TOWNS]
                equal.append([0.0] * len(TOWNS) * column + inside + [0.0] * len(TOWNS) * (1 - column))
                values.append(value)
    most = np.hstack([-np.eye(len(TOWNS)), np.eye(len(TOWNS))])
    wanted = np.zeros(2 * len(TOWNS))
    wanted[0 if sensitive == "Turnover" else len(TOWNS)] = 1
    truth = sum(float(str(row[sensitive.lower()])) for row in rows if row["town"] == "a1")
    for sign in (1, -1):
        best = linprog(sign * wanted, most, np.zeros(len(TOWNS)), equal, values)
        end = sign * best.fun if best.status == 0 else np.inf
        assert sign * (truth - end) >= 0.2 * truth - 1e-6, (sign, truth, end)


def test_a_record_with_more_of_a_part_is_told(tmp_path: Path, store: Store) -> None:
    rows = facts(1, True)
    rows[7]["home"] = 1000
    measure = MEASURE.format(part='of_which = "Turnover"\n')
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION + '[confidentiality.Firms."Home"]\nrules = []\n',
        CUBE.replace("[[calculated]]", f"{measure}[[calculated]]", 1),
        {"a": sheet("SELECT [Measures].[Home] ON 0 FROM [Firms]")},
    )
    with pytest.raises(UserError, match="Home isn't part of Turnover") as refused:
        Ran(office, store)
    assert "1000" not in str(refused.value)


@pytest.mark.parametrize("whole", ["Home", "Nothing", "Largest"])
def test_a_part_is_of_another_measure_that_adds_up(tmp_path: Path, whole: str) -> None:
    measure = MEASURE.format(part=f'of_which = "{whole}"\n')
    measure += '[[measure]]\nname = "Largest"\naggregator = "max"\ncolumn = "turnover"\n'
    cube = CUBE.replace("[[calculated]]", f"{measure}[[calculated]]", 1)
    office = write_office(tmp_path / "office", facts(1, True), PUBLICATION, cube, {})
    _, mistakes = draft_publication(office)
    assert f"Measure Home can't be part of {whole}." in [mistake.cause for mistake in mistakes]


def cube_of(*columns: np.ndarray, said: tuple[tuple[int, int], ...] = ()) -> tuple[Cube, FactRows]:
    names = [f"m{number}" for number in range(len(columns))]
    measures = tuple(
        Measure(
            name, f"[Measures].[{name}]", {"en": name}, "sum", {}, "0", 0, False,
            of_which=tuple(names[b] for a, b in said if a == number),
        )
        for number, name in enumerate(names)
    )  # fmt: skip
    cube = Cube("C", {"en": "C"}, (), measures)
    return cube, FactRows(cube, (), columns, None)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=60, max_size=90),
    st.integers(0, 2),
)
@settings(max_examples=30, deadline=None)
def test_parts_are_those_that_no_record_has_more_of(rows: list[tuple[int, int, int]], way: int) -> None:
    a, b, c = np.array(rows, dtype=np.float64).T
    part, whole = (a, a + b) if way == 0 else (np.minimum(a, c), c) if way == 1 else (a, b)
    cube, told = cube_of(part, whole)
    (found,) = [measure.of_which for measure in with_parts(cube, told).measures[:1]]
    same, less = int(((part == whole) & (whole != 0)).sum()), int((part < whole).sum())
    assert bool(found) == bool((part <= whole).all() and min(same, less) >= ENOUGH)


def test_a_part_of_a_part_is_one_of_the_whole_and_a_tax_is_no_part_of_an_income() -> None:
    chance = np.random.default_rng(1)
    income = chance.integers(1, 90, 400).astype(float)
    salary = np.where(chance.random(400) < 0.5, income, income // 2)
    tax = income * 0.2
    cube, told = cube_of(salary - (salary > 1), salary, income, tax, said=((0, 1),))
    assert [measure.of_which for measure in with_parts(cube, told).measures] == [
        ("m1", "m2"), ("m2",), (), (),
    ]  # fmt: skip
    assert [measure.of_which for measure in with_parts(cube, None).measures] == [("m1",), (), (), ()]


def test_a_difference_of_places_does_not_hide_that_a_part_is_no_more_than_its_whole() -> None:
    """Between women and men the part may differ by more than the whole does: that says nothing of either."""
    space = Space(
        [Tree(np.array([-1, -1], dtype=np.int32), np.arange(2, dtype=np.int32), np.zeros(3, dtype=np.int64),
              np.zeros(0, dtype=np.int32))],
        np.array([True, True]),
        [["whole", "part"], ["women", "men"]],
    )  # fmt: skip
    gap = space.number(1, [(0, 1.0), (1, -1.0)], "women - men")
    measures = [Measure(name, name, {}, "sum", {}, "0", 0) for name in ("whole", "part")]
    measures[1] = replace(measures[1], of_which=("whole",))
    coords = np.array([(m, place) for place in (0, 1, gap) for m in (0, 1)], dtype=np.int32)
    values = np.array([5.0, 5.0, 4.0, 1.0, 1.0, 4.0])
    assert bounds_between(space, coords, values, measures).slack.tolist() == [0.0, 3.0]
