"""Content codings: which one a client takes, and bytes in it, whole or part by part."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator

import zstandard

IDENTITY, GZIP, ZSTD = b"", b"gzip", b"zstd"
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 9
#: Adds to the entity tag of a coding, since the tag is a strong one.
SUFFIX = {IDENTITY: "", GZIP: "-gz", ZSTD: "-zst"}

_COMPRESSED = ("font/", "image/png", "application/vnd.openxmlformats")
_WORTH_COMPRESSING = 512
_NEVER = (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")


def compressible(media_type: str, size: int) -> bool:
    """Whether compressing so many bytes is worth it."""
    return size >= _WORTH_COMPRESSING and not media_type.startswith(_COMPRESSED)


def best(accept_encoding: bytes) -> bytes:
    """The coding to answer an Accept-Encoding header with."""
    if not accept_encoding:
        return IDENTITY
    wishes: dict[bytes, bool] = {}
    for part in accept_encoding.lower().split(b","):
        coding, _, parameters = part.partition(b";")
        wishes[coding.strip()] = parameters.replace(b" ", b"") not in _NEVER
    if wishes.get(ZSTD):
        return ZSTD
    return GZIP if wishes.get(GZIP, wishes.get(b"*", False)) else IDENTITY


def packed(body: bytes, coding: bytes) -> bytes:
    """The same body in a coding; the same bytes every time."""
    if coding == GZIP:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0)
    if coding == ZSTD:
        return zstandard.ZstdCompressor(_ZSTD_LEVEL).compress(body)
    return body


def packed_parts(parts: Iterable[bytes], coding: bytes) -> Iterator[bytes]:
    """The same parts in a coding, as they come."""
    if coding == IDENTITY:
        yield from parts
        return
    compress: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    if coding == GZIP:
        squeezer = zlib.compressobj(_GZIP_LEVEL, wbits=31)
        compress, flush = squeezer.compress, squeezer.flush
    else:
        made = zstandard.ZstdCompressor(level=3).compressobj()
        compress, flush = made.compress, made.flush
    for part in parts:
        if squeezed := compress(part):
            yield squeezed
    yield flush()
