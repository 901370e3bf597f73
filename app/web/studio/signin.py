"""Signing in and out, and one's own account: password and API tokens."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import RedirectResponse, Response

from app.domain.errors import UserError
from app.domain.people import SCOPES, Permission, scopes_of
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.shell import SESSION, cookie_header
from app.web.studio.visit import Frame, RefusedError, Visit, inside

routes = Routes()

SINGLE_SIGN_ON = "celosia_single_sign_on"
_BACK = "/studio/single-sign-on/back"


#: What each permission lets somebody do, as pages say it.
PERMISSION_WORDS = {
    Permission.READ_OFFICE: _("Read the office's pages"),
    Permission.READ_CONFIDENTIAL: _("Read confidential values and reasons"),
    Permission.READ_JOURNAL: _("Read the journal"),
    Permission.READ_FACTS: _("Read uploaded facts"),
    Permission.READ_ACCOUNTS: _("Read accounts and settings"),
    Permission.EDIT_PUBLICATION: _("Edit the publication"),
    Permission.UPLOAD_FACTS: _("Upload facts"),
    Permission.ASK_WHAT_IF: _("Ask what if"),
    Permission.SET_RULES: _("Set confidentiality rules"),
    Permission.DECIDE_CELLS: _("Decide on single cells"),
    Permission.RUN_JOBS: _("Start and stop jobs"),
    Permission.MANAGE_RELEASES: _("Prepare and withdraw releases"),
    Permission.APPROVE_RELEASES: _("Approve releases"),
    Permission.MANAGE_ACCOUNTS: _("Manage accounts"),
    Permission.CHANGE_SETTINGS: _("Change settings"),
}

#: Days that a new token may last.
LASTINGS = (30, 90, 365)


@dataclass(frozen=True, eq=False)
class SignInPage:
    template: ClassVar[str] = "studio/sign_in.html"
    frame: Frame
    name: str
    onward: str
    refused: bool
    single_sign_on: str


@dataclass(frozen=True)
class TokenRow:
    id: int
    name: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    used: str


@dataclass(frozen=True, eq=False)
class AccountPage:
    """One's own account; ``fresh`` is the text of a token just made, shown this once."""

    template: ClassVar[str] = "studio/account.html"
    frame: Frame
    role: str
    tokens: tuple[TokenRow, ...]
    scopes: tuple[tuple[str, str], ...]
    lastings: tuple[int, ...]
    fresh: str
    wrong: str


@routes.get("/studio/sign-in", Permission.NONE)
def sign_in_page(visit: Visit) -> Response:
    """The form to sign in with."""
    return visit.page(_sign_in(visit, "", inside(visit.asked("next")), False))


def _sign_in(visit: Visit, name: str, onward: str, refused: bool) -> SignInPage:
    sso = "/studio/single-sign-on" if visit.office.single_sign_on is not None else ""
    return SignInPage(visit.frame(visit.say(_("Sign in"))), name, onward, refused, sso)


@routes.post("/studio/sign-in", Permission.NONE)
def sign_in(visit: Visit) -> Response:
    """Begin a session, under a cookie that is new."""
    name, onward = visit.text("name"), inside(visit.text("next"))
    signed = visit.office.people.sign_in(name, visit.text("password"), visit.origin)
    if signed is None:
        return visit.page(_sign_in(visit, name[:100], onward, True), 401)
    return with_session(visit, signed.cookie, onward)


def with_session(visit: Visit, cookie: str, onward: str) -> Response:
    """On to a page with another cookie."""
    response = visit.redirect(onward)
    secure = visit.studio.secure
    response.headers["set-cookie"] = cookie_header(SESSION, cookie, secure).decode()
    return response


@routes.get("/studio/single-sign-on", Permission.NONE)
def leave_for_single_sign_on(visit: Visit) -> Response:
    """Off to the provider; what must be the same on the way back goes into a signed cookie."""
    if visit.office.single_sign_on is None:
        raise RefusedError(404)
    url, remembered = visit.office.single_sign_on.begin(f"{visit.studio.base(visit)}{_BACK}")
    people = visit.office.people
    text = urlsafe_b64encode(json.dumps([remembered, inside(visit.asked("next"))]).encode()).decode()
    response = RedirectResponse(url, status_code=303)
    header = cookie_header(SINGLE_SIGN_ON, people.signed(text, SINGLE_SIGN_ON), visit.studio.secure)
    response.headers["set-cookie"] = f"{header.decode()}; Max-Age=600"
    return response


