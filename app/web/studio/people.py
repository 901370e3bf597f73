"""Accounts and settings, for admins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response

from app.domain.errors import UserError
from app.domain.people import Permission, Role
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.signin import ROLE_WORDS
from app.web.studio.visit import Frame, RefusedError, Visit

routes = Routes()

ROLES = (Role.ANALYST, Role.ADMIN, Role.AUDITOR)


routes.tab(_("People"), "/studio/people", Permission.READ_ACCOUNTS, 80)


@dataclass(frozen=True)
class AccountRow:
    id: int
    name: str
    role: str
    role_words: str
    active: bool
    created: str
    locked: str
    single_sign_on: bool


@dataclass(frozen=True, eq=False)
class PeoplePage:
    """Every account; ``name`` and ``wrong`` give back what a refused form held."""

    template: ClassVar[str] = "studio/people.html"
    frame: Frame
    accounts: tuple[AccountRow, ...]
    roles: tuple[tuple[str, str], ...]
    name: str
    wrong: str
    four_eyes: bool
    sources: str
    read: str


@routes.get("/studio/people", Permission.READ_ACCOUNTS)
def people_page(visit: Visit) -> Response:
    """Every account."""
    return visit.page(_people(visit))


def _people(visit: Visit, name: str = "", wrong: str = "") -> PeoplePage:
    office = visit.office
    rows = tuple(
        AccountRow(
            account.id,
            account.name,
            str(account.role),
            visit.say(ROLE_WORDS[str(account.role)]),
            account.active,
            visit.moment(account.created),
            visit.moment(office.people.locked_until(account)),
            account.password is None,
        )
        for account in office.people.accounts()
    )
    return PeoplePage(
        frame=visit.frame(visit.say(_("People"))),
        accounts=rows,
        roles=tuple((str(role), visit.say(ROLE_WORDS[str(role)])) for role in ROLES),
        name=name,
        wrong=wrong,
        four_eyes=office.settings.four_eyes(),
        sources="\n".join(office.settings.sources()),
        read=office.settings.digest(),
    )


def _role(visit: Visit) -> Role:
    try:
        return Role(visit.text("role"))
    except ValueError:
        raise RefusedError(400) from None


@routes.post("/studio/people", Permission.MANAGE_ACCOUNTS)
def add_account(visit: Visit) -> Response:
    """A new account."""
    name, password = visit.text("name"), visit.text("password")
    try:
        visit.office.people.add(visit.actor, name, _role(visit), password or None, visit.origin)
    except UserError as error:
        return visit.page(_people(visit, name[:100], visit.said(error)), 422)
    return visit.redirect("/studio/people", "added")


@routes.post("/studio/people/{account:int}/role", Permission.MANAGE_ACCOUNTS)
def set_role(visit: Visit) -> Response:
    """Another role for an account."""
    visit.office.people.set_role(visit.actor, visit.number("account"), _role(visit), visit.origin)
    return visit.redirect("/studio/people", "saved")


@routes.post("/studio/people/{account:int}/active", Permission.MANAGE_ACCOUNTS)
def set_active(visit: Visit) -> Response:
    """Close an account, or open it again."""
    active = visit.text("active") == "yes"
    visit.office.people.set_active(visit.actor, visit.number("account"), active, visit.origin)
    return visit.redirect("/studio/people", "saved")


@routes.post("/studio/people/{account:int}/password", Permission.MANAGE_ACCOUNTS)
def set_password(visit: Visit) -> Response:
    """Another password for an account."""
    visit.office.people.set_password(
        visit.actor, visit.number("account"), visit.text("password"), visit.origin
    )
    return visit.redirect("/studio/people", "saved")


@routes.post("/studio/people/{account:int}/unlock", Permission.MANAGE_ACCOUNTS)
def unlock(visit: Visit) -> Response:
    """Forget refused sign-ins."""
    visit.office.people.unlock(visit.actor, visit.number("account"), visit.origin)
    return visit.redirect("/studio/people", "unlocked")


@routes.post("/studio/settings", Permission.CHANGE_SETTINGS, as_read="read")
def change_settings(visit: Visit) -> Response:
    """Four-eyes approval, and the databases that cubes may read."""
    urls = tuple(line.strip() for line in visit.text("sources").splitlines() if line.strip())
    four_eyes = visit.text("four-eyes") == "yes"
    visit.office.settings.change(visit.actor, visit.text("read"), four_eyes, urls, visit.origin)
    return visit.redirect("/studio/people", "saved")
