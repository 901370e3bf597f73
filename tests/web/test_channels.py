"""Nothing leaks: each way out of the site, and no hidden figure takes it.

Of every channel two things are asked. No byte of it holds a hidden figure in any spelling. And two offices
that differ in nothing but their hidden figures answer alike, status, headers and bodies, so that neither an
order, a length, a tag nor a message can depend on what is hidden.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache

import httpx
import pytest
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.domain.errors import OperatorError
from app.web.app import create_app
from app.web.builder import QUERY_FORMATS
from app.web.formats.registry import FORMATS, formats_for
from app.web.limits import Limits
from tests.web.office import MemoryStore
from tests.web.test_sentinel import opened, spellings
from tests.web.visitor import ask

SHEETS = {
    "territory/places": ("table", "bars"),
    "territory/towns": ("table", "stacked"),
    "territory/map": ("map",),
    "time/years": ("table", "lines"),
}
VIEWS = {"bars": "chart", "stacked": "chart", "lines": "chart", "map": "map"}
PAGES = [f"/en/s/{sheet}" for sheet in SHEETS]
FILES = [
    f"/en/s/{sheet}/{query}.{form.extension}"
    for sheet, queries in SHEETS.items()
    for query in queries
    for form in formats_for(VIEWS.get(query, "table"))
    if form.extension != "png" or query == "bars"
]
LISTS = [form.extension for form in FORMATS if not form.whole]
FLOWS = [f"/api/v1/data/dataflow/*/{flow}/*" for flow in ("Tax", "time_years_table", "territory_map_map")]
QUERIES = [
    "SELECT {[Measures].Members} ON 0, NON EMPTY [Geography].[Town].Members ON 1 FROM [Tax]",
    "SELECT {[Measures].[Income]} ON 0, Order([Geography].[Town].Members, [Measures].[Income], BDESC) ON 1 "
    "FROM [Tax] WHERE ([Year].[Year].&[2022])",
    "SELECT {[Measures].[Income]} ON 0, TopCount([Geography].[Town].Members, 3, [Measures].[Income]) ON 1 "
    "FROM [Tax] WHERE ([Sex].[Sex].&[W])",
    "SELECT {[Measures].[Income]} ON 0, Filter([Geography].[Town].Members, [Measures].[Income] > 7000000) "
    "ON 1 FROM [Tax] WHERE ([Sex].[Sex].&[W])",
    "WITH MEMBER [Measures].[Twice] AS 2 * [Measures].[Income] SELECT {[Measures].[Twice]} ON 0, "
    "[Geography].[Town].Members ON 1 FROM [Tax] WHERE ([Sex].[Sex].&[W])",
    "WITH MEMBER [Measures].[Big] AS IIf([Measures].[Income] > 7000000, 1, 0) "
    "SELECT {[Measures].[Big]} ON 0, [Geography].[Town].Members ON 1 FROM [Tax] WHERE ([Sex].[Sex].&[W])",
    "WITH MEMBER [Measures].[Word] AS CStr([Measures].[Income]) SELECT {[Measures].[Word]} ON 0, "
    "[Geography].[Town].Members ON 1 FROM [Tax] WHERE ([Sex].[Sex].&[W])",
    "SELECT {[Measures].[Income]} ON 0, [Nope].Members ON 1 FROM [Tax]",
]

Answers = Iterator[tuple[str, httpx.Response]]


def get(*paths: str, **headers: str) -> Callable[[ASGIApp], Answers]:
    """A channel of plain requests."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}

    def channel(app: ASGIApp) -> Answers:
        for path in paths:
            yield path, ask(app, path, headers=told)

    return channel


def heads(app: ASGIApp) -> Answers:
    for path in (*PAGES, *FILES, *FLOWS):
        yield path, ask(app, path, "HEAD")


def parts(app: ASGIApp) -> Answers:
    for path in (*PAGES, *FILES):
        for wish in ("bytes=0-99", "bytes=200-", "bytes=-50", "bytes=999999999-"):
            yield f"{path} {wish}", ask(app, path, headers={"range": wish})


