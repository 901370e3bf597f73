"""Addresses that lead to one cell: found again however the table is arranged, and marked without scripts."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from starlette.types import ASGIApp

from app.web.app import create_app
from tests.web.large import long_store
from tests.web.office import MemoryStore
from tests.web.visitor import ask, read_table

PAGE = "/en/s/territory/places"


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def marked(site: ASGIApp, address: str) -> tuple[html.HtmlElement, list[str]]:
    """The page, and the texts of the cells that it marks."""
    response = ask(site, address)
    assert response.status_code == 200
    page = html.fromstring(response.content)
    return page, [cell.text_content() for cell in page.xpath("//td[@id='cell.table']")]


@settings(deadline=None, max_examples=25)
@given(
    row=st.integers(1, 14),
    column=st.integers(1, 6),
    state=st.sampled_from([{}, {"sort.table": "-1"}, {"p.year": "2021"}, {"totals.table": "yes"}]),
    turned=st.sampled_from(["", "2~0-1", "0-1~2", "~0-1-2", "1~0~2"]),
)
def test_a_cell_is_found_again_however_the_table_is_turned(
    site: ASGIApp, row: int, column: int, state: dict[str, str], turned: str
) -> None:
    asked = ask(site, f"{PAGE}?{urlencode({**state, 'spot.table.row': row, 'spot.table.column': column})}")
    assert asked.status_code == 307
    address = asked.headers["location"]
    assert address.endswith("#cell.table")
    page, texts = marked(site, address)
    cells = read_table(page.xpath("//*[@id='table']//table")[0])
    cell = cells[(row - 1) * 6 + column - 1]
    assert texts == [cell.text]
    (said,) = page.find_class("spotted")
    for name in (*cell.rows[-1:], *cell.columns):
        assert name in said.text_content()
    fields = dict(parse_qsl(urlsplit(address).query))
    members = fields["cell.table"].split(",")
    assert len(members) == 3
    if turned:
        there, texts = marked(
            site, f"{PAGE}?{urlencode({**fields, 'sort.table': '', 'pivot.table': turned})}"
        )
        kept = turned != "1~0~2" or members[2] == "All"
        assert texts == ([cell.text] if kept else [])
        assert ("isn't in this table" in there.find_class("spotted")[0].text_content()) is not kept


def test_only_the_named_query_of_a_page_is_marked_and_its_files_are_as_ever(site: ASGIApp) -> None:
    page, texts = marked(site, f"{PAGE}?cell.table=N1,Income,W")
    assert len(texts) == 1
    assert len(page.find_class("here")) == 1
    links = [a.get("href") for a in page.xpath("//*[@class='downloads']//a")]
    assert links
    assert not any("cell." in link for link in links)
    assert "cell." not in page.find_class("spotted")[0].find("a").get("href")


def test_a_cell_far_down_is_on_the_page_that_opens() -> None:
    site = create_app(long_store(60_000))
    address = ask(site, "/en/s/time/years?spot.table.row=20000&spot.table.column=2").headers["location"]
    page, texts = marked(site, address)
    assert len(texts) == 1
    assert "Rows 2001–" not in page.text_content()
    before = page.xpath("//nav[@class='pages']//a[contains(., 'First rows')]/@href")[0]
    assert "cell." not in before


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("cell.table=N1,Income", 400),
        ("cell.table=N1,Income,W,2023", 400),
        ("cell.table=,,", 404),
        ("cell.table=N1,Income,Nobody", 404),
        ("cell.table=%F0%9F%AB%92,Income,W", 404),
        ("spot.table.row=0&spot.table.column=1", 400),
        ("spot.table.row=15&spot.table.column=1", 400),
        ("spot.table.row=x&spot.table.column=1", 400),
        ("spot.table.row=1", 400),
        ("chart.table=pie", 400),
    ],
)
def test_what_is_no_cell_is_refused(site: ASGIApp, query: str, status: int) -> None:
    assert ask(site, f"{PAGE}?{query}").status_code == status


def test_a_hidden_cell_is_told_as_such_in_words(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, PAGE).content)
    cells = read_table(page.xpath("//*[@id='table']//table")[0])
    hidden = next(number for number, cell in enumerate(cells) if cell.text == "[c]")
    form = {"spot.table.row": hidden // 6 + 1, "spot.table.column": hidden % 6 + 1}
    there, texts = marked(site, ask(site, f"{PAGE}?{urlencode(form)}").headers["location"])
    assert texts == ["[c]"]
    assert there.find_class("spotted")[0].text_content().split(": ")[-1].startswith("confidential")
