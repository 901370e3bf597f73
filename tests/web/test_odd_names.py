"""Names with every odd character: what no file can hold never gets in, and breaks nothing if it does."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from urllib.parse import urlencode

import pandas as pd
import pytest
from lxml import etree
from openpyxl import load_workbook
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.domain.cube import Cube, Texts
from app.domain.texts import printable
from app.web.app import create_app
from app.web.builder import QUERY_FORMATS
from app.web.formats.registry import FORMATS
from tests.web.office import MemoryStore, Office, build_cube
from tests.web.visitor import ask

#: No XML holds these.
FORBIDDEN = "\x00\x01\x08\x0b\x0c\x1b\x1f\ufffe\uffff"
#: Odd, but text: the end of a line, marks of direction, noncharacters of other planes, what closes things.
ODD = (
    "\x7f\x85\x9b\u200d\u2028\u2029\u202e\u2066\ufdd0\ufeff\U0001fffe\U0010ffff\U0001f469\u0301"
    "\"';\\</script>&amp;]]>{{1}}%s=@"
)
PAGES = ("/en/", "/en/s/territory/places", "/en/s/territory/towns", "/en/s/territory/map", "/en/s/time/years")
OTHERS = ("/en/confidentiality", "/en/api", "/en/query", "/en/search?q=Abeto", "/en/embed/time/years/table")


def spoilt(cube: Cube, odd: str) -> Cube:
    """The cube with something odd in every caption and unit."""

    def after(texts: Texts) -> Texts:
        return {language: text + odd for language, text in texts.items()}

    return replace(
        cube,
        captions=after(cube.captions),
        hierarchies=tuple(
            replace(
                tree,
                captions=after(tree.captions),
                member_captions={
                    c: tuple(t + odd for t in texts) for c, texts in tree.member_captions.items()
                },
            )
            for tree in cube.hierarchies
        ),
        measures=tuple(replace(m, captions=after(m.captions), unit=after(m.unit)) for m in cube.measures),
    )


@pytest.fixture(scope="module", params=[FORBIDDEN, ODD], ids=["forbidden", "odd"])
def odd(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site(odd: str) -> ASGIApp:
    store = MemoryStore(Office(cube=spoilt(build_cube(), odd)))
    return create_app(store, asker=query_asker())


def test_every_page_and_feed_is_there(site: ASGIApp) -> None:
    harvested = ("/en/feed.atom", "/sitemap.xml", "/catalog.ttl", "/catalog.jsonld")
    programs = ("/api/v1/catalogue.json", "/api/v1/structure/Tax.json", "/api/v1/openapi.json")
    for path in (*PAGES, *OTHERS, *harvested, *programs, "/api/v1/dataflows"):
        response = ask(site, path)
        assert response.status_code == 200, path
        if "xml" in response.headers["content-type"]:
            etree.fromstring(response.content)
        if "json" in response.headers["content-type"]:
            json.loads(response.text)


@pytest.mark.parametrize("extension", [form.extension for form in FORMATS])
def test_every_file_can_be_had_and_read(site: ASGIApp, odd: str, extension: str) -> None:
    view = "territory/map/map" if extension in ("svg", "png") else "time/years/table"
    response = ask(site, f"/en/s/{view}.{extension}")
    assert response.status_code == 200
    if extension == "svg":
        etree.fromstring(response.content)
    if extension == "xlsx":
        book = load_workbook(BytesIO(response.content))
        said = [str(cell.value) for row in book.worksheets[0].iter_rows() for cell in row]
        assert any(printable(odd) in text for text in said)
    if extension == "csv" and odd == ODD:
        read = pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)
        assert read.apply(lambda column: column.str.endswith(odd).any()).any()
    if extension == "json":
        dimensions = json.loads(response.text)["dimension"].values()
        assert any(label.endswith(odd) for d in dimensions for label in d["category"]["label"].values())


@pytest.mark.parametrize("extension", [form.extension for form in QUERY_FORMATS])
def test_a_query_of_them_is_answered_in_every_format(site: ASGIApp, extension: str) -> None:
    mdx = "SELECT {[Measures].[Income]} ON COLUMNS, [Geography].[Town].Members ON ROWS FROM [Tax]"
    told = {"content-type": "text/plain"}
    assert ask(site, f"/api/v1/mdx?format={extension}", "POST", told, mdx.encode()).status_code == 200


@pytest.fixture(scope="module")
def sound() -> ASGIApp:
    return create_app(MemoryStore(), asker=query_asker())


PLACES = ("a name", "a text", "a format", "a comment")


@pytest.mark.parametrize("character", FORBIDDEN, ids=ascii)
@pytest.mark.parametrize("place", PLACES)
def test_a_query_with_what_no_file_can_hold_is_refused_with_its_place(
    sound: ASGIApp, character: str, place: str
) -> None:
    name, text, said, comment = (character if place == kind else "" for kind in PLACES)
    mdx = (
        f"WITH MEMBER [Measures].[a{name}] AS '1', CAPTION = 'b{text}', FORMAT_STRING = '#{said}'\n"
        f"SELECT {{[Measures].[Income]}} ON COLUMNS /* {comment} */ FROM [Tax]"
    )
    body = json.dumps({"mdx": mdx}).encode()
    response = ask(sound, "/api/v1/mdx?format=xlsx", "POST", {"content-type": "application/json"}, body)
    assert response.status_code == 400
    (mistake,) = json.loads(response.text)["errors"]
    assert f"U+{ord(character):04X}" in mistake["cause"]
    assert mistake["line"] == (2 if place == "a comment" else 1)
    page = ask(sound, f"/es/query?{urlencode({'mdx': mdx})}")
    assert page.status_code == 400
    assert "carácter de control" in page.text


def test_half_of_a_pair_is_refused(sound: ASGIApp) -> None:
    mdx = "WITH MEMBER [Measures].[a\ud800] AS '1' SELECT {[Measures].[a\ud800]} ON COLUMNS FROM [Tax]"
    body = json.dumps({"mdx": mdx}).encode()
    for form in QUERY_FORMATS:
        told = {"content-type": "application/json"}
        response = ask(sound, f"/api/v1/mdx?format={form.extension}", "POST", told, body)
        assert response.status_code == 400
        assert "half of a character" in response.text
