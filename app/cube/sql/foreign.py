"""What is asked of a database that aggregates; statements are DuckDB's and are translated."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import SqlglotError

from app.domain.errors import Mistake, UserError

#: The view of the office's own query.
SOURCE = "celosia_source"
_WHOLE = re.compile(r"(tiny|small|medium|big)?int(eger)?|long|short|byte", re.IGNORECASE)
_DECIMAL = re.compile(r"(?:numeric|decimal)\(\s*\d+\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_FLOATING = re.compile(r"double( precision)?|real|float", re.IGNORECASE)


class Foreign(Protocol):
    """A session with a database, which sees one state of the data until it is closed."""

    def source(self, sql: str) -> None:
        """Name the rows of the office's own query (in the database's dialect) `SOURCE`."""
        ...

    def freeze(self, columns: list[str]) -> None:
        """From now on `SOURCE` has these columns, and its rows stay as they are."""
        ...

    def types(self) -> dict[str, str]:
        """The columns of `SOURCE` and their types, as the database calls them."""
        ...

    def own(self, sql: str) -> pa.Table:
        """What a query of the office gives, in the database's dialect."""
        ...

    def table(self, sql: str) -> pa.Table:
        """What a statement in DuckDB's dialect gives."""
        ...

    def view(self, name: str, sql: str) -> None:
        """Name what a statement in DuckDB's dialect gives."""
        ...

    def keep(self, name: str, table: pa.Table) -> None:
        """Put a small table of integers and texts beside the facts, in place of one of that name."""
        ...

    def digest(self, hashes: str) -> str:
        """A digest of the rows of a view whose column ``h`` is an MD5, whatever their order."""
        ...

    def close(self) -> None: ...


def mistake(cause: str, remedy: str) -> Mistake:
    """A mistake whose place in the cube file the loader adds."""
    return Mistake("", 0, 0, cause, remedy)


def translated(sql: str, dialect: str) -> str:
    """A statement in DuckDB's dialect, in another."""
    return sqlglot.transpile(sql, read="duckdb", write=dialect)[0]


def one_query(sql: str, dialect: str) -> str:
    """The text of a query, if it is a single one that only reads.

    Raises
    ------
    UserError
    """
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except SqlglotError as error:
        raise UserError("The query of the facts or of a dimension can't be read as SQL.") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UserError(mistake("What is read from a database is to be one SELECT.", "Write a single query."))
    if trees[0].find(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into) is not None:
        raise UserError(
            mistake("The query of the facts or of a dimension writes.", "Write one that only reads.")
        )
    return sql.strip().rstrip(";")


def decimals_of(kind: str) -> int | None:
    """Digits after the point that a type fixes; None when it doesn't."""
    if _WHOLE.fullmatch(kind):
        return 0
    found = _DECIMAL.fullmatch(kind)
    return int(found[1]) if found else None


def is_number(kind: str) -> bool:
    return decimals_of(kind) is not None or _FLOATING.fullmatch(kind) is not None or kind == "numeric"


def as_arrays(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Columns as arrays; numbers with nulls as float64 with nan, texts as objects."""
    found: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_null(column.type):
            found[name] = np.full(len(column), np.nan)
        elif pa.types.is_string(column.type):
            found[name] = np.array(column.to_pylist(), dtype=object)
        else:
            found[name] = column.to_numpy()
    return found
