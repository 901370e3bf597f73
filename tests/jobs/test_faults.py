"""A release that changes under load, and a migration that is killed: all or nothing, on either database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.cli.serving import running
from app.cube.duckdb import open_cube
from app.db import open_store
from app.db.engine import connect, current_revision, migrate
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.web.app import create_app
from tests.jobs.forks import SERVER, die
from tests.pipeline.offices import firms, write_csv

PATHS = ("/en/s/activity/by-place", "/en/s/activity/by-place/turnover.csv", "/en/s/coast", "/es/")
READERS = 6


def test_a_release_changes_under_load_and_every_answer_is_wholly_old_or_new(office: Path, url: str) -> None:
    store, writer = open_store(url), open_store(url)
    run(load_publication(office), writer, open_cube)
    stop = Event()
    with running(create_app(store, patience=0)) as address, ThreadPoolExecutor(READERS) as pool:

        def read(number: int) -> list[tuple[str, int, bytes]]:
            found = []
            with httpx.Client(base_url=address, timeout=60) as client:
                while not stop.is_set():
                    path = PATHS[(number + len(found)) % len(PATHS)]
                    response = client.get(path)
                    found.append((path, response.status_code, response.content))
            return found

        def whole() -> dict[str, bytes]:
            with httpx.Client(base_url=address, timeout=60) as client:
                return {path: client.get(path).content for path in PATHS}

        old = whole()
        reading = [pool.submit(read, number) for number in range(READERS)]
        try:
            write_csv(office / "data/firms.csv", firms(seed=7))
            run(load_publication(office), writer, open_cube)
            new = whole()
        finally:
            stop.set()
        answers = [answer for task in reading for answer in task.result()]
    assert all(old[path] != new[path] for path in PATHS[:2])
    assert len(answers) > 100
    for path, status, body in answers:
        assert status == 200 or (status == 503 and b"Nothing is published" not in body)
        assert status == 503 or body in (old[path], new[path]), path
    assert {body for path, _status, body in answers if path == PATHS[0]} >= {old[PATHS[0]]}
    store.close()
    writer.close()


def migrate_and_die(url: str, where: str) -> None:
    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def watch(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if where in " ".join(statement.split()):
            die()

    migrate(connect(url))


@pytest.mark.parametrize(
    "where", ["CREATE TABLE account", "CREATE TABLE job_event", "UPDATE alembic_version"]
)
def test_a_migration_that_is_killed_has_not_happened(url: str, where: str) -> None:
    engine = connect(url)
    migrate(engine, "0001")
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "insert into job (state, started, step, done, total, message)"
                " values ('done', '2026-01-02 03:04:05.000006', 'audit', 1, 1, '')"
            )
        )
        connection.execute(
            sa.text(
                "insert into release (id, state, created, fingerprints, catalogue)"
                " values ('r', 'superseded', '2026-01-02 03:04:05.000006', '{}', '')"
            )
        )
        connection.execute(
            sa.text("insert into release_cell (release_id, number, key, status) values ('r', 0, 'k', 1)")
        )
    process = SERVER.Process(target=migrate_and_die, args=(url, where))
    process.start()
    process.join()
    assert process.exitcode == -9
    assert current_revision(engine) == "0001"
    migrate(engine)
    migrate(engine, "0001")
    migrate(engine)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("select count(*) from job")) == 1
        # Tables are copied on the way, and what refers to them stays.
        assert connection.scalar(sa.text("select count(*) from release_cell")) == 1
    engine.dispose()
