"""Facts that stay with Spark: clear errors, one state of the facts, one application."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from app.bootstrap.engines import open_cube
from app.domain.errors import OperatorError, UserError
from app.domain.publication import CubeDefinition
from tests.cube.engines import SPARK, opened, spark_source
from tests.cube.office import office


def at(cube: CubeDefinition, url: str, sql: str) -> CubeDefinition:
    return replace(cube, facts=replace(cube.facts, file=None, url=url, sql=sql, engine="spark"))


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from nowhere", "Spark refuses the query: .TABLE_OR_VIEW_NOT_FOUND"),
        ("select * from {}; drop table facts", "one SELECT"),
        ("insert into t select * from {}", "one SELECT"),
        ("select from where", "can't be read as SQL|refuses the query"),
        ("select * from {} where false", "no rows"),
        ("select year, month, town, sex from {}", "no column income"),
        ("select * except (income), cast(income as double) as income from {}", "fixed number of places"),
        ("select * except (town), 'X' as town from {}", "7 rows of the query of the facts have a key"),
    ],
)
def test_mistakes(tmp_path: Path, sql: str, told: str) -> None:
    cube = office(tmp_path)
    url, whole = spark_source(cube, tmp_path)
    with pytest.raises(UserError, match=told) as caught:
        open_cube(at(cube, url, sql.format(whole.removeprefix("select * from "))))
    assert all(mistake.file == cube.at.file for mistake in caught.value.mistakes if mistake.line)


def test_what_fails_while_it_is_read_quotes_no_data(tmp_path: Path) -> None:
    cube = office(tmp_path)
    url, whole = spark_source(cube, tmp_path)
    table = whole.removeprefix("select * from ")
    sql = f"select * except (income), cast(person || 'secret' as int) as income from {table}"
    with pytest.raises(OperatorError, match=r"failed to aggregate .*CAST_INVALID_INPUT") as caught:
        open_cube(at(cube, url, sql))
    assert "asecret" not in str(caught.value)


def test_an_open_cube_sees_one_state_of_the_facts(tmp_path: Path) -> None:
    cube = office(tmp_path)
    url, whole = spark_source(cube, tmp_path)
    place = whole.split("`")[1]
    cells = np.array([[1, 0, 0, 0]], dtype=np.int32)
    first = open_cube(at(cube, url, whole))
    try:
        before = first.values(cells).tolist()
        changed = f"SELECT * REPLACE (income * 2 AS income) FROM '{place}'"
        duckdb.sql(f"COPY (FROM ({changed})) TO '{place}.new' (FORMAT parquet)")
        os.replace(f"{place}.new", place)
        later = open_cube(at(cube, url, whole))
        try:
            assert later.values(cells).tolist() == [before[0] * 2]
            assert first.measure(cells, (), 2).value.tolist() == before
            assert first.fingerprint() != later.fingerprint()
        finally:
            later.close()
    finally:
        first.close()


def test_one_application_in_a_process(tmp_path: Path) -> None:
    cube = office(tmp_path)
    with opened("spark", cube), pytest.raises(OperatorError, match="the same url"):
        open_cube(at(cube, "spark://127.0.0.1:9", "select 1"))


@pytest.mark.parametrize("url", ["nothing", "jdbc:hive2://h", "postgresql://h/x"])
def test_no_master(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="isn't a Spark master"):
        open_cube(at(office(tmp_path), url, "select 1"))


@pytest.mark.parametrize("home", ["/nowhere", None])
def test_no_java(home: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": "/nowhere"} if home is None else {"JAVA_HOME": home}
    asked = f"from app.cube.sql.spark import Spark\nSpark({SPARK!r})"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, env=environment, check=False
    )
    assert "OperatorError: Spark needs Java 17 or later" in done.stderr
