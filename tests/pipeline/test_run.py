"""The pipeline over real files, engine and databases: it ends, or leaves all as it was."""

from __future__ import annotations

import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.db.store import LOCK_KEY
from app.domain.errors import CelosiaError, OperatorError, UserError
from app.domain.masked import CellStatus
from app.domain.progress import StepProgress
from app.pipeline.define import load_publication
from app.pipeline.promises import read_promises
from app.pipeline.run import STEP_NAMES, Outcome, run
from app.pipeline.running import Wish
from tests.databases import new_store
from tests.jobs.forks import SERVER, die, no_room
from tests.pipeline.offices import CUBE, SHEETS, firms, write_csv, write_office


def run_office(folder: Path, store: Store, steps=STEP_NAMES, progress=None) -> Outcome:
    return run(load_publication(folder), store, open_cube, steps, progress)


class Stopwatch:
    """Notes when the release begins, and when its certificate is signed."""

    public = "key"
    began = signed = 0.0

    def __call__(self, progress: StepProgress) -> None:
        if progress.step == "release" and not self.began:
            self.began = time.perf_counter()

    def sign(self, _body: bytes) -> str:
        self.signed = time.perf_counter()
        return "signature"


def test_the_time_of_the_release_is_counted_up_to_its_publication(office: Path, url: str) -> None:
    store, watch = open_store(url), Stopwatch()
    run(load_publication(office), store, open_cube, STEP_NAMES, watch, Wish(signer=watch))
    assert 0 < watch.signed - watch.began <= store.status()["seconds"]["release"]


def test_a_run_makes_a_release_and_says_what_it_found(office: Path, url: str) -> None:
    store = open_store(url)
    outcome = run_office(office, store)
    assert outcome.ran == STEP_NAMES
    status = store.status()
    assert status["release"]["state"] == "live"
    assert status["exposures"] == 0
    assert status["primaries"] > 5
    assert status["secondaries"] > 5
    assert status["implied_cells"] > 0
    assert 0 < status["hidden_share"] < 1
    assert 0 < status["lower_bound"] <= status["cost"] * (1 + 1e-9)
    assert set(status["seconds"]) == set(STEP_NAMES)
    release = store.live_release()
    assert release is not None
    assert len(release.keys) == status["cells"]
    assert len(set(release.keys)) == len(release.keys)
    hidden = release.status == CellStatus.CONFIDENTIAL
    assert hidden.mean() == pytest.approx(status["hidden_share"])
    assert np.isnan(release.values[release.status != CellStatus.SHOWN]).all()
    assert np.isfinite(release.values[release.status == CellStatus.SHOWN]).all()
    catalogue = store.catalogue(release.id)
    assert catalogue is not None
    for sheet in catalogue.root.walk():
        for query in sheet.queries:
            for choice in catalogue.choices[sheet.id][0] if sheet.parameters else (None,):
                chosen = () if choice is None else (choice.unique_name,)
                layout = store.layout(release.id, sheet.id, query.id, chosen)
                assert layout is not None
                assert (layout.cell >= 0).all()
                assert (layout.cell < len(release.keys)).all()
    assert [job.state for job in store.jobs()] == ["done"]
    store.close()


def test_two_runs_give_the_identical_pattern(office: Path, tmp_path: Path) -> None:
    patterns = []
    for name in ("one", "two"):
        store = new_store(tmp_path / f"{name}.sqlite3")
        run_office(office, store)
        release = store.live_release()
        assert release is not None
        patterns.append((release.keys, release.status.tolist()))
        store.close()
    assert patterns[0] == patterns[1]


def test_a_second_run_has_nothing_to_do(office: Path, store: Store) -> None:
    first = run_office(office, store)
    second = run_office(office, store)
    assert (second.ran, second.reused) == ((), STEP_NAMES)
    assert second.release_id == first.release_id
    (record,) = store.book.all()
    store.book.withdraw(record.id, record.version, "admin", "a test")
    third = run_office(office, store)
    assert third.ran == ("release",)
    assert third.release_id not in (None, first.release_id)


def test_a_change_of_text_or_data_is_noticed(office: Path, store: Store) -> None:
    first = run_office(office, store)
    sheet = office / "sheets/coast.toml"
    sheet.write_text(sheet.read_text().replace('title.en = "Coast"', 'title.en = "Sea"'))
    second = run_office(office, store)
    assert second.ran == STEP_NAMES
    write_csv(office / "data/firms.csv", firms(seed=2))
    third = run_office(office, store)
    assert third.ran == STEP_NAMES
    assert len({first.release_id, second.release_id, third.release_id}) == 3


def test_steps_one_by_one(office: Path, store: Store) -> None:
    with pytest.raises(UserError, match="Step crawl has not been run"):
        run_office(office, store, ["assess"])
    for name in STEP_NAMES:
        assert run_office(office, store, [name]).ran == (name,)
    assert store.live_release_id() is not None


# ---------------------------------------------------------------------- data that change


def test_data_that_changed_since_the_crawl_are_refused(office: Path, store: Store) -> None:
    before = run_office(office, store).release_id
    write_csv(office / "data/firms.csv", firms(seed=3))
    run_office(office, store, STEP_NAMES[:-1])
    write_csv(office / "data/firms.csv", firms(seed=4))
    with pytest.raises(UserError, match="changed since the crawl"):
        run_office(office, store, ["release"])
    assert store.live_release_id() == before
    assert run_office(office, store).release_id != before


