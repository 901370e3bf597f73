"""Finished responses, sealed bytes with their headers and compressed twins; and streams of such bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256

from anyio.to_thread import run_sync
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.serve.stamp import Sealed, Stamp, seal, seal_plain
from app.web import encodings
from app.web.locate import HEAD

#: Key of the ASGI messages under which a seal travels to the guard.
SEAL = "celosia.seal"
#: Key under which a response tells the cache what it is.
REPLY = "celosia.reply"

REVALIDATE = "public, max-age=0, must-revalidate"
#: Of a file whose address changes with its bytes.
IMMUTABLE = "public, max-age=31536000, immutable"
#: Of what a release says under its own address: it never changes, but the office may withdraw the release,
#: and then no copy of it should live on for longer than this.
LASTING = "public, max-age=86400, immutable"
NO_STORE = "no-store"

#: Bodies beyond this are compressed beside the event loop.
_LARGE = 64 << 10
_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")

Headers = tuple[tuple[str, str], ...]
RawHeaders = list[tuple[bytes, bytes]]
_Variant = tuple[bytes, Message, Message, Message]


class Reply(Response):
    """A response whose bytes are known, sealed and compressed once, and sent any number of times.

    Answers conditional requests (`If-None-Match`) and those for a part (`Range`), and chooses the coding
    by itself.

    Parameters
    ----------
    body : bytes
    media_type : str
    stamps : tuple of Stamp
        Of the answers that the bytes were made from; empty for a page without cells.
    status_code : int
    cache_control : str
    headers : tuple of (str, str)
        Further headers.
    keep : bool
        Whether it is the answer to everybody who asks for its address.
    """

    def __init__(
        self,
        body: bytes,
        media_type: str,
        stamps: tuple[Stamp, ...] = (),
        status_code: int = 200,
        cache_control: str = REVALIDATE,
        headers: Headers = (),
        keep: bool = True,
    ) -> None:
        self.status_code = status_code
        self.media_type = media_type
        self.background = None
        self.body = self._bytes = body
        self.cacheable = status_code == 200 and cache_control != NO_STORE
        self.keep = keep and self.cacheable
        self._stamps = stamps
        self._tag = sha256(body).hexdigest()[:32]
        self._shared = _shared(cache_control, headers)
        if self.cacheable:
            self._shared.append((b"accept-ranges", b"bytes"))
        self._squeezable = encodings.compressible(media_type, len(body))
        #: Bytes that it may come to hold, compressed twins included.
        self.size = len(body) * (2 if self._squeezable else 1)
        self.raw_headers = [*self._shared, (b"content-type", media_type.encode())]
        self._variants = {encodings.IDENTITY: self._variant(body, encodings.IDENTITY)}

    def _seal(self, body: bytes) -> Sealed:
        return seal(self._stamps, body) if self._stamps else seal_plain(body)

    def _variant(self, body: bytes, coding: bytes) -> _Variant:
        etag = f'"{self._tag}{encodings.SUFFIX[coding]}"'.encode()
        headers = list(self._shared)
        if self.cacheable:
            headers.append((b"etag", etag))
        full = [
            *headers,
            (b"content-type", str(self.media_type).encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        if coding:
            full.append((b"content-encoding", coding))
        sealed = self._seal(body)
        return (
            etag,
            {"type": "http.response.start", "status": self.status_code, "headers": full, REPLY: self},
            {"type": "http.response.body", "body": body, "more_body": False, SEAL: sealed},
            {"type": "http.response.start", "status": 304, "headers": headers, REPLY: self},
        )

    async def _in(self, coding: bytes) -> _Variant:
        found = self._variants.get(coding)
        if found is None:
            body = self._bytes
            if len(body) > _LARGE:
                squeezed = await run_sync(encodings.packed, body, coding)
            else:
                squeezed = encodings.packed(body, coding)
            found = self._variants[coding] = self._variant(squeezed, coding)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wishes = _wishes(scope)
        part = wishes.get(b"range", b"") if self.cacheable and not scope.get(HEAD) else b""
        coding = encodings.IDENTITY
        if self._squeezable and not part:
            coding = encodings.best(wishes.get(b"accept-encoding", b""))
        etag, start, body, not_modified = await self._in(coding)
        wanted = wishes.get(b"if-none-match", b"")
        if wanted and self.cacheable and _matches(wanted, etag):
            await send(not_modified)
            await send({"type": "http.response.body", "body": b"", "more_body": False, SEAL: body[SEAL]})
        elif part and wishes.get(b"if-range", etag) == etag and (span := _span(part, len(self.body))):
            for message in self._part(span, not_modified["headers"]):
                await send(message)
        else:
            await send(start)
            await send(body)

    def _part(self, span: tuple[int, int], headers: RawHeaders) -> tuple[Message, Message]:
        """The messages of a part of the body, or of there being no such part."""
        first, end = span
        body = self._bytes[first:end]
        place = f"{first}-{end - 1}" if body else "*"
        head = [
            *headers,
            (b"content-type", str(self.media_type).encode()),
            (b"content-length", str(len(body)).encode()),
            (b"content-range", f"bytes {place}/{len(self.body)}".encode()),
        ]
        status = 206 if body else 416
        return (
            {"type": "http.response.start", "status": status, "headers": head},
            {"type": "http.response.body", "body": body, "more_body": False, SEAL: self._seal(body)},
        )


class Stream(StreamingResponse):
    """A large response, made and sealed part by part while it is sent; memory holds one part at a time.

    Parameters
    ----------
    parts : callable
        Makes the parts from the beginning.
    media_type : str
    stamps : tuple of Stamp
    tag : str
        Names the bytes as their hash would, without making them.
    cache_control : str
    headers : tuple of (str, str)
    """

    def __init__(
        self,
        parts: Callable[[], Iterator[bytes]],
        media_type: str,
        stamps: tuple[Stamp, ...],
        tag: str,
        cache_control: str = REVALIDATE,
        headers: Headers = (),
    ) -> None:
        super().__init__(iter(()), media_type=media_type)
        self._parts = parts
        self._stamps = stamps
        self._tag = tag
        self._shared = _shared(cache_control, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wishes = _wishes(scope)
        coding = encodings.best(wishes.get(b"accept-encoding", b""))
        etag = f'"{self._tag}{encodings.SUFFIX[coding]}"'.encode()
        shared = [*self._shared, (b"etag", etag), (b"accept-ranges", b"none")]
        if _matches(wishes.get(b"if-none-match", b""), etag):
            self.status_code, self.raw_headers = 304, shared
        else:
            self.raw_headers = [*shared, (b"content-type", str(self.media_type).encode())]
            if coding:
                self.raw_headers.append((b"content-encoding", coding))
        stamps = self._stamps

        async def sealing(message: Message) -> None:
            if message["type"] == "http.response.body":
                message[SEAL] = seal(stamps, message["body"])
            await send(message)

        if self.status_code == 304 or scope.get(HEAD):
            await sealing(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            await sealing({"type": "http.response.body", "body": b"", "more_body": False})
            return
        parts = StreamingResponse(encodings.packed_parts(self._parts(), coding))
        parts.status_code, parts.raw_headers = self.status_code, self.raw_headers
        await parts(scope, receive, sealing)


def moved(location: str) -> Reply:
    """A redirect to where a page always is."""
    headers = (("location", location),)
    return Reply(b"", "text/plain; charset=utf-8", status_code=308, cache_control=NO_STORE, headers=headers)


def redirect(location: str, vary: str = "") -> Reply:
    """A temporary redirect inside the site."""
    headers = (("location", location), *((("vary", vary),) if vary else ()))
    return Reply(b"", "text/plain; charset=utf-8", status_code=307, cache_control=NO_STORE, headers=headers)


def _shared(cache_control: str, headers: Headers) -> RawHeaders:
    return [
        (b"cache-control", cache_control.encode()),
        (b"vary", b"Accept-Encoding"),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in headers),
    ]


def _wishes(scope: Scope) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def _span(wanted: bytes, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last, alike when there is no such part; None for what isn't one."""
    found = _RANGE.fullmatch(wanted.replace(b" ", b""))
    if found is None or found.groups() == (b"", b""):
        return None
    first, last = found.groups()
    if not first:
        return (max(size - int(last), 0), size) if int(last) else (size, size)
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return None
    return (start, end) if start < size else (size, size)


def _matches(wanted: bytes, etag: bytes) -> bool:
    if not wanted:
        return False
    if wanted.strip() == b"*":
        return True
    return any(tag.strip().removeprefix(b"W/") == etag for tag in wanted.split(b","))
