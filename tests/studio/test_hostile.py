"""Hostile input at every route of the studio, signed in as one who may do everything.

Nothing may fail on our side, nothing that was sent may come back as more than text, and nobody may become
more than they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.domain.people import Role
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Route, gather
from app.web.studio.shell import create_studio
from tests.studio.visitors import BASE, NAMES, PASSWORD, Visitor, starter_office

ROUTES, _TABS = gather(PARTS)
MARK = "pwned7"
VALUES = (
    f"<script>alert('{MARK}')</script>",
    f"\"'><img src=x onerror=alert('{MARK}')>",
    f"javascript:alert('{MARK}')",
    "{{ 912673 * 104729 }}{% for x in () %}${912673*104729}<%= 912673*104729 %>",
    "' or '1'='1'; drop table account; --",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "=cmd|'/c calc'!A1",
    "\u202e\ufeff\U0001f600é\u0301" * 5,
    "9" * 400,
    "-1",
    "nan",
    "1e999",
    "\r\nset-cookie: celosia_studio=planted",
    "[" * 2000,
    "a" * 20_000,
    "0001-01-01T00:00+14:00",
    "9999-12-31T23:59-05:00",
    "0001-01-01T00:00",
    "9999-12-31T23:59:59.999999",
    "Asia/Tokyo",
    "America/New_York",
    "",
)
FIELDS = tuple(
    re.findall(
        r"\S+",
        """name password next role active scope days old new again four-eyes sources title.en notes.en order
        do p0.name p0.set p0.cube q0.id q0.show q0.chart q0.mdx text path to kind folder title publisher
        languages message revision keep c0.role c0.other cube threshold all count encoding separator
        decimal source sql read
        version release reason moment zone at note decision percent cell measure rule n p k""",
    )
)
QUERY = (
    "next",
    "said",
    "lang",
    "in",
    "actor",
    "action",
    "before",
    "p.region",
    "sort.table",
    "pivot.table",
    "after",
)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("hostile") / "firms"
    with starter_office(folder, run=True) as (made, _):
        made.versions.import_folder(folder, "ana")
        yield made


@pytest.fixture(scope="module")
def studio(office: Office) -> ASGIApp:
    return create_studio(office, PARTS, BASE)


def address(route: Route, office: Office, value: str, real: bool) -> str:
    """The route with its parts filled: with what is there, or with the hostile value."""
    draft = office.versions.drafts()[0] if office.versions.drafts() else office.versions.begin("ada")
    known = {
        "draft": str(draft.id),
        "version": "1",
        "path": "sheets/economy/towns.toml",
        "digest": next(iter(office.versions.files(office.versions.version(1)).uploads.values())),
        "release": office.releases.all()[0].id,
    }

    def fill(match: re.Match[str]) -> str:
        name, kind = match.group(1), match.group(2)
        if real and name in known:
            return known[name]
        return "99999999999" if kind == "int" else quote(value[:300] or "x", safe="")

    return re.sub(r"\{([a-z_]+)(?::([a-z]+))?\}", fill, route.path)


def is_text_only(body: str) -> bool:
    """Whether a page carries what was sent as text alone."""
    if "95583330617" in body and "912673*104729" not in body.replace(" ", ""):
        return False
    tree = html.fromstring(body)
    scripts = [node for node in tree.iter("script") if MARK in (node.text or "")]
    handlers = [
        name
        for node in tree.iter()
        if isinstance(node.tag, str)
        for name, value in node.attrib.items()
        if name.startswith("on")
        or (value.strip().lower().startswith("javascript:") and name in ("href", "action", "src"))
    ]
    return not scripts and not handlers and not tree.xpath("//img[@src='x']")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_hostile_input_is_answered_in_words_and_stays_text(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    if "events" in route.path or "stream" in route.path:
        path = address(route, office, "x", False)
        assert Visitor(studio).sign_in(Role.ADMIN).get(path).status_code < 500
        return
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    for number, value in enumerate(VALUES):
        path = address(route, office, value, number % 2 == 0)
        if route.path in ("/studio/account/password", "/studio/sign-out"):
            visitor = Visitor(studio).sign_in(Role.ADMIN)
        query = dict.fromkeys(QUERY, value[:1000])
        if route.method == "GET":
            response = visitor.get(path, params=query if number % 3 else None)
        elif path.startswith("/studio/api/"):
            body = dict.fromkeys((*FIELDS, "caret", "parent", "files", "parameters"), value)
            headers = {"x-csrf-token": visitor.token}
            response = visitor.ask("POST", path, json=body if number % 3 else [value], headers=headers)
        else:
            files = {
                name: (value[:200], value.encode("utf-8", "replace"), "text/csv")
                for name in ("facts", "archive")
            }
            form = dict.fromkeys(FIELDS, value)
            if route.as_read and number % 3:
                form[route.as_read] = "0"
            response = visitor.post(path, form, files=files if number % 2 else None)
        assert response.status_code < 500, (path, value[:40])
        assert response.headers["cache-control"] == "no-store"
        assert all("planted" not in item for item in response.headers.get_list("set-cookie"))
        location = response.headers.get("location", "/studio")
        assert location.startswith("/studio"), location
        if response.headers.get("content-type", "").startswith("text/html") and response.text:
            assert is_text_only(response.text), (path, value[:40])


@pytest.mark.parametrize(
    "zone", ["UTC", "Asia/Tokyo", "America/New_York", "../x", "a" * 5000, "\x00", "Europe"]
)
def test_no_moment_is_beyond_the_calendar(office: Office, studio: ASGIApp, zone: str) -> None:
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    release = office.releases.all()[0]
    for moment in VALUES:
        sent = {"version": str(release.version), "moment": moment, "zone": zone}
        answer = visitor.post(f"/studio/releases/{release.id}/schedule", sent)
        assert 400 <= answer.status_code < 500, (moment[:40], answer.status_code)
    assert office.releases.get(release.id) == release


def forms_of(visitor: Visitor, path: str) -> list[tuple[str, dict[str, str], set[str]]]:
    """The forms of a page: where they go, what stands in them, and the fields that take files."""
    response = visitor.get(path)
    if not response.headers.get("content-type", "").startswith("text/html") or not response.text:
        return []
    found = []
    for form in html.fromstring(response.text).forms:
        if form.method == "POST" and not form.action.endswith(("/sign-out", "/account/password")):
            files = {node.name for node in form.xpath(".//input[@type='file']")}
            fields = {name: value or "" for name, value in form.form_values() if name not in files}
            found.append((form.action, fields, files))
    return found


def test_every_field_of_every_form_is_tried_with_the_others_as_they_stand(
    office: Office, studio: ASGIApp
) -> None:
    """The forms are the pages' own, so that a new one is tried as well."""
    draft = office.versions.begin("ada")
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    pages = {
        address(route, office, "", True).replace("/drafts/1", f"/drafts/{draft.id}")
        for route in ROUTES
        if route.method == "GET" and not any(part in route.path for part in ("/api/", "/events", "/export"))
    }
    tried: set[tuple[str, str]] = set()
    for page in sorted(pages):
        for number, (action, fields, files) in enumerate(forms_of(visitor, page)):
            for name in (*fields, *files):
                kind = re.sub(r"\d+", "0", action), re.sub(r"\d+", "0", name)
                if name == "csrf" or kind in tried or action.endswith("/discard"):
                    continue
                tried.add(kind)
                value = VALUES[(number + len(tried)) % len(VALUES)]
                sent = {**fields, **({} if name in files else {name: value}), "csrf": visitor.token}
                upload = {name: (value[:80] or "x", value.encode("utf-8", "replace"), "text/csv")}
                response = visitor.ask("POST", action, data=sent, files=upload if name in files else None)
                assert response.status_code < 500, (action, name, value[:40])
                if response.headers.get("content-type", "").startswith("text/html") and response.text:
                    assert is_text_only(response.text), (action, name, value[:40])
    assert len({action for action, _name in tried}) > 10


