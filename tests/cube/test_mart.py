"""MDX as Mondrian's users write it on a schema of theirs, against the same answers written by hand in SQL."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from app.cube.server import Server
from tests.cube.mart import mart
from tests.cube.test_sql_answers import cases, same, told

Both = tuple[dict[str, Server], duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from mart(tmp_path_factory.mktemp("mart"))


@pytest.mark.parametrize(("text", "sql"), cases("answers_mart.txt"))
def test_the_same_answer_in_sql(both: Both, text: str, sql: str) -> None:
    cubes, base = both
    wanted = base.execute(sql).fetchall()
    same(told(cubes["HR" if "FROM HR" in text or "\nFROM HR" in text else "Sales"], text), wanted)
