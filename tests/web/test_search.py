"""Finding tables by the words of their titles, members, units and notes, in the reader's language."""

from __future__ import annotations

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.visitor import ask


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def found(site: ASGIApp, words: str, language: str = "en") -> list[tuple[str, list[str]]]:
    response = ask(site, f"/{language}/search?q={words}")
    assert response.status_code == 200
    page = html.fromstring(response.content)
    return [
        (item.xpath("string(./h2/a/@href)"), item.xpath("./ul/li/a/@href"))
        for item in page.xpath("//ol[@class='results']/li")
    ]


def test_a_title_is_found_first(site: ASGIApp) -> None:
    assert found(site, "map income")[0][0] == "/en/s/territory/map"
    assert found(site, "Year by year")[0][0] == "/en/s/time/years"


@pytest.mark.parametrize("words", ["pueblos", "PUEBLO", "region pueblo", "Región", "pueb"])
def test_plurals_accents_case_and_beginnings_do_not_matter(site: ASGIApp, words: str) -> None:
    assert "/es/s/territory/towns" in [address for address, _ in found(site, words, "es")]


def test_a_member_leads_to_the_table_with_the_choice_that_shows_it(site: ASGIApp) -> None:
    results = dict(found(site, "granado"))
    assert results["/en/s/territory/towns"] == ["/en/s/territory/towns?p.region=E"]
    assert results["/en/s/territory/map"] == ["/en/s/territory/map"]
    page = ask(site, "/en/s/territory/towns?p.region=E")
    assert "Granado" in page.text


def test_every_word_must_be_met(site: ASGIApp) -> None:
    assert found(site, "granado nowhere") == []
    response = ask(site, "/es/search?q=nada+de+eso")
    assert "Pruebe" in response.text


@pytest.mark.parametrize("words", ["", "%20", "%3Cscript%3E", "a" * 5000, "%F0%9F%A6%8A", "'%22%26", "%00"])
def test_odd_words_do_no_harm(site: ASGIApp, words: str) -> None:
    response = ask(site, f"/en/search?q={words}")
    assert response.status_code == 200
    assert "<script>" not in response.text
    assert len(response.content) < 30_000


def test_figures_are_not_searched(site: ASGIApp) -> None:
    assert found(site, "552") == []
