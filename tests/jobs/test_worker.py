"""Workers with real processes that are killed, stopped and cut off: the job is done in the end, once."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import sqlalchemy as sa

from app.bootstrap.jobs import Queue, make_queue, open_queue
from app.db import open_store
from app.db import tables as t
from app.db.jobs import MAX_ATTEMPTS
from app.db.workspace import WorkspaceStore
from app.domain.job import JobState
from app.office.folders import PREFIX, WorkFolders
from app.office.versions import Versions
from app.office.work import Ending
from app.office.worker import Pace, Worker
from app.pipeline.run import STEP_NAMES
from tests.databases import database_url
from tests.jobs.forks import Forks

ROOT = Path(__file__).resolve().parents[2]
PACE = Pace(look=0.05, grace=0.2)


@contextmanager
def working(
    queue: Queue, tmp_path: Path, *places: str, capacity: int = 1, launch: Forks | None = None
) -> Iterator[Worker]:
    """A worker in a thread as long as the context lasts."""
    tmp_path.mkdir(exist_ok=True)
    folders = WorkFolders(tmp_path)
    launch = launch or Forks(queue.url, queue.folder, *places)
    worker = Worker(queue.table, launch, folders, capacity, PACE)
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert not list(tmp_path.glob(f"{PREFIX}*"))


def wait_for(queue: Queue, job: int, *wanted: str, after: int = 0) -> str:
    """Look at a job's events after a number until it is in a wanted state, or a wanted step begins."""
    seen, tick = after, Event()
    for _ in range(2400):
        for event in queue.jobs.events(job, seen):
            seen = event.number
            said = event.progress.message
            if event.kind == "state" and said in wanted:
                return said
            if said == "begins" and event.progress.step in wanted:
                return said
        tick.wait(0.05)
    raise AssertionError(f"job {job} never told of {wanted}: {queue.jobs.view(job)}")


def log_of(queue: Queue, job: int) -> list[str]:
    return [event.progress.message for event in queue.jobs.events(job) if event.kind == "log"]


def run_out(queue: Queue) -> None:
    """Let every lease run out: the database's clock needn't be waited for."""
    with queue.store.database.writing() as connection:
        connection.execute(sa.update(t.job).values(lease=sa.null()))
        connection.execute(
            sa.update(t.job)
            .where(t.job.c.state == "running")
            .values(lease=sa.select(sa.func.min(t.job.c.submitted)).scalar_subquery())
        )


def test_killed_at_every_step_a_job_goes_on_where_it_was(queue: Queue, tmp_path: Path) -> None:
    """Worker and process die at each step in turn; whoever comes next does no step twice."""
    assert queue.folder is not None
    job = queue.jobs.submit("ana")
    places = (*STEP_NAMES, "transaction")
    for number, where in enumerate(places):
        lease = queue.table.claim(f"worker {number}")
        assert lease is not None
        assert lease.job.id == job
        Forks(queue.url, queue.folder, where)(lease, tmp_path).join()
        assert queue.store.live_release_id() is None
        done = [name for name in STEP_NAMES if queue.store.scoped("folder").step(name) is not None]
        assert done == list(STEP_NAMES[: min(number, 5)])
        assert queue.table.claim("too early") is None
        run_out(queue)
    lease = queue.table.claim("last")
    assert lease is not None
    assert Forks(queue.url, queue.folder)(lease, tmp_path).join().ending is Ending.OVER
    view = queue.jobs.view(job)
    assert view.job.state is JobState.DONE
    assert view.job.figures is not None
    assert view.job.figures["exposures"] == 0
    assert queue.store.live_release_id() is None
    assert queue.store.book.get(view.job.figures["release"]).state == "audited"
    assert log_of(queue, job) == ["ran release; found crawl, assess, build, suppress, audit done"]


def test_several_jobs_at_once_and_each_is_done_once(queue: Queue, tmp_path: Path) -> None:
    assert queue.folder is not None
    jobs = [queue.jobs.submit("ana", options={"steps": ["crawl", "assess"]}) for _ in range(3)]
    with working(queue, tmp_path / "one", capacity=2), working(queue, tmp_path / "two"):
        for job in jobs:
            assert wait_for(queue, job, "done", "failed", "cancelled") == "done"
    # Of the same inputs the second job finds everything done.
    assert sorted(log_of(queue, job)[0] for job in jobs) == [
        "found crawl, assess done",
        "found crawl, assess done",
        "ran crawl, assess",
    ]


@pytest.mark.parametrize("step", ["crawl", "suppress"])
def test_a_running_job_is_cancelled_and_can_be_tried_again(queue: Queue, tmp_path: Path, step: str) -> None:
    job = queue.jobs.submit("ana")
    with working(queue, tmp_path, f"wait {step}") as worker:
        wait_for(queue, job, step)
        queue.jobs.cancel(job)
        worker.wake()
        assert wait_for(queue, job, "done", "failed", "cancelled") == "cancelled"
        assert queue.store.live_release_id() is None
    done = STEP_NAMES[: STEP_NAMES.index(step)]
    assert tuple(name for name in STEP_NAMES if queue.store.scoped("folder").step(name)) == done
    seen = len(queue.jobs.events(job))
    queue.jobs.retry(job)
    with working(queue, tmp_path):
        assert wait_for(queue, job, "done", "failed", after=seen) == "done"
    assert log_of(queue, job)[-1].startswith("ran " + ", ".join(STEP_NAMES[len(done) :]))


