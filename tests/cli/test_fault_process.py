"""Processes that are interrupted, crowded out or talked to badly: words, an exit code, nothing lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.test_commands import assert_words, celosia
from tests.interrupted import AT_IMPORT
from tests.pipeline.offices import write_office

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from app.cli import main; main()"


def begin(*arguments: str, code: str = MAIN) -> subprocess.Popen[str]:
    """A command as a terminal starts it, where Ctrl-C interrupts."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    process = begin("serve", str(folder), "--port", "0", *options)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "http://localhost:" in said, said + process.stdout.read()
        port = said.split("localhost:")[1].split("/")[0]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client, process
    finally:
        process.kill()
        process.wait()


INTERRUPT = AT_IMPORT + MAIN


@pytest.mark.parametrize("module", ["typer", "scipy.sparse", "fastapi"])
def test_ctrl_c_while_the_program_loads(module: str, tmp_path: Path) -> None:
    process = begin(module, "serve", str(tmp_path), "--port", "0", code=INTERRUPT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode not in (0, 2), said
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1


@pytest.mark.parametrize("step", ["crawl", "suppress"])
def test_ctrl_c_during_a_run_loses_only_that_step(step: str, tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    process = begin("run", str(office))
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(f"{step} …"):
            process.send_signal(signal.SIGINT)
            break
    said = process.stdout.read()
    # Where the step was faster than the signal, the run is over.
    assert process.wait(60) in (130, 1, -signal.SIGINT, 0)
    assert "Traceback" not in said
    done = celosia("run", str(office))
    assert done.returncode == 0, done.stderr


def test_a_site_before_its_first_release_says_so_and_then_shows_it(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    with served(office) as (client, process):
        for address in ("/", "/en/", "/en/s/coast", "/en/s/coast/table.csv", "/api/v1/catalogue.json"):
            answer = client.get(address)
            assert answer.status_code == 503
            assert "Nothing is published at the moment" in answer.text
        assert celosia("run", str(office)).returncode == 0
        assert client.get("/en/s/coast").status_code == 200
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        assert "Traceback" not in said
        assert process.returncode in (0, 130, -signal.SIGINT)


BAD_REQUESTS = {
    "chunk": b"POST /en/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "TLS": b"\x16\x03\x01\x02\x00garbage\r\n\r\n",
    "half": b"GET /en/ HT",
    "bytes": b"GET /en/s/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "long": b"GET /en/?x=" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "body": b"POST /en/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000,
    "length": b"POST /en/ HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
}


def test_visitors_that_speak_badly_get_no_further_and_leave_no_traceback(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    assert celosia("run", str(office)).returncode == 0
    with served(office) as (client, process):
        for request in BAD_REQUESTS.values():
            with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
                connection.settimeout(60)
                try:
                    connection.sendall(request)
                    connection.shutdown(socket.SHUT_WR)
                    answer = connection.recv(20)
                except OSError:
                    answer = b""
            assert not answer or answer.startswith(
                (b"HTTP/1.1 400", b"HTTP/1.1 405", b"HTTP/1.1 413", b"HTTP/1.1 414", b"HTTP/1.1 431")
            )
            assert client.get("/en/s/coast").status_code == 200
        process.terminate()
        said, _ = process.communicate(timeout=60)
        assert "Traceback" not in said


def test_of_two_runs_at_once_one_is_told_to_wait(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    process = begin("run", str(office))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    assert_words(celosia("run", str(office)), 2, "Another run of this publication is under way")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("nonsense", 2),
        ("postgresql://h:port/x", 2),
        ("mysql://h/x", 2),
        ("sqlite:////proc/nowhere/x.sqlite3", 1),
        ("postgresql://user:secret@127.0.0.1:9/x", 1),
    ],
)
def test_a_wrong_database_url_is_one_line(url: str, code: int, tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    result = celosia("status", str(office), CELOSIA_DATABASE_URL=url)
    assert_words(result, code)
    assert len(result.stderr.strip().splitlines()) == 1
    assert "secret" not in result.stderr


def test_a_site_for_other_machines_wants_its_address(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    process = begin("serve", str(office), "--port", "0", "--host", "0.0.0.0")
    try:
        assert process.stdout is not None
        assert "CELOSIA_PUBLIC_URL isn't set" in process.stdout.readline()
    finally:
        process.kill()
        process.wait()
