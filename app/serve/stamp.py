"""Seals: the proof, within one process, that bytes came out of `serve` under a release.

A `Sealed` holds the very bytes that it vouches for. It can only be had from `seal` (bytes made from
answers of `serve`) or `seal_plain` (pages without a cell), each of which notes it in a register that
lives and dies with the process. A copy, a pickle or an object made by hand isn't in the register, and
other bytes aren't the bytes of the seal, so the guard of `app.web` needs to compare identities only.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakSet

from app.domain.errors import InternalError
from app.serve.issue import Capability, Stamp, is_issued

__all__ = ["Sealed", "Stamp", "is_genuine", "seal", "seal_plain"]


class Sealed(Capability):
    """Bytes that may leave: of a release, or of no release (``release_id`` None) when without cells."""

    __slots__ = ("body", "release_id")
    body: bytes
    release_id: str | None


_seals: WeakSet[Sealed] = WeakSet()


def _register(body: bytes, release_id: str | None) -> Sealed:
    sealed = Sealed()
    object.__setattr__(sealed, "body", body)
    object.__setattr__(sealed, "release_id", release_id)
    _seals.add(sealed)
    return sealed


def seal(stamps: Iterable[Stamp], body: bytes) -> Sealed:
    """Bind bytes to the answers that they were made from.

    Raises
    ------
    InternalError
        No stamp, one that `serve` didn't issue, or stamps of several releases.
    """
    stamps = tuple(stamps)
    if not all(is_issued(stamp) for stamp in stamps):
        raise InternalError("a stamp that serve did not issue")
    releases = {stamp.release_id for stamp in stamps}
    if len(releases) != 1:
        raise InternalError("a response needs answers of exactly one release")
    return _register(body, releases.pop())


def seal_plain(body: bytes) -> Sealed:
    """Vouch for bytes in which no cell can be: titles, structures, errors, static files."""
    return _register(body, None)


def is_genuine(candidate: object) -> bool:
    """Whether this very object was issued here."""
    return type(candidate) is Sealed and candidate in _seals
