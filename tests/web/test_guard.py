"""The last guard, around insides that try to get something out."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.domain.errors import OperatorError
from app.serve.issue import issue_stamp
from app.serve.stamp import Sealed, seal, seal_plain
from app.web.app import create_app
from app.web.guard import Guard, LeakBlockedError
from app.web.locate import Located
from app.web.reply import SEAL, Reply
from tests.web.office import MemoryStore
from tests.web.visitor import ask

SECRET = b"7310042"


def guarded(app: ASGIApp, live: str | None = "r1") -> Guard:
    async def where(scope: Scope) -> Located:
        return Located(live, scope["path"])

    return Guard(
        app,
        locate=where,
        is_data=lambda path: path.startswith("/data"),
        is_embeddable=lambda path: False,
        refusal=lambda path, status: ("text/plain", b"Sorry."),
    )


def saying(*messages: dict[str, object]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


def start(status: int = 200, **headers: str) -> dict[str, object]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": raw}


def body(content: bytes, sealed: object = None, more: bool = False) -> dict[str, object]:
    return {"type": "http.response.body", "body": content, "more_body": more, SEAL: sealed}


def assert_blocked(response: httpx.Response) -> None:
    assert response.status_code == 500
    assert response.content in (b"Sorry.", b"")
    assert SECRET not in str(response.headers).encode()
    assert response.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in response.headers["content-security-policy"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("status", [200, 206, 404, 500])
@pytest.mark.parametrize("path", ["/data", "/page"])
def test_an_unsealed_response_becomes_a_500(path: str, status: int, method: str) -> None:
    app = guarded(saying(start(status, **{"x-value": SECRET.decode()}), body(SECRET)))
    assert_blocked(ask(app, path, method))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_plain_route_of_the_framework_is_blocked(method: str) -> None:
    inside = FastAPI()
    inside.add_api_route("/data/json", lambda: JSONResponse({"value": 7310042}), methods=["GET"])
    inside.add_api_route("/data/text", lambda: PlainTextResponse(SECRET), methods=["GET"])
    inside.add_api_route(
        "/data/stream", lambda: StreamingResponse(iter([b"a", SECRET])), methods=["GET"], response_model=None
    )
    for path in ("/data/json", "/data/text", "/data/stream", "/openapi.json", "/nowhere"):
        assert_blocked(ask(guarded(inside), path, method))


def test_a_sealed_page_passes_with_security_headers() -> None:
    content = b"page"
    response = ask(guarded(saying(start(), body(content, seal([issue_stamp("r1")], content)))), "/data")
    assert (response.status_code, response.content) == (200, content)
    policy = response.headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["x-content-type-options"] == "nosniff"


def test_head_sends_the_headers_of_get_and_no_body() -> None:
    inside = Reply(b"x" * 700, "text/plain", (issue_stamp("r1"),))
    got, head = (ask(guarded(inside), "/data", method) for method in ("GET", "HEAD"))
    assert head.content == b""
    assert dict(head.headers) == dict(got.headers)


@pytest.mark.parametrize("live", ["r2", None])
def test_a_seal_of_a_release_that_is_not_live_is_refused(live: str | None) -> None:
    app = guarded(saying(start(), body(SECRET, seal([issue_stamp("r1")], SECRET))), live)
    assert_blocked(ask(app, "/data"))
    assert_blocked(ask(app, "/page"))


def test_other_bytes_than_the_sealed_ones_are_refused() -> None:
    sealed = seal([issue_stamp("r1")], b"page")
    assert_blocked(ask(guarded(saying(start(), body(SECRET, sealed))), "/data"))


def test_a_forged_seal_is_refused() -> None:
    forged = object.__new__(Sealed)
    object.__setattr__(forged, "body", SECRET)
    object.__setattr__(forged, "release_id", "r1")
    assert_blocked(ask(guarded(saying(start(), body(SECRET, forged))), "/data"))


def test_a_plain_seal_is_not_enough_for_data_but_for_its_errors() -> None:
    content = b"plain"
    assert_blocked(ask(guarded(saying(start(), body(content, seal_plain(content)))), "/data"))
    response = ask(guarded(saying(start(404), body(content, seal_plain(content)))), "/data")
    assert (response.status_code, response.content) == (404, content)
    assert ask(guarded(saying(start(), body(content, seal_plain(content)))), "/page").status_code == 200


def test_a_stream_passes_chunk_by_chunk_when_each_is_sealed() -> None:
    stamp = issue_stamp("r1")
    chunks = [b"one,", b"two,", b"three"]
    messages = [body(chunk, seal([stamp], chunk), more=True) for chunk in chunks]
    response = ask(guarded(saying(start(), *messages, body(b""))), "/data")
    assert response.content == b"one,two,three"


def test_an_unsealed_chunk_cuts_the_stream_before_it() -> None:
    good = b"good"
    messages = [body(good, seal([issue_stamp("r1")], good), more=True), body(SECRET, more=True), body(b"")]
    sent: list[bytes] = []

    async def probe(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(message: dict[str, object]) -> None:
            sent.append(bytes(message.get("body", b"")))  # type: ignore[call-overload]
            await send(message)

        await guarded(saying(start(), *messages))(scope, receive, note)  # type: ignore[arg-type]

    with pytest.raises(LeakBlockedError):
        ask(probe, "/data")
    assert b"".join(sent) == good


def test_a_response_without_an_end_is_not_passed_off_as_whole() -> None:
    assert_blocked(ask(guarded(saying(start())), "/data"))
    assert_blocked(ask(guarded(saying()), "/data"))
    good = b"good"
    unfinished = saying(start(), body(good, seal([issue_stamp("r1")], good), more=True))
    with pytest.raises(LeakBlockedError):
        ask(guarded(unfinished), "/data")


@pytest.mark.parametrize(
    "message",
    [
        {"type": "http.response.pathsend", "path": "/etc/passwd"},
        {"type": "http.response.zerocopysend", "file": None},
        body(SECRET),
    ],
)
def test_messages_out_of_place_are_refused(message: dict[str, object]) -> None:
    assert_blocked(ask(guarded(saying(message)), "/data"))
    assert_blocked(ask(guarded(saying(start(), message)), "/data"))


def _raising(error: Exception) -> Callable[..., object]:
    def fail() -> None:
        raise error

    return fail


def test_an_exception_says_nothing_of_its_text(caplog: pytest.LogCaptureFixture) -> None:
    inside = FastAPI()
    inside.add_api_route("/data", _raising(ValueError(f"cell {SECRET!r}")), methods=["GET"])
    with caplog.at_level(logging.DEBUG):
        assert_blocked(ask(guarded(inside), "/data"))
    assert "ValueError" in caplog.text
    assert SECRET.decode() not in caplog.text


def test_a_store_that_fails_gives_a_clear_sentence_and_no_data(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    app = create_app(store, patience=0)
    store.releases = _raising(OperatorError("disk on fire"))  # type: ignore[method-assign,assignment]
    response = ask(app, "/es/s/time/years")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
    assert "no están accesibles" in response.text
    assert "fire" not in response.text
    assert ask(app, "/api/v1/catalogue.json").json()["status"] == 503


def test_a_store_that_fails_within_a_page_says_the_same() -> None:
    store = MemoryStore()
    app = create_app(store, patience=0)
    fail = _raising(OperatorError("disk on fire"))
    store.layout = lambda *_: fail()  # type: ignore[method-assign,assignment,return-value]
    response = ask(app, "/es/s/time/years")
    assert response.status_code == 503
    assert "no están accesibles" in response.text
    assert "fire" not in response.text
