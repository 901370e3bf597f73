"""What each role can reach in an office in which there is something of everything.

No page shows a link or form that its reader may not use; and no request that a role may not make changes a
row, whatever its method, at the addresses of things that exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from lxml import html
from starlette.types import ASGIApp

from app.db import tables as t
from app.domain.people import PERMISSIONS, Actor, Permission, Role
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Route, gather
from app.web.studio.shell import create_studio
from tests.db.test_releases import make
from tests.studio.visitors import BASE, NAMES, Visitor, starter_office

ROUTES, _TABS = gather(PARTS)
SHEET = "sheets/economy/towns.toml"
#: Bookkeeping of the requests themselves.
OWN_TRACES = ("session", "attempt")
MOST_PAGES = 80


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("reach") / "firms"
    with starter_office(folder) as (made, store):
        version = made.versions.import_folder(folder, "ana")
        made.versions.begin("ana")
        made.jobs.submit("ana", version.id)
        make(store, "r1", live=True)
        make(store, "r2")
        yield made


@pytest.fixture(scope="module")
def studio(office: Office) -> ASGIApp:
    return create_studio(office, PARTS, BASE)


def address(route: Route, office: Office) -> str:
    """The route with its parts filled with what is there."""
    version = office.versions.version(1)
    known = {
        "draft": str(office.versions.drafts()[0].id),
        "version": "1",
        "job": "1",
        "release": "r2",
        "account": str(next(item.id for item in office.people.accounts() if item.name == "aud")),
        "path": SHEET,
        "digest": next(iter(office.versions.files(version).uploads.values())),
    }
    return re.sub(r"\{([a-z_]+)(?::[a-z]+)?\}", lambda match: known.get(match.group(1), "1"), route.path)


def rows(office: Office) -> dict[str, list[tuple[object, ...]]]:
    """Everything that the database holds."""
    with office.store.database.reading() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))
            ]
            for table in t.metadata.sorted_tables
            if table.name not in OWN_TRACES
        }


def route_of(method: str, path: str) -> Route | None:
    for route in ROUTES:
        pattern = re.sub(r"\{[a-z_]+:path\}", ".+", route.path)
        pattern = re.sub(r"\{[a-z_]+:int\}", "[0-9]+", pattern)
        pattern = re.sub(r"\{[a-z_]+\}", "[^/]+", pattern)
        if route.method == method and re.fullmatch(pattern, path):
            return route
    return None


def entered(studio: ASGIApp, role: Role) -> Visitor:
    visitor = Visitor(studio)
    visitor.get("/studio/sign-in")
    return visitor if role is Role.CITIZEN else visitor.sign_in(role)


@pytest.mark.parametrize("role", list(Role))
def test_no_page_leads_where_its_reader_may_not_go(office: Office, studio: ASGIApp, role: Role) -> None:
    visitor = entered(studio, role)
    seen: set[str] = set()
    waiting = ["/studio/sign-in" if role is Role.CITIZEN else "/studio"]
    waiting += [
        address(route, office) for route in ROUTES if route.method == "GET" and "/api/" not in route.path
    ]
    wrong = set()
    while waiting and len(seen) < MOST_PAGES:
        path = waiting.pop(0)
        if path in seen or "/events" in path or "/export" in path:
            continue
        seen.add(path)
        response = visitor.get(path)
        is_page = response.headers.get("content-type", "").startswith("text/html")
        if not is_page or response.status_code >= 400 or not response.text:
            continue
        tree = html.fromstring(response.text)
        reached = [
            ("GET", link.partition("?")[0].partition("#")[0])
            for link in tree.xpath("//a[not(@hreflang)]/@href")
        ]
        reached += [
            (form.get("method", "get").upper(), (form.get("action") or path).partition("?")[0])
            for form in tree.xpath("//form")
        ]
        for method, link in reached:
            if not link.startswith("/studio") or (role is Role.CITIZEN and link == "/studio"):
                continue
            route = route_of(method, link)
            if route is None or route.permission not in PERMISSIONS[role]:
                wrong.add((path, method, link))
            elif method == "GET":
                waiting.append(link)
    assert wrong == set()
    assert len(seen) > (0 if role is Role.CITIZEN else 10)


@pytest.mark.parametrize("role", [Role.CITIZEN, Role.ANALYST, Role.AUDITOR])
def test_what_a_role_may_not_do_it_can_not_at_real_addresses_either(
    office: Office, studio: ASGIApp, role: Role
) -> None:
    visitor = entered(studio, role)
    before = rows(office)
    fields = {"version": "1", "reason": "r", "role": "admin", "active": "no", "name": "eve", "revision": "1"}
    for route in ROUTES:
        if route.permission in PERMISSIONS[role]:
            continue
        path = address(route, office)
        if route.method == "GET":
            response = visitor.get(path)
        elif "/api/" in path:
            headers = {"x-csrf-token": visitor.token}
            response = visitor.ask("POST", path, json=fields, headers=headers)
        else:
            response = visitor.post(path, fields)
        assert response.status_code in ((401, 303) if role is Role.CITIZEN else (403,)), path
        if response.status_code == 303:
            assert response.headers["location"].startswith("/studio/sign-in?next="), path
    assert rows(office) == before


def test_no_other_method_does_anything(office: Office, studio: ASGIApp) -> None:
    visitor = entered(studio, Role.ADMIN)
    before = rows(office)
    for path in {address(route, office) for route in ROUTES}:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            if route_of(method, path) is None:
                headers = {"x-csrf-token": visitor.token}
                response = visitor.ask(method, path, data={"csrf": visitor.token}, headers=headers)
                assert response.status_code == 405, (method, path)
    assert rows(office) == before


def test_a_token_falls_with_its_accounts_role(office: Office, studio: ASGIApp) -> None:
    """Scopes that the account's role no longer covers open nothing any more."""
    accounts = {item.name: item for item in office.people.accounts()}
    ada = accounts[NAMES[Role.ADMIN]]
    admin = Actor(ada.name, ada.role, ada.id)
    office.people.add(admin, "tim", Role.ADMIN, "a lattice of olive wood")
    tim = next(item for item in office.people.accounts() if item.name == "tim")
    _token, text = office.people.add_token(
        Actor("tim", Role.ADMIN, tim.id), "t", frozenset({Permission.READ_JOURNAL, Permission.READ_OFFICE}), 1
    )
    robot = Visitor(studio, {"authorization": f"Bearer {text}"})
    assert robot.get("/studio/journal").status_code == 200
    office.people.set_role(admin, tim.id, Role.ANALYST)
    assert robot.get("/studio/journal").status_code == 403
    assert robot.get("/studio/api/jobs").status_code == 200
    office.people.set_active(admin, tim.id, False)
    assert robot.get("/studio/api/jobs").status_code == 401


@pytest.mark.parametrize("digits", [10, 11, 5000])
def test_a_number_that_nothing_has_is_no_address(studio: ASGIApp, digits: int) -> None:
    admin, stranger = Visitor(studio).sign_in(Role.ADMIN), Visitor(studio)
    for route in (route for route in ROUTES if ":int}" in route.path):
        where = re.sub(r"{(\w+):int}", "9" * digits, route.path)
        where = re.sub(r"{\w+(:path)?}", "x", where)
        sent = {"data": {"csrf": admin.token, "revision": "0"}} if route.method == "POST" else {}
        assert admin.ask(route.method, where, **sent).status_code == 404, where
        assert stranger.ask(route.method, where).status_code in (303, 401, 404), where
