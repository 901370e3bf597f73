"""The journal's rows. They only grow, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from app.db import tables as t
from app.db.database import Database

_PAGE = 1000


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


class JournalStore:
    """Rows of the journal over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, make: Callable[[int, str], JournalRow]) -> JournalRow:
        """Add the row that ``make`` gives for its number and the digest before; writers wait for each other.

        Raises
        ------
        OperatorError
            If it can't be written; nothing has been added then.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table journal in share row exclusive mode"))
            last = connection.execute(
                sa.select(t.journal.c.number, t.journal.c.digest).order_by(t.journal.c.number.desc()).limit(1)
            ).one_or_none()
            row = make(1, "") if last is None else make(last.number + 1, last.digest)
            connection.execute(sa.insert(t.journal).values(**vars(row)))
        return row

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
            query = query.where(t.journal.c.actor == actor)
        if action:
            query = query.where(t.journal.c.action == action)
        with self._database.reading() as connection:
            return tuple(JournalRow(**row._mapping) for row in connection.execute(query))

    def actions(self) -> tuple[str, ...]:
        """Every action that occurs, in order of name."""
        with self._database.reading() as connection:
            query = sa.select(t.journal.c.action).distinct().order_by(t.journal.c.action)
            return tuple(connection.scalars(query))
