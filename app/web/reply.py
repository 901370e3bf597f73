"""Finished responses: sealed bytes with their headers, entity tag and compressed twin."""

from __future__ import annotations

import gzip
from hashlib import sha256

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.serve.stamp import Sealed, Stamp, seal, seal_plain

#: Key of the ASGI messages under which a seal travels to the guard.
SEAL = "celosia.seal"
#: Key under which a response tells the cache what it is.
REPLY = "celosia.reply"

REVALIDATE = "public, max-age=0, must-revalidate"
IMMUTABLE = "public, max-age=31536000, immutable"
NO_STORE = "no-store"

_WORTH_COMPRESSING = 512
_COMPRESSED = ("font/", "image/png", "application/vnd.openxmlformats")

RawHeaders = list[tuple[bytes, bytes]]


class Reply(Response):
    """A response whose bytes are known, sealed and compressed once, and sent any number of times.

    Answers conditional requests (`If-None-Match`) and chooses the encoding by itself.

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
    """

    def __init__(
        self,
        body: bytes,
        media_type: str,
        stamps: tuple[Stamp, ...] = (),
        status_code: int = 200,
        cache_control: str = REVALIDATE,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.status_code = status_code
        self.media_type = media_type
        self.background = None
        self.body = body
        self.cacheable = status_code == 200 and cache_control != NO_STORE
        tag = sha256(body).hexdigest()[:32]
        shared: RawHeaders = [
            (b"cache-control", cache_control.encode()),
            (b"vary", b"Accept-Encoding"),
            *((name.lower().encode(), value.encode("latin-1")) for name, value in headers),
        ]
        self.raw_headers = [*shared, (b"content-type", media_type.encode())]
        squeezable = len(body) >= _WORTH_COMPRESSING and not media_type.startswith(_COMPRESSED)
        packed = gzip.compress(body, 6, mtime=0) if squeezable else b""
        self._plain = self._variant(body, stamps, shared, tag, b"")
        self._gzip = self._variant(packed, stamps, shared, f"{tag}-gz", b"gzip") if packed else None
        self.size = len(body) + len(packed)

    def _variant(
        self, body: bytes, stamps: tuple[Stamp, ...], shared: RawHeaders, tag: str, encoding: bytes
    ) -> tuple[bytes, Message, Message, Message]:
        sealed: Sealed = seal(stamps, body) if stamps else seal_plain(body)
        etag = f'"{tag}"'.encode()
        headers = list(shared)
        if self.cacheable:
            headers.append((b"etag", etag))
        full = [
            *headers,
            (b"content-type", str(self.media_type).encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        if encoding:
            full.append((b"content-encoding", encoding))
        return (
            etag,
            {"type": "http.response.start", "status": self.status_code, "headers": full, REPLY: self},
            {"type": "http.response.body", "body": body, "more_body": False, SEAL: sealed},
            {"type": "http.response.start", "status": 304, "headers": headers, REPLY: self},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepts_gzip = False
        wanted = b""
        for name, value in scope["headers"]:
            if name == b"accept-encoding":
                accepts_gzip = _accepts_gzip(value)
            elif name == b"if-none-match":
                wanted = value
        variant = self._gzip if accepts_gzip and self._gzip is not None else self._plain
        etag, start, body, not_modified = variant
        if wanted and self.cacheable and _matches(wanted, etag):
            await send(not_modified)
            await send({"type": "http.response.body", "body": b"", "more_body": False, SEAL: body[SEAL]})
        else:
            await send(start)
            await send(body)


def redirect(location: str, vary: str = "") -> Reply:
    """A temporary redirect inside the site."""
    headers = (("location", location), *((("vary", vary),) if vary else ()))
    return Reply(b"", "text/plain; charset=utf-8", status_code=307, cache_control=NO_STORE, headers=headers)


def _accepts_gzip(value: bytes) -> bool:
    for part in value.split(b","):
        coding, _, parameters = part.partition(b";")
        if coding.strip() in (b"gzip", b"*"):
            return parameters.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _matches(wanted: bytes, etag: bytes) -> bool:
    if wanted.strip() == b"*":
        return True
    return any(tag.strip().removeprefix(b"W/") == etag for tag in wanted.split(b","))
