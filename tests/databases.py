"""Real databases for the tests: an SQLite file and a PostgreSQL database, fresh for each test.

PostgreSQL is reached at CELOSIA_TEST_POSTGRES (default: user postgres on this machine's port 5432). Tests
that need it fail when it can't be reached.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

KINDS = ("sqlite", "postgresql")


@contextmanager
def database_url(kind: str, folder: Path) -> Iterator[str]:
    """URL of a new, empty database; dropped afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'celosia.sqlite3'}"
        return
    server = sa.make_url(
        os.environ.get("CELOSIA_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
    ).set(drivername="postgresql+psycopg")
    name = f"celosia_test_{secrets.token_hex(6)}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"create database {name}"))
    try:
        yield server.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f"drop database {name} with (force)"))
        engine.dispose()
