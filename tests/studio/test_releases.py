"""Releases at the studio: from audited to live and back, by those who may, each move in the journal."""

from __future__ import annotations

import re
from datetime import timedelta

from lxml import html
from starlette.types import ASGIApp

from app.domain.people import Role
from app.office.office import Office
from tests.db.test_releases import make
from tests.studio.visitors import Visitor


def move(visitor: Visitor, release: str, action: str, **fields: str) -> int:
    """Open the release's page and send the form that stands there."""
    page = visitor.get(f"/studio/releases/{release}")
    assert page.status_code == 200
    version = re.search(r'name="version" value="(\d+)"', page.text)
    data = {"version": version.group(1) if version else "0", **fields}
    return visitor.post(f"/studio/releases/{release}/{action}", data).status_code


def test_an_admin_takes_a_release_from_audited_to_live(office: Office, studio: ASGIApp) -> None:
    make(office.store, "r1")
    admin = Visitor(studio).sign_in(Role.ADMIN)
    assert "r1" in admin.get("/studio/releases").text
    assert move(admin, "r1", "publish") == 422
    assert move(admin, "r1", "approve") == 303
    assert move(admin, "r1", "schedule", moment="2026-10-25T02:30", zone="Europe/Madrid") == 422
    assert move(admin, "r1", "schedule", moment="2001-01-01T09:00", zone="UTC") == 422
    later = office.releases.now() + timedelta(days=1)
    assert move(admin, "r1", "schedule", moment=f"{later:%Y-%m-%dT%H:%M}", zone="UTC") == 303
    assert office.releases.get("r1").state == "scheduled"
    assert office.store.live_release_id() is None
    assert move(admin, "r1", "publish") == 303
    assert office.store.live_release_id() == "r1"
    shown = office.releases.get("r1").first_live
    assert shown is not None
    assert f"{shown:%H:%M:%S} UTC" in admin.get("/studio").text
    make(office.store, "r2")
    assert "Compared with release r1" in admin.get("/studio/releases/r2").text
    assert move(admin, "r2", "approve") == 303
    assert move(admin, "r2", "publish") == 303
    assert move(admin, "r1", "roll-back") == 303
    assert move(admin, "r1", "withdraw", reason=" ") == 422
    assert move(admin, "r1", "withdraw", reason="a <b>wrong</b> total") == 303
    assert "a &lt;b&gt;wrong&lt;/b&gt; total" in admin.get("/studio/releases/r1").text
    assert office.store.live_release_id() is None
    told = [(entry.action, entry.subject, entry.actor) for entry in office.journal.latest(50)]
    assert told[0] == ("release.withdraw", "r1", "ada")
    for action in ("approve", "schedule", "publish", "roll-back"):
        assert (f"release.{action}", "r1", "ada") in told
    assert office.journal.verify().ok


def test_what_was_decided_on_an_old_page_is_refused(office: Office, studio: ASGIApp) -> None:
    make(office.store, "r1")
    first, second = Visitor(studio).sign_in(Role.ADMIN), Visitor(studio).sign_in(Role.ADMIN)
    page = first.get("/studio/releases/r1").text
    version = re.search(r'name="version" value="(\d+)"', page)
    assert version is not None
    assert move(second, "r1", "approve") == 303
    late = first.post("/studio/releases/r1/withdraw", {"version": version.group(1), "reason": "no"})
    assert late.status_code == 409
    assert "changed meanwhile" in late.text
    assert office.releases.get("r1").state == "approved"
    assert office.journal.latest(1)[0].action == "release.withdraw.refused"


def test_four_eyes(office: Office, studio: ASGIApp) -> None:
    make(office.store, "r1", by="ada")
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.get("/studio/people")
    read = office.settings.digest()
    assert admin.post("/studio/settings", {"four-eyes": "yes", "read": read}).status_code == 303
    late = admin.post("/studio/settings", {"sources": "sqlite:///x.db", "read": read})
    assert late.status_code == 409
    assert "saved elsewhere" in late.text
    assert (office.settings.four_eyes(), office.settings.sources()) == (True, ())
    assert move(admin, "r1", "approve") == 422
    make(office.store, "r2", by="ana")
    assert move(admin, "r2", "approve") == 303


def test_what_tells_where_few_changed_is_accepted_in_so_many_words(office: Office, studio: ASGIApp) -> None:
    make(office.store, "r1", telltale=62)
    admin, analyst = Visitor(studio).sign_in(Role.ADMIN), Visitor(studio).sign_in(Role.ANALYST)
    page = admin.get("/studio/releases/r1").text
    assert "62 cells were shown in the last release and are hidden in this one" in page
    assert page.count("/studio/releases/r1/approve") == 1
    (accept,) = html.fromstring(page).xpath("//input[@name='accept']")
    assert accept.get("required") is not None
    said = " ".join(accept.getparent().text_content().split())
    assert said == "I accept that readers can see where the change is."
    (button,) = html.fromstring(page).xpath("//form[contains(@action, '/approve')]//button")
    assert button.text == "Approve"
    assert "62 cells" not in analyst.get("/studio/releases/r1").text
    assert "telltale" not in analyst.get("/studio/api/releases").json()[0]
    assert admin.get("/studio/api/releases").json()[0]["telltale"] == 62
    assert move(admin, "r1", "approve") == 422
    assert office.releases.get("r1").state == "audited"
    assert move(admin, "r1", "approve", accept="yes") == 303
    told = office.journal.latest(1)[0]
    assert (told.action, told.after["accepted_telltale"]) == ("release.approve", 62)


def test_analyst_and_auditor_read_only(office: Office, studio: ASGIApp) -> None:
    make(office.store, "r1")
    for role in (Role.ANALYST, Role.AUDITOR):
        visitor = Visitor(studio).sign_in(role)
        page = visitor.get("/studio/releases/r1")
        assert page.status_code == 200
        assert "<button>Approve" not in page.text
        assert visitor.post("/studio/releases/r1/approve", {"version": "1"}).status_code == 403
        listed = visitor.get("/studio/api/releases").json()
        assert [(item["id"], item["state"]) for item in listed] == [("r1", "audited")]
    for path in ("/studio/releases/nothing", "/studio/releases/r1/certificate.json"):
        assert visitor.get(path).status_code == 404
