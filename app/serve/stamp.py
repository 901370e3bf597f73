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


class _Capability:
    """Base of the two: compared by identity, without attributes that could be set later."""

    __slots__ = ("__weakref__",)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed")

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError(f"{type(self).__name__} can't leave its process")


class Stamp(_Capability):
    """Says that an answer was masked under ``release_id``; `app.serve.answer` issues it."""

    __slots__ = ("release_id",)
    release_id: str


class Sealed(_Capability):
    """Bytes that may leave: of a release, or of no release (``release_id`` None) when without cells."""

    __slots__ = ("body", "release_id")
    body: bytes
    release_id: str | None


_stamps: WeakSet[Stamp] = WeakSet()
_seals: WeakSet[Sealed] = WeakSet()


def issue_stamp(release_id: str) -> Stamp:
    """A stamp for an answer under a release; `app.serve` alone calls this (a contract proves it)."""
    stamp = Stamp()
    object.__setattr__(stamp, "release_id", release_id)
    _stamps.add(stamp)
    return stamp


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
    if not all(type(stamp) is Stamp and stamp in _stamps for stamp in stamps):
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
