"""Queries on a DuckDB file, which is only read and reaches no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from app.domain.errors import OperatorError, UserError

PREFIX = "duckdb:///"


@dataclass
class Rows:
    """An answer, read piece by piece."""

    names: list[str]
    cursor: duckdb.DuckDBPyConnection

    def fetchmany(self, size: int) -> Sequence[tuple[Any, ...]]:
        return self.cursor.fetchmany(size)


@contextmanager
def open_rows(url: str, statement: str) -> Iterator[Rows]:
    """The rows of a query on the file that a URL names (``duckdb:///sales.duckdb``, ``duckdb:////data/x.db``).

    Raises
    ------
    UserError
        When DuckDB refuses the statement.
    OperatorError
        When the file can't be read.
    """
    path = url.removeprefix(PREFIX)
    try:
        connection = duckdb.connect(
            path,
            read_only=True,
            # Who writes a query needn't be who may read this machine.
            config={"enable_external_access": "false", "lock_configuration": "true"},
        )
    except duckdb.Error as error:
        raise OperatorError(f"Database {url} can't be read: {_first_line(error)}.") from error
    with connection:
        try:
            found = connection.execute(statement)
            yield Rows([column[0] for column in found.description or ()], found)
        except duckdb.Error as error:
            raise UserError(f"Database {url} refuses the query: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
