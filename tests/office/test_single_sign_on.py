"""OpenID Connect against a small provider that really runs, on this machine's own loopback."""

from __future__ import annotations

import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from app.cli.serving import running
from app.domain.errors import UserError
from app.domain.people import Role, command_line
from app.office.office import Office
from app.office.single_sign_on import Provider, SingleSignOn, provider_of
from app.web.studio.parts import PARTS
from app.web.studio.shell import SESSION, create_studio
from app.web.studio.signin import SINGLE_SIGN_ON
from tests.databases import new_store
from tests.studio.visitors import BASE, Visitor, staffed

SECRET = "a secret between two"


class Desk:
    """The provider: whoever asks is whom ``claims`` says; ``twist`` changes what it signs."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.other = RSAKey.generate_key(2048, {"kid": "one"})
        self.issuer = ""
        self.claims: dict[str, Any] = {"sub": "7", "email": "nora@office.org", "email_verified": True}
        self.twist: dict[str, Any] = {}
        self.signs_with = self.key
        self.asked: dict[str, dict[str, str]] = {}

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.about),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
                Route("/keys", self.keys),
            ]
        )

    async def about(self, request: Request) -> Response:
        self.issuer = f"http://{request.headers['host']}"
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        return JSONResponse(
            {"issuer": self.issuer, **{name: self.issuer + path for name, path in paths.items()}}
        )

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.asked[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 303)

    async def token(self, request: Request) -> Response:
        form = await request.form()
        asked = self.asked.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or form["redirect_uri"] != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        said = {
            "iss": self.issuer, "aud": asked["client_id"], "nonce": asked["nonce"],
            "iat": now, "exp": now + 60,
            **self.claims, **self.twist,
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, said, self.signs_with)
        return JSONResponse(
            {"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": signed}
        )

    async def keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})


@pytest.fixture(scope="module")
def desk() -> Iterator[tuple[Desk, str]]:
    made = Desk()
    with running(made.app()) as address:
        yield made, address


@pytest.fixture
def office(tmp_path: Path, desk: tuple[Desk, str]) -> Iterator[Office]:
    store = new_store(tmp_path / "celosia.sqlite3")
    made = staffed(tmp_path / "publication", store)
    made.people.add(command_line("test"), "nora@office.org", Role.ANALYST, None)
    object.__setattr__(made, "single_sign_on", SingleSignOn(Provider(desk[1], "celosia", SECRET)))
    desk[0].twist, desk[0].signs_with = {}, desk[0].key
    yield made
    store.close()


def go(visitor: Visitor) -> str:
    """Through the provider; the address that it sends back to."""
    off = visitor.get("/studio/single-sign-on?next=/studio/account")
    assert off.status_code == 303
    back = httpx.get(off.headers["location"]).headers["location"]
    return back.removeprefix(BASE)


def test_whom_the_provider_vouches_for_comes_in(office: Office) -> None:
    visitor = Visitor(create_studio(office, PARTS, BASE))
    assert "/studio/single-sign-on" in visitor.get("/studio/sign-in").text
    before = visitor.cookies["celosia_studio"]
    back = go(visitor)
    done = visitor.get(back)
    assert (done.status_code, done.headers["location"]) == (303, "/studio/account")
    assert visitor.cookies["celosia_studio"] != before
    assert "nora@office.org" in visitor.get("/studio/account").text
    again = Visitor(create_studio(office, PARTS, BASE))
    assert again.get(back).status_code == 404, "the way back belongs to the browser that left"
    assert visitor.get(back).status_code in (404, 422), "a code is good once"


@pytest.mark.parametrize(
    "twist",
    [{"nonce": "other"}, {"aud": "somebody else"}, {"iss": "https://evil.test"}, {"exp": 1},
     {"email_verified": False}, {"email": "eve@office.org"}, {"email": None}, {"email": "ada"},
     {"email": "ines@office.org"}, "signature"],
    ids=str,
)  # fmt: skip
def test_a_twisted_word_lets_nobody_in(office: Office, desk: tuple[Desk, str], twist: Any) -> None:
    if twist == "signature":
        desk[0].signs_with = desk[0].other
    else:
        # The admin's own name, whose account has a password; and a name whose account is another subject's.
        office.people.add(command_line("test"), "ines@office.org", Role.ADMIN, None)
        assert office.people.let_in_subject(desk[1], "1", "ines@office.org") is not None
        desk[0].twist = twist
    visitor = Visitor(create_studio(office, PARTS, BASE))
    response = visitor.get(go(visitor))
    assert response.status_code == 422
    assert visitor.get("/studio").status_code == 303


def test_another_state_or_no_cookie_is_refused(office: Office) -> None:
    visitor = Visitor(create_studio(office, PARTS, BASE))
    parts = urlsplit(go(visitor))
    fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert visitor.get(parts.path, params=fields | {"state": "x"}).status_code == 422
    assert (
        visitor.get(parts.path, params={"error": "access_denied", "state": fields["state"]}).status_code
        == 422
    )
    assert visitor.get(parts.path).status_code == 422
    assert Visitor(create_studio(office, PARTS, BASE)).get(parts.path, params=fields).status_code == 404


def test_a_signed_cookie_is_nothing_in_anothers_place(office: Office) -> None:
    visitor = Visitor(create_studio(office, PARTS, BASE)).sign_in(Role.ANALYST)
    for cookie in (visitor.cookies[SESSION], office.people.visit_cookie()):
        visitor.cookies.set(SINGLE_SIGN_ON, cookie, domain="office.test", path="/studio")
        assert visitor.get("/studio/single-sign-on/back?code=1&state=1").status_code == 404
    stranger = Visitor(create_studio(office, PARTS, BASE))
    stranger.get("/studio/single-sign-on")
    left = stranger.cookies[SINGLE_SIGN_ON]
    stranger.cookies.set(SESSION, left, domain="office.test", path="/studio")
    stranger.get("/studio/sign-in")
    assert stranger.cookies[SESSION] != left, "no form is bound to it"


def test_the_provider_is_named_by_the_environment() -> None:
    assert provider_of({}) is None
    named = {
        "CELOSIA_OIDC_ISSUER": "https://id.test",
        "CELOSIA_OIDC_CLIENT_ID": "c",
        "CELOSIA_OIDC_CLIENT_SECRET": "s3",
    }
    found = provider_of(named)
    assert found is not None
    assert "s3" not in repr(found)
    for wrong in (
        {"CELOSIA_OIDC_ISSUER": "http://id.test"},
        {"CELOSIA_OIDC_CLIENT_ID": ""},
        {"CELOSIA_OIDC_CLAIM": "sub"},
    ):
        with pytest.raises(UserError):
            provider_of(named | wrong)
