"""Around the whole site: signs of life, limits on requests, and what operators are told of each."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.errors import OperatorError
from app.watch.metrics import Metrics
from app.watch.traces import span
from app.web.desk import RETRY_AFTER, last_words

log = logging.getLogger("celosia.requests")

#: Why the process isn't ready for requests, empty when it is. May raise `OperatorError`.
Readiness = Callable[[], str]

#: A whole address as a request's target: host, and path.
_WHOLE = re.compile(rb"https?://([^/?#]+)(/.*)?", re.IGNORECASE | re.DOTALL)
_BESIDE = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


@dataclass(frozen=True)
class Limits:
    """What a request may be: bytes of its address and of its body, by the first part of its path.

    Other paths have the limit of ``""``. Server and proxy limit headers and time.
    """

    address: int = 8192
    bodies: tuple[tuple[str, int], ...] = (("", 64 << 10), ("xmla", 1 << 20), ("api", 1 << 20))

    def body(self, part: str) -> int | None:
        """Bytes; None where the part sets limits of its own."""
        found = dict(self.bodies)
        return None if part == "studio" else found.get(part, found[""])


class Operations:
    """Answers ``/healthz`` (the process lives) and ``/readyz`` (it can answer requests), watches the rest.

    Parameters
    ----------
    app : ASGI application
    readiness
        Asked by ``/readyz`` alone: whether the process lives doesn't depend on its database.
    metrics
        Where requests are counted.
    limits
        What requests may be.
    """

    def __init__(
        self, app: ASGIApp, readiness: Readiness, metrics: Metrics | None = None, limits: Limits | None = None
    ) -> None:
        self._app = app
        self._readiness = readiness
        self._metrics = metrics
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _of_origin(scope)
        if scope["path"] == "/healthz":
            await _tell(scope, send, 200, {"status": "ok"})
        elif scope["path"] == "/readyz":
            await self._tell_ready(scope, send)
        else:
            await self._watch(scope, receive, send)

    async def _tell_ready(self, scope: Scope, send: Send) -> None:
        try:
            cause = await run_sync(self._readiness)
        except OperatorError:
            # What exactly is wrong is for the log: anybody may ask here.
            log.warning("not ready: the database doesn't answer")
            cause = "database"
        await _tell(scope, send, 503 if cause else 200, {"status": cause or "ok"})

    async def _watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        part = part_of(scope["path"])
        began = time.perf_counter()
        status = 0

        async def pass_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with span("request", part=part, method=scope["method"]) as found:
                await self._within_limits(scope, receive, pass_on)
                if found is not None:
                    found.set_attribute("http.response.status_code", status)
        finally:
            seconds = time.perf_counter() - began
            if self._metrics is not None:
                self._metrics.requests.labels(part, f"{status // 100}xx" if status else "broken").inc()
                self._metrics.seconds.labels(part).observe(seconds)
            fields = {
                "request": secrets.token_hex(4),
                "method": scope["method"],
                "part": part,
                "status": status,
                "milliseconds": round(seconds * 1000, 1),
            }
            log.info("request", extra=fields)

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self._limits.address:
            await _refuse(scope, send, 414)
            return
        limit = self._limits.body(scope["path"].split("/")[1] if "/" in scope["path"] else "")
        if limit is None:
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or int(length) > limit:
            await _refuse(scope, send, 413)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            # Longer than it said or chunked without end: for the application its sender is gone.
            return message if seen <= limit else {"type": "http.disconnect"}

        await self._app(scope, counted, send)


def _of_origin(scope: Scope) -> Scope:
    """A request whose target is a whole address, as of the address's path on its host (RFC 9112, 3.2.2)."""
    whole = _WHOLE.match(scope.get("raw_path") or b"")
    if whole is None:
        return scope
    path = whole[2] or b"/"
    headers = [item for item in scope["headers"] if item[0] != b"host"]
    headers.append((b"host", whole[1]))
    return {**scope, "path": unquote(path.decode("latin-1")), "raw_path": path, "headers": headers}


def part_of(path: str) -> str:
    """The part of the site that an address belongs to: few, for they name the series of metrics."""
    pieces = path.split("/")
    first = pieces[1] if len(pieces) > 1 else ""
    if first in ("studio", "api", "static", "xmla"):
        return first
    second = pieces[2] if len(pieces) > 2 else ""
    return {"s": "sheet", "embed": "embed", "search": "search"}.get(second, "page")


async def _refuse(scope: Scope, send: Send, status: int) -> None:
    """One sentence in the reader's language."""
    wish = next((value for name, value in scope["headers"] if name == b"accept-language"), b"")
    await _say(scope, send, status, *last_words(scope["path"], status, wish.decode("latin-1")))


async def too_many(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to who comes while there are as many connections as may be; closes this one."""
    wish = next((value for name, value in scope["headers"] if name == b"accept-language"), b"")
    said = last_words(scope["path"], 503, wish.decode("latin-1"))
    beside = [(b"retry-after", RETRY_AFTER.encode()), (b"connection", b"close")]
    await _say(scope, send, 503, *said, beside)


async def _tell(scope: Scope, send: Send, status: int, document: dict[str, str]) -> None:
    await _say(scope, send, status, "application/json", json.dumps(document).encode())


async def _say(
    scope: Scope,
    send: Send,
    status: int,
    media_type: str,
    body: bytes,
    beside: list[tuple[bytes, bytes]] | None = None,
) -> None:
    length = str(len(body)).encode()
    headers = [*_BESIDE, *(beside or ()), (b"content-type", media_type.encode()), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
