"""Processes for jobs: started, told what to do over standard input, and heard on standard output.

The errand goes through a pipe because it names the database with its password, which arguments of a
process would show to everybody on the machine. The pipe stays open as long as the worker lives: when it
closes, the child ends at once, so that a killed worker leaves nobody computing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.db.database import StorageError
from app.domain.job import Lease
from app.office.work import Ending, Report
from app.office.worker import Launch


@dataclass(frozen=True)
class Errand:
    """What a child needs to know: database, publication's folder if any, job and token, folder for files."""

    url: str
    publication: str | None
    job: int
    token: str
    folder: str


class Stopped(BaseException):
    """The process was asked to stop. No `Exception`, so that nothing on the way mistakes it for a failure."""


class Process:
    """A child at work; `app.office.worker.Child`."""

    def __init__(self, command: Sequence[str], errand: Errand, ended: Callable[[], None]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._report: Report | None = None
        self._ended = ended
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # It died at once; how is told when it is waited for.
            self._process.stdin.write(json.dumps(asdict(errand)).encode() + b"\n")
            self._process.stdin.flush()
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> Report | None:
        return self._report

    def stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def _wait(self) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        said = stdout.read().decode(errors="replace").strip().splitlines()
        code = self._process.wait()
        stdout.close()
        with suppress(BrokenPipeError):
            stdin.close()
        self._report = _report_of(said, code)
        self._ended()


def _report_of(said: Sequence[str], code: int) -> Report:
    try:
        told = json.loads(said[-1])
        return Report(Ending(told["ending"]), str(told["reason"]))
    except (IndexError, KeyError, TypeError, ValueError):
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Report(Ending.AGAIN, f"its process died ({how})")


def launcher(url: str, publication: Path | None, command: Sequence[str]) -> Launch:
    """What starts a process for each job.

    Parameters
    ----------
    command
        Arguments of a process that calls `take_errand` and `tell`.
    """

    def launch(lease: Lease, folder: Path, ended: Callable[[], None]) -> Process:
        place = None if publication is None else str(publication.resolve())
        return Process(command, Errand(url, place, lease.job.id, lease.token, str(folder)), ended)

    return launch


def take_errand(perform: Callable[[Errand], Report]) -> None:
    """What the child does: read the errand, do it, and say how it ended, or that it was asked to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    errand = Errand(**json.loads(_first_line()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    report = stoppable(lambda: perform(errand))
    sys.stdout.write(json.dumps({"ending": report.ending.value, "reason": report.reason}) + "\n")
    sys.stdout.flush()


def stoppable(work: Callable[[], Report]) -> Report:
    """Do what SIGTERM may interrupt anywhere."""
    signal.signal(signal.SIGTERM, _raise_stopped)
    try:
        report = work()
    except Stopped:
        report = Report(Ending.AGAIN, "its process was stopped")
    except StorageError as error:
        report = Report(Ending.AGAIN, str(error))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return report


def _raise_stopped(_number: int, _frame: object) -> None:
    raise Stopped


def _first_line() -> bytes:
    # Not through `sys.stdin`, which the thread below would keep from being closed at the end.
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(0, 4096)
        if not more:
            os._exit(70)
        line += more
    return line


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(70)
