"""Who works in the office and what each may do: roles and permissions as one table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody is to the office. A citizen is whoever hasn't signed in."""

    CITIZEN = "citizen"
    ANALYST = "analyst"
    ADMIN = "admin"
    AUDITOR = "auditor"


class Permission(StrEnum):
    """One thing that a route may need; also the scopes of API tokens."""

    #: Nothing at all: signing in, health.
    NONE = "none"
    #: Being signed in: one's own account, password and tokens.
    OWN_ACCOUNT = "account.own"
    #: The office's pages that hold no number of a confidential cell.
    READ_OFFICE = "office.read"
    #: Raw values, reasons and rules that hit, cell by cell.
    READ_CONFIDENTIAL = "confidential.read"
    READ_JOURNAL = "journal.read"
    #: Facts as they were uploaded: one's own, and everybody's together with `READ_CONFIDENTIAL`.
    READ_FACTS = "facts.read"
    READ_ACCOUNTS = "accounts.read"
    EDIT_PUBLICATION = "publication.edit"
    UPLOAD_FACTS = "facts.upload"
    ASK_WHAT_IF = "whatif.ask"
    SET_RULES = "rules.set"
    DECIDE_CELLS = "cells.decide"
    RUN_JOBS = "jobs.run"
    MANAGE_RELEASES = "releases.manage"
    APPROVE_RELEASES = "releases.approve"
    MANAGE_ACCOUNTS = "accounts.manage"
    CHANGE_SETTINGS = "settings.change"


_READS = frozenset({Permission.NONE, Permission.OWN_ACCOUNT, Permission.READ_OFFICE})
_WRITES = frozenset({Permission.EDIT_PUBLICATION, Permission.UPLOAD_FACTS, Permission.ASK_WHAT_IF})
_LOOKS = frozenset({Permission.READ_CONFIDENTIAL, Permission.READ_JOURNAL, Permission.READ_ACCOUNTS})

#: What each role may do. The auditor reads everything and changes nothing but the own password.
PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.CITIZEN: frozenset({Permission.NONE}),
    Role.ANALYST: _READS | _WRITES | {Permission.READ_FACTS},
    Role.ADMIN: frozenset(Permission),
    Role.AUDITOR: _READS | _LOOKS | {Permission.READ_FACTS},
}

#: What an API token may be given.
SCOPES = tuple(item for item in Permission if item not in (Permission.NONE, Permission.OWN_ACCOUNT))

NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,98}[a-z0-9]")


@dataclass(frozen=True)
class Actor:
    """Who acts in a request: an account, with the scopes of the token where one is used.

    Parameters
    ----------
    name : str
        Of the account; ``""`` for a citizen. The one name that anything is recorded by: journal, versions,
        uploads, jobs and releases.
    role : Role
    account_id : int
        0 for a citizen or for the command line.
    scopes : frozenset of Permission, optional
        None: no token, all that the role may do.
    token : str
        Name of the token, for the journal.
    """

    name: str
    role: Role
    account_id: int = 0
    scopes: frozenset[Permission] | None = None
    token: str = ""

    def may(self, permission: Permission) -> bool:
        """Whether the role may, and the token where there is one."""
        allowed = permission in PERMISSIONS[self.role]
        if self.scopes is None or permission is Permission.NONE:
            return allowed
        return allowed and permission in self.scopes


CITIZEN = Actor("", Role.CITIZEN)
_AT_COMMAND_LINE = "@command-line"
_FOR = " for "
#: Who acts where no account does: whoever hasn't signed in, and the clock at the end of an embargo.
NOBODY = "nobody"
EMBARGO = "embargo"


def command_line(user: str) -> Actor:
    """Whoever runs commands on the machine: they may do anything, and the journal says so."""
    return Actor(f"{user}{_AT_COMMAND_LINE}", Role.ADMIN)


def on_behalf(who: str, of: str) -> str:
    """The name of who acts at the command line and says for whom: both, for nobody vouches for the second."""
    return who if not of or same_person(who, of) else f"{who}{_FOR}{of[:100]}"


def same_person(one: str, other: str) -> bool:
    """Whether two names of actors are, or may be, one person: an account, and its user of the machine.

    Who acts for somebody is both.
    """
    first, second = (
        {part.strip().removesuffix(_AT_COMMAND_LINE) for part in name.split(_FOR)} for name in (one, other)
    )
    return bool(first & second)


def account_name(text: str) -> str:
    """A name as accounts carry it.

    Raises
    ------
    ValueError
        If it can't be one.
    """
    name = text.strip().lower()
    if not NAME.fullmatch(name):
        raise ValueError("An account's name has 2 to 100 letters, digits and . _ @ + -")
    if name in (NOBODY, EMBARGO) or name.endswith(_AT_COMMAND_LINE):
        raise ValueError("The journal names those so who act without an account. Choose another name.")
    return name


def scopes_of(names: Iterable[str]) -> frozenset[Permission]:
    """Scopes by their names.

    Raises
    ------
    ValueError
        If one is none.
    """
    known = {str(item): item for item in SCOPES}
    found = set()
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is no scope. There is {', '.join(known)}.")
        found.add(known[name])
    return frozenset(found)
