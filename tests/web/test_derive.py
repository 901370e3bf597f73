"""Shares, changes and indices are made of what a table shows, and of nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from starlette.types import ASGIApp

from app.domain.masked import CellStatus, MaskedCellSet
from app.serve.answer import LiveReader
from app.web.app import create_app
from app.web.arrange import Arrangement, arrange, read_arrangement
from app.web.refusals import RefusalError
from app.web.tables import grid_of
from tests.web.office import MemoryStore, build_cube
from tests.web.visitor import ask

CUBE = build_cube()
STORE = MemoryStore()
PLACES = ("territory/places", "table", ("[Year].[Year].&[2023]",))
YEARS = ("time/years", "table", ())
SHOWN, EMPTY, HIDDEN = CellStatus.SHOWN, CellStatus.EMPTY, CellStatus.CONFIDENTIAL
Cells = dict[tuple[str, ...], tuple[int, float]]


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(STORE)


def published(address: tuple[str, str, tuple[str, ...]]) -> MaskedCellSet:
    return LiveReader(STORE).answer("r1", *address).masked


def cells_of(masked: MaskedCellSet) -> Cells:
    """Status and value of each cell by the keys of its members."""
    grid = grid_of(masked)
    return {
        tuple(m.unique_name.rpartition("[")[2].rstrip("]") for m in (*row, *column)): (
            int(grid.status[r, c]),
            float(grid.values[r, c]),
        )
        for r, row in enumerate(grid.rows)
        for c, column in enumerate(grid.columns)
    }


def shown_as(show: str, address: tuple[str, str, tuple[str, ...]], more: str = "") -> Cells:
    wanted = read_arrangement(dict(parse_qsl(f"show.t={show}&{more}")), "t")
    assert read_arrangement(dict(wanted.fields("t")), "t") == wanted
    return cells_of(arrange(published(address), wanted, CUBE))


def state(*statuses: int) -> int:
    return next(one for one in (HIDDEN, CellStatus.UNRELEASED, EMPTY, SHOWN) if one in statuses)


@pytest.mark.parametrize(("number", "place"), [(0, 0), (2, 2)])
def test_shares_are_of_the_total_of_a_hierarchy(number: int, place: int) -> None:
    before = cells_of(published(PLACES))
    after = shown_as(f"share-{number}", PLACES)
    assert before.keys() == after.keys()
    for key, (status, value) in before.items():
        whole_status, whole = before[(*key[:place], "All", *key[place + 1 :])]
        assert after[key][0] == state(status, whole_status)
        if after[key][0] == SHOWN:
            assert after[key][1] == pytest.approx(100 * value / whole, abs=0.0500001)
    assert {status for status, _ in after.values()} == {SHOWN, EMPTY, HIDDEN}
    # A total that a reader leaves out is still what shares are of.
    kept = shown_as(f"share-{number}", PLACES, "totals.t=no")
    assert kept.items() <= {key: cell for key, cell in after.items() if not math.isnan(cell[1])}.items() | {
        pair for pair in kept.items() if math.isnan(pair[1][1])
    }


def test_changes_are_from_the_period_before() -> None:
    before = cells_of(published(YEARS))
    change, growth, index = (shown_as(show, YEARS) for show in ("change", "growth", "index"))
    for key, (status, value) in before.items():
        *rest, year = key
        earlier = before.get((*rest, str(int(year) - 1)), (EMPTY, math.nan))
        first = before[(*rest, "2021")]
        assert change[key][0] == state(status, earlier[0])
        if change[key][0] == SHOWN:
            assert change[key][1] == value - earlier[1]
            assert growth[key][1] == pytest.approx(100 * (value / earlier[1] - 1), abs=0.0500001)
        if index[key][0] == SHOWN:
            assert index[key][1] == pytest.approx(100 * value / first[1], abs=0.0500001)
        assert index[key][0] == state(status, first[0])
    assert all(change[key][0] != SHOWN for key in change if key[-1] == "2021")
    # The period before counts though nobody looks at it; an index begins where a reader does.
    later = shown_as("growth", YEARS, "pick.t.2=2023")
    assert {key: cell for key, cell in later.items() if cell[0] == SHOWN} == {
        key: cell for key, cell in growth.items() if key[-1] == "2023" and cell[0] == SHOWN
    }
    based = shown_as("index", YEARS, "pick.t.2=from:2022")
    assert {value for key, (status, value) in based.items() if key[-1] == "2022" and status == SHOWN} == {
        100.0
    }


def test_a_change_has_the_digits_of_its_measure() -> None:
    masked = published(YEARS)
    values = np.where(masked.status == SHOWN, 0.1 * np.arange(masked.values.size), np.nan)
    styles = tuple(replace(style, decimals=2) for style in masked.styles)
    made = arrange(replace(masked, values=values, styles=styles), Arrangement(show="change"), CUBE)
    shown = made.values[made.status == SHOWN]
    assert shown.size
    assert all(value == float(f"{value:.2f}") for value in shown.tolist())


def test_a_share_of_nothing_or_less_is_none() -> None:
    masked = published(PLACES)
    values = np.where(masked.status == SHOWN, -1.0, np.nan)
    values[np.flatnonzero(masked.status == SHOWN)[::2]] = 0.0
    made = arrange(replace(masked, values=values), Arrangement(show="share-0"), CUBE)
    assert not np.any(made.status == SHOWN)


@pytest.mark.parametrize(("show", "address"), [("change", YEARS), ("growth", YEARS), ("share-0", PLACES)])
@pytest.mark.parametrize("large", [1e15, 1e17, 1.7e308])
def test_a_figure_larger_than_any_number_is_none(
    show: str, address: tuple[str, str, tuple[str, ...]], large: float
) -> None:
    masked = published(address)
    shown = masked.status == SHOWN
    for odd in ([-large, large], [1e-15, large]):
        values = np.where(shown, np.resize(odd, shown.size), np.nan)
        made = arrange(replace(masked, values=values), Arrangement(show=show), CUBE)
        assert np.isfinite(made.values[made.status == SHOWN]).all()
        assert np.isnan(made.values[made.status != SHOWN]).all()


shows = st.sampled_from(["share-0", "share-2", "change", "growth", "index"])


@settings(deadline=None, max_examples=60)
@given(
    show=shows,
    address=st.sampled_from([PLACES, YEARS]),
    totals=st.booleans(),
    empty=st.booleans(),
    sort=st.integers(-1, 1),
    data=st.data(),
)
def test_what_is_hidden_decides_nothing(
    show: str,
    address: tuple[str, str, tuple[str, ...]],
    totals: bool,
    empty: bool,
    sort: int,
    data: st.DataObject,
) -> None:
    """Other cells hidden: a figure is as it was, or hidden for an operand that now is; none appears."""
    wanted = Arrangement(show=show, totals=totals, empty=True)
    before = published(address)
    try:
        first = cells_of(arrange(before, wanted, CUBE))
    except RefusalError:
        return
    some = data.draw(st.sets(st.integers(0, before.status.size - 1), max_size=12))
    status, values = before.status.copy(), before.values.copy()
    status[list(some)], values[list(some)] = HIDDEN, np.nan
    after = replace(before, status=status, values=values)
    second = cells_of(arrange(after, wanted, CUBE))
    for key, cell in second.items():
        assert cell[0] in (HIDDEN, first[key][0])
        assert cell[1] == first[key][1] or math.isnan(cell[1])
    hidden = {key for key, cell in cells_of(after).items() if cell[0] == HIDDEN}
    assert all(second[key][0] == HIDDEN for key in hidden & second.keys())
    # A row that has a hidden cell is never an empty one, nor is its column.
    left = cells_of(arrange(after, replace(wanted, empty=empty, sort=sort), CUBE))
    assert {key for key, cell in second.items() if cell[0] != EMPTY} <= left.keys()


def test_empty_rows_and_columns_may_be_left_out_and_hidden_ones_stay() -> None:
    masked = published(PLACES)
    shape = (len(masked.axes[1].positions), len(masked.axes[0].positions))
    status, values = masked.status.reshape(shape).copy(), masked.values.reshape(shape).copy()
    status[2:5], values[2:5] = EMPTY, np.nan
    status[:, 1], values[:, 1] = EMPTY, np.nan
    status[3, 4] = HIDDEN
    status[4, 4] = CellStatus.UNRELEASED
    made = replace(masked, status=status.reshape(-1), values=values.reshape(-1))
    left = arrange(made, Arrangement(empty=False), CUBE)
    gone = {m[0].unique_name for m in masked.axes[1].positions} - {
        m[0].unique_name for m in left.axes[1].positions
    }
    assert gone == {masked.axes[1].positions[2][0].unique_name}
    assert len(left.axes[0].positions) == shape[1] - 1
    none = np.full(masked.status.size, EMPTY)
    nothing = replace(masked, status=none, values=np.full(none.size, np.nan))
    assert arrange(nothing, Arrangement(empty=False), CUBE).shape == masked.shape


@pytest.mark.parametrize(
    ("show", "address"),
    [("share-1", PLACES), ("share-9", PLACES), ("change", PLACES), ("share-2", YEARS)],
)
def test_what_a_table_cannot_show_is_refused(
    site: ASGIApp, show: str, address: tuple[str, str, tuple[str, ...]]
) -> None:
    for form in ("", "/table.csv"):
        answer = ask(site, f"/en/s/{address[0]}{form}?show.table={show}")
        assert answer.status_code == 400
        assert f"can't be shown as “{show}”" in html.fromstring(answer.content).text_content()


def test_table_chart_and_files_say_what_they_show(site: ASGIApp) -> None:
    state = "show.lines=growth&pick.lines.1=from:2022"
    address = "/es/s/time/years"
    page = html.fromstring(ask(site, f"{address}?{state}").content)
    block = page.get_element_by_id("lines")
    assert "Se muestra como: Variación respecto al periodo anterior, en %" in " ".join(
        block.text_content().split()
    )
    assert "Unidad: %" in " ".join(block.text_content().split())
    assert block.xpath(".//figure")
    files = {kind: ask(site, f"{address}/lines.{kind}?{state}") for kind in ("json", "px", "svg")}
    assert "en %" in files["json"].json()["label"]
    assert 'UNITS="%";' in files["px"].text
    assert "en %" in " ".join(html.fromstring(files["svg"].content).text_content().split())


def test_the_form_offers_what_there_is_and_keeps_what_was_chosen(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/territory/places?edit=table&show.table=share-2").content)
    (select,) = page.xpath("//select[@name='show.table']")
    assert [option.get("value") for option in select] == ["", "share-0", "share-2"]
    assert [option.text for option in select if option.get("selected") is not None] == [
        "Per cent of “Both sexes”"
    ]
    page = html.fromstring(ask(site, "/en/s/time/years?edit=table").content)
    (select,) = page.xpath("//select[@name='show.table']")
    assert [option.get("value") for option in select] == [
        "",
        "share-0",
        "share-1",
        "change",
        "growth",
        "index",
    ]
    sent = ask(site, "/en/s/time/years?place.table.0=rows&show.table=index&empty.table=no")
    assert sent.headers["location"].endswith("show.table=index&empty.table=no#table")
