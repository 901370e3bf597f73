"""Nobody overwrites what somebody else saved: at every route of the registry, so at new ones too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from app.domain.people import Role, command_line
from app.domain.version import Version
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Route, gather
from app.web.studio.shell import create_studio
from tests.db.test_releases import make
from tests.studio.visitors import BASE, Visitor, starter_office

ROUTES, _TABS = gather(PARTS)
CHANGES = [route for route in ROUTES if route.method == "POST"]
OF_DRAFTS = [route for route in CHANGES if route.path.startswith("/studio/drafts/{")]
#: What doesn't depend on what was there: new things, one's own account, states of jobs and accounts.
OVERWRITES_NOTHING = {
    "/studio/sign-in", "/studio/sign-out", "/studio/account/password", "/studio/account/tokens",
    "/studio/account/tokens/{token:int}/revoke", "/studio/people", "/studio/people/{account:int}/role",
    "/studio/people/{account:int}/active", "/studio/people/{account:int}/password",
    "/studio/people/{account:int}/unlock", "/studio/drafts", "/studio/rules", "/studio/what-if",
    "/studio/api/drafts/{draft:int}/complete", "/studio/api/drafts/{draft:int}/check",
    "/studio/jobs", "/studio/jobs/{job:int}/cancel", "/studio/jobs/{job:int}/retry",
    "/studio/api/jobs", "/studio/api/jobs/{job:int}/cancel", "/studio/api/jobs/{job:int}/retry",
}  # fmt: skip
#: Facts that are uploaded or looked at first; the draft holds them when the next form is sent.
ONLY_LOOKS = ("/studio/drafts/{draft:int}/data", "/studio/drafts/{draft:int}/source")
SHEET = "sheets/economy/towns.toml"
#: Something for every form, so that each would do what it is for.
FIELDS = {
    "text": "title.en = 'Mine'", "path": SHEET, "to": "sheets/economy/mine.toml", "kind": "folder",
    "folder": "sheets", "name": "mine", "title": "Mine", "message": "mine", "languages": "en",
    "cube": "Mine", "threshold": "3", "title.en": "Mine", "do": "save", "reason": "mine",
}  # fmt: skip


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("overwriting") / "firms"
    with starter_office(folder) as (made, store):
        made.versions.import_folder(folder, "ada")
        make(store, "r1")
        yield made


@pytest.fixture(scope="module")
def studio(office: Office) -> ASGIApp:
    return create_studio(office, PARTS, BASE)


def address(route: Route, office: Office, draft: Version) -> str:
    known = {
        "draft": str(draft.id),
        "path": SHEET,
        "digest": next(iter(office.versions.files(draft).uploads.values())),
        "release": "r1",
    }
    return re.sub(r"\{([a-z_]+)(?::[a-z]+)?\}", lambda match: known[match.group(1)], route.path)


@pytest.mark.parametrize("over", ["published", "thrown away"])
@pytest.mark.parametrize("route", OF_DRAFTS, ids=lambda route: route.path)
def test_a_draft_that_is_over_says_so_and_its_forms_reach_no_other(
    office: Office, studio: ASGIApp, route: Route, over: str
) -> None:
    read = office.versions.begin("ada")
    text = {SHEET: f"title.en = 'Over {read.id}'\n"}
    saved = office.drafting.put_texts(command_line("t"), read, text)
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    path = address(route, office, saved)
    if over == "published":
        office.versions.publish(saved, "m")
    else:
        office.versions.discard(saved)
    later = office.versions.begin("ben")
    assert later.id > read.id
    answer = visitor.post(path, FIELDS | {"revision": str(saved.revision)})
    assert answer.status_code == 409, answer.text
    assert "This draft was published or thrown away meanwhile. Begin another one." in answer.text
    assert visitor.get(f"/studio/drafts/{read.id}").status_code == 409
    assert office.versions.draft(later.id) == later
    assert (visitor.get(f"/studio/versions/{read.id}").status_code == 200) is (over == "published")


def test_every_change_says_what_it_was_decided_on_or_overwrites_nothing() -> None:
    assert {route.path for route in CHANGES if not route.as_read} == OVERWRITES_NOTHING
    assert {route.as_read for route in OF_DRAFTS} == {"revision"}
    assert len(OF_DRAFTS) >= 13


@pytest.mark.parametrize("route", [route for route in CHANGES if route.as_read], ids=lambda route: route.path)
def test_a_change_that_does_not_say_what_it_was_decided_on_is_refused(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    draft = office.versions.begin("ada")
    before = (draft, office.versions.files(draft), office.versions.current(), office.settings.digest())
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    path = address(route, office, draft)
    document = {name: text for name, text in FIELDS.items() if name != route.as_read}
    as_json = {"json": document, "headers": {"x-csrf-token": visitor.token}}
    answers = [visitor.ask("POST", path, **as_json)]
    if not path.startswith("/studio/api/"):
        answers += [visitor.post(path, document | sent) for sent in ({}, {route.as_read: " "})]
        answers.append(visitor.ask("POST", path, **as_json | {"json": document | {route.as_read: "0"}}))
    for answer in answers:
        assert answer.status_code == 428, answer.text
        assert f"field {route.as_read} is missing" in answer.text
    assert office.releases.get("r1").version == 1
    draft = office.versions.version(draft.id)
    assert before == (
        draft, office.versions.files(draft), office.versions.current(), office.settings.digest(),
    )  # fmt: skip


@pytest.mark.parametrize("route", OF_DRAFTS, ids=lambda route: route.path)
def test_a_change_to_what_was_saved_meanwhile_is_refused_and_both_keep_their_work(
    office: Office, studio: ASGIApp, route: Route
) -> None:
    read = office.versions.begin("ada")
    theirs = office.drafting.put_texts(command_line("t"), read, {SHEET: "title.en = 'Theirs'\n"})
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    answer = visitor.post(address(route, office, read), FIELDS | {"revision": str(read.revision)})
    if route.path in ONLY_LOOKS:
        assert answer.status_code in (400, 422), "no file and no database was named"
    else:
        assert answer.status_code == 409, answer.text
        assert "This draft was saved elsewhere meanwhile." in answer.text
    if "/text/" in route.path:
        assert "title.en = &#39;Mine&#39;" in answer.text, "what was typed is still there"
    assert office.versions.version(read.id) == theirs
    assert office.versions.files(theirs).texts[SHEET] == "title.en = 'Theirs'\n"
