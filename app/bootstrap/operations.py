"""Wires what operators need: readiness, counts, backups, the doctor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.bootstrap import DATABASE_VARIABLE, publication_store, store_url
from app.bootstrap.jobs import open_queue
from app.db import backup
from app.db.backup import Backup
from app.db.database import Database
from app.db.engine import connect, current_revision, head_revision
from app.db.jobs import JobTable
from app.db.journal import JournalStore
from app.db.store import Store
from app.domain.errors import UserError
from app.domain.people import command_line
from app.office.doctor import Finding, Patient, examine
from app.office.journal import Journal


def readiness(store: Store) -> str:
    """Why requests can't be answered, empty when they can.

    Raises
    ------
    OperatorError
        The database doesn't answer.
    """
    with store.database.reading():
        return "" if current_revision(store.database.engine) == head_revision() else "migrations"


def counts(store: Store) -> tuple[Mapping[str, int], bool]:
    """Jobs by state, and whether a release is live."""
    return JobTable(store.database).counts(), store.live_release_id() is not None


def back_up(folder: Path | None, out: Path) -> Backup:
    """Write everything that the database holds into a new file.

    Raises
    ------
    UserError
        The file exists, or there is no publication.
    OperatorError
        The database can't be read or the file can't be written.
    """
    with open_queue(folder) as queue:
        return backup.back_up(queue.store.database, out)


def restore(folder: Path | None, path: Path, user: str) -> Backup:
    """Fill the empty database of a folder, which may be new, or of the environment.

    Raises
    ------
    UserError
        The file is damaged or no backup, or the database isn't empty.
    OperatorError
        The file can't be read or the database can't be written.
    """
    url = store_url(folder) if folder is not None else os.environ.get(DATABASE_VARIABLE, "")
    if not url:
        raise UserError(f"Name the publication's folder, or its database in {DATABASE_VARIABLE}.")
    found = backup.inspect(path)
    with _empty(folder, url) as database:
        backup.restore(database, path)
        after = {"made": found.created.isoformat(), "rows": sum(found.rows.values())}
        Journal(JournalStore(database)).record(command_line(user), "database.restore", path.name, after=after)
    return found


@contextmanager
def _empty(folder: Path | None, url: str) -> Iterator[Database]:
    if folder is not None:
        with publication_store(folder, new=True) as store:
            yield store.database
        return
    database = Database(connect(url))
    try:
        yield database
    finally:
        database.close()


def doctor(folder: Path | None, files: Mapping[str, Path]) -> tuple[Finding, ...]:
    """Look at everything that may be wrong.

    Raises
    ------
    UserError, OperatorError
        There is nothing to look at: the database can't even be opened.
    """
    with open_queue(folder) as queue:
        journal = Journal(JournalStore(queue.store.database))
        return tuple(examine(Patient(folder, queue.store, journal, files, os.environ)))
