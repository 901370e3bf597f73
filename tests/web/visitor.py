"""A reader of the site: real requests through ASGI, and the tables of a page read by their headers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpx
from lxml import html
from starlette.types import ASGIApp

BASE = "http://site.test"


async def _ask(
    app: ASGIApp, requests: Iterable[tuple[str, str]], headers: dict[str, str] | None, body: bytes | None
) -> list[httpx.Response]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        return [
            await client.request(method, path, headers=headers, content=body) for method, path in requests
        ]


def ask(
    app: ASGIApp,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> httpx.Response:
    """One request."""
    return asyncio.run(_ask(app, [(method, path)], headers, body))[0]


def ask_all(
    app: ASGIApp, paths: Iterable[str], headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """Several GET requests, one after the other."""
    return asyncio.run(_ask(app, [("GET", path) for path in paths], headers, None))


def links_of(response: httpx.Response) -> set[str]:
    """Every address of the site that a page names."""
    if not response.headers.get("content-type", "").startswith("text/html"):
        return set()
    found = set()
    for _, _, link, _ in html.fromstring(response.content).iterlinks():
        whole = urljoin(str(response.url), link)
        parts = urlsplit(whole)
        if parts.netloc == urlsplit(BASE).netloc:
            found.add(parts.path + (f"?{parts.query}" if parts.query else ""))
    return found


def crawl(app: ASGIApp, start: str = "/en/") -> dict[str, httpx.Response]:
    """Every page and file that can be reached by links, and by choosing every option of every form."""
    seen: dict[str, httpx.Response] = {}
    waiting = {start}
    while waiting:
        batch = sorted(waiting)
        waiting = set()
        for path, response in zip(batch, ask_all(app, batch), strict=True):
            seen[path] = response
            waiting |= links_of(response) | _choices_of(response)
        waiting -= set(seen)
    return seen


def _choices_of(response: httpx.Response) -> set[str]:
    if not response.headers.get("content-type", "").startswith("text/html"):
        return set()
    found = set()
    chosen = bool(response.url.query)
    for form in html.fromstring(response.content).iter("form"):
        if form.xpath("ancestor::details"):
            # One change at a time, from the page as it first appears.
            kept = [(i.get("name"), i.get("value")) for i in form.iter("input")]
            for select in form.iter("select") if not chosen else ():
                for option in select.iter("option"):
                    query = httpx.QueryParams([*kept, (select.get("name"), option.get("value"))])
                    found.add(form.get("action").partition("#")[0] + "?" + str(query))
            continue
        states: list[list[tuple[str, str]]] = [[]]
        for select in form.iter("select"):
            states = [
                [*s, (select.get("name"), o.get("value"))] for s in states for o in select.iter("option")
            ]
        for state in states:
            found.add(form.get("action") + "?" + str(httpx.QueryParams(state)))
    return found


@dataclass(frozen=True)
class ReadCell:
    """A cell as somebody reads it: the headers that it stands under, and its text."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    text: str


def read_table(table: html.HtmlElement) -> list[ReadCell]:
    """The cells of a page's table with their headers, resolved from spans and scopes as HTML defines."""
    head: list[list[str]] = []
    for line in table.xpath("./thead/tr"):
        texts: list[str] = []
        for cell in line.xpath("./th"):
            words = cell.xpath("string(./span/text()[1])").strip()
            texts += [words] * int(cell.get("colspan", 1))
        head.append(texts)
    cells = []
    for body in table.xpath("./tbody"):
        group = body.xpath("./tr/th[@scope='rowgroup']")
        heading = [group[0].text_content().strip()] if group else []
        for line in body.xpath("./tr[th[@scope='row']]"):
            row = line.xpath("string(./th/text()[1])").strip()
            values = line.xpath("./td")
            assert len(values) == len(head[-1])
            for number, value in enumerate(values):
                columns = tuple(texts[number] for texts in head)
                cells.append(ReadCell(columns, (*heading, row), value.text_content().strip()))
    return cells