@routes.get(_BACK, Permission.NONE)
def back_from_single_sign_on(visit: Visit) -> Response:
    """Back from the provider: begin a session for whom it vouches for."""
    people, single = visit.office.people, visit.office.single_sign_on
    text = people.unsigned(visit.request.cookies.get(SINGLE_SIGN_ON, ""), SINGLE_SIGN_ON)
    if single is None or text is None:
        raise RefusedError(404)
    remembered, onward = json.loads(urlsafe_b64decode(text))
    base = visit.studio.base(visit)
    vouched = single.end(f"{base}{_BACK}", f"{base}{_BACK}?{visit.request.url.query}", remembered)
    signed = people.let_in_subject(vouched.issuer, vouched.subject, vouched.name, visit.origin)
    if signed is None:
        raise UserError("The office has no open account for you. Ask an admin.")
    response = with_session(visit, signed.cookie, inside(onward))
    gone = cookie_header(SINGLE_SIGN_ON, "", visit.studio.secure) + b"; Max-Age=0"
    response.headers.append("set-cookie", gone.decode())
    return response


@routes.post("/studio/sign-out", Permission.NONE)
def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.office.people.sign_out(visit.actor, visit.cookie, visit.origin)
    return with_session(visit, visit.office.people.visit_cookie(), "/studio/sign-in?said=signed-out")


@routes.get("/studio/account", Permission.OWN_ACCOUNT)
def account_page(visit: Visit) -> Response:
    """One's own account."""
    return visit.page(_account(visit))


def _account(visit: Visit, fresh: str = "", wrong: str = "") -> AccountPage:
    rows = tuple(
        TokenRow(
            token.id,
            token.name,
            tuple(visit.say(PERMISSION_WORDS[scope]) for scope in SCOPES if scope in token.scopes),
            visit.moment(token.created),
            visit.moment(token.expires),
            visit.moment(token.used),
        )
        for token in visit.office.people.tokens(visit.actor)
    )
    scopes = tuple(
        (str(scope), visit.say(PERMISSION_WORDS[scope])) for scope in SCOPES if visit.actor.may(scope)
    )
    frame = visit.frame(visit.say(_("Your account")))
    role = visit.say(ROLE_WORDS[str(visit.actor.role)])
    return AccountPage(frame, role, rows, scopes, LASTINGS, fresh, wrong)


ROLE_WORDS = {
    "citizen": _("citizen"),
    "analyst": _("analyst"),
    "admin": _("admin"),
    "auditor": _("auditor"),
}


@routes.post("/studio/account/password", Permission.OWN_ACCOUNT)
def change_password(visit: Visit) -> Response:
    """Change one's own password; the session ends with it."""
    if visit.text("new") != visit.text("again"):
        return visit.page(_account(visit, wrong=visit.say(_("The two new passwords differ."))), 422)
    try:
        visit.office.people.change_own_password(
            visit.actor, visit.text("old"), visit.text("new"), visit.origin
        )
    except UserError as error:
        return visit.page(_account(visit, wrong=visit.told(str(error))), 422)
    return with_session(visit, visit.office.people.visit_cookie(), "/studio/sign-in?said=password")


@routes.post("/studio/account/tokens", Permission.OWN_ACCOUNT)
def add_token(visit: Visit) -> Response:
    """Make an API token and show it once."""
    try:
        scopes = scopes_of(visit.texts("scope"))
        days = visit.integer("days")
        if days is not None and days not in LASTINGS:
            raise UserError(_("A token can't last that long."))
        _token, text = visit.office.people.add_token(
            visit.actor, visit.text("name"), scopes, days, visit.origin
        )
    except (ValueError, UserError) as error:
        return visit.page(_account(visit, wrong=visit.told(str(error))), 422)
    return visit.page(_account(visit, fresh=text))


@routes.post("/studio/account/tokens/{token:int}/revoke", Permission.OWN_ACCOUNT)
def drop_token(visit: Visit) -> Response:
    """Revoke one of one's own tokens."""
    visit.office.people.drop_token(visit.actor, visit.number("token"), visit.origin)
    return visit.redirect("/studio/account", "removed")


@routes.get("/studio/api/me", Permission.READ_OFFICE)
def me(visit: Visit) -> Response:
    """Who asks, and what they may do, for programs."""
    allowed = [str(item) for item in SCOPES if visit.actor.may(item)]
    return visit.json({"name": visit.actor.name, "role": str(visit.actor.role), "may": allowed})


def home_link(visit: Visit) -> Link:
    """The first crumb of a page."""
    return Link(visit.say(_("Studio")), "/studio")
