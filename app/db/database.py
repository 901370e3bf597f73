"""One database that several stores share: how they read, write, and say what went wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

import sqlalchemy as sa

from app.db.engine import cause_of
from app.domain.errors import OperatorError


class StorageError(OperatorError):
    """The database went away or refused: what was to be written isn't, and can be tried again."""


class Database:
    """Transactions over an engine; the stores of `app.db` take theirs from here."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._joined = local()

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection to read over.

        Raises
        ------
        OperatorError
            If the database can't be read.
        """
        joined = self._open
        try:
            if joined is not None:
                yield joined
            else:
                with self.engine.connect() as connection:
                    yield connection
        except sa.exc.SQLAlchemyError as error:
            raise self._error("read", error) from error
        except json.JSONDecodeError as error:
            raise OperatorError("The database couldn't be read: a stored text is damaged.") from error

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction: everything in it is kept, or nothing.

        On SQLite it is the only writer from its first statement on, so that what it read stays true.

        Raises
        ------
        OperatorError
            If the database can't be written.
        """
        joined = self._open
        try:
            if joined is not None:
                yield joined
                return
            with self.engine.connect() as plain:
                connection = plain.execution_options(celosia_writes=True)
                with connection.begin():
                    yield connection
        except sa.exc.SQLAlchemyError as error:
            raise self._error("written", error) from error

    @contextmanager
    def together(self) -> Iterator[None]:
        """One transaction for all that this thread reads and writes within: all of it is kept, or nothing.

        Raises
        ------
        OperatorError
            If the database can't be written.
        """
        if self._open is not None:
            yield
            return
        with self.writing() as connection:
            self._joined.connection = connection
            try:
                yield
            finally:
                self._joined.connection = None

    def _error(self, done: str, error: sa.exc.SQLAlchemyError) -> StorageError:
        return StorageError(f"The database couldn't be {done}: {cause_of(error, self.engine)}.")

    @property
    def _open(self) -> sa.Connection | None:
        """The transaction that this thread is within."""
        return getattr(self._joined, "connection", None)
