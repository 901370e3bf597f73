"""Somebody at the studio: real requests through ASGI, with a cookie jar and the form tokens of pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from starlette.types import ASGIApp

from app.bootstrap import run_publication
from app.bootstrap.office import make_office
from app.db.people import PeopleStore
from app.db.store import Store
from app.db.workspace import WorkspaceStore
from app.domain.people import Role, command_line
from app.office.office import Office
from app.office.people import People
from demo import create_starter
from tests.databases import new_store

BASE = "http://office.test"
PASSWORD = "a lattice of olive wood"
NAMES = {Role.ANALYST: "ana", Role.ADMIN: "ada", Role.AUDITOR: "aud"}
_TOKEN = re.compile(r'name="form-token" content="([0-9a-f]{64})"')


def staffed(folder: Any, store: Store) -> Office:
    """An office with an account for each role; its passwords are cheap to check, to save the tests' time."""
    office = make_office(folder, store)
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    people = People(PeopleStore(store.database), WorkspaceStore(store.database), office.journal, quick)
    for role, name in NAMES.items():
        people.add(command_line("test"), name, role, PASSWORD)
    object.__setattr__(office, "people", people)
    return office


@contextmanager
def starter_office(folder: Path, run: bool = False) -> Iterator[tuple[Office, Store]]:
    """The small publication that `celosia init` makes, in an office, and its store; ``run``: and live."""
    create_starter(folder)
    if run:
        run_publication(folder)
    store = new_store(folder / ".celosia" / "celosia.sqlite3")
    office = staffed(folder, store)
    yield office, store
    office.previews.close()
    store.close()


class Visitor:
    """A browser without scripts."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._headers = dict(headers or {})
        self.cookies = httpx.Cookies()
        self.token = ""

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request; cookies are kept."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url=BASE, cookies=self.cookies, headers=self._headers
            ) as client:
                response = await client.request(method, path, **options)
                self.cookies = client.cookies
                return response

        response = asyncio.run(send())
        found = _TOKEN.search(response.text)
        if found:
            self.token = found.group(1)
        return response

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, data: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        """A form, with the token of the last page seen."""
        return self.ask("POST", path, data={"csrf": self.token, **(data or {})}, **options)

    def save(self, path: str, data: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        """A form of a draft, made at the revision that the draft is at."""
        draft = re.match(r"/studio/drafts/\d+", path)
        assert draft is not None
        found = re.search(r'name="revision" value="(\d+)"', self.get(draft.group()).text)
        assert found is not None
        return self.post(path, {"revision": found.group(1), **(data or {})}, **options)

    def sign_in(self, role: Role) -> Visitor:
        self.get("/studio/sign-in")
        response = self.post("/studio/sign-in", {"name": NAMES[role], "password": PASSWORD})
        assert response.status_code == 303, response.text
        assert self.get("/studio/account").status_code == 200
        return self
