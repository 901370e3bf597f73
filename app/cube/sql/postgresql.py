"""Facts that stay in PostgreSQL: one transaction, which sees one state of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa

from app.cube.sql.foreign import SOURCE, mistake, one_query, translated
from app.domain.errors import OperatorError, UserError

if TYPE_CHECKING:
    import psycopg

_PATIENCE = 15


class PostgreSQL:
    """See `app.cube.sql.foreign.Foreign`.

    The password may be left out of the URL: the client library takes it from ``PGPASSWORD`` or
    ``PGPASSFILE``. Nothing is written but temporary views and tables, which go with the session.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            remedy = "Install celosia[postgres]."
            raise UserError(mistake("The postgresql engine needs the package psycopg.", remedy)) from error
        try:
            address = sa.make_url(url)
        except sa.exc.ArgumentError as error:
            remedy = "Write postgresql://user@host/database."
            raise UserError(mistake("The URL of the facts is none.", remedy)) from error
        if address.get_backend_name() != "postgresql":
            remedy = "Write postgresql://user@host/database."
            raise UserError(mistake("The URL of the facts isn't that of a PostgreSQL database.", remedy))
        self._where = address.render_as_string(hide_password=True)
        self._lock = RLock()
        plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection: psycopg.Connection[Any] = psycopg.connect(plain, connect_timeout=_PATIENCE)
        except psycopg.Error as error:
            raise OperatorError(f"Database {self._where} can't be reached.") from error
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._error = psycopg.Error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def source(self, sql: str) -> None:
        with self._asked_by_office():
            self._connection.execute(f"CREATE TEMP VIEW {SOURCE} AS {one_query(sql, 'postgres')}".encode())

    def freeze(self, columns: list[str]) -> None:
        """The transaction sees one state anyway."""

    def types(self) -> dict[str, str]:
        statement = (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = 'pg_temp.{SOURCE}'::regclass AND attnum > 0 ORDER BY attnum"
        )
        with self._own_statement():
            return dict(self._connection.execute(statement.encode()).fetchall())

    def own(self, sql: str) -> pa.Table:
        with self._asked_by_office():
            return self._fetch(one_query(sql, "postgres"))

    def table(self, sql: str) -> pa.Table:
        with self._own_statement():
            return self._fetch(translated(sql, "postgres"))

    def view(self, name: str, sql: str) -> None:
        with self._own_statement():
            self._connection.execute(f"CREATE TEMP VIEW {name} AS {translated(sql, 'postgres')}".encode())

    def keep(self, name: str, table: pa.Table) -> None:
        kinds = ", ".join(
            f"{field.name} {'text' if pa.types.is_string(field.type) else 'bigint'}" for field in table.schema
        )
        with self._own_statement(), self._connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{name}".encode())
            cursor.execute(f"CREATE TEMP TABLE {name} ({kinds})".encode())
            with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
            cursor.execute(f"ANALYZE {name}".encode())

    def digest(self, hashes: str) -> str:
        # Two numbers of 60 bits of each row, added up without a limit.
        halves = (f"sum(('x' || substr(h, {start}, 15))::bit(60)::bigint::numeric)" for start in (1, 16))
        with self._own_statement():
            row = self._connection.execute(f"SELECT count(*), {', '.join(halves)} FROM {hashes}".encode())
            return " ".join(map(str, row.fetchone() or ()))

    def _fetch(self, sql: str) -> pa.Table:
        with self._connection.cursor() as cursor:
            cursor.execute(sql.encode())
            names = [column.name for column in cursor.description or ()]
            columns: list[Any] = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
        try:
            return pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise UserError(
                mistake("A column has a type that can't be read.", "Cast it in the query.")
            ) from error

    @contextmanager
    def _asked_by_office(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except self._error as error:
                said = str(error).strip().splitlines()[0].rstrip(".")
                raise UserError(f"Database {self._where} refuses the query: {said}.") from error

    @contextmanager
    def _own_statement(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except self._error as error:
                # The database's own words may quote the data.
                kind = f"{type(error).__name__}, {error.sqlstate or 'connection lost'}"
                raise OperatorError(f"Database {self._where} failed to aggregate ({kind}).") from error
