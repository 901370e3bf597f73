"""The last guard: raw ASGI around everything, the only thing that talks to the server.

It knows neither routes nor templates. Bytes leave only inside a seal that this process issued, and on
an address of data only under the release that the request was found to be about. Anything else turns
into a 500 that holds nothing of what the inside said: an unsealed body, a seal of another release, a
changed body, an exception, a response half finished.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.errors import CelosiaError, InternalError, OperatorError
from app.serve.stamp import Sealed, is_genuine
from app.web.locate import HEAD, LOCATED, RELEASE, Located
from app.web.reply import REPLY, SEAL, RawHeaders

log = logging.getLogger("celosia.guard")

#: When to ask again while the storage can't be reached.
RETRY_SECONDS = b"5"

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
)


def _security_headers(ancestors: str) -> RawHeaders:
    headers = [
        (b"content-security-policy", _CSP.format(ancestors=ancestors).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"strict-origin-when-cross-origin"),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        (b"cross-origin-opener-policy", b"same-origin"),
    ]
    return headers if ancestors == "*" else [*headers, (b"x-frame-options", b"DENY")]


_SECURITY = _security_headers("'none'")
_EMBEDDABLE = _security_headers("*")


class LeakBlockedError(InternalError):
    """Something unsealed tried to leave after the response had begun; the connection is cut."""


class Guard:
    """Wrap the whole application.

    Parameters
    ----------
    app : ASGI application
    locate : callable
        Which release a request is about, and where below it the address leads.
    is_data : callable
        Whether an address (path) gives cells, so that a plain seal isn't enough for a success.
    is_embeddable : callable
        Whether other sites may frame the address.
    refusal : callable
        Media type and body for an address and a status (500; 503 where the office's storage fails), in its
        reader's language; without any detail.
    """

    def __init__(
        self,
        app: ASGIApp,
        locate: Callable[[Scope], Awaitable[Located]],
        is_data: Callable[[str], bool],
        is_embeddable: Callable[[str], bool],
        refusal: Callable[[str, int], tuple[str, bytes]],
    ) -> None:
        self._app = app
        self._locate = locate
        self._is_data = is_data
        self._is_embeddable = is_embeddable
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        head = scope["method"] == "HEAD"
        gate = _Gate(self, scope["path"], head, send)

        async def listening() -> Message:
            message = await receive()
            gate.gone = gate.gone or message["type"] == "http.disconnect"
            return message

        try:
            located = await self._locate(scope)
            gate.release, gate.path = located.release, located.path
            inner = {
                **scope,
                "method": "GET" if head else scope["method"],
                "path": located.path,
                RELEASE: located.release,
                LOCATED: located,
                HEAD: head,
            }
            await self._app(inner, listening, gate.send)
        except Exception as error:
            if isinstance(error, LeakBlockedError):
                raise
            if gate.broken:
                # The server couldn't pass on what was allowed out: nobody listens any more.
                log.info("%s: the connection broke off", type(error).__name__)
                return
            _log_place(error)
            if isinstance(error, OperatorError):
                await gate.refuse("the storage failed", 503)
                return
            known = isinstance(error, CelosiaError)
            await gate.refuse("known failure" if known else "unforeseen failure")
        else:
            await gate.finish()


def _log_place(error: Exception) -> None:
    """The text of an exception may quote cells, so only its type and place are told."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"
    log.error("%s at %s while answering", type(error).__name__, where)


class Shield:
    """Around the office's side: its own headers on every answer, and no detail of an unforeseen failure.

    Parameters
    ----------
    app : ASGI application
    headers : list of raw headers
        Go on every response.
    refusal : callable
        Media type and body of the 500 for an address.
    """

    def __init__(
        self, app: ASGIApp, headers: RawHeaders, refusal: Callable[[str], tuple[str, bytes]]
    ) -> None:
        self._app = app
        self._headers = headers
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def pass_on(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        try:
            await self._app(scope, receive, pass_on)
        except Exception as error:
            if isinstance(error, LeakBlockedError):
                raise
            _log_place(error)
            if begun:
                raise LeakBlockedError("a response broke off") from None
            media_type, body = self._refusal(scope["path"])
            headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 500, "headers": [*headers, *self._headers]})
            await send({"type": "http.response.body", "body": body, "more_body": False})


class _Gate:
    """The way out of one response."""

    def __init__(self, guard: Guard, path: str, head: bool, send: Send) -> None:
        self.release: str | None = None
        self.path = path
        self.broken = False
        self.gone = False
        self._guard = guard
        self._head = head
        self._send = send
        self._held: Message | None = None
        self._begun = False
        self._ended = False

    async def send(self, message: Message) -> None:
        if self._ended:
            return
        kind = message["type"]
        if kind == "http.response.start" and self._held is None and not self._begun:
            self._held = message
        elif kind == "http.response.body" and (self._begun or self._held is not None):
            await self._pass_body(message)
        else:
            await self.refuse(f"message {kind} out of place")

    async def _pass_body(self, message: Message) -> None:
        body = message.get("body", b"")
        more = bool(message.get("more_body", False))
        sealed = message.get(SEAL)
        if body or not self._begun:
            cause = self._objection(sealed, body)
            if cause:
                await self.refuse(cause)
                return
        if not self._begun:
            await self._begin()
        self._ended = not more
        if not self._head:
            await self._out({"type": "http.response.body", "body": body, "more_body": more})
        elif self._ended:
            await self._out({"type": "http.response.body", "body": b"", "more_body": False})

    def _objection(self, sealed: object, body: object) -> str:
        """Why these bytes may not leave, or nothing."""
        if not is_genuine(sealed):
            return "a response without a seal"
        assert isinstance(sealed, Sealed)
        if body and body is not sealed.body:
            return "a body that its seal doesn't hold"
        if sealed.release_id is not None:
            return "" if sealed.release_id == self.release else "a seal of another release"
        held = self._held
        status = int(held["status"]) if held is not None else 200
        # A 204 has no body, and says nothing but that asking is allowed.
        if status < 300 and status != 204 and self._guard._is_data(self.path):
            return "an address of data answered without a stamp"
        return ""

    async def _out(self, message: Message) -> None:
        self.broken = True
        await self._send(message)
        self.broken = False

    async def _begin(self) -> None:
        assert self._held is not None
        self._begun = True
        security = _EMBEDDABLE if self._guard._is_embeddable(self.path) else _SECURITY
        headers = [*self._held["headers"], *security]
        await self._out({"type": "http.response.start", "status": self._held["status"], "headers": headers})

    async def refuse(self, cause: str, status: int = 500) -> None:
        """Answer with nothing of what was to be said; cut the connection if it's too late for that."""
        log.error("blocked a response: %s", cause)
        ended, self._ended = self._ended, True
        if ended:
            return
        if self._begun:
            raise LeakBlockedError(cause) from None
        media_type, body = self._guard._refusal(self.path, status)
        headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            *([(b"retry-after", RETRY_SECONDS)] if status == 503 else []),
            *_SECURITY,
        ]
        await self._out({"type": "http.response.start", "status": status, "headers": headers})
        await self._out(
            {"type": "http.response.body", "body": b"" if self._head else body, "more_body": False}
        )

    async def finish(self) -> None:
        """The inside is done: a response that never got its end isn't let through as if it had."""
        if self.gone and self._begun and not self._ended:
            log.info("the client hung up")
        elif not self._ended:
            await self.refuse("a response without an end")


__all__ = ["RELEASE", "REPLY", "SEAL", "Guard", "LeakBlockedError", "Shield"]
