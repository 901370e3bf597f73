"""Readers of one process take turns in Python.

Threads that run Python at once are no faster than one after the other, but slower: they hand the
interpreter's lock over in the midst of one another's work. So whoever evaluates a query takes the turn, and
stands aside while an engine works or another reader's cuboid is awaited. Nobody waits for long, so that a
query that takes its time doesn't hold short ones up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

#: Seconds after which a reader goes ahead beside the others.
_PATIENCE = 0.1
_turn = Lock()


class _Mine(local):
    """What this thread has."""

    has_turn = False


_mine = _Mine()


@contextmanager
def turn() -> Iterator[None]:
    """Evaluate when no other reader does, or when waiting has taken too long."""
    _take()
    try:
        yield
    finally:
        _give_up()


@contextmanager
def aside() -> Iterator[None]:
    """Let other readers evaluate meanwhile, if this one has the turn."""
    had = _give_up()
    try:
        yield
    finally:
        if had:
            _take()


def _take() -> None:
    if not _mine.has_turn:
        _mine.has_turn = _turn.acquire(timeout=_PATIENCE)


def _give_up() -> bool:
    had = _mine.has_turn
    if had:
        _mine.has_turn = False
        _turn.release()
    return had
