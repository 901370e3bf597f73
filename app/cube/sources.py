"""Where facts and dimension tables come from: files, and databases by SQLAlchemy URL."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from app.cube import duckdb_file
from app.domain.errors import Mistake, OperatorError, UserError

_CHUNK = 50_000
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_SEPARATORS = ",;\t|"
_LONGEST_HEAD = 1 << 20


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
    try:
        there = place.is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        raise UserError(f"File {place.name} isn't there. Looked for it in {place.parent}.")
    if place.stat().st_size == 0:
        raise UserError(f"File {place.name} is empty.")
    if lowered.endswith(_PARQUET):
        return FileSource(place, "parquet")
    if lowered.endswith(_CSV):
        return FileSource(place, "csv")
    raise UserError(f"File {place.name} is neither Parquet nor CSV by its name.")


@dataclass(frozen=True)
class CsvHead:
    """What the first line of a CSV file says: how values are separated, and the columns' names."""

    separator: str
    names: tuple[str, ...]


def csv_head(source: FileSource) -> CsvHead:
    """The head of a CSV file.

    Raises
    ------
    UserError
        When the first line isn't a line of distinct names.
    OperatorError
        When the file can't be read.
    """
    with _lines(source) as lines:
        head = lines.readline(_LONGEST_HEAD)
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _wrong(source, 1, f"File {source.name} isn't UTF-8.", "Save it as UTF-8.") from None
    # A lone carriage return ends a line too.
    first = text.splitlines()[0] if text.strip() else ""
    separator = max(_SEPARATORS, key=first.count)
    try:
        names = tuple(name.strip() for name in next(csv.reader([first], delimiter=separator), []))
    except csv.Error:
        names = ()
    if not all(names) or not names:
        raise _wrong(source, 1, f"The first line of {source.name} doesn't name every column.", "Name each.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        cause = f"The first line of {source.name} names {', '.join(twice)} twice."
        raise _wrong(source, 1, cause, "Give each column its own name.")
    return CsvHead(separator, names)


def odd_line_end(source: FileSource) -> int:
    """Number of the first line that ends in another way than the first one; 0 when all end alike."""
    with _lines(source) as lines:
        alike = lines.readline().endswith(b"\r\n")
        return next((n for n, line in enumerate(lines, 2) if line.endswith(b"\r\n") != alike), 0)


def column_names(source: FileSource) -> tuple[str, ...]:
    """Names of a file's columns, read from its head alone.

    Raises
    ------
    UserError, OperatorError
        When the file isn't what its name says, or can't be read.
    """
    if source.kind == "csv":
        return csv_head(source).names
    try:
        return tuple(pq.read_schema(source.path).names)
    except (pa.ArrowException, OSError) as error:
        raise OperatorError(f"File {source.name} is damaged or isn't what its name says.") from error


@contextmanager
def _lines(source: FileSource) -> Iterator[IO[bytes]]:
    opened = gzip.open if source.path.name.lower().endswith(".gz") else open
    try:
        with opened(source.path, "rb") as file:
            yield file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        cause = getattr(error, "strerror", None) or "it is damaged or isn't what its name says"
        raise OperatorError(f"File {source.name} can't be read: {cause}.") from error


def _wrong(source: FileSource, line: int, cause: str, remedy: str) -> UserError:
    return UserError(Mistake(source.name, line, 0, cause, remedy))


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
    if url.startswith(duckdb_file.PREFIX):
        # SQLAlchemy reads a backslash before a colon as a colon that is none of a parameter.
        with duckdb_file.open_rows(url, statement.replace("\\:", ":")) as rows:
            return _read(rows.names, rows)
    try:
        engine = sa.create_engine(url)
    except ModuleNotFoundError as error:
        raise UserError(f"The database URL can't be used: driver {error.name} isn't installed.") from error
    except (sa.exc.ArgumentError, ValueError) as error:
        raise UserError("The database URL can't be used: no such dialect, or it is no URL.") from error
    where = engine.url.render_as_string(hide_password=True)
    try:
        with engine.connect() as plain:
            connection = _reading_only(plain)
            result = connection.execution_options(stream_results=True).execute(sa.text(statement))
            return _read(list(result.keys()), result)
    except sa.exc.OperationalError as error:
        raise OperatorError(f"Database {where} can't be read: {_first_line(error.orig)}.") from error
    except sa.exc.SQLAlchemyError as error:
        cause = _first_line(getattr(error, "orig", None) or type(error).__name__)
        raise UserError(f"Database {where} refuses the query: {cause}.") from error
    finally:
        engine.dispose()


def _reading_only(connection: sa.Connection) -> sa.Connection:
    """The connection with writing forbidden, on the databases that can forbid it."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        return connection.execution_options(postgresql_readonly=True)
    if dialect == "sqlite":
        connection.exec_driver_sql("pragma query_only = on")
    elif dialect in ("mysql", "mariadb"):
        connection.exec_driver_sql("set transaction read only")
    return connection


class _Rows(Protocol):
    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]: ...


def _read(names: Sequence[str], result: _Rows) -> tuple[pa.Table, str]:
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
        raise UserError("A column of the query mixes types; cast it there.") from error
    except UnicodeError as error:
        raise UserError("A text of the query is no UTF-8; cast it there.") from error
    return table, hashlib.sha256(f"{names}{n}{digest % 2**256}".encode()).hexdigest()


def _first_line(said: object) -> str:
    """What a database said, without the lines in which it quotes or advises, and without a row's text."""
    return str(said).strip().splitlines()[0].partition(" with text ")[0].rstrip(".")
