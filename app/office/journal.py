"""The audit log: who did what, when, from where, before and after; an append-only chain of hashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.db.journal import JournalRow, JournalStore, Note, digest_of_row
from app.domain.people import NOBODY, Actor

Facts = Mapping[str, Any] | None


@dataclass(frozen=True)
class Entry:
    """One entry; ``before`` and ``after`` hold what changed, never a value of a cell."""

    number: int
    moment: datetime
    actor: str
    action: str
    subject: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    origin: str
    digest: str


@dataclass(frozen=True)
class Verdict:
    """What `Journal.verify` found; ``broken_at`` is the first entry that isn't what was written, or 0.

    ``head`` is the digest of the last entry: noted elsewhere, it shows later that nothing was cut off.
    """

    entries: int
    head: str
    broken_at: int
    head_found: bool

    @property
    def ok(self) -> bool:
        return not self.broken_at and self.head_found


class Journal:
    """Records and verifies. Made by `app.bootstrap`."""

    def __init__(self, store: JournalStore, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self._now = now

    def record(
        self,
        actor: Actor | str,
        action: str,
        subject: str,
        before: Facts = None,
        after: Facts = None,
        origin: str = "",
    ) -> Entry:
        """Note that ``actor`` did ``action`` (as ``account.add``) to ``subject``.

        Raises
        ------
        OperatorError
            If it can't be written. What isn't recorded must not be done.
        """
        name = actor if isinstance(actor, str) else actor.name or NOBODY
        note = Note(name, action, subject, before or {}, after or {}, whence(actor, origin))
        return _entry(self._store.append(note, self._now()))

    def together(self) -> AbstractContextManager[None]:
        """A change and its entry as one transaction: both stand, or neither.

        The entry comes last: who writes it waits for other writers, and must hold them up for no longer.
        """
        return self._store.together()

    def latest(
        self, limit: int = 50, before: int | None = None, actor: str = "", action: str = ""
    ) -> tuple[Entry, ...]:
        """The newest entries first; ``before`` a number, to page back; of one ``actor`` or ``action``."""
        return tuple(_entry(row) for row in self._store.latest(limit, before, actor, action))

    def actions(self) -> tuple[str, ...]:
        """Every action that was ever recorded."""
        return self._store.actions()

    def verify(self, head: str = "") -> Verdict:
        """Walk the whole chain.

        Parameters
        ----------
        head : str
            A digest that was noted before and must still be in the chain; empty: none.
        """
        count, previous, found = 0, "", not head
        broken = 0
        for row in self._store.rows():
            count += 1
            whole = row.number == count and row.previous == previous and row.digest == digest_of_row(row)
            if not whole and not broken:
                broken = count
            found = found or row.digest == head
            previous = row.digest
        return Verdict(count, previous, broken, found)


def whence(actor: Actor | str, origin: str) -> str:
    """From where somebody acted: the address, and the token where one was used."""
    token = "" if isinstance(actor, str) else actor.token
    return ", ".join(filter(None, (origin, f"token {token}" if token else "")))


def _entry(row: JournalRow) -> Entry:
    return Entry(
        row.number,
        datetime.fromisoformat(row.moment),
        row.actor,
        row.action,
        row.subject,
        json.loads(row.before),
        json.loads(row.after),
        row.origin,
        row.digest,
    )
