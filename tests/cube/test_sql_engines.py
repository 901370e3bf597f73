"""Facts that stay in a database: the same profiles as the default engine's, and clear errors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import psycopg
import pytest

from app.bootstrap.engines import open_cube
from app.cube.port import CubeServer, Group
from app.domain.errors import OperatorError, UserError
from app.domain.publication import CubeDefinition
from app.mdx import parse
from tests.cube.engines import opened
from tests.cube.office import office, write_csv
from tests.databases import database_url

PLACES = ("28001", "28002", "08001", "")
HEADER = ("year", "month", "town", "sex", "income", "tax", "person", "household", "weight", "private")
#: Which columns tell who is who: respondent, holding, weight, request.
ROLES = (
    ("person", "household", None, None),
    ("person", None, "weight", "private"),
    (None, None, "weight", None),
    (None, None, None, "private"),
)


def survey(folder: Path) -> CubeDefinition:
    """People met in several cells, with losses, weights, requests, gaps, and rows that are alike."""
    chance = random.Random(7)
    rows = [
        (
            chance.choice(("2022", "2023")), chance.choice(("01", "02")), chance.choice(PLACES[:3]),
            chance.choice(("W", "M")), chance.choice(("", "0", "10", "-25", "300")),
            chance.choice(("", "0.10", "7.25", "12.00")), chance.choice(("", *"abcdefgh")),
            chance.choice(("", "", "k", "l")), chance.choice(("1", "1.5", "0.25", "4")),
            chance.choice(("", "no", "yes", "TRUE")),
        )
        for _ in range(40)
    ]  # fmt: skip
    rows += rows[:3]
    cube = office(folder)
    write_csv(folder / "facts.csv", HEADER, rows)
    measures = tuple(m for m in cube.measures if m.aggregator != "avg")
    return replace(cube, measures=measures)


@pytest.fixture(params=[*product(("postgresql",), ROLES), *product(("spark",), ROLES[:2])], ids=str)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[CubeServer, CubeServer]]:
    engine, (respondent, holding, weight, asked) = request.param
    cube = survey(tmp_path)
    facts = replace(cube.facts, respondent=respondent, holding=holding, weight=weight, request=asked)
    cube = replace(cube, facts=facts)
    with opened(engine, cube) as found, opened("duckdb", cube) as truth:
        yield found, truth


def test_profiles(pair: tuple[CubeServer, CubeServer]) -> None:
    server, truth = pair
    cube = truth.discover()
    groups = (Group(2, np.array([2, 4], np.int32)), Group(1, np.array([1, 4], np.int32)))
    sizes = [len(cube.measures), *(tree.size for tree in cube.hierarchies)]
    sizes[1] += 1
    sizes[2] += 1
    cells = np.array(list(product(*map(range, sizes))), dtype=np.int32)
    found, wanted = server.measure(cells, groups, 3), truth.measure(cells, groups, 3)
    for name in ("value", "count", "weighted_count", "top", "requested", "mass"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(wanted, name), rtol=1e-13, atol=1e-12, err_msg=name
        )
    alone = wanted.count == 1
    assert ((found.holder >= 0) == alone).all()
    pairs = np.unique(np.stack([found.holder, wanted.holder])[:, alone], axis=1)
    assert all(len(np.unique(side)) == len(side) for side in pairs)
    assert server.measure(cells[:0], (), 2).count.tolist() == []


def test_aggregate_of_a_set_is_recomputed(pair: tuple[CubeServer, CubeServer]) -> None:
    text = (
        "WITH MEMBER [Place].[Some] AS Aggregate({[Place].[28002], [Place].[08]}) "
        "MEMBER [Place].[Grid] AS Aggregate({[Place].[28002], [Place].[08]} * [Sex].[Sex].Members) "
        "SELECT [Measures].Members ON 0, {[Place].[Some], [Place].[Grid]} * [Sex].Members ON 1 FROM Tax "
        "WHERE [Time].[2023]"
    )
    found, wanted = (server.execute(parse(text)) for server in pair)
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-14)


def at(cube: CubeDefinition, url: str, sql: str) -> CubeDefinition:
    return replace(cube, facts=replace(cube.facts, file=None, url=url, sql=sql, engine="postgresql"))


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from nowhere", "refuses the query"),
        ("select * from facts; drop table facts", "one SELECT"),
        ("delete from facts returning *", "one SELECT"),
        ("with gone as (delete from facts returning *) select * from gone", "writes"),
        ("select * from facts where false", "no rows"),
        ("select * from facts where town <> 'x' and 1 = 'one'", "refuses the query"),
        ("select year, month, town, sex from facts", "no column income"),
        ("select *, 1 as x from facts f(year, month, town, sex, income)", "fixed number of places"),
        ("select year, month, 'X' as town, sex, 1 as income, 2.5::decimal(4, 1) as tax, person, household "
         "from facts", "1 rows of the query of the facts have a key"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, sql: str, told: str) -> None:
    cube = office(tmp_path)
    with database_url("postgresql", tmp_path, empty=True) as url:
        with psycopg.connect(url) as connection:
            names = "year text, month text, town text, sex text, income float8, tax float8, person text"
            connection.execute(f"create table facts ({names}, household text)".encode())
            row = "'2022', '01', '28001', 'W', 1.5, 2, 'a', 'k'"
            connection.execute(f"insert into facts values ({row})".encode())
        with pytest.raises(UserError, match=told) as caught:
            open_cube(at(cube, url, sql))
        assert all(mistake.line and mistake.file == cube.at.file for mistake in caught.value.mistakes)
        with psycopg.connect(url) as connection:
            (left,) = connection.execute("select count(*) from facts").fetchone() or ()
        assert left == 1


def test_no_database(tmp_path: Path) -> None:
    cube = office(tmp_path)
    with pytest.raises(OperatorError, match="can't be reached") as caught:
        open_cube(at(cube, "postgresql://me:secret@127.0.0.1:9/none", "select 1"))
    assert "secret" not in str(caught.value)
    for url in ("nothing", "sqlite:///facts.db"):
        with pytest.raises(UserError, match="URL of the facts"):
            open_cube(at(cube, url, "select 1"))


def test_an_open_cube_sees_one_state_of_the_facts(tmp_path: Path) -> None:
    cube = office(tmp_path)
    with database_url("postgresql", tmp_path, empty=True) as url:
        with psycopg.connect(url) as connection:
            names = "year text, month text, town text, sex text, income int, tax decimal(9, 2), person text"
            connection.execute(f"create table facts ({names}, household text)".encode())
            row = "('2022', '01', '28001', 'W', 10, 2.50, 'a', 'k')"
            connection.execute(f"insert into facts values {row}".encode())
        cells = np.array([[1, 0, 0, 0]], dtype=np.int32)
        with psycopg.connect(url, autocommit=True) as connection:
            server = open_cube(at(cube, url, "select * from facts"))
            connection.execute(f"insert into facts values {row}".encode())
            later = open_cube(at(cube, url, "select * from facts"))
            connection.execute(b"update facts set income = 99")
            try:
                assert server.values(cells).tolist() == [10]
                assert server.measure(cells, (), 2).value.tolist() == [10]
                assert later.measure(cells, (), 2).top.tolist() == [[20, 0]]
                assert server.fingerprint() != later.fingerprint()
            finally:
                server.close()
                later.close()
