"""Connections: SQLite in WAL mode or PostgreSQL, and migrations."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError

from app.domain.errors import InternalError, OperatorError, UserError

BUSY_SECONDS = 30
CONNECT_SECONDS = 10
MIGRATIONS = Path(__file__).with_name("migrations")
MIGRATION_KEY = 0x43454C4F4D4947
#: Seconds that a migration waits for a table that somebody reads at length, as a backup does. Whoever wants
#: to read meanwhile stands behind it, so it gives way then and tries again, so many times.
LOCK_SECONDS = 2.0
LOCK_TRIES = 60

#: Bytes that SQLite needs to open a database.
_ROOM = 1 << 20
_LOCK_NOT_AVAILABLE = "55P03"


def connect(url: str) -> sa.Engine:
    """An engine for a SQLAlchemy URL (``sqlite:///file`` or ``postgresql://…``).

    Raises
    ------
    UserError
        If the URL can't be read or names another kind of database.
    OperatorError
        If the folder of an SQLite file can't be made, or PostgreSQL's driver isn't installed.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise UserError(
            "The database URL can't be read. Write it as sqlite:///file or postgresql://user@host/name."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        try:
            return sa.create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                # A machine that is gone is noticed, not waited for.
                connect_args={"connect_timeout": CONNECT_SECONDS, "keepalives_idle": 30},
            )
        except ModuleNotFoundError:
            raise OperatorError(
                "The driver of PostgreSQL isn't installed. It comes with the extra: celosia[postgres]."
            ) from None
    if kind != "sqlite":
        raise UserError(f"Databases of kind {kind} aren't supported. Use sqlite or postgresql.")
    if parsed.database and parsed.database != ":memory:":
        folder = Path(parsed.database).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperatorError(f"Folder {folder} can't be made: {error.strerror}.") from error
    engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver's own transactions leave schema changes out; ours begin below.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("celosia_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def cause_of(error: sa.exc.SQLAlchemyError, engine: sa.Engine) -> str:
    """The database's own words only: statement and parameters may hold cell values.

    Of a full disk SQLite says no more than that of a broken one, and it can't even read there.
    """
    cause = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()[0]
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    if not file or not (cause.endswith("is full") or cause.startswith("disk I/O")):
        return cause
    folder = Path(file).absolute().parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return cause
    if free >= _ROOM:
        return cause
    return (
        f"{cause}; the disk of {folder} is full. Free some space there, to read as well, and try again: "
        "what was stored before is whole"
    )


def has_password(url: str) -> bool:
    """Whether a SQLAlchemy URL holds a password.

    Raises
    ------
    UserError
        If it can't be read.
    """
    try:
        return sa.make_url(url).password is not None
    except (sa.exc.ArgumentError, ValueError):
        raise UserError("The database URL can't be read. Write it as postgresql://user@host/name.") from None


def alembic_config(connection: sa.Connection) -> Config:
    """Alembic's settings for the migrations of this package over an open connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def migrate(engine: sa.Engine, revision: str = "head") -> None:
    """Bring the tables to a revision, up or down (``base`` drops them).

    Processes that start together wait for the one that migrates. Whole or not at all: a migration that is
    interrupted has not happened.

    Raises
    ------
    OperatorError
        If the database can't be reached or written, or is of a newer version than this program.
    """
    try:
        for tries_left in reversed(range(LOCK_TRIES)):
            if revision == "head" and current_revision(engine) == head_revision():
                return
            try:
                _go_to(engine, revision)
                return
            except sa.exc.OperationalError as error:
                if getattr(error.orig, "sqlstate", "") != _LOCK_NOT_AVAILABLE or not tries_left:
                    raise
    except sa.exc.SQLAlchemyError as error:
        cause = cause_of(error, engine)
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        if file and not os.access(Path(file).parent, os.W_OK):
            cause = f"{cause}; folder {Path(file).parent} must be writable, even to read"
        raise OperatorError(f"The database can't be opened: {cause}.") from error
    except CommandError as error:
        raise OperatorError(
            f"The database is of another version of Celosia ({error}). Use the newer program."
        ) from error


def _go_to(engine: sa.Engine, revision: str) -> None:
    with _migrating(engine) as connection:
        config = alembic_config(connection)
        if revision == "base" or _is_below(revision, MigrationContext.configure(connection)):
            command.downgrade(config, revision)
        else:
            command.upgrade(config, revision)


@cache
def head_revision() -> str:
    """The revision that this program works with."""
    found = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    if found is None:
        raise InternalError("there are no migrations")
    return found


def current_revision(engine: sa.Engine) -> str | None:
    """The revision of a database, None for an empty one."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _is_below(revision: str, context: MigrationContext) -> bool:
    """Whether a revision comes before the one that the database has."""
    current = context.get_current_revision()
    if current is None or revision in ("head", current):
        return False
    script = ScriptDirectory(str(MIGRATIONS))
    return any(item.revision == revision for item in script.iterate_revisions(current, "base"))


@contextmanager
def _migrating(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction that nobody else migrates beside."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # A table is changed by copying it and dropping the old one, which would take with it the rows
            # that refer to it. The setting can't be changed within a transaction.
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("PRAGMA foreign_keys=OFF")
            connection = connection.execution_options(celosia_writes=True)
            try:
                with connection.begin():
                    yield connection
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                    if broken:
                        raise InternalError(f"a migration broke {len(broken)} references")
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
        else:
            with connection.begin():
                connection.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_KEY})
                connection.execute(sa.text(f"set local lock_timeout = {round(LOCK_SECONDS * 1000)}"))
                yield connection