@pytest.mark.parametrize("step", STEP_NAMES[1:])
def test_data_that_change_during_the_run_are_refused(office: Path, store: Store, step: str) -> None:
    def meddle(state: StepProgress) -> None:
        if state.step == step and state.message == "begins":
            write_csv(office / "data/firms.csv", firms(seed=5))

    with pytest.raises(CelosiaError, match="changed"):
        run_office(office, store, progress=meddle)
    assert store.live_release_id() is None
    assert run_office(office, store).release_id is not None


# ---------------------------------------------------------------------- damage

DAMAGE = {
    "empty": b"",
    "junk": bytes(range(256)) * 20,
    "half": b"firm,holding,town,activity,size,turnover\n1,,a1,farm,small,12\n2,,a2",
    "words": b"firm,holding,town,activity,size,turnover\n1,,a1,farm,small,many\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_data_are_told_and_change_nothing(office: Path, store: Store, damage: str) -> None:
    before = run_office(office, store).release_id
    (office / "data/firms.csv").write_bytes(DAMAGE[damage])
    with pytest.raises((UserError, OperatorError)) as caught:
        run_office(office, store)
    assert "firms.csv" in str(caught.value)
    assert store.live_release_id() == before


def test_a_query_that_cannot_be_answered_is_told_with_its_line(tmp_path: Path, store: Store) -> None:
    sheets = {**SHEETS, "coast": SHEETS["coast"].replace("[Place].[Coast]}", "[Place].[Coats]}")}
    office = write_office(tmp_path / "office", sheets=sheets)
    with pytest.raises(UserError) as caught:
        run_office(office, store)
    mistake = caught.value.mistakes[0]
    line = sheets["coast"][: sheets["coast"].index("Coats")].count("\n") + 1
    assert (mistake.file, mistake.line) == ("sheets/coast.toml", line)
    assert store.jobs()[0].state == "failed"


# ---------------------------------------------------------------------- kills


def run_and_die(folder: Path, url: str, where: str) -> None:
    def progress(state: StepProgress) -> None:
        if state.step == where and state.message == "begins":
            die()

    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def watch(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if where == "transaction" and "INSERT INTO release_layout" in statement:
            die()
        if where == "keeping" and "INSERT INTO step" in statement and "build" in str(parameters):
            die()

    run_office(folder, open_store(url), progress=progress)


#: Where a run is killed, and the steps that are done by then.
KILLS = {**{name: number for number, name in enumerate(STEP_NAMES)}, "keeping": 2, "transaction": 5}


@pytest.mark.parametrize(
    ("url", "where"),
    [*(("sqlite", where) for where in KILLS), ("postgresql", "suppress"), ("postgresql", "transaction")],
    indirect=["url"],
)
def test_a_killed_run_goes_on_at_the_step_that_was_lost(office: Path, url: str, where: str) -> None:
    store = open_store(url)
    before = run_office(office, store).release_id
    store.close()
    write_csv(office / "data/firms.csv", firms(seed=6))
    process = SERVER.Process(target=run_and_die, args=(office, url, where))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    if url.startswith("postgresql"):
        # The server notices a moment later that a process is gone, and holds its lock till then.
        server = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
        with server.begin() as connection:
            connection.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})
        server.dispose()
    store = open_store(url)
    assert store.live_release_id() == before
    outcome = run_office(office, store)
    done = KILLS[where]
    assert outcome.reused == STEP_NAMES[:done]
    assert outcome.ran == STEP_NAMES[done:]
    assert outcome.release_id not in (None, before)
    assert store.status()["exposures"] == 0
    assert [job.state for job in store.jobs()] == ["done", "lost", "done"]
    store.close()


def run_without_room(folder: Path, url: str, limit: int, told: Connection) -> None:
    store = open_store(url)
    no_room(limit)
    try:
        run_office(folder, store)
        told.send("")
    except OperatorError as error:
        told.send(str(error))


def test_a_full_disk_is_told_and_the_next_run_goes_on(office: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'celosia.sqlite3'}"
    refused = 0
    for limit in (70_000, 100_000, 130_000):
        ours, theirs = SERVER.Pipe(False)
        process = SERVER.Process(target=run_without_room, args=(office, url, limit, theirs))
        process.start()
        theirs.close()
        said = ours.recv()
        process.join()
        assert process.exitcode == 0
        refused += said.startswith("The database couldn't be written")
    assert refused >= 2
    store = open_store(url)
    assert run_office(office, store).release_id is not None
    store.close()


# ---------------------------------------------------------------------- neighbours


def test_promises_are_those_of_the_sensitive_cells(office: Path, store: Store) -> None:
    with pytest.raises(UserError):
        read_promises(store)
    run_office(office, store)
    promised = read_promises(store)["Firms"]
    assert len(promised) >= store.status()["primaries"]
    counts = [item for item in promised if item.measure == "[Measures].[Firms]"]
    assert counts
    assert all(item.lower <= item.upper for item in promised)
    assert any(item.upper >= 3 for item in counts)


def test_an_error_of_the_data_is_not_hidden_by_a_full_database(office: Path, store: Store) -> None:
    cube = office / "cubes/firms.toml"
    cube.write_text(CUBE.replace('aggregator = "sum"', 'aggregator = "sum"\nnonnegative = true'))
    rows = firms()
    rows[0]["turnover"] = -5000
    write_csv(office / "data/firms.csv", rows)
    with pytest.raises(UserError, match="nonnegative = false"):
        run_office(office, store)