def tags(app: ASGIApp) -> Answers:
    for path in (*PAGES, *FILES, *FLOWS):
        for coding in ("identity", "gzip", "zstd"):
            first = ask(app, path, headers={"accept-encoding": coding})
            told = {"accept-encoding": coding, "if-none-match": first.headers["etag"]}
            again = ask(app, path, headers=told)
            assert again.status_code == 304
            yield f"{path} {coding}", again


def repeated(app: ASGIApp) -> Answers:
    for path in (*PAGES, *FILES, *PAGES, *FILES):
        yield path, ask(app, path)


def queries(app: ASGIApp) -> Answers:
    for number, mdx in enumerate(QUERIES):
        for form in QUERY_FORMATS:
            address = f"/api/v1/mdx?format={form.extension}&lang=en"
            yield (
                f"{number} {form.extension}",
                ask(app, address, "POST", {"content-type": "text/plain"}, mdx.encode()),
            )
        yield f"{number} page", ask(app, f"/es/query?{httpx.QueryParams(mdx=mdx)}")


#: Every channel: what a reader can fetch, by name.
CHANNELS: Mapping[str, Callable[[ASGIApp], Answers]] = {
    "pages, attributes, scripts, charts, maps": get(*PAGES, "/en/", "/en/f/territory", "/en/confidentiality"),
    "exports": get(*FILES),
    "other languages": get(*(f"/es{path[3:]}" for path in (*PAGES, *FILES) if path[-4:] != ".png")),
    "frames": get(*(f"/en/embed/{sheet}/{query}" for sheet, own in SHEETS.items() for query in own)),
    "order of rows": get(
        *(
            f"{page}?sort.{query}={n}"
            for page in PAGES[:1]
            for query in ("table", "bars")
            for n in (1, -1, 2, -2)
        )
    ),
    "choices of a sheet": get(
        *(f"/en/s/territory/towns?p.region={r}&p.year={y}" for r in "NSEW" for y in (2021, 2022))
    ),
    "data for programs": get(
        *(f"{flow}?format={f.extension}" for flow in FLOWS for f in FORMATS if not f.whole)
    ),
    "filters and pages of data": get(
        *(
            f"{FLOWS[0]}?{wish}"
            for wish in ("lastNObservations=1", "c[Sex]=W", "limit=5&offset=20", "Geography=N1,N2")
        )
    ),
    "readers' own queries": queries,
    "feed, sitemap, catalogues": get(
        "/en/feed.atom", "/es/feed.atom", "/sitemap.xml", "/catalog.ttl", "/catalog.jsonld"
    ),
    "search": get(*(f"/en/search?q={word}" for word in ("granado", "income", "7310", "7.310", "women", ""))),
    "descriptions for programs": get(
        "/api/v1/openapi.json",
        "/api/v1/catalogue.json",
        "/api/v1/structure/Tax.json",
        "/api/v1/dataflows",
        "/en/api",
    ),
    "structures of data": get(*(flow.replace("/data/", "/structure/") for flow in FLOWS)),
    "errors": get(
        "/en/s/nope",
        "/en/s/time/years/table.exe",
        "/en/s/time/years?p.x=1",
        "/en/s/time/years?sort.table=x",
        f"{FLOWS[0]}?c[OBS_VALUE]=gt:7000000",
        f"{FLOWS[0]}?c[Geography]=gt:7310",
        f"{FLOWS[0]}/7310.*",
        "/api/v1/nope",
        f"{FLOWS[0]}?c[Geography]=gt:7310",
        f"{FLOWS[0]}/7310.*",
        "/api/v1/nope",
        "/en/query?mdx=SELECT",
        "/en/query?cube=7310",
    ),
    "HEAD": heads,
    "parts of files": parts,
    "tags and 304": tags,
    "repeated answers": repeated,
    "old releases": get(*(f"/r/r0{path}" for path in (*PAGES, *FILES, *FLOWS))),
    "old releases by moment": get(*(f"{path}?asOf=2026-11-26T12:00:00Z" for path in FILES)),
    "health and robots": get("/healthz", "/robots.txt", "/"),
}


