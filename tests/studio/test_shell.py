"""The studio's door: cookies, hosts, redirects, languages, errors."""

from __future__ import annotations

import re

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp

from app.domain.people import Permission, Role
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import Routes
from app.web.studio.shell import create_studio
from app.web.studio.visit import Visit, inside
from tests.studio.visitors import BASE, PASSWORD, Visitor


def test_signing_in_changes_the_cookie_and_an_old_one_stays_nobodys(studio: ASGIApp) -> None:
    visitor = Visitor(studio)
    visitor.get("/studio/sign-in")
    planted = visitor.cookies["celosia_studio"]
    visitor.sign_in(Role.ADMIN)
    assert visitor.cookies["celosia_studio"] != planted
    victim = Visitor(studio)
    victim.cookies.set("celosia_studio", planted, domain="office.test", path="/studio")
    assert victim.get("/studio").status_code == 303


def test_cookies_are_out_of_reach_for_scripts_and_other_sites(office: Office) -> None:
    for url, secure in ((BASE, False), ("https://office.test", True)):
        studio = create_studio(office, PARTS, url)
        cookie = Visitor(studio).get("/studio/sign-in").headers["set-cookie"]
        assert "; HttpOnly; SameSite=Lax" in cookie
        assert "; Path=/studio;" in cookie
        assert cookie.endswith("; Secure") is secure


def test_signing_out_ends_the_session_for_good(studio: ASGIApp) -> None:
    visitor = Visitor(studio).sign_in(Role.ANALYST)
    kept = visitor.cookies["celosia_studio"]
    assert visitor.post("/studio/sign-out").headers["location"] == "/studio/sign-in?said=signed-out"
    assert visitor.get("/studio").status_code == 303
    thief = Visitor(studio)
    thief.cookies.set("celosia_studio", kept, domain="office.test", path="/studio")
    assert thief.get("/studio").status_code == 303


def test_a_refused_sign_in_says_the_same_for_every_reason(office: Office, studio: ASGIApp) -> None:
    closed = next(account for account in office.people.accounts() if account.name == "aud")
    office.people.set_active(_boss(office), closed.id, False)
    pages = set()
    for name, password in (("ana", "wrong"), ("nobody", "wrong"), ("aud", PASSWORD), ("", "")):
        visitor = Visitor(studio)
        visitor.get("/studio/sign-in")
        response = visitor.post("/studio/sign-in", {"name": name, "password": password})
        assert response.status_code == 401
        text = response.text.replace(f'value="{name}"', "")
        pages.add(re.sub(r"[0-9a-f]{64}", "", text))
    assert len(pages) == 1


def _boss(office: Office):  # type: ignore[no-untyped-def]
    from app.domain.people import command_line

    return command_line("test")


@pytest.mark.parametrize(
    "host", ["evil.test", "office.test.evil.test", "office.test@evil.test", "", "a b", "office.test:99999999"]
)
def test_another_host_name_is_refused(studio: ASGIApp, host: str) -> None:
    response = Visitor(studio).get("/studio/sign-in", headers={"host": host})
    assert response.status_code == 421
    assert "set-cookie" not in response.headers
    assert "evil" not in response.text


@pytest.mark.parametrize(
    "wish",
    ["https://evil.test", "//evil.test", "/\\evil.test", "/studio//evil.test", "javascript:alert(1)", "/es/",
     "/studio/../evil", "/studio\r\nset-cookie: a=b", "/studiox", "/studio/%0d%0a", "/studio?x=<script>"],
)  # fmt: skip
def test_nobody_is_led_off_the_studio_after_signing_in(studio: ASGIApp, wish: str) -> None:
    visitor = Visitor(studio)
    page = visitor.get("/studio/sign-in", params={"next": wish})
    assert 'name="next" value="/studio"' in page.text or wish == "/studio/%0d%0a"
    response = visitor.post("/studio/sign-in", {"name": "ana", "password": PASSWORD, "next": wish})
    assert response.status_code == 303
    assert response.headers["location"].startswith("/studio")
    assert "\n" not in response.headers["location"]


def test_wishes_inside_are_kept() -> None:
    for wish in ("/studio", "/studio/journal?actor=ana&before=7", "/studio/drafts/3/sheets/a.toml"):
        assert inside(wish) == wish


def test_every_answer_has_the_headers_that_keep_others_out(studio: ASGIApp) -> None:
    visitor = Visitor(studio)
    for path in ("/studio/sign-in", "/studio", "/studio/nowhere", "/studio/api/me"):
        headers = visitor.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_language_is_chosen_and_stays(studio: ASGIApp) -> None:
    visitor = Visitor(studio)
    assert '<html lang="en">' in visitor.get("/studio/sign-in").text
    assert '<html lang="ca">' in visitor.get("/studio/sign-in", headers={"accept-language": "ca"}).text
    assert '<html lang="es">' in visitor.get("/studio/sign-in?lang=es").text
    assert '<html lang="es">' in visitor.get("/studio/sign-in?lang=xx").text


def test_a_failure_of_ours_tells_nothing(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    broken = Routes()

    @broken.get("/studio/broken", Permission.NONE)
    def broken_page(visit: Visit) -> Response:
        raise RuntimeError("cell value 1234567")

    @broken.get("/studio/api/broken", Permission.NONE)
    def broken_document(visit: Visit) -> Response:
        raise RuntimeError("cell value 1234567")

    visitor = Visitor(create_studio(office, (*PARTS, broken), BASE))
    for path in ("/studio/broken", "/studio/api/broken"):
        response = visitor.get(path)
        assert response.status_code == 500
        assert "1234567" not in response.text
        assert response.headers["cache-control"] == "no-store"
    assert "1234567" not in capsys.readouterr().err


def test_too_large_a_form_is_refused_before_it_is_read(studio: ASGIApp) -> None:
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    response = visitor.post("/studio/people", {"name": "x" * (5 << 20)})
    assert response.status_code == 413


def test_the_form_for_an_account_says_what_a_password_needs(studio: ASGIApp) -> None:
    people = Visitor(studio).sign_in(Role.ADMIN).get("/studio/people")
    assert "at least 12 characters" in people.text


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a'\"><img src=x onerror=alert(1)>", "a\0b", "é" * 50]
)
def test_what_a_form_held_comes_back_as_text(studio: ASGIApp, name: str) -> None:
    visitor = Visitor(studio).sign_in(Role.ADMIN)
    response = visitor.post("/studio/people", {"name": name, "role": "analyst", "password": PASSWORD})
    assert response.status_code in (400, 422)
    assert "<script>alert" not in response.text
    assert "<img src=x" not in response.text
