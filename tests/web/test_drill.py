"""Opening a member brings its parts in from the release, and nothing that isn't there."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from lxml import html
from openpyxl import load_workbook
from pyarrow import parquet as pq
from starlette.types import ASGIApp

from app.domain.masked import Axis, CellStatus, Layout
from app.domain.places import SEPARATOR, Places
from app.serve.answer import LiveReader
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.test_sentinel import spellings
from tests.web.visitor import ask, read_table

YEAR = "[Year].[Year].&[2023]"
ADDRESS = ("territory/places", "table", (YEAR,))


def closed(layout: Layout, deepest: int) -> Layout:
    """The layout without the rows below a level."""
    columns = len(layout.axes[0].positions)
    kept = [n for n, (place,) in enumerate(layout.axes[1].positions) if place.depth <= deepest]
    take = (np.array(kept)[:, None] * columns + np.arange(columns)).reshape(-1)
    rows = Axis(tuple(layout.axes[1].positions[n] for n in kept))
    return replace(layout, axes=(layout.axes[0], rows), cell=layout.cell[take], style=layout.style[take])


def office(deepest: int, lost: frozenset[int] = frozenset()) -> tuple[MemoryStore, Layout]:
    """A store whose table shows the upper levels alone; ``lost`` rows have no place in the release."""
    store = MemoryStore()
    whole = store._made[ADDRESS]
    store._made[ADDRESS] = closed(whole, deepest)
    places = store._catalogue.places["Tax"]
    left = np.array([row not in lost for row in places.row.tolist()])
    store._catalogue = replace(
        store._catalogue, places={"Tax": Places(places.coords[left], places.row[left])}
    )
    return store, whole


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(office(0)[0])


def test_opening_everything_gives_the_whole_table() -> None:
    store, whole = office(0)
    reader = LiveReader(store)
    geography = store.office.cube.hierarchies[0].unique_names
    assert reader.answer("r1", *ADDRESS).openable() == {geography[0]}
    opened = reader.answer("r1", *ADDRESS, opened=geography)
    published = LiveReader(MemoryStore()).answer("r1", *ADDRESS).masked
    order = [p[0].unique_name for p in opened.masked.axes[1].positions]
    assert sorted(order) == sorted(p[0].unique_name for p in whole.axes[1].positions)
    assert order[:2] == [geography[0], geography[1]]
    assert opened.openable() == frozenset()
    shape = (len(order), -1)
    rows = [[p[0].unique_name for p in published.axes[1].positions].index(name) for name in order]
    assert np.array_equal(
        opened.masked.values.reshape(shape), published.values.reshape(shape)[rows], equal_nan=True
    )
    assert np.array_equal(opened.masked.status.reshape(shape), published.status.reshape(shape)[rows])


def test_columns_open_too() -> None:
    store, whole = office(2)
    columns = tuple(p for p in whole.axes[0].positions if p[1].depth == 0)
    taken = whole.cell.reshape(-1, 6)[:, ::3].reshape(-1)
    store._made[ADDRESS] = replace(
        whole,
        axes=(Axis(columns), whole.axes[1]),
        cell=taken,
        style=whole.style.reshape(-1, 6)[:, ::3].reshape(-1),
    )
    reader = LiveReader(store)
    opened = reader.answer("r1", *ADDRESS, opened=("[Sex].[All]",)).masked
    published = LiveReader(MemoryStore()).answer("r1", *ADDRESS).masked
    assert np.array_equal(opened.values, published.values, equal_nan=True)


def test_what_the_release_does_not_have_stays_hidden_and_is_said() -> None:
    plain = MemoryStore()
    lost = {row for cell, row in plain._rows.items() if cell[1].endswith("&[N]") and "Income" in cell[0]}
    store, _ = office(0, frozenset(lost))
    opened = LiveReader(store).answer("r1", *ADDRESS, opened=("[Geography].[All]",))
    north = opened.masked.status.reshape(-1, 6)[1]
    assert north.tolist()[3:] == [CellStatus.UNRELEASED] * 3
    assert CellStatus.SHOWN in north.tolist()[:3]
    assert np.count_nonzero(opened.masked.status == CellStatus.UNRELEASED) == 3
    page = html.fromstring(ask(create_app(store), "/en/s/territory/places?open.table.0=All").content)
    assert "3 figures of this table were not released" in page.text_content()
    assert page.xpath("//section[@id='table']//td/abbr[@title='not released']/text()") == ["[x]"] * 3
    assert "Not released: no table of this release" in page.xpath("string(//dl[@class='symbols'])")


def test_every_format_says_what_was_not_released() -> None:
    plain = MemoryStore()
    lost = {row for cell, row in plain._rows.items() if cell[1].endswith("&[N]") and "Income" in cell[0]}
    site = create_app(office(0, frozenset(lost))[0])

    def body(extension: str) -> bytes:
        answer = ask(site, f"/en/s/territory/places/table.{extension}?open.table.0=All")
        assert answer.status_code == 200, extension
        return answer.content

    frame = pd.read_csv(BytesIO(body("csv")), dtype=str, keep_default_na=False)
    missing = frame.OBS_STATUS == "O"
    assert frame[missing][["OBS_VALUE", "CONF_STATUS"]].to_numpy().tolist() == [["", ""]] * 3
    document = json.loads(body("json"))
    places = [int(place) for place, status in document["status"].items() if status == "O"]
    assert places == np.flatnonzero(missing).tolist()
    assert [document["value"][place] for place in places] == [None] * 3
    table = pq.read_table(BytesIO(body("parquet"))).to_pandas()
    assert (table.OBS_STATUS == "O").tolist() == missing.tolist()
    assert table[missing][["OBS_VALUE", "CONF_STATUS"]].isna().all(axis=None)
    assert [cell.value for row in load_workbook(BytesIO(body("xlsx"))).worksheets[0] for cell in row].count(
        "[x]"
    ) == 3
    assert body("px").decode().count('"..."') == 3
    assert body("html").decode().count('<abbr title="not released">[x]</abbr>') == 3


def test_cells_of_formulas_are_found_by_their_keys() -> None:
    store, _ = office(0)
    cells = list(store._rows)
    keys = tuple(SEPARATOR.join(("Tax", *cell)) for cell in cells)
    store.live = replace(store.live, keys=keys)
    formula = [row for row, cell in enumerate(cells) if "Income" in cell[0]]
    places = store._catalogue.places["Tax"]
    left = np.array([row not in set(formula) for row in places.row.tolist()])
    by_key = Places(
        places.coords[left],
        places.row[left],
        tuple(keys[row] for row in formula),
        np.array(formula, np.int64),
    )
    store._catalogue = replace(store._catalogue, places={"Tax": by_key})
    opened = LiveReader(store).answer(
        "r1", *ADDRESS, opened=("[Geography].[All]", "[Geography].[Region].&[N]")
    )
    whole = LiveReader(office(0)[0]).answer(
        "r1", *ADDRESS, opened=("[Geography].[All]", "[Geography].[Region].&[N]")
    )
    assert np.array_equal(opened.masked.values, whole.masked.values, equal_nan=True)
    assert CellStatus.UNRELEASED not in opened.masked.status


def test_a_page_links_a_level_deeper_and_back(site: ASGIApp) -> None:
    def toggles(path: str) -> dict[str, tuple[str, str]]:
        page = html.fromstring(ask(site, path).content)
        return {
            link.get("aria-label"): (link.get("href"), link.get("aria-expanded"))
            for link in page.xpath("//section[@id='table']//tbody//a[@class='toggle']")
        }

    path = "/en/s/territory/places?p.year=2023"
    down, state = toggles(path)["Open Whole country"]
    assert state == "false"
    further = toggles(down)
    assert further["Close Whole country"][1] == "true"
    deepest = further["Open Norland"][0]
    page = html.fromstring(ask(site, deepest).content)
    rows = [cell.rows[0] for cell in read_table(page.xpath("//section[@id='table']//table")[0])]
    assert list(dict.fromkeys(rows))[:4] == ["Whole country", "Norland", "Abeto", "Boj & Sons"]
    assert toggles(deepest)["Close Norland"][0].partition("#")[0] == down.partition("#")[0]
    csv = page.xpath("//section[@id='table']//ul[@class='downloads']//a/@href")[0]
    assert "Abeto" in ask(site, csv).text


def test_opening_holds_no_hidden_figure(site: ASGIApp) -> None:
    store = MemoryStore()
    secrets = {form for cell in store.office.hidden for form in spellings(store.office.truth[cell])}
    for form in ("places", "places/table.csv", "places/table.json", "places/table.px"):
        answer = ask(site, f"/en/s/territory/{form}?p.year=2023&open.table.0=All,N,S,E,W")
        assert answer.status_code == 200
        assert not any(secret in answer.text for secret in secrets)


@pytest.mark.parametrize(
    ("query", "status"),
    [("open.table.0=Atlantis", 404), ("open.table.1=Income", 400), ("open.table.9=N", 400)],
)
def test_branches_that_are_none_are_refused(site: ASGIApp, query: str, status: int) -> None:
    assert ask(site, f"/en/s/territory/places?{query}").status_code == status
