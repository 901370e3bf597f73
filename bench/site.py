"""Cost of a cached sheet page and of a 304, as ratios to bare Starlette responses of the same bytes.

The release lies in an SQLite file. Both applications are called through ASGI in one process, in turns, so
that whatever else the machine does weighs on both. Run it with ``python -m bench.site``; it needs no
network.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message

from app.db.store import StepResult, Store, open_store
from app.web.app import create_app
from tests.web.office import MemoryStore

PATH = "/en/s/territory/places"
ROUNDS = 60
REQUESTS = 300


def scope(headers: list[tuple[bytes, bytes]]) -> dict[str, object]:
    """A GET request for the page, as uvicorn hands it over."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
    }


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def fetch(app: ASGIApp, headers: list[tuple[bytes, bytes]]) -> list[Message]:
    """The messages of one answer."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope(headers), _receive, send)
    return messages


async def seconds(app: ASGIApp, headers: list[tuple[bytes, bytes]]) -> float:
    """Time of a round of requests."""
    start = perf_counter()
    for _ in range(REQUESTS):
        await fetch(app, headers)
    return perf_counter() - start


def bare(status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> Starlette:
    """The same bytes and headers by Starlette alone."""
    named = {name.decode(): value.decode() for name, value in headers}

    async def page(request: Request) -> Response:
        return Response(body, status, named)

    return Starlette(routes=[Route(PATH, page)])


async def ratio(site: ASGIApp, headers: list[tuple[bytes, bytes]]) -> tuple[float, float, int]:
    """Cost of ours over the bare one's, microseconds of ours, and the bytes of the body."""
    start, *rest = await fetch(site, headers)
    body = b"".join(message["body"] for message in rest)
    rival = bare(start["status"], body, start["headers"])
    assert b"".join(m["body"] for m in (await fetch(rival, headers))[1:]) == body
    pairs = [(await seconds(site, headers), await seconds(rival, headers)) for _ in range(ROUNDS)]
    return (
        median(ours / theirs for ours, theirs in pairs),
        median(o for o, _ in pairs) / REQUESTS * 1e6,
        len(body),
    )


def stored(folder: Path) -> Store:
    """A database with the office's release."""
    office = MemoryStore()
    store = open_store(f"sqlite:///{folder / 'bench.sqlite3'}")
    catalogue = office.catalogue(office.live.id)
    assert catalogue is not None
    store.publish(office.live, catalogue, office.layouts, StepResult("release", "", "", b"", {}, 0.0))
    return store


async def measure(folder: Path) -> None:
    """Print the ratios."""
    store = stored(folder)
    site = create_app(store)
    gzip = [(b"host", b"localhost"), (b"accept-encoding", b"gzip")]
    tag = dict((await fetch(site, gzip))[0]["headers"])[b"etag"]
    cases = {
        "cached page": [(b"host", b"localhost")],
        "cached page, gzip": gzip,
        "304": [*gzip, (b"if-none-match", tag)],
    }
    for name, headers in cases.items():
        share, microseconds, size = await ratio(site, headers)
        print(f"{name}: {share:.2f} × bare Starlette ({microseconds:.0f} µs, {size} bytes)")
    share, microseconds, _ = await ratio(create_app(store, patience=0), gzip)
    print(f"asking the database for the live release every time: {share:.2f} × ({microseconds:.0f} µs)")
    store.close()


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        asyncio.run(measure(Path(made)))
