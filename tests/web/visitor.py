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
    """Every page and file that can be reached by links, and by choosing every option of every form.

    Tables are rearranged by one link or option at a time, from each sheet as it first appears in the first
    language; of each arrangement one download is read, all kinds by turns.
    """
    seen: dict[str, httpx.Response] = {}
    waiting = {start}
    while waiting:
        batch = sorted(waiting)
        waiting = set()
        for path, response in zip(batch, ask_all(app, batch), strict=True):
            seen[path] = response
            waiting |= _onward(path, links_of(response) | _choices_of(response), len(seen))
        waiting -= set(seen)
    return seen


def _onward(path: str, found: set[str], turn: int) -> set[str]:
    arranged = {link for link in found if _is_arranged(link)}
    if not _is_arranged(path):
        return found if "?" not in path and path.startswith("/en/") else found - arranged
    files = sorted(link for link in arranged if not _is_page(link))
    return (found - arranged) | set(files[turn % len(files) :][:1] if files else ())


def _choices_of(response: httpx.Response) -> set[str]:
    if not response.headers.get("content-type", "").startswith("text/html"):
        return set()
    found = set()
    for form in html.fromstring(response.content).iter("form"):
        if form.get("class") == "arrange":
            kept = _kept_of(form)
            for select in form.iter("select"):
                for option in select.iter("option"):
                    changed = [pair for pair in kept if pair[0] != select.get("name")]
                    query = httpx.QueryParams([*changed, (select.get("name"), option.get("value"))])
                    found.add(form.get("action") + "?" + str(query))
            continue
        states: list[list[tuple[str, str]]] = [[]]
        for select in form.iter("select"):
            states = [
                [*s, (select.get("name"), o.get("value"))] for s in states for o in select.iter("option")
            ]
        for state in states:
            found.add(form.get("action") + "?" + str(httpx.QueryParams(state)))
    return found


def _kept_of(form: html.HtmlElement) -> list[tuple[str, str]]:
    """What a form is sent with when nothing is changed."""
    kept = [
        (i.get("name"), i.get("value"))
        for i in form.iter("input")
        if i.get("type") != "checkbox" or i.get("checked") is not None
    ]
    for select in form.iter("select"):
        chosen = [o for o in select.iter("option") if o.get("selected") is not None] or select.xpath("option")
        kept.append((select.get("name"), chosen[0].get("value")))
    return kept


def _is_arranged(path: str) -> bool:
    fields = [name for name, _ in httpx.QueryParams(urlsplit(path).query).multi_items()]
    return any(not name.startswith(("p.", "q", "v")) for name in fields)


def _is_page(path: str) -> bool:
    return "." not in urlsplit(path).path.rpartition("/")[2]


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
            words = cell.xpath("string((./span/a[@class='sort'] | ./span)[last()]/text()[1])").strip()
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