def test_a_worker_that_is_stopped_hands_its_job_back(queue: Queue, tmp_path: Path) -> None:
    job = queue.jobs.submit("ana")
    with working(queue, tmp_path, "wait assess"):
        wait_for(queue, job, "assess")
    view = queue.jobs.view(job)
    assert (view.job.state, view.job.attempt) == (JobState.QUEUED, 0)
    assert log_of(queue, job) == ["its worker was shut down"]


def test_a_job_whose_process_always_dies_fails_in_the_end(queue: Queue, tmp_path: Path) -> None:
    job = queue.jobs.submit("ana")
    with working(queue, tmp_path, *["crawl"] * MAX_ATTEMPTS):
        assert wait_for(queue, job, "done", "failed") == "failed"
    view = queue.jobs.view(job)
    assert view.job.attempt == MAX_ATTEMPTS
    assert view.job.error == "its process died (-9)"


def test_a_mistake_in_the_publication_fails_the_job_with_its_place(queue: Queue, tmp_path: Path) -> None:
    assert queue.folder is not None
    sheet = queue.folder / "sheets/coast.toml"
    sheet.write_text(sheet.read_text().replace("[Place].[Coast]}", "[Place].[Coats]}"))
    job = queue.jobs.submit("ana")
    with working(queue, tmp_path):
        assert wait_for(queue, job, "done", "failed") == "failed"
    assert "sheets/coast.toml" in str(queue.jobs.view(job).job.error)


def test_a_worker_outlives_its_database(tmp_path: Path, office: Path) -> None:
    """The database shuts everybody out in the middle of a job, and comes back."""
    with database_url("postgresql", tmp_path) as url:
        server = sa.create_engine(
            sa.make_url(url).set(drivername="postgresql+psycopg", database="postgres"),
            isolation_level="AUTOCOMMIT",
        )
        name = sa.make_url(url).database
        store = open_store(url)
        queue = make_queue(store, url, office)
        job = queue.jobs.submit("ana")
        launch = Forks(url, office, "wait suppress")
        worker = Worker(queue.table, launch, WorkFolders(tmp_path), 1, PACE)
        thread = Thread(target=worker.run)
        thread.start()
        wait_for(queue, job, "suppress")
        with server.connect() as connection:
            connection.execute(sa.text(f"alter database {name} allow_connections false"))
            kick = sa.text("select pg_terminate_backend(pid) from pg_stat_activity where datname = :name")
            connection.execute(kick, {"name": name})
            launch.started[0].kill()
            launch.started[0].join()
            connection.execute(sa.text(f"alter database {name} allow_connections true"))
        assert wait_for(queue, job, "done", "failed") == "done"
        worker.stop()
        thread.join()
        server.dispose()
        store.close()


def test_what_killed_workers_leave_behind_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from app.office.folders import WorkFolders;"
        "WorkFolders(Path(sys.argv[1])).make('job'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=False)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    assert (left.stat().st_mode & 0o77) == 0
    held = WorkFolders(tmp_path)
    other = WorkFolders(tmp_path)
    assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2
    assert not left.exists()
    held.close()
    other.close()
    assert not list(tmp_path.iterdir())


def test_the_command_works_stops_and_its_processes_die_with_it(tmp_path: Path, office: Path) -> None:
    """The real commands: a worker killed with -9 in the middle of a job, another that ends it and stops."""
    with open_queue(office) as queue:
        job = queue.jobs.submit("ana")
        first = begin_worker(office)
        wait_for(queue, job, "crawl")
        children = child_processes(first.pid)
        assert children
        first.kill()
        first.wait()
        for child in children:
            wait_for_end(child)
        run_out(queue)
        second = begin_worker(office)
        assert wait_for(queue, job, "done", "failed") == "done"
        second.terminate()
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 0, said
        assert "Traceback" not in said
        assert [record.state for record in queue.store.book.all()] == ["audited"]


def begin_worker(office: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from app.cli import main; main()", "worker", str(office)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def child_processes(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(
        {*map(int, listed), *(int(child) for path in threads for child in path.read_text().split())}
    )


def wait_for_end(pid: int) -> None:
    """Wait for a process that isn't ours."""
    with open(os.pidfd_open(pid)) if Path(f"/proc/{pid}").exists() else open(os.devnull) as handle:
        select.select([handle], [], [], 60)


def test_a_version_is_worked_on_without_any_folder(url: str, office: Path, tmp_path: Path) -> None:
    """From the database alone: texts and facts come out of it."""
    store = open_store(url)
    versions = Versions(WorkspaceStore(store.database))
    version = versions.import_folder(office, "ana")
    (office / "sheets/coast.toml").unlink()
    queue = make_queue(store, url, None)
    job = queue.jobs.submit("ana", version.id)
    lease = queue.table.claim("w", has_folder=False)
    assert lease is not None
    folder = tmp_path / "work" / "job"
    folder.mkdir(parents=True)
    assert Forks(url, None)(lease, folder).join().ending is Ending.OVER
    view = queue.jobs.view(job)
    assert view.job.state is JobState.DONE, view.job.error
    assert store.scoped(f"version-{version.id}").step("suppress") is not None
    assert view.job.figures is not None
    catalogue = store.catalogue(view.job.figures["release"])
    assert catalogue is not None
    assert "coast" in {sheet.id for sheet in catalogue.root.walk()}
    store.close()
