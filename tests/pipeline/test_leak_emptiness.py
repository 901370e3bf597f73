"""Which rows a table has tells nothing about numbers: NON EMPTY asks for facts, never for values."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cube.duckdb import open_cube
from app.mdx import parse
from app.pipeline.define import load_publication
from tests.pipeline.offices import SHEETS, write_office

#: Formulas that are empty or not by the values of cells.
BY_VALUE = (
    "IIF([Measures].[Firms] > 1, [Measures].[Firms], NULL)",
    "[Measures].[Turnover] / ([Measures].[Firms] - 1)",
    "[Measures].[Turnover] / Ln([Measures].[Firms])",
    "CASE WHEN [Measures].[Firms] = 2 THEN [Measures].[Turnover] END",
    "[Measures].[Turnover] * Sqrt([Measures].[Firms] - 2)",
)
#: Sets that leave empty positions out.
SETS = (
    "NON EMPTY [Place].[Town].Members",
    "NonEmpty([Place].[Town].Members, {[Measures].[X]})",
    "NonEmptyCrossJoin([Place].[Town].Members, {[Size].[All]})",
)


def rows(sizes: dict[str, int]) -> list[dict[str, object]]:
    towns = [town for town, n in sizes.items() for _ in range(n)]
    return [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 7}
        for i, town in enumerate(towns)
    ]


@pytest.mark.parametrize("axis", SETS)
@pytest.mark.parametrize("formula", BY_VALUE)
def test_the_rows_of_a_table_are_those_with_facts(tmp_path: Path, formula: str, axis: str) -> None:
    places = []
    for sizes in ({"a1": 9, "a2": 1, "b1": 2}, {"a1": 1, "a2": 2, "b1": 3}):
        folder = write_office(tmp_path / str(len(places)), rows(sizes), sheets=SHEETS)
        server = open_cube(load_publication(folder).cubes[0])
        query = f"WITH MEMBER [Measures].[X] AS '{formula}' SELECT {{[Measures].[X]}} ON 0, {axis} ON 1"
        answer = server.execute(parse(f"{query} FROM [Firms]"))
        places.append([position[0].unique_name for position in answer.axes[1].positions])
        server.close()
    assert places[0] == places[1] == [f"[Place].[Town].&[{town}]" for town in ("a1", "a2", "b1")]


def test_a_formula_without_facts_is_empty(tmp_path: Path) -> None:
    folder = write_office(tmp_path / "office", rows({"a1": 9, "a2": 1}), sheets=SHEETS)
    server = open_cube(load_publication(folder).cubes[0])
    for formula in (*BY_VALUE[:3], BY_VALUE[4], "[Measures].[Firms] * 2", "NULL"):
        query = f"WITH MEMBER [Measures].[X] AS '{formula}' SELECT NON EMPTY {{[Measures].[X]}} ON 0"
        assert not server.execute(parse(f"{query} FROM [Firms] WHERE ([Place].[Town].&[c1])")).n_cells
    server.close()
