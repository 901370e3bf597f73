"""Several processes of one command: all do the work, a lost one is replaced, and all end together."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli.processes import cores
from tests.cli.test_commands import celosia
from tests.cli.test_fault_process import begin, served
from tests.pipeline.offices import write_office

WORK = """
import os, threading, typer
from app.cli.processes import together
def work(number):
    os.write(1, f"{{number}} {{os.getpid()}}\\n".encode())
    if os.path.exists({stop!r}):
        raise typer.Exit(2)
    threading.Event().wait()
together(3, work, 20)
"""


@contextmanager
def working(stop: Path) -> Iterator[tuple[subprocess.Popen[str], dict[int, int]]]:
    """Three processes, by number."""
    process = begin(code=WORK.format(stop=str(stop)))
    assert process.stdout is not None
    try:
        yield process, dict(next_of(process) for _ in range(3))
    finally:
        process.kill()
        process.wait()


def next_of(process: subprocess.Popen[str]) -> tuple[int, int]:
    assert process.stdout is not None
    number, own = process.stdout.readline().split()
    return int(number), int(own)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_all_end_together(tmp_path: Path, end: signal.Signals) -> None:
    with working(tmp_path / "stop") as (process, found):
        assert sorted(found) == [0, 1, 2]
        process.send_signal(end)
        # Its output ends when nobody is left who could write to it.
        assert process.communicate(timeout=60)[0] == ""
        assert process.returncode == 0


def test_nobody_is_left_when_the_first_one_is_lost(tmp_path: Path) -> None:
    with working(tmp_path / "stop") as (process, _):
        process.kill()
        assert process.communicate(timeout=60)[0] == ""


@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGTERM])
def test_a_lost_one_is_begun_again(tmp_path: Path, loss: signal.Signals) -> None:
    with working(tmp_path / "stop") as (process, found):
        os.kill(found[1], loss)
        number, own = next_of(process)
        assert number == 1
        assert own not in found.values()
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_one_that_cannot_go_on_ends_all(tmp_path: Path) -> None:
    with working(tmp_path / "stop") as (process, found):
        (tmp_path / "stop").touch()
        os.kill(found[2], signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == 2


def test_a_site_in_several_processes(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    assert celosia("run", str(office)).returncode == 0
    with served(office, "--processes", "3") as (client, process):
        pages = {client.get("/en/s/coast", headers={"connection": "close"}).content for _ in range(20)}
        assert len(pages) == 1
        process.terminate()
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said
        assert said.count("Serving at") == 0
    assert cores() >= 1


def test_a_folder_that_is_none_is_told_once_and_ends_all(tmp_path: Path) -> None:
    ended = celosia("serve", str(tmp_path / "nothing"), "--port", "0", "--processes", "2")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stdout + ended.stderr
