"""Clients that ask faster than they may."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.types import ASGIApp, Message

from app.web.app import create_app
from app.web.limits import Limits, RateLimit
from app.web.reply import NO_STORE, Reply
from tests.web.office import MemoryStore


def status(
    app: ASGIApp, client: str, path: str = "/en/", language: str = "en"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request of a client."""
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"site.test"), (b"accept-language", language.encode())],
        "client": (client, 5),
        "server": ("site.test", 80),
    }
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], headers, b"".join(m.get("body", b"") for m in messages[1:])


def test_a_client_that_asks_too_fast_is_told_when_to_go_on() -> None:
    app = create_app(MemoryStore(), limits=Limits(rate=0.25, burst=3))
    assert [status(app, "192.0.2.1")[0] for _ in range(4)] == [200, 200, 200, 429]
    code, headers, body = status(app, "192.0.2.1", "/api/v1/catalogue.json", "es")
    assert (code, headers["content-type"]) == (429, "application/problem+json")
    assert 1 <= int(headers["retry-after"]) <= 4
    assert headers["access-control-allow-origin"] == "*"
    assert headers["cache-control"] == "no-store"
    assert "Espere" in json.loads(body)["title"]
    assert "Espere" in status(app, "192.0.2.1", "/es/")[2].decode()
    assert status(app, "192.0.2.2")[0] == 200


@pytest.mark.parametrize("path", ["/static/site.css", "/healthz"])
def test_what_costs_nothing_is_never_refused(path: str) -> None:
    app = create_app(MemoryStore(), limits=Limits(rate=0.01, burst=1))
    assert {status(app, "192.0.2.1", path)[0] for _ in range(5)} == {200}


def test_this_machine_is_not_limited_unless_that_is_wanted() -> None:
    for here, codes in ((False, {200}), (True, {200, 429})):
        app = create_app(MemoryStore(), limits=Limits(rate=0.01, burst=2, here=here))
        assert {status(app, "127.0.0.1")[0] for _ in range(4)} == codes


def test_tokens_come_back_with_time_and_no_more_than_fit() -> None:
    now = [0.0]
    fine = Reply(b"x", "text/plain")
    refused = Reply(b"", "text/plain", status_code=429, cache_control=NO_STORE)
    app = RateLimit(fine, Limits(2.0, 4), lambda scope, wait: refused, clock=lambda: now[0])

    def passed(requests: int) -> int:
        return sum(status(app, "192.0.2.1")[0] == 200 for _ in range(requests))

    assert passed(10) == 4
    now[0] += 1.0
    assert passed(10) == 2
    now[0] += 3600.0
    assert passed(10) == 4


@pytest.mark.parametrize(("rate", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0), (float("nan"), 1)])
def test_a_limit_that_lets_nothing_through_is_no_limit(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="let some through"):
        Limits(rate, burst)
