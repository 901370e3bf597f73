"""Sorting and pivoting move masked cells about; nothing is told by where the hidden ones end up."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from urllib.parse import parse_qsl, unquote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from starlette.types import ASGIApp

from app.domain.cube import text_in
from app.domain.masked import Axis, CellStatus, MaskedCellSet
from app.serve.answer import LiveReader, NotPublishedError
from app.web.app import create_app
from app.web.arrange import Arrangement, arrange, hierarchies_of, read_arrangement
from app.web.refusals import RefusalError
from app.web.tables import branches, grid_of, nesting
from tests.web.large import long_store
from tests.web.office import MemoryStore, axis_member, build_cube
from tests.web.visitor import ReadCell, ask, read_table

CUBE = build_cube()
PLACES = ("territory/places", "table", ("[Year].[Year].&[2023]",))
YEARS = ("time/years", "table", ())


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


@cache
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


@settings(deadline=None)
@given(wanted=arrangements)
def test_every_arrangement_holds_the_same_cells(wanted: Arrangement) -> None:
    for address in (PLACES, YEARS):
        cells = masked(address)
        assert by_members(arrange(cells, wanted, CUBE)) == by_members(cells)
        fields = dict(wanted.fields("q"))
        assert read_arrangement(fields, "q") == wanted


picks = st.fixed_dictionaries(
    {},
    optional={
        0: st.sampled_from(["All,N,N1", "level:1", "level:2,E", "E3", "W"]),
        1: st.sampled_from(["Taxpayers", "Income,Taxpayers"]),
        2: st.sampled_from(["All", "level:1", "M"]),
    },
)


@settings(deadline=None)
@given(
    picks=picks,
    folded=st.dictionaries(st.sampled_from([0, 2]), st.sampled_from([("All",), ("N", "E")]), max_size=1),
    totals=st.booleans(),
    order=st.permutations([0, 1, 2]),
    cut=st.integers(0, 3),
    fixed=st.integers(0, 2),
)
def test_whatever_is_chosen_no_cell_changes_and_none_appears(
    picks: dict[int, str],
    folded: dict[int, tuple[str, ...]],
    totals: bool,
    order: list[int],
    cut: int,
    fixed: int,
) -> None:
    if "E" in folded.get(2, ()):
        folded = {}
    cells = masked(PLACES)
    rest = order[fixed:]
    wanted = Arrangement(
        rows=tuple(rest[:cut]),
        columns=tuple(rest[cut:]),
        fixed=tuple(order[:fixed]),
        picks=picks,
        folded=folded,
        totals=totals,
    )
    assert read_arrangement(dict(wanted.fields("q")), "q") == wanted
    published = by_members(cells)
    chosen = arrange(cells, wanted, CUBE)
    here = {m.unique_name for m in chosen.slicer}
    for members, cell in by_members(chosen).items():
        assert published[members | (here - {"[Year].[Year].&[2023]"})] == cell


def shown(query: str, number: int = 0) -> list[str]:
    grid = grid_of(arrange(masked(PLACES), read_arrangement(dict(parse_qsl(query)), "t"), CUBE))
    side = grid.rows if number == 0 else grid.columns
    return [text_in(position[-1].captions, "en") for position in side]


def test_members_are_chosen_by_key_and_by_level() -> None:
    assert shown("pick.t.0=level:1") == ["Norland", "Sudland", "Estmark", "Westmark"]
    assert shown("pick.t.0=W,N1") == ["Abeto", "Westmark"]
    assert shown("pick.t.0=level:1,All") == ["Whole country", "Norland", "Sudland", "Estmark", "Westmark"]
    assert shown("pick.t.2=W", 1) == ["Women", "Women"]


def test_a_choice_made_elsewhere_means_nobody_and_a_wrong_one_is_refused() -> None:
    narrow = arrange(masked(PLACES), Arrangement(picks={0: "N,N1"}), CUBE)
    assert len(grid_of(arrange(narrow, Arrangement(picks={0: "E2,N1"}), CUBE)).rows) == 1
    assert len(grid_of(arrange(narrow, Arrangement(picks={0: "E2"}), CUBE)).rows) == 2
    for query in ("pick.t.0=Atlantis", "fold.t.0=Atlantis"):
        with pytest.raises(NotPublishedError):
            shown(query)
    for query in ("pick.t.0=last:2", "pick.t.0=level:x", "pick.t.7=N", "totals.t=perhaps", "page.t=0"):
        with pytest.raises(RefusalError):
            shown(query)


def test_branches_close_and_totals_go() -> None:
    assert shown("fold.t.0=N,S,E,W") == ["Whole country", "Norland", "Sudland", "Estmark", "Westmark"]
    assert shown("fold.t.0=All") == ["Whole country"]
    towns = shown("totals.t=no")
    assert "Norland" not in towns
    assert len(towns) == 9
    assert shown("totals.t=no&pick.t.0=N,S") == ["Norland", "Sudland"]


def periods(pick: str) -> list[str]:
    cells = arrange(masked(YEARS), Arrangement(picks={2: pick}), CUBE)
    return [column[0].unique_name[-5:-1] for column in grid_of(cells).columns]


def test_periods_follow_the_release() -> None:
    assert periods("from:2022") == ["2022", "2023"]
    assert periods("last:2") == ["2022", "2023"]
    assert periods("last:99") == ["2021", "2022", "2023"]
    assert periods("2021") == ["2021"]


def test_a_sheet_can_follow_the_latest_period(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/territory/places?p.year=last:1").content)
    (chosen,) = page.xpath("//select[@name='p.year']/option[@selected]")
    assert chosen.text == "The latest: 2023"
    links = page.xpath("//section[@id='table']//ul[@class='downloads']//a/@href")
    assert all("p.year=last%3A1" in link for link in links)
    assert ask(site, links[0]).text == ask(site, links[0].replace("last%3A1", "2023")).text
    assert ask(site, "/en/s/territory/towns?p.region=last:1").status_code == 404


def sent(site: ASGIApp, **fields: str | list[str]) -> str:
    query = urlencode({name.replace("_", "."): text for name, text in fields.items()}, doseq=True)
    response = ask(site, f"/en/s/territory/places?p.year=2023&{query}")
    assert response.status_code == 307
    return unquote(response.headers["location"].partition("?")[2])


def test_the_form_leads_to_the_address_of_what_it_says(site: ASGIApp) -> None:
    places, everything = ["N", "S"], ["Taxpayers", "Income"]
    assert sent(site, which_table_0="ticked", tick_table_0=places) == "p.year=2023&pick.table.0=N,S#table"
    assert sent(site, which_table_0="level:1", tick_table_0=["All", "N"]).endswith(
        "pick.table.0=level:1#table"
    )
    assert sent(site, which_table_1="", tick_table_1=everything) == "p.year=2023#table"
    # Without scripts: a box was unticked, and nothing else touched.
    assert sent(site, which_table_1="", tick_table_1=everything[:1]).endswith("pick.table.1=Taxpayers#table")
    turned = sent(site, place_table_0="columns", place_table_2="fixed", sort_table="1")
    assert turned == "p.year=2023&pivot.table=~0-1~2#table"
    kept = sent(site, pivot_table="~0-1~2", one_table_2="W", totals_table="no", sort_bars="1")
    assert kept == "p.year=2023&pivot.table=~0-1~2&pick.table.2=W&totals.table=no&sort.bars=1#table"
    back = sent(site, pivot_table="~0-1~2", place_table_0="rows", place_table_2="columns")
    assert back == "p.year=2023#table"


def test_downloads_and_frames_hold_what_the_page_shows(site: ASGIApp) -> None:
    state = "?p.year=2023&pick.table.0=level:1&pick.table.2=W&pivot.table=1~0~2&totals.table=no"
    page = html.fromstring(ask(site, f"/en/s/territory/places{state}").content)
    links = page.xpath("//section[@id='table']//ul[@class='downloads']//a/@href")
    csv = next(link for link in links if ".csv" in link)
    lines = ask(site, csv).text.splitlines()[1:]
    assert len(lines) == 8
    assert all("[Sex].[Sex].&[W]" in line for line in lines)
    printed = {(cell.rows, cell.columns) for cell in as_read(site, state)}
    assert len(printed) == 8
    framed = html.fromstring(ask(site, f"/en/embed/territory/places/table{state}").content)
    (table,) = framed.iter("table")
    assert [cell.text for cell in read_table(table)] == [cell.text for cell in as_read(site, state)]


@pytest.mark.parametrize("sort", [1, -1, 3, -3])
def test_siblings_are_sorted_by_shown_figures_and_the_rest_comes_last(sort: int) -> None:
    grid = grid_of(arrange(masked(PLACES), Arrangement(sort=sort), CUBE))
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
    grid = grid_of(arrange(leveled, Arrangement(sort=-1), CUBE))
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
        grid = grid_of(arrange(masked(PLACES), Arrangement(sort=sort), CUBE))
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
    (form,) = page.xpath("//main//form[@class='choosers']")
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
        "pivot.table=0~1~2~",
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
    assert hierarchies_of(cells, CUBE).whole
    assert not hierarchies_of(gappy, CUBE).whole
    with pytest.raises(RefusalError):
        arrange(gappy, Arrangement((0,), (1, 2)), CUBE)


@pytest.mark.parametrize(
    ("keys", "depths"),
    [
        ("All N N1 N2 S S1", [0, 1, 2, 2, 1, 2]),
        # Level after level: no town lies under the last region, all do in the country.
        ("All N S N1 S1 S2", [0, 1, 1, 1, 1, 1]),
        ("N S N1 S1", [0, 0, 0, 0]),
        # Whose region isn't shown.
        ("All N1 S1", [0, 1, 1]),
        ("N N1 E1", [0, 1, 0]),
        ("N1 S1", [0, 0]),
        ("N N1 All", [0, 1, 0]),
    ],
)
def test_a_row_stands_under_what_holds_it_or_under_nothing(keys: str, depths: list[int]) -> None:
    places = CUBE.hierarchies[0]
    rows = [(axis_member(places, places.keys.index(key)),) for key in keys.split()]
    assert nesting(rows) == depths
    assert [above >= 0 for above in branches(rows)] == [depth > 0 for depth in depths]


def test_rows_of_different_groups_have_nothing_to_do_with_one_another() -> None:
    places, sexes = CUBE.hierarchies[:2]
    country, town = (axis_member(places, places.keys.index(key)) for key in ("All", "N1"))
    women, men = (axis_member(sexes, number) for number in (1, 2))
    assert nesting([(women, country), (men, town), (men, country), (men, town)]) == [0, 0, 0, 1]


def test_a_part_of_a_table_is_indented_as_the_whole() -> None:
    """The second page of a long table begins in the middle of a branch."""
    site = create_app(long_store(15_000))
    document = html.fromstring(ask(site, "/en/s/time/years?page.table=2").content)
    (first, *_) = document.xpath("//section[@id='table']//tbody/tr/th[@scope='row']")
    assert (first.text_content().strip(), first.get("class")) == ("Men", "d1")


def test_a_columns_header_sorts_the_rows_and_then_leaves_them_as_published(site: ASGIApp) -> None:
    orders, states = [], []
    address = "/en/s/territory/places?p.year=2022"
    for _click in range(4):
        page = html.fromstring(ask(site, address).content)
        (table,) = page.xpath("(//section[.//a[@class='sort']])[1]//div[@role='region']//table")
        orders.append([" ".join(row.itertext()) for row in table.xpath(".//th[@scope='row']")])
        states.append(table.xpath("string(.//th[.//a[@class='sort']][1]/@aria-sort)"))
        address = table.xpath("(.//a[@class='sort']/@href)[1]")[0]
    assert states == ["", "descending", "ascending", ""]
    assert orders[0] == orders[3] != orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
