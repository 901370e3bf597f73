"""Who may go where: every role at every route. The list is the registry's own, so none can be forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp

from app.domain.errors import InternalError
from app.domain.people import PERMISSIONS, SCOPES, Actor, Permission, Role, command_line
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Route, Routes, gather
from app.web.studio.shell import create_studio
from app.web.studio.visit import Visit
from tests.databases import new_store
from tests.studio.visitors import BASE, NAMES, Visitor, staffed, starter_office

ROUTES, TABS = gather(PARTS)
#: What stands for the parts of an address; nothing of that number or name exists.
PARAMETERS = {"int": "999999", "path": "nowhere/at/all.toml", "str": "nothing"}


def address(route: Route) -> str:
    return re.sub(r"\{[a-z_]+(?::([a-z]+))?\}", lambda m: PARAMETERS[m.group(1) or "str"], route.path)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("office")
    store = new_store(folder / "celosia.sqlite3")
    yield staffed(folder / "publication", store)
    store.close()


@pytest.fixture(scope="module")
def studio(office: Office) -> ASGIApp:
    return create_studio(office, PARTS, BASE)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_each_role_at_each_route(office: Office, studio: ASGIApp, role: Role, route: Route) -> None:
    visitor = Visitor(studio)
    visitor.get("/studio/sign-in")
    if role is not Role.CITIZEN:
        visitor.sign_in(role)
    entries = office.journal.verify().entries
    path = address(route)
    response = visitor.get(path) if route.method == "GET" else visitor.post(path)
    if route.permission in PERMISSIONS[role]:
        assert response.status_code < 500
        assert response.status_code != 403
        refused_sign_in = path == "/studio/sign-in" and route.method == "POST"
        assert response.status_code != 401 or refused_sign_in
        assert not response.headers.get("location", "").startswith("/studio/sign-in?next")
        return
    if role is not Role.CITIZEN:
        assert response.status_code == 403
    elif route.method == "GET" and not path.startswith("/studio/api/"):
        assert response.status_code == 303
        assert response.headers["location"].startswith("/studio/sign-in?next=")
    else:
        assert response.status_code == 401
    assert office.journal.verify().entries == entries, "a refused request changed something"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_token_of_one_scope_opens_the_routes_of_that_scope_alone(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    account = next(item for item in office.people.accounts() if item.name == NAMES[Role.ADMIN])
    admin = Actor(account.name, account.role, account.id)
    for scope in SCOPES:
        if scope in (route.permission, Permission.READ_OFFICE, Permission.RUN_JOBS):
            _token, text = office.people.add_token(admin, "t", frozenset({scope}), 1)
            robot = Visitor(studio, {"authorization": f"Bearer {text}"})
            status = robot.ask(route.method, address(route)).status_code
            allowed = route.permission in (scope, Permission.NONE)
            assert (status == 403) is not allowed
            assert status < 500


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "POST"], ids=lambda route: route.path
)
def test_no_form_is_taken_without_the_token_of_its_page(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    stranger = Visitor(studio)
    stranger.get("/studio/sign-in")
    entries = office.journal.verify().entries
    for forged in ("", "0" * 64, stranger.token):
        visitor.token = forged
        assert visitor.post(address(route)).status_code == 403
    assert visitor.get("/studio").status_code == 200
    for headers in (
        {"origin": "https://evil.test"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site"},
    ):
        assert visitor.post(address(route), headers=headers).status_code == 403
    assert office.journal.verify().entries == entries


def test_a_route_without_a_permission_keeps_the_studio_from_starting(office: Office) -> None:
    def answer(visit: Visit) -> Response:
        return visit.redirect("/studio")

    with pytest.raises(InternalError, match="doesn't say which permission"):
        Routes().get("/studio/secret", None)(answer)  # type: ignore[arg-type]
    for path in ("/elsewhere", "/studio/../x", "/studio/<b>"):
        with pytest.raises(InternalError, match="isn't one of the studio"):
            Routes().get(path, Permission.NONE)(answer)
    twice = Routes()
    twice.get("/studio", Permission.NONE)(answer)
    with pytest.raises(InternalError, match="registered twice"):
        create_studio(office, (*PARTS, twice))


def test_only_signing_in_and_out_needs_no_permission() -> None:
    free = {(route.method, route.path) for route in ROUTES if route.permission is Permission.NONE}
    assert free <= {
        ("GET", "/studio/sign-in"),
        ("POST", "/studio/sign-in"),
        ("POST", "/studio/sign-out"),
        ("GET", "/studio/single-sign-on"),
        ("GET", "/studio/single-sign-on/back"),
    }


def test_the_auditor_reads_everything() -> None:
    closed = {
        route.path
        for route in ROUTES
        if route.method == "GET" and route.permission not in PERMISSIONS[Role.AUDITOR]
    }
    # What the form of questions says of the publication stands on other pages.
    assert closed == {"/studio/what-if"}


def test_the_auditors_pages_hold_no_form_that_changes_a_thing(tmp_path: Path) -> None:
    with starter_office(tmp_path / "firms", run=True) as (office, store):
        version = office.versions.import_folder(tmp_path / "firms", "ada")
        draft = office.versions.begin("ana")
        office.settings.change(command_line("t"), office.settings.digest(), True, ("sqlite:///x.db",))
        files = office.versions.files(draft)
        known = {
            "draft": str(draft.id),
            "version": str(version.id),
            "digest": next(iter(files.uploads.values())),
            "release": str(store.live_release_id()),
            "path": "sheets/economy/firms.toml",
            "job": str(store.jobs()[0].id),
        }
        if known["path"] not in files.texts:
            known["path"] = next(
                path for path in files.texts if path.startswith("sheets/") and path.count("/") > 1
            )
        studio = create_studio(office, PARTS, BASE)
        auditor = Visitor(studio).sign_in(Role.AUDITOR)
        read = 0
        for route in ROUTES:
            if route.method != "GET" or route.permission not in PERMISSIONS[Role.AUDITOR]:
                continue
            path = re.sub(r"\{([a-z_]+)(?::[a-z]+)?\}", lambda match: known[match.group(1)], route.path)
            page = auditor.get(path)
            assert page.status_code in (200, 303, 404, 422), (path, page.status_code)
            read += page.status_code == 200
            found = re.findall(r'<form method="post" action="([^"]*)"', page.text)
            assert {
                action for action in found if not action.startswith(("/studio/account", "/studio/sign-"))
            } == set()
        assert read > 15
        assert "ana" in auditor.get("/studio/people").text
        assert "sqlite:///x.db" in auditor.get("/studio/people").text
        assert "data/" in auditor.get(f"/studio/drafts/{draft.id}/data").text


def test_reading_changes_nothing() -> None:
    """A permission to change goes with POST, so that no link can change a thing."""
    changing = set(Permission) - PERMISSIONS[Role.AUDITOR]
    posts = {route.permission for route in ROUTES if route.method == "POST"}
    assert not {Permission.READ_JOURNAL, Permission.READ_CONFIDENTIAL} & posts
    assert changing


def test_every_tab_leads_to_a_route_that_its_readers_may_open() -> None:
    pages = {route.path: route.permission for route in ROUTES if route.method == "GET"}
    for tab in TABS:
        assert pages[tab.path] is tab.permission
