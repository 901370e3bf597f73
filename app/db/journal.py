"""The journal's rows: an append-only chain of hashes, written along with what they tell of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.db.database import Database

_PAGE = 1000
_TOO_LONG = 200


@dataclass(frozen=True)
class JournalRow:
    """A row as it is stored; ``before`` and ``after`` are JSON."""

    number: int
    moment: str
    actor: str
    action: str
    subject: str
    before: str
    after: str
    origin: str
    previous: str
    digest: str


@dataclass(frozen=True)
class Note:
    """What is to be recorded: ``actor`` did ``action`` to ``subject``, from where. Never a cell value."""

    actor: str
    action: str
    subject: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""


def write_note(connection: sa.Connection, note: Note, moment: datetime) -> JournalRow:
    """Add a row within a transaction: it stands in the journal if what it tells of was done, and only then.

    Writers wait for each other until their transactions end.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("lock table journal in share row exclusive mode"))
    last = connection.execute(
        sa.select(t.journal.c.number, t.journal.c.digest).order_by(t.journal.c.number.desc()).limit(1)
    ).one_or_none()
    row = JournalRow(
        1 if last is None else last.number + 1,
        moment.astimezone(UTC).isoformat(timespec="microseconds"),
        _plain(note.actor)[:_TOO_LONG],
        note.action,
        _plain(note.subject),
        _json(note.before),
        _json(note.after),
        _plain(note.origin)[:_TOO_LONG],
        "" if last is None else last.digest,
        "",
    )
    row = replace(row, digest=digest_of_row(row))
    connection.execute(sa.insert(t.journal).values(**vars(row)))
    return row


def digest_of_row(row: JournalRow) -> str:
    """SHA-256 over the row's content and the digest before it, each part behind its length."""
    parts = (
        str(row.number),
        row.moment,
        row.actor,
        row.action,
        row.subject,
        row.before,
        row.after,
        row.origin,
        row.previous,
    )
    digest = hashlib.sha256()
    for part in parts:
        body = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(body)}:".encode() + body)
    return digest.hexdigest()


def _plain(text: str) -> str:
    """Without control characters, which neither a terminal nor PostgreSQL takes."""
    return "".join(character if character.isprintable() else " " for character in text)


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(dict(facts), ensure_ascii=True, sort_keys=True, separators=(",", ":"))


class JournalStore:
    """Rows of the journal over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def together(self) -> AbstractContextManager[None]:
        """See `Database.together`."""
        return self._database.together()

    def append(self, note: Note, moment: datetime) -> JournalRow:
        """Add a row.

        Raises
        ------
        OperatorError
            If it can't be written; nothing has been added then.
        """
        with self._database.writing() as connection:
            return write_note(connection, note, moment)

    def rows(self) -> Iterator[JournalRow]:
        """All rows, oldest first, a page at a time."""
        after = 0
        while True:
            with self._database.reading() as connection:
                found = connection.execute(
                    sa.select(t.journal)
                    .where(t.journal.c.number > after)
                    .order_by(t.journal.c.number)
                    .limit(_PAGE)
                ).all()
            for row in found:
                yield JournalRow(**row._mapping)
            if len(found) < _PAGE:
                return
            after = found[-1].number

    def latest(
        self, limit: int, before: int | None = None, actor: str = "", action: str = ""
    ) -> tuple[JournalRow, ...]:
        """The newest rows, below number ``before`` where given; ``actor`` and ``action`` narrow them."""
        query = sa.select(t.journal).order_by(t.journal.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(t.journal.c.number < before)
        if actor:
            # Once the name of a token stood behind its owner's.
            with_token = t.journal.c.actor.startswith(f"{actor} (", autoescape=True)
            query = query.where(sa.or_(t.journal.c.actor == actor, with_token))
        if action:
            query = query.where(t.journal.c.action == action)
        with self._database.reading() as connection:
            return tuple(JournalRow(**row._mapping) for row in connection.execute(query))

    def actions(self) -> tuple[str, ...]:
        """Every action that occurs, in order of name."""
        with self._database.reading() as connection:
            query = sa.select(t.journal.c.action).distinct().order_by(t.journal.c.action)
            return tuple(connection.scalars(query))
