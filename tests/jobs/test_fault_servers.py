"""What breaks below: a database server that restarts under load, a full disk. Nothing is half done."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from app.bootstrap.jobs import make_queue
from app.cli.serving import running
from app.cube.duckdb import open_cube
from app.db import open_store
from app.db.workspace import WorkspaceStore
from app.office.folders import WorkFolders
from app.office.versions import Versions
from app.office.worker import Worker
from app.pipeline.define import load_publication
from app.pipeline.run import STEP_NAMES, run
from app.web.app import create_app
from tests.jobs.forks import Forks
from tests.jobs.private_postgres import PrivatePostgres, private_postgres
from tests.jobs.test_worker import PACE, log_of, wait_for, working
from tests.pipeline.offices import firms, write_csv

PATHS = ("/en/s/activity/by-place", "/en/s/activity/by-place/turnover.csv", "/en/s/coast", "/es/")
READERS = 4
#: The steps within which the server is lost, and how it goes down.
OUTAGES = {"crawl": "immediate", "suppress": "fast", "release": "immediate"}


@pytest.fixture
def server() -> Iterator[PrivatePostgres]:
    # Not below the tests' own folder, which is for one user's eyes: the server runs as another.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        with private_postgres(folder / "server") as made:
            yield made


def test_the_database_restarts_under_load(server: PrivatePostgres, office: Path, tmp_path: Path) -> None:
    """A worker within a job and readers at the site see the server go down and come back, thrice."""
    store, readers = open_store(server.url), open_store(server.url)
    run(load_publication(office), store, open_cube)
    live = store.live_release_id()
    write_csv(office / "data/firms.csv", firms(seed=7))
    queue = make_queue(store, server.url, office)
    launch = Forks(server.url, office, *(f"wait {step}" for step in OUTAGES))
    worker = Worker(queue.table, launch, WorkFolders(tmp_path), 1, PACE)
    thread = Thread(target=worker.run)
    stop = Event()
    with running(create_app(readers, patience=0)) as address, ThreadPoolExecutor(READERS) as pool:

        def read(number: int) -> list[tuple[str, int, bytes]]:
            found = []
            with httpx.Client(base_url=address, timeout=60) as client:
                while not stop.is_set():
                    path = PATHS[(number + len(found)) % len(PATHS)]
                    response = client.get(path)
                    found.append((path, response.status_code, response.content))
                    stop.wait(0.02)
            return found

        with httpx.Client(base_url=address, timeout=60) as client:
            whole = {path: client.get(path).content for path in PATHS}
            reading = [pool.submit(read, number) for number in range(READERS)]
            try:
                job = queue.jobs.submit("ana")
                thread.start()
                for number, (step, how) in enumerate(OUTAGES.items()):
                    wait_for(queue, job, step)
                    server.stop(how)
                    assert client.get(PATHS[0]).status_code in (200, 503)
                    launch.started[number].kill()
                    launch.started[number].join()
                    server.start()
                    # An attempt of another reader that began before the server was up answers for who came
                    # while it failed; they go one after the other, so it is at most one.
                    first = client.get(PATHS[0])
                    again = client.get(PATHS[0]) if first.status_code == 503 else first
                    assert again.content == whole[PATHS[0]]
                assert wait_for(queue, job, "done", "failed") == "done"
            finally:
                stop.set()
                worker.stop()
                thread.join(60)
            answers = [answer for task in reading for answer in task.result()]
    assert not thread.is_alive()
    assert len(answers) > 50
    for path, status, body in answers:
        assert status == 503 or (status == 200 and body == whole[path]), (path, status)
        assert status == 200 or b"Nothing is published" not in body
    states = {record.id: str(record.state) for record in store.book.all()}
    assert states.pop(str(live)) == "live"
    assert list(states.values()) == ["audited"]
    for opened in (store, readers):
        opened.close()


# ---------------------------------------------------------------------- disk


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_worker_whose_disk_is_full_fails_the_job_in_one_sentence(
    url: str, office: Path, tmp_path: Path
) -> None:
    """No room for the publication's files: nothing is computed or released, and with room it goes on."""
    store = open_store(url)
    version = Versions(WorkspaceStore(store.database)).import_folder(office, "ana")
    queue = make_queue(store, url, None)
    job = queue.jobs.submit("ana", version.id)
    with working(queue, tmp_path / "small", launch=Forks(url, None, "no room for files")):
        assert wait_for(queue, job, "done", "failed") == "failed"
    told = str(queue.jobs.view(job).job.error)
    assert "Can't write into" in told
    assert "too large" in told
    assert len(told.splitlines()) == 1
    assert store.book.all() == ()
    queue.jobs.retry(job)
    seen = len(queue.jobs.events(job))
    with working(queue, tmp_path / "large", launch=Forks(url, None)):
        assert wait_for(queue, job, "done", "failed", after=seen) == "done"
    store.close()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_database_without_room_hands_the_job_back_and_with_room_it_goes_on(
    url: str, office: Path, tmp_path: Path
) -> None:
    store = open_store(url)
    queue = make_queue(store, url, office)
    job = queue.jobs.submit("ana")
    with working(queue, tmp_path / "work", launch=Forks(url, office, "no room for the database")):
        assert wait_for(queue, job, "done", "failed") == "done"
    told = log_of(queue, job)
    assert told[0].startswith("The database couldn't be written: ")
    assert told[-1].startswith("ran ")
    assert told[-1].count("crawl") == 1
    assert [str(record.state) for record in store.book.all()] == ["audited"]
    assert all(store.scoped("folder").step(name) is not None for name in STEP_NAMES)
    store.close()