def store_with(shift: float) -> MemoryStore:
    """The office with its hidden figures, or with others in their place, and a superseded release of it."""
    store = MemoryStore()
    for number, cell in enumerate(sorted(store.office.hidden)):
        store.office.truth[cell] += shift * (3 + number % 7)
    fresh, _ = store.office.release()
    store.live = fresh
    before = fresh.created - timedelta(days=2)
    store.old = [replace(fresh, id="r0", state="superseded", created=before)]
    return store


@cache
def site(shift: float) -> tuple[MemoryStore, ASGIApp]:
    store = store_with(shift)
    return store, create_app(store, asker=query_asker())


@cache
def wanted() -> frozenset[str]:
    found: set[str] = set()
    for shift in (0.0, 1000.0):
        office = site(shift)[0].office
        for cell in office.hidden:
            found |= spellings(office.truth[cell])
    return frozenset(found)


@pytest.mark.parametrize("name", CHANNELS)
def test_no_hidden_figure_takes_this_way_out(name: str, caplog: pytest.LogCaptureFixture) -> None:
    channel = CHANNELS[name]
    with caplog.at_level(logging.DEBUG):
        answers = dict(channel(site(0.0)[1]))
        others = dict(channel(site(1000.0)[1]))
    assert len(wanted()) > 100
    assert answers.keys() == others.keys()
    assert any(response.status_code < 500 for response in answers.values())
    for address, response in answers.items():
        other = others[address]
        assert response.status_code < 500, address
        assert (response.status_code, response.content) == (other.status_code, other.content), address
        assert response.headers == other.headers, address
        whole = response.status_code != 206
        text = opened(response.content) if whole else response.content.decode("latin-1")
        text += json.dumps(dict(response.headers))
        assert not any(form in text for form in wanted()), address
    assert not any(form in caplog.text for form in wanted())


@pytest.mark.parametrize(("failure", "status"), [(OperatorError, 503), (RuntimeError, 500)])
def test_a_failure_while_answering_says_nothing_in_page_or_log(
    caplog: pytest.LogCaptureFixture, failure: type[Exception], status: int
) -> None:
    store = store_with(0.0)
    figures = [str(store.office.truth[cell]) for cell in sorted(store.office.hidden)]

    def broken(release_id: str) -> None:
        raise failure(f"row {figures}")

    store.release = broken  # type: ignore[method-assign,assignment]
    app = create_app(store, asker=query_asker())
    with caplog.at_level(logging.DEBUG):
        answers = [response for _, response in get(*PAGES, *FILES, *FLOWS)(app)]
        answers += [response for _, response in queries(app)]
    assert {response.status_code for response in answers} == {status}
    assert failure.__name__ in caplog.text
    for response in answers:
        assert not any(form in response.text for form in figures)
    assert not any(form in caplog.text for form in figures)


def test_a_kept_answer_asks_nothing_whose_time_could_tell() -> None:
    """What was answered once is answered from memory: neither cells nor layouts are looked at again."""
    store = store_with(0.0)
    app = create_app(store)
    paths = [*PAGES, *FILES]
    first = [ask(app, path) for path in paths]

    def never(*_: object) -> None:
        raise AssertionError("cells were looked at")

    store.release = store.layout = store.catalogue = never  # type: ignore[method-assign,assignment]
    again = [ask(app, path) for path in paths]
    assert [(r.content, r.headers) for r in again] == [(r.content, r.headers) for r in first]


def test_a_client_that_is_sent_away_hears_no_figure() -> None:
    app = create_app(store_with(0.0), limits=Limits(0.001, 1, here=True))
    answers = [ask(app, path) for path in (*PAGES, *FLOWS)]
    assert {response.status_code for response in answers[1:]} == {429}
    for response in answers:
        text = response.text + json.dumps(dict(response.headers))
        assert not any(form in text for form in wanted())
