"""Processes for jobs that start at once: forked from a server that has imported everything, really killed."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import sqlalchemy as sa

from app.bootstrap.jobs import perform_errand
from app.db.jobs import JobTable
from app.domain.job import Lease
from app.domain.progress import StepProgress
from app.office.process import Errand, stoppable
from app.office.work import Ending, Report

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([__name__, "tests.jobs.webs"])


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def no_room(size: int) -> None:
    """From now on no file of this process grows beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def work(errand: Errand, where: str, connection: Connection) -> None:
    """What the process does: the errand, up to where it dies."""
    told = JobTable.report
    if where == "no room for files":
        no_room(2048)

    def report(self: JobTable, lease: Lease, progress: StepProgress) -> None:
        begins = progress.message == "begins"
        if begins and progress.step == where:
            die()
        told(self, lease, progress)
        if begins and f"wait {progress.step}" == where:
            signal.pause()
        if begins and progress.step == "suppress" and where == "no room for the database":
            no_room(1)

    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def watch(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if where == "transaction" and "INSERT INTO release_layout" in statement:
            die()

    JobTable.report = report  # type: ignore[method-assign]
    connection.send(stoppable(lambda: perform_errand(errand)))


class Fork:
    """`app.office.worker.Child`."""

    def __init__(self, errand: Errand, where: str, ended: Callable[[], None]) -> None:
        ours, theirs = SERVER.Pipe(False)
        self.process = SERVER.Process(target=work, args=(errand, where, theirs))
        self.process.start()
        theirs.close()
        self._report: Report | None = None
        self._thread = Thread(target=self._wait, args=(ours, ended), daemon=True)
        self._thread.start()

    def _wait(self, ours: Connection, ended: Callable[[], None]) -> None:
        try:
            report = ours.recv()
        except EOFError:
            report = None
        self.process.join()
        ours.close()
        code = self.process.exitcode
        self.process.close()
        self._report = report or Report(Ending.AGAIN, f"its process died ({code})")
        ended()

    def join(self) -> Report:
        self._thread.join()
        assert self._report is not None
        return self._report

    def poll(self) -> Report | None:
        return self._report

    def stop(self) -> None:
        with suppress(ValueError):  # It has ended.
            self.process.terminate()

    def kill(self) -> None:
        with suppress(ValueError):  # It has ended.
            self.process.kill()


class Forks:
    """A launcher of such processes. The first stops or dies where the first of ``places`` says, and so on.

    A step's name: killed as it begins; ``wait`` and a name: stands still there; ``transaction``: killed
    while it releases; ``no room for files``: none that it writes grows; ``no room for the database``: from
    the search on.
    """

    def __init__(self, url: str, office: Path | None, *places: str) -> None:
        self._url, self._office = url, office
        self._places = list(places)
        self.started: list[Fork] = []

    def __call__(self, lease: Lease, folder: Path, ended: Callable[[], None] = lambda: None) -> Fork:
        where = self._places.pop(0) if self._places else ""
        office = None if self._office is None else str(self._office)
        errand = Errand(self._url, office, lease.job.id, lease.token, str(folder))
        self.started.append(Fork(errand, where, ended))
        return self.started[-1]
