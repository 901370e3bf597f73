"""A PostgreSQL server of a test's own, which may be restarted and killed: nobody else's data are in it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_USER = "celosia"


class PrivatePostgres:
    """A cluster in a folder of its own, on a free port of this machine."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self._programs = _programs()
        self._runs = False

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self._port}/postgres"

    def make(self) -> None:
        data = self._folder / "data"
        self._run("initdb", "-D", str(data), "-U", _USER, "-A", "trust", "--no-sync", "-E", "UTF8")
        settings = (
            f"listen_addresses = '127.0.0.1'\nport = {self._port}\n"
            f"unix_socket_directories = '{self._folder}'\nfsync = off\nshared_buffers = 16MB\n"
        )
        with (data / "postgresql.conf").open("a") as file:
            file.write(settings)

    def start(self) -> None:
        self._control("start")
        self._runs = True

    def stop(self, how: str = "immediate") -> None:
        """``immediate``: as when the machine fails; ``fast``: as an operator does it."""
        if self._runs:
            self._runs = False
            self._control("stop", "-m", how)

    def _control(self, *arguments: str) -> None:
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-t", "120", "-l", log, *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # PostgreSQL refuses to run as root.
        before = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
        command = (*before, str(self._programs / program), *arguments)
        done = subprocess.run(
            command, cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def private_postgres(folder: Path) -> Iterator[PrivatePostgres]:
    """A running server as long as the context lasts."""
    folder.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    made = PrivatePostgres(folder, port)
    made.make()
    made.start()
    try:
        yield made
    finally:
        made.stop()


def _programs() -> Path:
    """Where the server's programs are: Debian keeps them out of the path, one folder for each version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    assert found or on_path, "The tests need PostgreSQL's server: apt-get install postgresql"
    return found[-1].parent if found else Path(str(on_path)).parent
