"""A release that changes under load, and a migration that is killed: all or nothing, on either database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.cli.serving import running
from app.cube.duckdb import open_cube
from app.db import open_store
from app.db.engine import connect, current_revision, head_revision, migrate
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.pipeline.running import Wish
from app.web.app import create_app
from tests.databases import database_url
from tests.jobs.forks import SERVER, die
from tests.pipeline.offices import firms, write_csv

PATHS = (
    "/en/s/activity/by-place",
    "/en/s/activity/by-place/turnover.csv",
    "/en/s/activity/by-place/turnover.xlsx",
    "/en/s/activity/by-place/firms.json",
    "/es/s/activity/by-place",
    "/en/s/activity/by-place/turnover.parquet",
    "/en/s/coast",
    "/es/",
)
READERS = 8
REQUESTS = 1000
SWITCHES = 4


def test_a_release_switches_under_load_and_every_answer_is_wholly_old_or_new(office: Path, url: str) -> None:
    """A thousand requests by eight readers while two releases take turns; both are known beforehand."""
    store, writer = open_store(url), open_store(url)
    run(load_publication(office), writer, open_cube)
    first = str(writer.live_release_id())
    write_csv(office / "data/firms.csv", firms(seed=7))
    second = str(run(load_publication(office), writer, open_cube, wish=Wish(accepted=True)).release_id)
    asked = count(1)
    gates = [Event() for _ in range(SWITCHES)]

    def show(release: str) -> None:
        writer.book.roll_back(release, writer.book.get(release).version, "ana")

    with running(create_app(store, patience=0)) as address, ThreadPoolExecutor(READERS) as pool:

        def whole(release: str) -> dict[str, tuple[str, bytes]]:
            if writer.live_release_id() != release:
                show(release)
            with httpx.Client(base_url=address, timeout=60) as client:
                answers = {path: client.get(path) for path in PATHS}
            return {path: (answer.headers["etag"], answer.content) for path, answer in answers.items()}

        def read(number: int) -> list[tuple[str, int, str, bytes]]:
            found = []
            with httpx.Client(base_url=address, timeout=60) as client:
                while (turn := next(asked)) <= REQUESTS:
                    if turn % (REQUESTS // (SWITCHES + 1)) == 0:
                        gates[min(turn * (SWITCHES + 1) // REQUESTS, SWITCHES) - 1].set()
                    path = PATHS[(number + len(found)) % len(PATHS)]
                    answer = client.get(path)
                    found.append((path, answer.status_code, answer.headers.get("etag", ""), answer.content))
            return found

        new, old = whole(second), whole(first)
        reading = [pool.submit(read, number) for number in range(READERS)]
        for number, gate in enumerate(gates):
            assert gate.wait(240)
            show((second, first)[number % 2])
        answers = [answer for task in reading for answer in task.result()]
    assert all(old[path] != new[path] for path in PATHS[:6])
    assert len(answers) == REQUESTS
    for path, status, tag, body in answers:
        # A reader whose release went while it was being asked for is told to come again.
        assert (status == 200 and (tag, body) in (old[path], new[path])) or (
            status == 503 and b"Nothing is published" not in body
        ), (path, status)
    for side in (old, new):
        assert sum(status == 200 and (tag, body) == side[path] for path, status, tag, body in answers) > 50
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
def test_a_migration_that_is_killed_has_not_happened(empty_url: str, where: str) -> None:
    engine = connect(empty_url)
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
    process = SERVER.Process(target=migrate_and_die, args=(empty_url, where))
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


def test_an_upgrade_while_somebody_reads_at_length_keeps_no_reader_waiting(tmp_path: Path) -> None:
    """A backup goes on, new processes migrate, readers read: they stand behind nobody for long."""
    with database_url("postgresql", tmp_path, empty=True) as url:
        engine = connect(url)
        migrate(engine, "0004")
        look = sa.text("select count(*) from release")
        with ThreadPoolExecutor(2) as pool, engine.connect() as backup:
            with backup.begin():
                backup.execute(look)
                upgrades = [pool.submit(migrate, connect(url)) for _ in range(2)]
                waiting = sa.text(
                    "select count(*) from pg_locks join pg_database d on d.oid = database"
                    " where datname = current_database() and mode = 'AccessExclusiveLock' and not granted"
                )
                with engine.connect() as watcher:
                    while not watcher.scalar(waiting):
                        assert not any(upgrade.done() for upgrade in upgrades)
                with engine.connect() as reader:
                    for _ in range(3):
                        assert reader.scalar(look) == 0
                        reader.rollback()
                assert current_revision(engine) == "0004"
                assert not any(upgrade.done() for upgrade in upgrades)
            for upgrade in upgrades:
                upgrade.result()
        assert current_revision(engine) == head_revision()
        engine.dispose()
