"""Wires the queue of jobs and its workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.bootstrap import DATABASE_VARIABLE, STATE, publication_store, store_url
from app.bootstrap.engines import open_cube
from app.db.jobs import JobTable
from app.db.journal import JournalStore
from app.db.store import Store, open_store
from app.db.workspace import WorkspaceStore
from app.domain.errors import UserError
from app.domain.job import Job, Lease
from app.office.folders import WorkFolders
from app.office.jobs import Jobs
from app.office.journal import Journal
from app.office.keys import KEY_VARIABLE, signer_of
from app.office.process import Errand, launcher
from app.office.versions import Versions
from app.office.work import Ending, Report, perform
from app.office.worker import Pace, Worker
from app.watch.traces import install_traces, span

#: What a worker starts for each job.
COMMAND = (sys.executable, "-m", "app.cli.perform")


@dataclass(frozen=True)
class Queue:
    """The queue of a publication's database."""

    url: str
    folder: Path | None
    store: Store
    table: JobTable
    jobs: Jobs

    def worker(self, capacity: int = 1, pace: Pace | None = None) -> Worker:
        """A worker of its own; it works once its ``run`` is called."""
        launch = launcher(self.url, self.folder, COMMAND)
        has_folder = self.folder is not None and (self.folder / "publication.toml").is_file()
        return Worker(self.table, launch, WorkFolders(), capacity, pace, has_folder=has_folder)


def make_queue(store: Store, url: str, folder: Path | None) -> Queue:
    """The queue over a store that is open already."""
    table = JobTable(store.database)
    return Queue(url, folder, store, table, Jobs(table, store, Journal(JournalStore(store.database))))


@contextmanager
def open_queue(folder: Path | None) -> Iterator[Queue]:
    """The queue of a publication folder, or of the environment's database alone.

    Raises
    ------
    UserError
        Neither is given, or the folder is no publication.
    OperatorError
        The storage can't be reached or written.
    """
    if folder is not None:
        with publication_store(folder, new=(folder / ".celosia").is_dir()) as store:
            yield make_queue(store, store_url(folder), folder)
        return
    url = os.environ.get(DATABASE_VARIABLE)
    if not url:
        raise UserError(f"Name the publication's folder, or its database in {DATABASE_VARIABLE}.")
    store = open_store(url)
    try:
        yield make_queue(store, url, None)
    finally:
        store.close()


def perform_errand(errand: Errand) -> Report:
    """Do a job in this process, which a worker started for it."""
    install_traces("celosia-job")
    store = open_store(errand.url)
    try:
        table = JobTable(store.database)
        job = table.job(errand.job)
        if job is None:
            return Report(Ending.LOST)
        publication = None if errand.publication is None else Path(errand.publication)
        folder = Path(errand.folder)
        # Uploads are kept as long as the folder of the publication, or as this worker, is there.
        cache = folder.parent / "uploads" if publication is None else publication / ".celosia" / "uploads"
        versions = Versions(WorkspaceStore(store.database), cache)

        def materialise(job: Job, into: Path) -> Path:
            if job.version is not None:
                return versions.materialise(versions.version(job.version), into / "publication")
            if publication is None:
                raise UserError(f"Job {job.id} is on the files of a folder, which this worker doesn't have.")
            return publication

        signer = None
        if publication is not None or os.environ.get(KEY_VARIABLE):
            signer = signer_of((publication or folder) / STATE)
        with span("job", job=job.id, attempt=job.attempt):
            return perform(Lease(job, errand.token), table, store, materialise, open_cube, folder, signer)
    finally:
        store.close()
