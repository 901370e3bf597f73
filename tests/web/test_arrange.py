"""Sorting and pivoting move masked cells about; nothing is told by where the hidden ones end up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from starlette.types import ASGIApp

from app.domain.masked import Axis, CellStatus, MaskedCellSet
from app.serve.answer import LiveReader
from app.web.app import create_app
from app.web.arrange import Arrangement, arrange, can_pivot, read_arrangement
from app.web.refusals import RefusalError
from app.web.tables import grid_of
from tests.web.office import MemoryStore
from tests.web.visitor import ReadCell, ask, read_table

PLACES = ("territory/places", "table", ("[Year].[Year].&[2023]",))
YEARS = ("time/years", "table", ())


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def masked(address: tuple[str, str, tuple[str, ...]]) -> MaskedCellSet:
    return LiveReader(MemoryStore()).answer("r1", *address).masked


def by_members(cells: MaskedCellSet) -> dict[frozenset[str], tuple[int, float | None]]:
    grid = grid_of(cells)
    return {
        frozenset(m.unique_name for m in (*row, *column)): (
            int(grid.status[r, c]),
            float(grid.values[r, c]) if grid.status[r, c] == CellStatus.SHOWN else None,
        )
        for r, row in enumerate(grid.rows)
        for c, column in enumerate(grid.columns)
    }


arrangements = st.builds(
    lambda order, cut, sort: Arrangement(tuple(order[:cut]), tuple(order[cut:]), sort),
    st.permutations([0, 1, 2]),
    st.integers(0, 3),
    st.integers(-1, 1),
)


@given(wanted=arrangements)
def test_every_arrangement_holds_the_same_cells(wanted: Arrangement) -> None:
    for address in (PLACES, YEARS):
        cells = masked(address)
        assert by_members(arrange(cells, wanted)) == by_members(cells)
        fields = dict(wanted.fields("q"))
        assert read_arrangement(fields, "q") == wanted


@pytest.mark.parametrize("sort", [1, -1, 3, -3])
def test_siblings_are_sorted_by_shown_figures_and_the_rest_comes_last(sort: int) -> None:
    grid = grid_of(arrange(masked(PLACES), Arrangement(sort=sort)))
    column = abs(sort) - 1
    families: dict[str | None, list[tuple[int, float]]] = {}
    seen: set[str] = set()
    for r, (place,) in enumerate(grid.rows):
        assert place.parent is None or place.parent in seen
        seen.add(place.unique_name)
        families.setdefault(place.parent, []).append((int(grid.status[r, column]), grid.values[r, column]))
    for family in families.values():
        shown = [value for status, value in family if status == CellStatus.SHOWN]
        assert shown == sorted(shown, reverse=sort < 0)
        assert all(status == CellStatus.SHOWN for status, _ in family[: len(shown)])


def test_levels_that_follow_one_another_are_sorted_apart() -> None:
    cells = masked(PLACES)
    rows, width = cells.axes[1].positions, len(cells.axes[0].positions)
    by_level = sorted(range(len(rows)), key=lambda row: rows[row][0].depth)
    order = [row * width + column for row in by_level for column in range(width)]
    leveled = replace(
        cells,
        axes=(cells.axes[0], Axis(tuple(rows[row] for row in by_level))),
        status=cells.status[order],
        values=cells.values[order],
        style=cells.style[order],
    )
    grid = grid_of(arrange(leveled, Arrangement(sort=-1)))
    assert [row[0].depth for row in grid.rows] == sorted(row[0].depth for row in grid.rows)
    for depth in (1, 2):
        shown = [
            grid.values[r, 0]
            for r, row in enumerate(grid.rows)
            if row[0].depth == depth and grid.status[r, 0] == CellStatus.SHOWN
        ]
        assert shown == sorted(shown, reverse=True)


def test_hidden_rows_keep_the_published_order_among_themselves() -> None:
    published = grid_of(masked(PLACES))
    hidden = [
        row[0].unique_name
        for r, row in enumerate(published.rows)
        if published.status[r, 2] == CellStatus.CONFIDENTIAL and row[0].depth == 2
    ]
    for sort in (3, -3):
        grid = grid_of(arrange(masked(PLACES), Arrangement(sort=sort)))
        for parent in {name[:-2] for name in hidden}:
            family = [row[0].unique_name for row in grid.rows if row[0].unique_name in hidden]
            assert [n for n in family if n.startswith(parent)] == [n for n in hidden if n.startswith(parent)]


def as_read(site: ASGIApp, query: str) -> list[ReadCell]:
    page = html.fromstring(ask(site, f"/en/s/territory/places{query}").content)
    return read_table(page.xpath("//section[@id='table']//table")[0])


def test_a_page_prints_the_arrangement_that_its_address_says(site: ASGIApp) -> None:
    plain = as_read(site, "?p.year=2023")
    turned = as_read(site, "?p.year=2023&pivot.table=1-2~0")
    assert {(frozenset((*c.columns, *c.rows)), c.text) for c in plain} == {
        (frozenset((*c.columns, *c.rows)), c.text) for c in turned
    }
    assert turned[0].columns == ("Whole country",)
    assert turned[0].rows == ("Taxpayers", "Both sexes")
    ordered = as_read(site, "?p.year=2023&sort.table=-1")
    regions = [c.rows[0] for c in ordered if c.columns == ("Taxpayers", "Both sexes")]
    assert [name for name in regions if name.endswith(("land", "mark"))] == [
        "Estmark",
        "Norland",
        "Sudland",
        "Westmark",
    ]


def test_choosing_another_year_keeps_the_arrangement(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/territory/places?sort.table=2&pivot.table=1-0~2").content)
    (form,) = page.xpath("//main//form[not(ancestor::details)]")
    kept = {(i.get("name"), i.get("value")) for i in form.iter("input")}
    assert kept == {("sort.table", "2"), ("pivot.table", "1-0~2")}
    languages = page.xpath("//nav[@class='languages']//a/@href")
    assert all("sort.table=2" in address for address in languages)


@pytest.mark.parametrize(
    "query",
    [
        "sort.table=99",
        "sort.table=x",
        "sort.table=1e3",
        "pivot.table=0-1",
        "pivot.table=0-0~1",
        "pivot.table=0~1~2",
        "pivot.table=9-1~2",
        "pivot.table=-1",
        "pivot.table=a~b",
    ],
)
def test_an_arrangement_that_makes_no_sense_is_refused(site: ASGIApp, query: str) -> None:
    assert ask(site, f"/en/s/territory/places?{query}").status_code == 400


def test_a_table_with_gaps_is_not_pivoted() -> None:
    cells = masked(YEARS)
    rows = cells.axes[1].positions
    width = len(cells.axes[0].positions)
    gappy = replace(
        cells,
        axes=(cells.axes[0], Axis(rows[1:])),
        status=cells.status[width:],
        values=cells.values[width:],
        style=cells.style[width:],
    )
    assert can_pivot(cells)
    assert not can_pivot(gappy)
    with pytest.raises(RefusalError):
        arrange(gappy, Arrangement((0,), (1, 2)))
