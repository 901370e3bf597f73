"""Signs of figures that are not shown: explained where they are and nowhere else, each counted once."""

from __future__ import annotations

import io
import re
from urllib.parse import urlencode

import openpyxl
import pytest
from lxml import html
from starlette.types import ASGIApp

from app.serve.adhoc import Adhoc
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.visitor import ask

SHEETS = (
    "territory/places",
    "territory/places?p.year=2021&pick.table.0=All&chart.bars=table",
    "territory/places?show.table=share-0",
    "territory/towns?p.region=E",
    "territory/towns?p.region=W",
    "territory/towns?p.region=N&chart.stacked=pyramid&chart.table=bar",
    "territory/towns?p.region=S&empty.table=no&chart.stacked=table",
    "territory/map",
    "territory/map?p.year=2021",
    "time/years",
    "time/years?show.lines=growth",
)
QUERIES = (
    "SELECT [Sex].[Sex].Members ON 0, [Geography].[Town].Members ON 1 FROM [Tax]",
    "SELECT {[Sex].[All]} ON 0, {[Geography].[All]} ON 1 FROM [Tax]",
)
#: The signs, and what pages say of them.
MEANING = {"[c]": "Confidential:", "[x]": "Not released:", "–": "There is nothing to count."}


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore(), asker=Adhoc())


def signs_in(page: html.HtmlElement) -> set[str]:
    """The signs in tables and drawings; tiles and outlines without words are told by their titles."""
    words = {text.strip() for td in page.iter("td") for text in td.itertext()}
    drawings = [svg for svg in page.iter("svg") if svg.get("aria-hidden") is None]
    words |= {text.text_content().strip() for svg in drawings for text in svg.iter("text")}
    return words & MEANING.keys()


@pytest.mark.parametrize("path", SHEETS)
def test_a_sheet_explains_the_signs_that_it_shows(site: ASGIApp, path: str) -> None:
    response = ask(site, f"/en/s/{path}")
    assert response.status_code == 200
    page = html.fromstring(response.content)
    told = {dt.text: dt.getnext().text_content() for dt in page.xpath("//dl[@class='symbols']//dt")}
    assert told.keys() == signs_in(page)
    assert all(text.strip().startswith(MEANING[sign]) for sign, text in told.items())
    assert page.xpath("//section[@class='about']//a[contains(@href, 'confidentiality')]")


def test_some_sheets_show_no_hidden_figure_and_some_do(site: ASGIApp) -> None:
    found = {"[c]" in signs_in(html.fromstring(ask(site, f"/en/s/{path}").content)) for path in SHEETS}
    assert found == {True, False}


@pytest.mark.parametrize("region", ["N", "S", "E", "W"])
@pytest.mark.parametrize("query", ["table", "stacked"])
def test_a_frame_and_files_explain_the_signs_that_they_show(site: ASGIApp, region: str, query: str) -> None:
    frame = html.fromstring(ask(site, f"/en/embed/territory/towns/{query}?p.region={region}").content)
    source = frame.find_class("source")[0].text_content()
    assert ("[c]" in source) is ("[c]" in signs_in(frame))
    path = f"/en/s/territory/towns/{query}"
    fragment = html.fromstring(ask(site, f"{path}.html?p.region={region}").text)
    said = " ".join(p.text_content() for p in fragment.iter("p"))
    assert (MEANING["[c]"] in said) is ("[c]" in signs_in(fragment))
    book = openpyxl.load_workbook(io.BytesIO(ask(site, f"{path}.xlsx?p.region={region}").content))
    cells = {str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row}
    explained = {sign for sign in MEANING if any(f"{sign} {MEANING[sign]}" in text for text in cells)}
    assert explained == signs_in(fragment)
    note = re.search(r"^NOTE=(.*?);", ask(site, f"{path}.px?p.region={region}").text, re.M | re.S)
    assert note is not None
    assert (".. Conf" in note[1]) is ("[c]" in signs_in(fragment))


@pytest.mark.parametrize("mdx", QUERIES)
def test_an_own_query_explains_the_signs_that_its_answer_shows(site: ASGIApp, mdx: str) -> None:
    page = html.fromstring(ask(site, f"/en/query?{urlencode({'mdx': mdx})}").content)
    said = " ".join(p.text_content() for p in page.find_class("count"))
    for sign in ("[c]", "[x]"):
        assert (f"{sign} {MEANING[sign]}" in said) is (sign in signs_in(page))


def counted(page: html.HtmlElement) -> int:
    found = re.search(r"(\d+) figures? on this page (?:is|are) confidential", page.text_content())
    return int(found[1]) if found else 0


def hidden_in(page: html.HtmlElement, block: str) -> int:
    return len([td for td in page.get_element_by_id(block).iter("td") if td.text_content() == "[c]"])


def test_a_figure_in_a_table_and_in_a_chart_is_one_figure(site: ASGIApp) -> None:
    """The bars' figures are in the table too, which has others besides."""
    page = html.fromstring(ask(site, "/en/s/territory/places").content)
    assert 0 < hidden_in(page, "bars") < hidden_in(page, "table")
    assert counted(page) == hidden_in(page, "table")
    assert page.get_element_by_id("bars").find_class("veil")


def test_what_two_queries_show_of_different_measures_counts_twice(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/territory/towns?p.region=E").content)
    assert hidden_in(page, "table")
    assert hidden_in(page, "stacked")
    assert counted(page) == hidden_in(page, "table") + hidden_in(page, "stacked")


def test_what_is_worked_out_of_a_figure_is_another_one(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/time/years?show.table=change").content)
    assert counted(page) == hidden_in(page, "table") + hidden_in(page, "lines")


def test_in_a_part_of_a_table_its_own_figures_count(site: ASGIApp) -> None:
    whole = html.fromstring(ask(site, "/en/s/time/years").content)
    page = html.fromstring(ask(site, "/en/s/time/years?pick.table.2=2021").content)
    assert counted(page) < counted(whole)