def test_nothing_sent_before_runs_on_any_page_and_nobody_rose(office: Office, studio: ASGIApp) -> None:
    """After all of the above: every page that can be reached by links, as the admin sees it."""
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    seen: set[str] = set()
    waiting = {"/studio"}
    while waiting and len(seen) < 150:
        path = waiting.pop()
        seen.add(path)
        response = visitor.get(path)
        assert response.status_code < 500, path
        if not response.headers.get("content-type", "").startswith("text/html") or not response.text:
            continue
        assert is_text_only(response.text), path
        found = {link for _, _, link, _ in html.fromstring(response.text).iterlinks()}
        waiting |= {
            link
            for link in found
            if link.startswith("/studio") and not any(part in link for part in ("lang=", "events", "preview"))
        } - seen
    assert len(seen) > 8
    roles = {account.name: account.role for account in office.people.accounts()}
    assert {roles[name] for name in (NAMES[Role.ANALYST], NAMES[Role.AUDITOR])} == {
        Role.ANALYST,
        Role.AUDITOR,
    }
    assert office.journal.verify().ok
    assert office.people.sign_in(NAMES[Role.ADMIN], PASSWORD) is not None


PROGRAMS = [route for route in ROUTES if route.method == "POST" and route.path.startswith("/studio/api/")]


@pytest.mark.parametrize("route", PROGRAMS, ids=lambda route: route.path)
def test_programs_are_told_what_is_wrong_with_their_json(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    visitor = Visitor(studio, {"accept-language": "en"}).sign_in(Role.ADMIN)
    headers = {"x-csrf-token": visitor.token, "content-type": "application/json"}
    path = address(route, office, "1", True).replace("9" * 11, "1")
    for body, place, word in (
        (b'{"text": }', (1, 10), "a value is missing"),
        (b'{\n"text": "x"', (2, 12), "ends before it is complete"),
        (b"[]", (0, 0), "no object"),
        (b'{"text": "\\ud800"}', None, "half of a character"),
    ):
        answer = visitor.ask("POST", path, content=body, headers=headers)
        assert answer.status_code == 400
        problem = answer.json()
        assert word in problem["title"]
        if place:
            (mistake,) = problem["mistakes"]
            assert (mistake["line"], mistake["column"], mistake["cause"]) == (*place, problem["title"])


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("drafts/1/complete", {"text": 1, "caret": 1}, "text"),
        ("drafts/1/complete", {"text": "", "caret": "1"}, "caret"),
        ("drafts/1/check", {"path": "x"}, "text"),
        ("versions", {"parent": None, "message": ""}, "files"),
        ("versions", {"parent": None, "files": {}}, "message"),
        ("versions", {"parent": "7", "message": "", "files": {}}, "parent"),
    ],
)
def test_programs_are_told_which_field_cannot_be_read(
    office: Office, studio: ASGIApp, path: str, body: dict[str, object], field: str
) -> None:
    visitor = Visitor(studio, {"accept-language": "en"}).sign_in(Role.ADMIN)
    draft = office.versions.begin("ada").id
    address = f"/studio/api/{path.replace('/1/', f'/{draft}/')}"
    answer = visitor.ask("POST", address, json=body, headers={"x-csrf-token": visitor.token})
    assert answer.status_code == 400
    assert answer.json()["title"].startswith(f"Field {field} of the document is missing, or isn't ")
