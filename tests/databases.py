"""Real databases for the tests: an SQLite file and a PostgreSQL database, fresh for each test.

Their tables are migrated once in a process and copied from then on. PostgreSQL is reached at
CELOSIA_TEST_POSTGRES (default: user postgres on this machine's port 5432). Tests that need it fail when it
can't be reached.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from app.db import Store, open_store
from app.db.engine import connect, migrate

KINDS = ("sqlite", "postgresql")


@contextmanager
def database_url(kind: str, folder: Path, *, empty: bool = False) -> Iterator[str]:
    """URL of a new database with empty tables, ``empty``: without tables; dropped afterwards."""
    if kind == "sqlite":
        path = folder / "celosia.sqlite3"
        if not empty:
            _copy(path)
        yield f"sqlite:///{path}"
        return
    name = f"celosia_test_{secrets.token_hex(6)}"
    _on_server(f"create database {name}" + ("" if empty else f" template {_template()}"))
    try:
        yield _url(name)
    finally:
        _on_server(f"drop database {name} with (force)")


def new_store(path: Path) -> Store:
    """A store in an SQLite file that is made unless it is there already."""
    if not path.exists():
        _copy(path)
    return open_store(f"sqlite:///{path}")


def _copy(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_template_file(), path)


@cache
def _template_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="celosia-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _migrate(f"sqlite:///{folder / 'template.sqlite3'}")
    return folder / "template.sqlite3"


@cache
def _template() -> str:
    name = f"celosia_test_template_{secrets.token_hex(6)}"
    _on_server(f"create database {name}")
    atexit.register(_on_server, f"drop database {name} with (force)")
    _migrate(_url(name))
    return name


def _migrate(url: str) -> None:
    engine = connect(url)
    migrate(engine)
    engine.dispose()


def _server() -> sa.URL:
    return sa.make_url(
        os.environ.get("CELOSIA_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
    ).set(drivername="postgresql+psycopg")


def _url(name: str) -> str:
    return _server().set(drivername="postgresql", database=name).render_as_string(hide_password=False)


def _on_server(command: str) -> None:
    engine = sa.create_engine(_server(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(command))
