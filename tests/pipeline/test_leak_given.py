"""What holds given a member of a hierarchy tells hidden cells as well as what holds everywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Cube
from app.domain.known import FactRows
from app.domain.lattice import Space
from app.domain.masked import CellStatus
from app.domain.overlaps import tightened
from app.pipeline.rates import find_rates
from app.pipeline.slices import find_slices
from app.pipeline.sums import find_sums
from tests.pipeline.offices import ACTIVITIES, CUBE, PUBLICATION, SIZES, TOWNS, firms, write_office
from tests.pipeline.test_leak_nearly import cube_of
from tests.pipeline.test_leak_rates import RATE, kinds_of
from tests.pipeline.test_protection import Ran, sheet

RULE = '[confidentiality.Firms."{name}"]\nweight = "value"\nrules = [{{ rule = "p-percent", p = 10 }}]\n'
MEASURE = '[[measure]]\nname = "{name}"\naggregator = "sum"\ncolumn = "{column}"\n'
QUERY = """SELECT {{[Activity].[All], [Activity].[Activity].Members}} ON 0,
  {{{rows}}} ON 1 FROM [Firms] WHERE ([Measures].[{name}])"""
BY_TOWN = "[Place].[All], [Place].[Town].Members"
BY_SIZE = "[Size].[All], [Size].[Size].Members"

Row = dict[str, object]
#: Measures and coefficients whose sum is nothing but for so much, in a place; None where there are none.
Said = Callable[[Row], tuple[dict[str, float], float] | None]


def office(folder: Path, rows: Sequence[Row], names: Sequence[str], lines: str) -> Path:
    more = "".join(MEASURE.format(name=name, column=name.lower()) for name in names if name != "Turnover")
    return write_office(
        folder,
        rows,
        PUBLICATION[: PUBLICATION.index('[confidentiality.Firms."Turnover"]')]
        + "".join(RULE.format(name=name) for name in names),
        CUBE.replace("[[calculated]]", f"{more}[[calculated]]", 1),
        {name.lower(): sheet(QUERY.format(name=name, rows=lines)) for name in names},
    )


def assert_protected(
    ran: Ran, dimension: str, members: Sequence[str], names: Sequence[str], said: Said
) -> None:
    """No sensitive cell is known too closely to whoever adds up what is shown, and knows what is said."""
    (cells,) = ran.crawl.cubes
    (verdicts,) = ran.primaries.cubes
    leaves = list(product(names, members, ACTIVITIES))
    equal: list[tuple[np.ndarray, float, float]] = []
    most = np.full(len(leaves), np.inf)
    sensitive = []
    for row, key in enumerate(cells.keys(np.arange(cells.n_published))):
        member, activity = (
            found and found[1]
            for found in (re.search(rf"\[{d}\]\.\[\w+\]\.&\[(\w+)\]", key) for d in (dimension, "Activity"))
        )
        inside = np.array(
            [
                f"[{name}]" in key and member in (None, one) and activity in (None, other)
                for name, one, other in leaves
            ]
        )
        if ran.release.status[row] == CellStatus.EMPTY:
            most[inside] = 0
        elif ran.release.status[row] == CellStatus.SHOWN:
            equal.append((inside.astype(float), float(cells.values[row]), 0.0))
        elif verdicts.sensitive[row]:
            sensitive.append((row, inside.astype(float)))
    for member, activity in product(members, ACTIVITIES):
        told = said({"activity": activity, "size": member, "town": member})
        if told is not None:
            factor = [
                told[0].get(name, 0.0) * ((one, other) == (member, activity)) for name, one, other in leaves
            ]
            equal.append((np.array(factor), 0.0, told[1]))
    matrix = np.array([vector for vector, *_ in equal])
    value, room = np.array([side for _, side, _ in equal]), np.array([room for *_, room in equal])
    limits = np.vstack([matrix, -matrix]), np.concatenate([value + room, room - value]) + 1e-6
    bounds = np.stack([np.zeros(len(leaves)), most], axis=1)
    assert len(sensitive) > 3
    for row, vector in sensitive:
        low, high = (
            sign * best.fun if best.status == 0 else -sign * np.inf
            for sign in (1.0, -1.0)
            for best in [linprog(sign * vector, A_ub=limits[0], b_ub=limits[1], bounds=bounds)]
        )
        assert low <= cells.values[row] - verdicts.lpl[row] + 1, cells.keys(np.array([row]))
        assert high >= cells.values[row] + verdicts.upl[row] - 1, cells.keys(np.array([row]))


def taxed(seed: int, rate: Callable[[Row, random.Random], float]) -> list[Row]:
    chance = random.Random(seed)
    rows: list[Row] = list(firms(seed, 120))
    for row in rows:
        row["turnover"] = int(str(row["turnover"])) * 100
        row["tax"] = round(int(str(row["turnover"])) * rate(row, chance), 2)
    return rows


@pytest.mark.parametrize("seed", [1, 2])
def test_no_turnover_is_told_by_the_tax_where_one_activity_has_many_rates(
    tmp_path: Path, store: Store, seed: int
) -> None:
    def rate(row: Row, chance: random.Random) -> float:
        return chance.uniform(0.04, 0.21) if row["activity"] == "mill" else RATE[str(row["activity"])]

    names = ("Turnover", "Tax")
    rows = taxed(seed, rate)
    ran = Ran(office(tmp_path / "office", rows, names, BY_TOWN), store)

    def said(place: Row) -> tuple[dict[str, float], float] | None:
        activity = str(place["activity"])
        return None if activity == "mill" else ({"Tax": -1.0, "Turnover": RATE[activity]}, 1.0)

    assert_protected(ran, "Place", TOWNS, names, said)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_turnover_is_told_by_the_tax_where_the_rate_is_by_two_hierarchies(
    tmp_path: Path, store: Store, seed: int
) -> None:
    times = {"small": 1.0, "middle": 1.5, "large": 2.0}

    def rate(row: Row, _: random.Random) -> float:
        return RATE[str(row["activity"])] * times[str(row["size"])]

    names = ("Turnover", "Tax")
    ran = Ran(office(tmp_path / "office", taxed(seed, rate), names, BY_SIZE), store)
    assert_protected(
        ran,
        "Size",
        SIZES,
        names,
        lambda place: ({"Tax": -1.0, "Turnover": rate(place, random.Random())}, 1.0),
    )


@pytest.mark.parametrize("n", [18, 120])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_part_is_told_by_the_other_and_the_whole_in_few_records_or_but_in_one_activity(
    tmp_path: Path, store: Store, seed: int, n: int
) -> None:
    chance = random.Random(seed)
    names = ("Turnover", "Home", "Abroad")
    rows: list[Row] = list(firms(seed, n))
    for row in rows:
        row["home"], row["abroad"] = (round(chance.lognormvariate(6, 1)) + 1 for _ in range(2))
        other = round(chance.lognormvariate(5, 1)) if n > 100 and row["activity"] == "mill" else 0
        row["turnover"] = int(str(row["home"])) + int(str(row["abroad"])) + other
    ran = Ran(office(tmp_path / "office", rows, names, BY_TOWN), store)
    assert_protected(
        ran,
        "Place",
        TOWNS,
        names,
        lambda place: (
            None
            if n > 100 and place["activity"] == "mill"
            else ({"Home": 1.0, "Abroad": 1.0, "Turnover": -1.0}, 0.0)
        ),
    )


def facts_of(kinds: Sequence[np.ndarray], columns: dict[str, np.ndarray]) -> tuple[Cube, FactRows]:
    cube = cube_of({name: "count" if name == "count" else "sum" for name in columns})
    cube = replace(cube, hierarchies=tuple(kinds_of(int(kind.max())) for kind in kinds))
    leaf = tuple(kind.astype(np.int32) for kind in kinds)
    return cube, FactRows(cube, leaf, tuple(columns.values()), None)


def test_rates_are_told_of_the_members_that_have_one() -> None:
    chance = np.random.default_rng(1)
    kind, year = chance.integers(1, 6, 300), chance.integers(1, 3, 300)
    amount = np.round(chance.lognormal(8, 1, 300))
    share = np.where(kind == 5, chance.uniform(0, 1, 300), np.array([0, 0.04, 0.21, 0.1, 0.21, 0])[kind])
    (found,) = find_rates(*facts_of([kind, year], {"amount": amount, "tax": np.round(share * amount, 2)}))
    assert found.columns == (1,)
    assert np.allclose(found.rate, [np.nan, 0.04, 0.21, 0.1, 0.21, np.nan], equal_nan=True)
    share = np.array([0, 0.04, 0.21, 0.1, 0.21, 0.08])[kind] * year
    (found,) = find_rates(*facts_of([kind, year], {"amount": amount, "tax": np.round(share * amount, 2)}))
    assert found.columns == (2, 1)
    assert np.allclose(found.rate[2, 1:], 2 * found.rate[1, 1:])
    # Of members with few records each some agree by chance, if amounts are small numbers.
    kind = np.arange(300) // 3 + 1
    ones = chance.integers(0, 2, 300).astype(float)
    assert not find_rates(*facts_of([kind], {"count": np.ones(300), "ones": ones}))
    assert not find_rates(*facts_of([kind], {"count": np.ones(300), "few": (kind % 9 == 0) * amount}))


def test_sums_are_told_where_they_hold() -> None:
    chance = np.random.default_rng(1)

    def found(n: int, most: int, other: np.ndarray | float, kind: np.ndarray) -> list[list[bool] | None]:
        home, abroad = (chance.integers(0, most, n).astype(float) for _ in range(2))
        told = find_sums(
            *facts_of([kind], {"h": home, "a": abroad, "t": home + abroad + other, "count": np.ones(n)})
        )
        assert all({number for number, _ in item.terms} == {0, 1, 2} for item in told)
        return [None if item.inside is None else item.inside[1:].tolist() for item in told]

    assert found(8, 9000, 0.0, np.arange(8) % 2 + 1) == [None]
    assert found(20, 90, 0.0, np.arange(20) % 2 + 1) == [None]
    kind = np.arange(200) % 5 + 1
    assert found(200, 900, (kind == 4) * chance.integers(1, 90, 200), kind) == [
        [True, True, True, False, True]
    ]
    # What holds everywhere is an identity; small numbers agree by chance; a third of each member doesn't.
    assert found(200, 900, 0.0, kind) == []
    assert found(12, 2, 0.0, np.arange(12) % 2 + 1) == []
    assert found(200, 900, (np.arange(200) % 3 == 0) * 7.0, kind) == []
    small = {name: chance.integers(0, 4, 200).astype(float) for name in "abcd"}
    assert not find_sums(*facts_of([np.arange(200) // 4 + 1], small))


def seated(seed: int, n: int) -> list[Row]:
    """Small firms have their seat where their plant is, others anywhere."""
    chance = random.Random(seed)
    rows: list[Row] = list(firms(seed, n))
    for row in rows:
        row["seat"] = row["town"] if row["size"] == "small" else chance.choice(TOWNS)
    return rows


SEAT = """[[dimension]]
name = "Seat"
[[dimension.hierarchy]]
all.en = "All seats"
[[dimension.hierarchy.level]]
name = "Seat"
key = "seat"
"""
SIZED = """SELECT {{{columns}}} ON 0, CROSSJOIN({{[Size].[Size].&[small]}}, {{{rows}}}) ON 1
  FROM [Firms] WHERE ([Measures].[{name}])"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nobody_is_told_by_two_divisions_that_are_one_at_some_member(
    tmp_path: Path, store: Store, seed: int
) -> None:
    one = ("[Activity].[Activity].Members", "[Seat].[All], [Seat].[Seat].Members")
    other = ("[Activity].[All], [Activity].[Activity].Members", "[Place].[Town].Members")
    folder = write_office(
        tmp_path / "office",
        seated(seed, 90),
        PUBLICATION.replace("[confidentiality]\n", "[confidentiality]\ninsiders = false\n", 1),
        CUBE.replace('[[dimension]]\nname = "Size"', f'{SEAT}[[dimension]]\nname = "Size"'),
        {
            name: sheet(SIZED.format(columns=sides[0], rows=sides[1], name="Firms"))
            for name, sides in (("seats", one), ("plants", other))
        },
    )
    ran = Ran(folder, store)

    (cells,) = ran.crawl.cubes
    (verdicts,) = ran.primaries.cubes
    leaves = list(product(TOWNS, ACTIVITIES))
    told, values, sensitive = [], [], []
    most = np.full(len(leaves), np.inf)
    for row, key in enumerate(cells.keys(np.arange(cells.n_published))):
        if "[Size].&[small]" not in key:
            continue
        town = re.search(r"\[(?:Town|Seat)\]\.&\[(\w+)\]", key)
        kind = re.search(r"\[Activity\]\.&\[(\w+)\]", key)
        inside = np.array(
            [(not town or town[1] == a) and (not kind or kind[1] == b) for a, b in leaves], dtype=float
        )
        if ran.release.status[row] == CellStatus.EMPTY:
            most[inside > 0] = 0
        elif ran.release.status[row] == CellStatus.SHOWN:
            told.append(inside)
            values.append(cells.values[row])
        elif verdicts.sensitive[row]:
            sensitive.append((row, inside))
    assert len(sensitive) > 3
    bounds = np.stack([np.zeros(len(leaves)), most], axis=1)
    for row, vector in sensitive:
        low, high = (
            sign * best.fun if best.status == 0 else -sign * np.inf
            for sign in (1.0, -1.0)
            for best in [linprog(sign * vector, A_eq=np.array(told), b_eq=values, bounds=bounds)]
        )
        assert low <= cells.values[row] - verdicts.lpl[row] + 1e-6, cells.keys(np.array([row]))
        assert high >= cells.values[row] + verdicts.upl[row] - 1e-6, cells.keys(np.array([row]))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_cells_of_a_slice_are_those_that_they_are_tied_to(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = 300
    given_, first = chance.integers(1, 5, n), chance.integers(1, 6, n)
    says = chance.permutation(6)[: 5 + 1] // int(chance.integers(1, 3)) + 1
    second = np.where(np.isin(given_, [1, 2]), says[first], chance.integers(1, 7, n))
    kinds = [given_, first, second]
    cube, facts = facts_of(kinds, {"count": np.ones(n)})
    found = find_slices(cube, facts)
    assert found
    space = Space.of(cube)
    table = np.array(
        [[0, g, a, b] for g in range(5) for a in range(6) for b in range(int(second.max()) + 1)],
        dtype=np.int32,
    )
    tight = tightened(space, found, table)

    def values(cells: np.ndarray) -> np.ndarray:
        inside = np.ones((len(cells), n), dtype=bool)
        for column, leaf in enumerate(kinds, 1):
            numbers, place = np.unique(cells[:, column], return_inverse=True)
            terms = [
                ((number, 1.0),) if number < space.own[column] else space.extra(column, number).terms or ()
                for number in numbers.tolist()
            ]
            members = [[member for member, _ in listed] for listed in terms]
            inside &= np.array([np.isin(leaf, listed) | (0 in listed) for listed in members])[place]
        return np.asarray(inside.sum(axis=1))

    assert (values(tight) == values(table)).all()
    assert (tight != table).any()
    # Cells at members of which nothing is said are left alone, and so are all where nothing holds.
    apart = ~np.isin(table[:, 1], [1, 2])
    assert (tight[apart] == table[apart]).all()
    assert not find_slices(*facts_of([given_, first, chance.integers(1, 7, n)], {"count": np.ones(n)}))
