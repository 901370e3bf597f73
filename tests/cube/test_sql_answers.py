"""Answers to MDX against the same answers written by hand in SQL, over a cube of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.mdx import parse
from tests.cube.shop import shop

Row = tuple[object, ...]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, duckdb.DuckDBPyConnection]]:
    definition, base = shop(tmp_path_factory.mktemp("shop"))
    server = open_cube(definition)
    yield server, base
    server.close()
    base.close()


def label(unique_name: str) -> str:
    return unique_name.rsplit("].", 1)[-1].strip("&[]").replace("]&[", "-")


def told(server: Server, text: str) -> list[Row]:
    """Rows of labels of all axes but the columns, then the values; a single axis goes down."""
    answer = server.explore(parse(text))
    labels = [
        [tuple(label(member.unique_name) for member in position) for position in axis.positions]
        for axis in answer.axes
    ]
    values = answer.values[: answer.n_cells].tolist()
    if not labels:
        return [(values[0],)]
    if len(labels) == 1:
        return [(*names, value) for names, value in zip(labels[0], values, strict=True)]
    width = len(labels[0])
    return [(*names, *values[n * width : (n + 1) * width]) for n, names in enumerate(labels[1])]


def same(found: list[Row], wanted: list[Row]) -> None:
    assert len(found) == len(wanted), (found, wanted)
    for one, other in zip(found, wanted, strict=True):
        assert len(one) == len(other), (one, other)
        for a, b in zip(one, other, strict=True):
            if isinstance(a, float):
                number = math.nan if b is None else float(b)  # type: ignore[arg-type]
                assert a == pytest.approx(number, rel=1e-9, abs=1e-9, nan_ok=True), (one, other)
            else:
                assert a == str(b), (one, other)


def cases(file: str = "answers.txt") -> list[tuple[str, str]]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    blocks = "\n".join(lines).strip().split("\n\n")
    return [(mdx, sql) for mdx, sql in (block.strip().split("\n=>\n") for block in blocks if block.strip())]


@pytest.mark.parametrize(("text", "sql"), cases())
def test_the_same_answer_in_sql(both: tuple[Server, duckdb.DuckDBPyConnection], text: str, sql: str) -> None:
    server, base = both
    wanted = base.execute(sql).fetchall()
    found = told(server, text)
    if all(len(row) == 1 for row in wanted) and isinstance(found[0][0] if found else "", str):
        found = [row[:1] for row in found]
    same(found, wanted)


#: Functions and operators that users of MDX know.
KNOWN = (
    "Members AllMembers Children Parent Siblings FirstChild LastChild Descendants Ancestor Ancestors "
    "Ascendants CurrentMember DefaultMember PrevMember NextMember Lag Lead ParallelPeriod PeriodsToDate "
    "Ytd Qtd Mtd LastPeriods ClosingPeriod OpeningPeriod Cousin CrossJoin Union Except Intersect Distinct "
    "Hierarchize Head Tail Subset Item Order TopCount BottomCount TopPercent TopSum Filter Generate "
    "NonEmpty NonEmptyCrossJoin Extract DrilldownLevel DrilldownMember DrillupLevel ToggleDrillState "
    "AddCalculatedMembers StrToMember StrToSet Sum Aggregate Avg Min Max Count Median Stdev Rank "
    "CoalesceEmpty IsEmpty Properties Name Caption UniqueName Level Ordinal Abs Round Int Exists "
    "VisualTotals CASE IIF IS IN SOLVE_ORDER "
)


def test_every_function_has_an_answer_here() -> None:
    words = {word.upper() for text, _ in cases() for word in re.findall(r"\w+", text)}
    assert [name for name in KNOWN.split() if name.upper() not in words] == []
