"""Where facts and dimension tables come from: files, and databases by SQLAlchemy URL."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from app.domain.errors import OperatorError, UserError

_CHUNK = 50_000
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")


@dataclass(frozen=True)
class FileSource:
    """A file of columns; ``kind`` is ``parquet`` or ``csv``."""

    path: Path
    kind: str

    @property
    def name(self) -> str:
        return self.path.name


def file_source(path: str) -> FileSource:
    """The file, if it is there and of a kind that can be read.

    Raises
    ------
    UserError
    """
    place = Path(path)
    lowered = place.name.lower()
    if not place.is_file():
        raise UserError(f"File {place.name} isn't there. Looked for it in {place.parent}.")
    if place.stat().st_size == 0:
        raise UserError(f"File {place.name} is empty.")
    if lowered.endswith(_PARQUET):
        return FileSource(place, "parquet")
    if lowered.endswith(_CSV):
        return FileSource(place, "csv")
    raise UserError(f"File {place.name} is neither Parquet nor CSV by its name.")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OperatorError(f"File {path.name} can't be read: {error.strerror}.") from error


def read_database(url: str, statement: str) -> tuple[pa.Table, str]:
    """Rows of a query as an Arrow table, and a digest of them that doesn't depend on their order.

    Raises
    ------
    UserError
        When the URL isn't one or the database refuses the statement.
    OperatorError
        When the database can't be reached.
    """
    try:
        engine = sa.create_engine(url)
    except (sa.exc.ArgumentError, ModuleNotFoundError) as error:
        raise UserError(
            "The database URL can't be used: no such dialect or driver, or it is no URL."
        ) from error
    where = engine.url.render_as_string(hide_password=True)
    try:
        with engine.connect() as connection:
            return _read(connection.execution_options(stream_results=True).execute(sa.text(statement)))
    except sa.exc.OperationalError as error:
        raise OperatorError(f"Database {where} can't be read: {error.orig}") from error
    except sa.exc.SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or type(error).__name__
        raise UserError(f"Database {where} refuses the query of the facts: {cause}") from error
    finally:
        engine.dispose()


def _read(result: sa.CursorResult[Any]) -> tuple[pa.Table, str]:
    names = list(result.keys())
    columns: list[list[Any]] = [[] for _ in names]
    digest = 0
    n = 0
    while rows := result.fetchmany(_CHUNK):
        n += len(rows)
        for row in rows:
            row_digest = hashlib.blake2b(repr(tuple(row)).encode(), digest_size=32).digest()
            digest += int.from_bytes(row_digest)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)
    try:
        table = pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError("A column of the facts mixes types; cast it in the query.") from error
    return table, hashlib.sha256(f"{names}{n}{digest % 2**256}".encode()).hexdigest()
