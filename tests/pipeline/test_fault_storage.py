"""Storage that is damaged, goes away or fills up: made again, or refused; never half a release."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.db import tables as t
from app.db.engine import cause_of, connect
from app.domain.errors import CelosiaError, OperatorError
from app.domain.progress import StepProgress
from app.pipeline.define import load_publication
from app.pipeline.run import STEP_NAMES, Outcome, run
from tests.databases import database_url


def run_office(folder: Path, store: Store, progress: Callable[[StepProgress], None] | None = None) -> Outcome:
    return run(load_publication(folder), store, open_cube, STEP_NAMES, progress)


def meddle(url: str, *statements: sa.Executable) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(statement)
    engine.dispose()


@pytest.mark.parametrize("step", STEP_NAMES)
def test_a_damaged_result_is_made_again(office: Path, tmp_path: Path, step: str) -> None:
    url = f"sqlite:///{tmp_path / 'celosia.sqlite3'}"
    store = open_store(url)
    first = run_office(office, store)
    meddle(url, sa.update(t.step).where(t.step.c.name == step).values(body=b"\x00"))
    second = run_office(office, store)
    assert second.ran[0] == step
    assert second.status["release"]["state"] == "live"
    assert second.status["cells"] == first.status["cells"]
    store.close()


@pytest.mark.parametrize("lost", ["every other", "first"])
def test_a_release_that_lost_cells_is_not_read(office: Path, url: str, lost: str) -> None:
    store = open_store(url)
    run_office(office, store)
    store.close()
    number = t.release_cell.c.number
    meddle(url, sa.delete(t.release_cell).where(number % 2 == 0 if lost == "every other" else number == 0))
    store = open_store(url)
    with pytest.raises(OperatorError, match="lost"):
        store.live_release()
    store.close()


@pytest.mark.parametrize("where", ["crawl", "suppress", "release"])
def test_a_database_that_goes_away_in_the_middle_is_told(office: Path, tmp_path: Path, where: str) -> None:
    with database_url("postgresql", tmp_path) as url:
        name = sa.make_url(url).database

        def go_away(state: StepProgress) -> None:
            if state.step == where and state.message == "begins":
                close_door(False)

        def close_door(is_open: bool) -> None:
            server = sa.create_engine(
                sa.make_url(url).set(drivername="postgresql+psycopg", database="postgres"),
                isolation_level="AUTOCOMMIT",
            )
            with server.connect() as connection:
                connection.execute(sa.text(f"alter database {name} allow_connections {is_open}"))
                if not is_open:
                    kick = "select pg_terminate_backend(pid) from pg_stat_activity where datname = :name"
                    connection.execute(sa.text(kick), {"name": name})
            server.dispose()

        store = open_store(url)
        with pytest.raises(OperatorError, match="database"):
            run_office(office, store, go_away)
        close_door(True)
        assert store.live_release_id() is None
        outcome = run_office(office, store)
        assert outcome.reused == STEP_NAMES[: STEP_NAMES.index(where)]
        assert outcome.release_id is not None
        store.close()


@pytest.mark.parametrize("said", ["disk I/O error", "database or disk is full"])
def test_a_full_disk_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """SQLite can't read there either, and of why it says as much as of a broken disk."""
    engine = connect(f"sqlite:///{tmp_path / 'celosia.sqlite3'}")
    error = sa.exc.OperationalError("select 1", {}, sqlite3.OperationalError(said))
    for free in (0, 1 << 30):
        monkeypatch.setattr(shutil, "disk_usage", lambda place, free=free: SimpleNamespace(free=free))
        told = cause_of(error, engine)
        assert told.startswith(said)
        assert (f"the disk of {tmp_path} is full. Free some space" in told) is (free == 0)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    for number, body in enumerate((b"junk" * 999, b"SQLite format 3\x00" + b"\xff" * 5000)):
        path = tmp_path / f"{number}.sqlite3"
        path.write_bytes(body)
        with pytest.raises(CelosiaError):
            open_store(f"sqlite:///{path}")
        assert path.read_bytes() == body
