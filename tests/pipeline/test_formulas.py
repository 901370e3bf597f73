"""Formulas that look at other cells, nested ones, and answers with nothing in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import CUBE, firms, write_office
from tests.pipeline.test_protection import Ran, sheet

YEAR = """
[[dimension]]
name = "Year"
[[dimension.hierarchy]]
time = true
[[dimension.hierarchy.level]]
name = "Year"
key = "year"
"""


def with_years(formulas: str = "") -> str:
    return CUBE.replace("[[measure]]", YEAR + "[[measure]]", 1) + formulas


def yearly(counts: dict[tuple[str, str], int]) -> list[dict[str, object]]:
    places = [place for place, n in counts.items() for _ in range(n)]
    return [
        {
            "firm": i,
            "holding": "",
            "town": town,
            "year": year,
            "activity": "farm",
            "size": "small",
            "turnover": 5,
        }
        for i, (town, year) in enumerate(places)
    ]


COUNTS = {
    ("a1", "2023"): 20, ("a1", "2024"): 25, ("a2", "2023"): 2, ("a2", "2024"): 12,
    ("b1", "2023"): 9, ("b1", "2024"): 11, ("b2", "2023"): 7, ("b2", "2024"): 6,
}  # fmt: skip


def test_a_difference_to_the_year_before_gives_nothing_away(tmp_path: Path, store: Store) -> None:
    query = """WITH MEMBER [Measures].[Change] AS
      [Measures].[Firms] - ([Measures].[Firms], [Year].PrevMember)
    SELECT CrossJoin([Year].[Year].Members, {[Measures].[Firms], [Measures].[Change]}) ON COLUMNS,
      [Place].[Town].Members ON ROWS FROM [Firms]"""
    office = write_office(tmp_path / "office", yearly(COUNTS), cube=with_years(), sheets={"a": sheet(query)})
    ran = Ran(office, store)
    thin = ran.row("[Measures].[Firms]", "[Year].[Year].&[2023]", "[Place].[Town].&[a2]")
    assert ran.verdicts.sensitive[thin]
    keys = ran.release.keys
    pair = [row for row, key in enumerate(keys) if "&[a2]" in key and "&[2024]" in key]
    assert len(pair) == 2
    assert any(ran.shown(row) == CellStatus.CONFIDENTIAL for row in pair)


def test_a_growth_rate_falls_with_either_year(tmp_path: Path, store: Store) -> None:
    query = """WITH MEMBER [Measures].[Growth] AS
      100 * ([Measures].[Firms] / ([Measures].[Firms], [Year].PrevMember) - 1), FORMAT_STRING = "0.0"
    SELECT {[Measures].[Growth]} ON COLUMNS, [Place].[Town].Members ON ROWS
    FROM [Firms] WHERE ([Year].[Year].&[2024])"""
    office = write_office(tmp_path / "office", yearly(COUNTS), cube=with_years(), sheets={"a": sheet(query)})
    ran = Ran(office, store)
    shown = dict(zip(ran.release.keys, ran.release.status.tolist(), strict=True))
    (thin,) = [status for key, status in shown.items() if "&[a2]" in key]
    assert thin == CellStatus.CONFIDENTIAL
    assert CellStatus.SHOWN in shown.values()
    assert set(ran.cells.decimals.tolist()) == {1}


def test_a_ratio_of_differences_is_tied_to_their_operands(tmp_path: Path, store: Store) -> None:
    cube = with_years(
        """
[[calculated]]
name = "Small less large"
formula = "([Measures].[Firms], [Size].[Size].&[small]) - ([Measures].[Firms], [Size].[Size].&[large])"
[[calculated]]
name = "Part"
formula = "[Measures].[Small less large] / [Measures].[Firms]"
"""
    )
    query = """SELECT {[Measures].[Part], [Measures].[Firms]} ON COLUMNS, [Place].[Town].Members ON ROWS
      FROM [Firms] WHERE ([Year].[Year].&[2024])"""
    rows = yearly(COUNTS)
    for number, row in enumerate(rows):
        row["size"] = "large" if number % 7 == 0 else "small"
    ran = Ran(write_office(tmp_path / "office", rows, cube=cube, sheets={"a": sheet(query)}), store)
    assert len(ran.cells.derived) > 0
    operands = ran.cells.derived.indices
    assert not ran.cells.is_derived[operands].any()
    assert (operands < ran.cells.n_given).all()
    assert np.isin(operands[operands >= ran.cells.n_published], ran.cells.equations.indices).all()


def test_a_share_of_a_constant_and_a_renamed_measure_are_the_cells_that_they_are(
    tmp_path: Path, store: Store
) -> None:
    query = """WITH MEMBER [Measures].[Thousands] AS [Measures].[Turnover] / 1000, FORMAT_STRING = "0.000"
      MEMBER [Measures].[Alias] AS [Measures].[Firms]
    SELECT {[Measures].[Thousands], [Measures].[Turnover], [Measures].[Alias], [Measures].[Firms]} ON COLUMNS,
      [Place].[Town].Members ON ROWS FROM [Firms]"""
    ran = Ran(write_office(tmp_path / "office", sheets={"a": sheet(query)}), store)
    for town in ("a1", "a2", "a3", "b1", "b2", "c1"):
        mine = [row for row, key in enumerate(ran.release.keys) if f"&[{town}]" in key]
        for measure in ("Turnover", "Firms"):
            pair = [row for row in mine if f"[{measure}]" in ran.release.keys[row]]
            assert len(pair) in (1, 2)
            assert len({ran.shown(row) for row in pair}) == 1
    assert CellStatus.CONFIDENTIAL in ran.release.status.tolist()
    assert set(ran.cells.decimals.tolist()) == {0, 3}


def test_answers_without_cells_and_rules_are_no_trouble(tmp_path: Path, store: Store) -> None:
    nothing = "SELECT NON EMPTY {[Size].[Size].&[large]} ON COLUMNS FROM [Firms] WHERE ([Place].[Town].&[c1])"
    rows = [row for row in firms() if row["size"] != "large" or row["town"] != "c1"]
    publication = 'languages = ["en"]\ntitle.en = "T"\n[confidentiality.Firms]\n' + "".join(
        f"{name}.rules = []\n" for name in ("Firms", "Turnover")
    )
    sheets = {"a": sheet(nothing), "b": sheet("SELECT {[Measures].[Firms]} ON COLUMNS FROM [Firms]")}
    ran = Ran(write_office(tmp_path / "office", rows, publication, sheets=sheets), store)
    assert ran.status["cells"] == 1
    assert ran.status["problems"] == 0
    assert ran.release.values.tolist() == [len(rows)]
