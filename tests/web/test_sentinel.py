"""Hidden figures are unmistakable numbers here; no byte of any answer may hold one."""

from __future__ import annotations

import json
import struct
from io import BytesIO
from urllib.parse import urlencode
from zipfile import ZipFile

import httpx
import pytest
from pyarrow import parquet as pq
from starlette.types import ASGIApp

from app.serve.adhoc import Adhoc
from app.web.app import create_app
from app.web.builder import QUERY_FORMATS
from app.web.formats.registry import formats_for
from tests.web.office import MemoryStore
from tests.web.visitor import ask_all, crawl


def spellings(value: float) -> set[str]:
    """A number as anything here might write it, and its digits alone."""
    whole = int(value)
    cents = f"{value:.2f}"
    forms = {str(whole), f"{whole:,}", f"{whole:,}".replace(",", "."), cents, cents.replace(".", ",")}
    binary = {struct.pack(f"{order}d", value).decode("latin-1") for order in "<>"}
    return forms | binary | {f"{whole:,}".replace(",", " "), f"{whole:x}", f"{value:e}"[:8]}


def opened(content: bytes) -> str:
    """What an answer holds, archives unpacked."""
    if content.startswith(b"PAR1"):
        file = pq.ParquetFile(BytesIO(content))
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        kept = [group.column(number).to_dict() for group in groups for number in range(group.num_columns)]
        return f"{file.read().to_pylist()} {file.schema_arrow.metadata} {kept} {content.decode('latin-1')}"
    if not content.startswith(b"PK"):
        return content.decode("latin-1")
    with ZipFile(BytesIO(content)) as archive:
        return "".join(archive.read(name).decode("latin-1") for name in archive.namelist())


ALL_CELLS = """SELECT CrossJoin([Measures].Members, [Sex].Members) ON COLUMNS,
  CrossJoin([Geography].Members, [Year].Members) ON ROWS FROM [Tax]"""


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def site(store: MemoryStore) -> ASGIApp:
    return create_app(store, asker=Adhoc())


#: Figures that are worked out of others, and tables without what is empty.
WORKED_OUT = [
    (f"/en/s/{sheet}", query, f"{name}.{query}={value}")
    for sheet, query, kinds in (
        ("territory/places", "table", ("share-0", "share-2")),
        ("territory/places", "bars", ()),
        ("time/years", "table", ("share-0", "share-1", "change", "growth", "index")),
        ("time/years", "lines", ("change", "growth", "index")),
    )
    for name, value in (("empty", "no"), *(("show", kind) for kind in kinds))
]


def found_on(site: ASGIApp) -> dict[str, httpx.Response]:
    asked = [f"{page}?{state}" for page, _, state in WORKED_OUT]
    # Of each a file or two, all formats by turns.
    for turn, (page, query, state) in enumerate(WORKED_OUT):
        formats = list(formats_for("table" if query == "table" else "chart"))
        asked += [f"{page}/{query}.{form.extension}?{state}" for form in formats[turn % 4 :: 4]]
    answers = dict(zip(asked, ask_all(site, asked), strict=True))
    assert {response.status_code for response in answers.values()} == {200}
    return crawl(site) | answers


@pytest.fixture(scope="module")
def found(site: ASGIApp) -> dict[str, httpx.Response]:
    """Every answer that a reader finds."""
    return found_on(site)


def test_no_answer_holds_a_hidden_figure(
    store: MemoryStore, site: ASGIApp, found: dict[str, httpx.Response]
) -> None:
    office = store.office
    wanted: set[str] = set()
    for cell in office.hidden:
        wanted |= spellings(office.truth[cell])
    assert len(office.hidden) > 20
    answers = dict(found)
    shown = [path for path in answers if "/s/" in path and "." not in path.partition("?")[0]]
    for path in shown:
        bare, _, query = path.partition("?")
        for name in ("table", "bars", "stacked", "map", "lines"):
            embedded = f"{bare.replace('/s/', '/embed/')}/{name}?{query}"
            answers[embedded] = ask_all(site, [embedded])[0]
    # Every cell of a table by its own address, and as a form asks for it.
    form = "/en/s/territory/places?spot.table.row={}&spot.table.column={}"
    spots = [form.format(row, column) for row in range(1, 15) for column in range(1, 7)]
    answers |= dict(zip(spots, ask_all(site, spots), strict=True))
    led = [answers[path].headers["location"].partition("#")[0] for path in spots]
    answers |= dict(zip(led, ask_all(site, led), strict=True))
    asked = urlencode({"mdx": ALL_CELLS})
    extra = [
        *(f"/{language}/query?{asked}" for language in ("en", "es")),
        *(f"/en/query.{form.extension}?{asked}" for form in QUERY_FORMATS),
        "/en/query?place.0=rows&level.0=[Geography].[Town]&place.1=columns&build=1",
        "/es/s/territory/places?edit=table&find.table.0=a&part.table.0=2",
        "/api/v1/catalogue.json",
        "/api/v1/structure/Tax.json",
        "/healthz",
        "/robots.txt",
        "/sitemap.xml",
        "/catalog.ttl",
        "/catalog.jsonld",
        "/es/feed.atom",
        "/en/search?q=granado",
        "/es/nope",
    ]
    answers |= dict(zip(extra, ask_all(site, extra), strict=True))
    assert len(answers) > 100
    assert all(response.status_code in (200, 307, 404) for response in answers.values())
    for path, response in answers.items():
        text = opened(response.content) + json.dumps(dict(response.headers))
        for form in wanted:
            assert form not in text, f"{path} holds a hidden figure"


def test_answers_do_not_depend_on_what_is_hidden(found: dict[str, httpx.Response]) -> None:
    other = MemoryStore()
    for number, cell in enumerate(sorted(other.office.hidden)):
        other.office.truth[cell] = 3.0 + 17 * number
    other.live, _ = other.office.release()
    others = found_on(create_app(other, asker=Adhoc()))
    assert found.keys() == others.keys()
    for path, response in found.items():
        assert response.content == others[path].content
        assert response.headers == others[path].headers


@pytest.fixture(scope="module")
def pages(found: dict[str, httpx.Response]) -> dict[str, str]:
    kinds = {path: response.headers.get("content-type", "") for path, response in found.items()}
    return {path: found[path].text for path, kind in kinds.items() if kind.startswith("text/html")}


def test_scripts_and_markup_in_captions_and_notes_stay_text(pages: dict[str, str]) -> None:
    assert any("Fresno &lt;b&gt;" in page for page in pages.values())
    assert not any("<script>alert" in page or "Fresno <b>" in page for page in pages.values())


@pytest.mark.parametrize("inline", [" style=", "<style", "javascript:", " onclick=", "<script>"])
def test_pages_need_nothing_inline(pages: dict[str, str], inline: str) -> None:
    assert [path for path, page in pages.items() if inline in page] == []
