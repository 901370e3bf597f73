"""Thousands of members in one place: the same answers as numpy's, and too many cells refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from app.cube.answer import Answerer
from app.cube.context import Limits
from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.errors import UserError
from app.domain.publication import (
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)
from app.mdx import parse

N = 3_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place: Path = tmp_path_factory.mktemp("large") / "facts.parquet"
    duckdb.sql(
        f"COPY (SELECT 'p' || lpad(i::VARCHAR, 5, '0') AS a, 'q' || i % 2 AS b, (i * 7919) % {N} AS v "
        f"FROM range({N}) AS t(i)) TO '{place}' (FORMAT parquet)"
    )

    def dimension(name: str) -> DimensionDefinition:
        level = LevelDefinition(name, {"en": name}, name.lower(), {}, None)
        tree = HierarchyDefinition(name, {"en": name}, {"en": "All"}, (level,))
        return DimensionDefinition(name, {"en": name}, (tree,))

    cube = CubeDefinition(
        "Large", {"en": "Large"}, FactsDefinition(str(place), None, None, None, None, None, None),
        (dimension("A"), dimension("B")),
        (MeasureDefinition("V", {"en": "V"}, "sum", "v", {}, "0", 0, True),),
        (), Position("large", 1),
    )  # fmt: skip
    found = open_cube(cube)
    yield found
    found.close()


VALUES = (np.arange(N) * 7919) % N
NAMES = [f"[A].[p{i:05}]" for i in range(N)]


def values(server: Server, text: str) -> list[float]:
    answer = server.explore(parse(text))
    return answer.values[: answer.n_cells].tolist()


def test_a_slicer(server: Server) -> None:
    for slicer in ("[A].[A].Members", f"{{{', '.join(NAMES)}}}"):
        assert values(server, f"SELECT [B].[B].Members ON 0 FROM Large WHERE {slicer}") == [
            VALUES[::2].sum(),
            VALUES[1::2].sum(),
        ]


@pytest.mark.parametrize("function", ["Aggregate", "Sum", "Avg", "Max"])
def test_a_statistic_of_them_all(server: Server, function: str) -> None:
    formula = f"{function}([A].[A].Members, [Measures].[V])"
    text = f"WITH MEMBER [Measures].[X] AS {formula} SELECT [X] ON 0 FROM Large"
    known = {"Avg": np.mean, "Max": np.max}.get(function, np.sum)
    assert values(server, text) == [known(VALUES)]


def test_a_filter(server: Server) -> None:
    both = " AND ".join([f"[Measures].[V] > {bound}" for bound in range(2_000)])
    for condition, chosen in (
        (both, VALUES > 1_999),
        ("[Measures].[V] < 5 OR NOT [V] < 2990", (VALUES < 5) | (VALUES >= 2990)),
    ):
        found = values(server, f"SELECT Filter([A].[A].Members, {condition}) ON 0 FROM Large")
        assert found == VALUES[chosen].tolist()
    by_name = values(
        server, "SELECT Filter([A].[A].Members, [A].CurrentMember.Name > 'p02990') ON 0 FROM Large"
    )
    assert by_name == VALUES[2991:].tolist()


def test_a_rank(server: Server) -> None:
    for rank, wanted in (
        ("Rank([A].CurrentMember, [A].[A].Members)", np.arange(1, N + 1)),
        ("Rank([B].[q0], [A].[A].Members)", np.zeros(N)),
    ):
        text = f"WITH MEMBER [Measures].[R] AS {rank} SELECT [R] ON 0, [A].[A].Members ON 1 FROM Large"
        assert values(server, text) == wanted.tolist()


def test_a_rank_by_value(server: Server) -> None:
    some = "Head([A].[A].Members, 300)"
    rank = f"Rank([A].CurrentMember, {some}, [V])"
    text = f"WITH MEMBER [Measures].[R] AS {rank} SELECT [R] ON 0, {some} ON 1 FROM Large"
    first = VALUES[:300]
    assert values(server, text) == [1 + (first > value).sum() for value in first]


def test_thousands_of_sums_of_thousands_are_refused(server: Server) -> None:
    formula = "IIF([A].CurrentMember.Name > 'p', Sum([A].[A].Members, [V]), 0)"
    text = f"WITH MEMBER [Measures].[X] AS {formula} SELECT [X] ON 0, [A].[A].Members ON 1 FROM Large"
    with pytest.raises(UserError, match="more than 8,000,000 cells"):
        server.execute(parse(text))


def test_formulas_over_sets_of_their_own_are_limited(server: Server) -> None:
    small = Answerer(server.discover(), (), (), server, Limits(operands=4_000))
    running = "Sum([A].[A].Members.Item(0) : [A].CurrentMember, [V])"
    for n, refused in ((40, False), (60, True)):
        rows = f"Head([A].[A].Members, {n})"
        text = f"WITH MEMBER [Measures].[X] AS {running} SELECT [X] ON 0, {rows} ON 1 FROM Large"
        if refused:
            with pytest.raises(UserError, match="more than 1,000 cells"):
                small.answer(parse(text))
        else:
            solved = small.answer(parse(text))
            assert solved.solved.values[solved.cells].tolist() == np.cumsum(VALUES[:n]).tolist()
