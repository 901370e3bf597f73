"""The worker: claims jobs, keeps their leases, and has each done by a process of its own.

The process that computes may hold the interpreter for minutes in one call of the solver. This one never
does, so a lease that runs out means that the machine is gone, not that it is busy; and a job is cancelled
by stopping its process, wherever it is. Nothing is lost by that: what a step found is stored whole or not.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.db.database import StorageError
from app.db.jobs import LEASE_SECONDS, MAX_ATTEMPTS, JobTable, LeaseLostError
from app.domain.job import JobState, Lease
from app.office.folders import WorkFolders
from app.office.work import Ending, Report

log = logging.getLogger("celosia.worker")


class Child(Protocol):
    """A process that works on one job."""

    def poll(self) -> Report | None:
        """How it ended; None while it works."""
        ...

    def stop(self) -> None:
        """Ask it to stop."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...


#: Starts the process for a job; the last argument is called when it ends.
Launch = Callable[[Lease, Path, Callable[[], None]], Child]


@dataclass(frozen=True)
class Pace:
    """Seconds that a lease lasts, between two looks at the queue, and until a stopped process is killed."""

    lease: float = LEASE_SECONDS
    look: float = 1.0
    grace: float = 5.0


@dataclass
class _Held:
    """A job in hand."""

    lease: Lease
    child: Child
    folder: Path
    stopped: float | None = None
    cancelled: bool = False


class Worker:
    """Works on the queue until it is told to stop.

    Parameters
    ----------
    table, launch
    folders
        Where the files of jobs go.
    capacity : int
        How many jobs at once.
    pace, name
        The name is shown with its jobs.
    has_folder : bool
        Whether it can do jobs on a folder's own files.
    """

    def __init__(
        self,
        table: JobTable,
        launch: Launch,
        folders: WorkFolders,
        capacity: int = 1,
        pace: Pace | None = None,
        name: str = "",
        has_folder: bool = True,
    ) -> None:
        self._table = table
        self._launch = launch
        self._folders = folders
        self._capacity = capacity
        self._pace = pace or Pace()
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._has_folder = has_folder
        self._held: list[_Held] = []
        self._awake = threading.Event()
        self._stopping = False

    def wake(self) -> None:
        """Look at the queue now."""
        self._awake.set()

    def stop(self) -> None:
        """Claim nothing more, hand back what is in hand, and end."""
        self._stopping = True
        self._awake.set()

    def run(self) -> None:
        """Work until stopped and nothing is in hand any more."""
        log.info("worker begins", extra={"worker": self._name, "capacity": self._capacity})
        try:
            while not (self._stopping and not self._held):
                try:
                    self._turn()
                except StorageError as error:
                    # Jobs in hand go on; whether they may write is decided when the database is back.
                    log.warning("database: %s", error)
                    if self._stopping and all(held.child.poll() is not None for held in self._held):
                        break
                self._awake.wait(self._pace.look)
                self._awake.clear()
        finally:
            for held in self._held:
                held.child.kill()
            self._folders.close()
            log.info("worker ends", extra={"worker": self._name})

    def _turn(self) -> None:
        for held in tuple(self._held):
            self._look_after(held)
        while not self._stopping and len(self._held) < self._capacity:
            lease = self._table.claim(self._name, self._pace.lease, self._has_folder)
            if lease is None:
                break
            self._begin(lease)

    def _begin(self, lease: Lease) -> None:
        log.info("job begins", extra={"job": lease.job.id, "attempt": lease.job.attempt})
        folder = self._folders.make(f"job-{lease.job.id}-{lease.token[:8]}")
        child = self._launch(lease, folder, self.wake)
        self._held.append(_Held(lease, child, folder))

    def _look_after(self, held: _Held) -> None:
        now = time.monotonic()
        report = held.child.poll()
        if report is not None:
            self._settle(held, report)
            self._held.remove(held)
            self._folders.drop(held.folder)
            return
        if held.stopped is not None:
            if now - held.stopped >= self._pace.grace:
                held.child.kill()
        elif self._stopping:
            self._stop(held, now)
        beat = self._table.beat(held.lease, self._pace.lease)
        if not beat.held:
            held.child.kill()
        elif beat.cancel and not held.cancelled:
            held.cancelled = True
            self._stop(held, now)

    def _stop(self, held: _Held, now: float) -> None:
        if held.stopped is None:
            held.stopped = now
        held.child.stop()

    def _settle(self, held: _Held, report: Report) -> None:
        """Store how a job's process ended, unless it did that itself."""
        job = held.lease.job
        log.info("job's process ended", extra={"job": job.id, "ending": report.ending.value})
        if report.ending is not Ending.AGAIN:
            return
        try:
            if held.cancelled or self._table.beat(held.lease, self._pace.lease).cancel:
                self._table.finish(held.lease, JobState.CANCELLED)
            elif held.stopped is not None:
                self._table.hand_back(held.lease, "its worker was shut down", counts=False)
            elif job.attempt >= MAX_ATTEMPTS:
                self._table.finish(held.lease, JobState.FAILED, report.reason)
            else:
                self._table.hand_back(held.lease, report.reason, counts=True)
        except LeaseLostError:
            log.info("job was taken over", extra={"job": job.id})
