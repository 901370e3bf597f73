"""Stamps: which release an answer was masked under; only `app.serve` may issue them, as a contract proves."""

from __future__ import annotations

from weakref import WeakSet


class Capability:
    """Base of stamps and seals: compared by identity, without attributes that could be set later."""

    __slots__ = ("__weakref__",)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed")

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError(f"{type(self).__name__} can't leave its process")


class Stamp(Capability):
    """Says that an answer was masked under ``release_id``; `app.serve.answer` issues it."""

    __slots__ = ("release_id",)
    release_id: str


_issued: WeakSet[Stamp] = WeakSet()


def issue_stamp(release_id: str) -> Stamp:
    """A stamp for an answer under a release."""
    stamp = Stamp()
    object.__setattr__(stamp, "release_id", release_id)
    _issued.add(stamp)
    return stamp


def is_issued(candidate: object) -> bool:
    """Whether this very object was issued in this process."""
    return type(candidate) is Stamp and candidate in _issued
