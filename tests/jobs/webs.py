"""Web processes that start at once: site and studio, forked with everything imported, really killed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import sqlalchemy as sa

from app.bootstrap.office import make_office
from app.cli.serving import running
from app.db import open_store
from app.domain.people import Role
from app.web.app import create_app
from app.web.studio.parts import PARTS
from app.web.studio.shell import beside, create_studio
from tests.jobs.forks import SERVER, die
from tests.studio.visitors import NAMES, PASSWORD

_TOKEN = re.compile(r'name="form-token" content="([0-9a-f]{64})"')


def serve(url: str, folder: Path, where: str, temporary: Path | None, connection: Connection) -> None:
    """What the process does; it dies once it has sent a statement that begins with ``where``."""

    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def watch(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if where and " ".join(statement.split()).startswith(where):
            die()

    tempfile.tempdir = None if temporary is None else str(temporary)
    store = open_store(url)
    office = make_office(folder, store)
    site = beside(create_app(store, patience=0), create_studio(office, PARTS))
    with running(site) as address:
        connection.send(address)
        Event().wait()


class Web:
    """A web process and somebody signed in there: a cookie outlives the process that gave it."""

    def __init__(
        self,
        url: str,
        folder: Path,
        where: str = "",
        cookies: httpx.Cookies | None = None,
        temporary: Path | None = None,
    ) -> None:
        ours, theirs = SERVER.Pipe(False)
        self._process = SERVER.Process(target=serve, args=(url, folder, where, temporary, theirs))
        self._process.start()
        theirs.close()
        self.client = httpx.Client(base_url=ours.recv(), timeout=60, cookies=cookies)
        ours.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(
        self, path: str, page: str, files: Mapping[str, tuple[str, bytes]] | None = None, **fields: str
    ) -> httpx.Response:
        """A form, with the token of a page."""
        found = _TOKEN.search(self.get(page).text)
        assert found is not None, page
        return self.client.post(path, data={"csrf": found.group(1), **fields}, files=files)

    def sign_in(self, role: Role) -> None:
        """Become somebody of a role."""
        fields = {"name": NAMES[role], "password": PASSWORD}
        assert self.post("/studio/sign-in", "/studio/sign-in", **fields).status_code == 303

    def kill(self) -> httpx.Cookies:
        """End it with -9; what is left is the cookies of who was there."""
        self._process.kill()
        return self.join()

    def join(self) -> httpx.Cookies:
        """Wait until it is dead."""
        self._process.join()
        assert self._process.exitcode == -9
        self.client.close()
        return self.client.cookies


@contextmanager
def web(
    url: str,
    folder: Path,
    where: str = "",
    cookies: httpx.Cookies | None = None,
    temporary: Path | None = None,
) -> Iterator[Web]:
    """A web process as long as the context lasts, if it isn't killed before."""
    made = Web(url, folder, where, cookies, temporary)
    try:
        yield made
    finally:
        made._process.kill()
        made._process.join()
        made.client.close()
