"""Every address of the studio by a program that makes requests from a description of it, signed in as admin.

The description comes from the registry of routes, so that a new one is asked too.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from app.domain.people import Role
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Route, gather
from app.web.studio.shell import create_studio
from demo import create_starter
from tests.databases import new_store
from tests.db.test_releases import make
from tests.studio.visitors import BASE, Visitor, staffed

DOCUMENT = "/openapi.json"
ROUTES, _TABS = gather(PARTS)
#: What ends the session that asks, or doesn't end itself.
LEFT_OUT = ("/studio/sign-out", "/studio/account/password", "/studio/people/{account:int}/password")
#: Things that exist, besides whatever else is tried in their place.
KNOWN: Mapping[str, list[object]] = {
    "draft": [2],
    "version": [1, 2],
    "job": [1],
    "release": ["r1", "r2"],
    "path": ["sheets/economy/towns.toml", "publication.toml"],
}
TEXT = {"type": "string"}
FIELDS = {
    "text": TEXT, "path": TEXT, "caret": {"type": "integer"}, "parameters": {"type": "array", "items": TEXT},
    "version": {"type": ["string", "integer", "null"]}, "revision": {"type": "string"}, "name": TEXT,
    "reason": TEXT, "moment": TEXT, "zone": TEXT, "files": {"type": "object"}, "message": TEXT,
}  # fmt: skip


def described() -> dict[str, Any]:
    """The registry as an OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if route.path in LEFT_OUT or route.path.endswith("/events"):
            continue
        operation: dict[str, Any] = {
            "parameters": list(parameters(route)),
            "responses": {"default": {"description": "anything but a fault of ours"}},
        }
        if route.method == "POST":
            form = {"schema": {"type": "object", "properties": FIELDS}}
            kind = "application/json" if "/api/" in route.path else "application/x-www-form-urlencoded"
            operation["requestBody"] = {"content": {kind: form}}
        plain = re.sub(r"\{([a-z_]+):[a-z]+\}", r"{\1}", route.path)
        paths.setdefault(plain, {})[route.method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "The studio", "version": "1"}, "paths": paths}


def parameters(route: Route) -> Iterator[dict[str, Any]]:
    for name, kind in re.findall(r"\{([a-z_]+)(?::([a-z]+))?\}", route.path):
        free = {"type": "integer"} if kind == "int" else {"type": "string", "minLength": 1}
        schema = {"anyOf": [{"enum": KNOWN[name]}, free]} if name in KNOWN else free
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    if route.method == "GET":
        for name in ("said", "before", "actor", "in", "cell"):
            yield {"name": name, "in": "query", "schema": TEXT}


class Place:
    """The studio, made when it is first asked, with the description beside it."""

    def __init__(self) -> None:
        self.office: Office | None = None
        self.visitor: Visitor | None = None
        self._folder = tempfile.TemporaryDirectory()

    def open(self) -> None:
        folder = Path(self._folder.name) / "firms"
        create_starter(folder)
        store = new_store(folder / ".celosia" / "celosia.sqlite3")
        self.office = staffed(folder, store)
        version = self.office.versions.import_folder(folder, "ana")
        self.office.versions.begin("ana")
        self.office.jobs.submit("ana", version.id)
        make(store, "r1", live=True)
        make(store, "r2")
        self.studio = create_studio(self.office, PARTS, BASE)
        self.visitor = Visitor(self.studio).sign_in(Role.ADMIN)

    def close(self) -> None:
        if self.office is not None:
            self.office.previews.close()
            self.office.store.close()
        self._folder.cleanup()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == DOCUMENT:
            await JSONResponse(described())(scope, receive, send)
        else:
            await self.studio(scope, receive, send)


PLACE = Place()
schema = schemathesis.openapi.from_asgi(DOCUMENT, PLACE)


@pytest.fixture(scope="module", autouse=True)
def place() -> Iterator[None]:
    PLACE.open()
    yield
    PLACE.close()


@schema.parametrize()
@settings(
    max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_no_request_is_a_fault_of_ours_and_none_is_unknown(case: schemathesis.Case) -> None:
    visitor = PLACE.visitor
    assert visitor is not None
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    headers = {"host": BASE.partition("//")[2], "cookie": cookies, "x-csrf-token": visitor.token}
    response = case.call(headers=headers)
    case.validate_response(response, checks=[not_a_server_error])
    # The session holds: a refusal is about what was asked, not about who asks.
    assert response.status_code not in (403, 421)
    assert response.status_code != 401 or case.path == "/studio/sign-in"


def test_what_was_asked_left_the_office_sound() -> None:
    office = PLACE.office
    assert office is not None
    assert office.journal.verify().ok
    assert {item.role for item in office.people.accounts() if item.name == "ada"} == {Role.ADMIN}
    assert json.loads(json.dumps(described())) == described()
