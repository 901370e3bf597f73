"""Accounts, sign-in and sign-out, API tokens; every change goes into the journal."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION

from app.db.people import Account, PeopleStore, Session, Token
from app.db.workspace import WorkspaceStore
from app.domain.errors import ConflictError, UserError
from app.domain.people import CITIZEN, NOBODY, Actor, Permission, Role, account_name
from app.office.journal import Journal

LASTS = timedelta(hours=12)
IDLE = timedelta(hours=2)
SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 1000
#: Refusals under one name before it is locked, and for how long the first and the longest time.
PATIENCE = 5
FIRST_LOCK = timedelta(seconds=30)
LONGEST_LOCK = timedelta(hours=1)
TOKEN_PREFIX = "celosia_"
#: Argon2 takes its memory on purpose; this many at once and no more.
_AT_ONCE = 2


@dataclass(frozen=True)
class SignIn:
    """Who came in, and what their cookie shall hold."""

    actor: Actor
    cookie: str
    expires: datetime


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """A hash that no password is known to have, in the PHC string format; to check against it takes as long.

    Drawn, not computed: an office is opened by every command, and Argon2 is dear on purpose.
    """
    salt, digest = (
        b64encode(secrets.token_bytes(size)).decode().rstrip("=")
        for size in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2{hasher.type.name.lower()}$v={ARGON2_VERSION}${costs}${salt}${digest}"


class People:
    """The people of one office. Made by `app.bootstrap`.

    Parameters
    ----------
    store, workspace, journal
    hasher : PasswordHasher
        Argon2id with the library's defaults, which follow RFC 9106.
    now : callable
        The time, with zone.
    """

    def __init__(
        self,
        store: PeopleStore,
        workspace: WorkspaceStore,
        journal: Journal,
        hasher: PasswordHasher | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._journal = journal
        self._hasher = hasher or PasswordHasher()
        self._now = now
        self._workspace = workspace
        self._turns = BoundedSemaphore(_AT_ONCE)
        self._key_kept: bytes | None = None
        #: Unknown names are checked against this, so that they take as long as known ones.
        self._nobody = _hash_of_nothing(self._hasher)

    # ------------------------------------------------------------------ accounts

    def accounts(self) -> tuple[Account, ...]:
        """Every account, by name."""
        return self._store.accounts()

    def account(self, identity: int) -> Account:
        """An account.

        Raises
        ------
        UserError
            If there is none of that number.
        """
        found = self._store.account(identity)
        if found is None:
            raise UserError("There is no such account.")
        return found

    def add(self, actor: Actor, name: str, role: Role, password: str | None, origin: str = "") -> Account:
        """A new account; without a password only single sign-on leads in.

        Raises
        ------
        UserError
            If the name or password can't be one, or the name is taken.
        """
        try:
            name = account_name(name)
        except ValueError as error:
            raise UserError(str(error)) from None
        if role is Role.CITIZEN:
            raise UserError("Citizens need no account.")
        hashed = None if password is None else self._hash(name, password)
        with self._journal.together():
            made = self._store.add_account(name, role, hashed, self._now())
            self._journal.record(actor, "account.add", name, None, {"role": str(role)}, origin)
        return made

    def set_role(self, actor: Actor, identity: int, role: Role, origin: str = "") -> Account:
        """Give an account another role; its sessions end.

        Raises
        ------
        UserError
            If nobody would be admin any more.
        """
        before = self.account(identity)
        if role is Role.CITIZEN:
            raise UserError("Citizens need no account.")
        with self._journal.together():
            changed = self._store.change_account(identity, _keep_an_admin(role is Role.ADMIN), role=str(role))
            self._journal.record(
                actor, "account.role", changed.name, {"role": str(before.role)}, {"role": str(role)}, origin
            )
        return changed

    def set_active(self, actor: Actor, identity: int, active: bool, origin: str = "") -> Account:
        """Close an account or open it again; its sessions and tokens stop working while it is closed."""
        before = self.account(identity)
        with self._journal.together():
            changed = self._store.change_account(identity, _keep_an_admin(active), active=active)
            self._journal.record(
                actor, "account.active", changed.name, {"active": before.active}, {"active": active}, origin
            )
        return changed

    def set_password(self, actor: Actor, identity: int, password: str, origin: str = "") -> Account:
        """Give an account another password; its sessions end, and it is unlocked."""
        account = self.account(identity)
        hashed = self._hash(account.name, password)
        with self._journal.together():
            changed = self._store.change_account(identity, lambda *_: None, password=hashed)
            self._store.forget_attempts(_attempt_digest(account.name))
            self._journal.record(actor, "account.password", account.name, origin=origin)
        return changed

    def change_own_password(self, actor: Actor, old: str, new: str, origin: str = "") -> Account:
        """As `set_password`, for oneself, who must know the old one."""
        account = self.account(actor.account_id)
        if not self._is_password(account.password or self._nobody, old) or account.password is None:
            raise UserError("The old password isn't right.")
        return self.set_password(actor, account.id, new, origin)

    def unlock(self, actor: Actor, identity: int, origin: str = "") -> None:
        """Forget the refused sign-ins of an account."""
        account = self.account(identity)
        with self._journal.together():
            self._store.forget_attempts(_attempt_digest(account.name))
            self._journal.record(actor, "account.unlock", account.name, origin=origin)

    def locked_until(self, account: Account) -> datetime | None:
        """Until when nobody can sign in under an account's name; None when it isn't locked."""
        until = self._store.attempt(_attempt_digest(account.name)).locked_until
        return until if until is not None and until > self._now() else None

    # ------------------------------------------------------------------ sessions

    def sign_in(self, name: str, password: str, origin: str = "") -> SignIn | None:
        """Who signs in with a name and a password; None when that is refused, for whatever reason.

        Unknown name, wrong password, locked name and closed account look alike and take as long: one
        password is checked, one refusal is counted and one entry written in each case.
        """
        wanted = name.strip().lower()[:200]
        digest = _attempt_digest(wanted)
        locked = self._store.attempt(digest).locked_until
        account = self._store.account_named(wanted)
        right = self._is_password(
            self._nobody if account is None else account.password or self._nobody, password
        )
        is_locked = locked is not None and locked > self._now()
        if account is None or account.password is None or not account.active or is_locked or not right:
            self._refuse(digest, "an unknown name" if account is None else account.name, origin)
            return None
        try:
            if self._hasher.check_needs_rehash(account.password):
                fresh = self._hasher.hash(password)
                account = self._store.change_account(account.id, _stays(account), password=fresh)
            return self.let_in(account, origin)
        except ConflictError:
            self._refuse(digest, account.name, origin)
            return None

    def _refuse(self, digest: str, subject: str, origin: str) -> None:
        self._store.note_attempt(digest, self._now(), self._lock)
        self._journal.record(NOBODY, "session.refused", subject, origin=origin)

    def let_in(self, account: Account, origin: str = "") -> SignIn:
        """A new session for an account that proved itself; its cookie is new, whatever was there before.

        Raises
        ------
        ConflictError
            If what it proved itself by was changed, or the account closed, since ``account`` was read: what
            ends its sessions ends those as well that were about to begin.
        """
        text = secrets.token_urlsafe(32)
        now = self._now()
        with self._journal.together():
            session = Session(_digest(text), account.id, now, now, now + LASTS)
            self._store.add_session(session, _stays(account))
            self._store.forget_attempts(_attempt_digest(account.name))
            self._journal.record(account.name, "session.begin", account.name, origin=origin)
        return SignIn(Actor(account.name, account.role, account.id), self.signed(text), now + LASTS)

    def let_in_subject(self, issuer: str, subject: str, name: str, origin: str = "") -> SignIn | None:
        """A session for whom single sign-on vouches; None when no account of that name is open.

        The first time, the account is found by its name and bound to the subject; after that by the
        subject alone, so that a name which changes hands doesn't open it. An account with a password is
        never found by its name: it was made for whoever knows that, and people may choose what a provider
        calls them.
        """
        whole = f"{issuer} {subject}"[:500]
        account = self._store.account_of_subject(whole)
        if account is None:
            account = self._store.account_named(name.strip().lower())
            if account is not None and (account.subject is not None or account.password is not None):
                account = None
            if account is not None and account.active:
                account = self._bind(account, issuer, whole, origin)
        if account is not None and account.active:
            with suppress(ConflictError):
                return self.let_in(account, origin)
        self._journal.record(NOBODY, "session.refused", "single sign-on", origin=origin)
        return None

    def _bind(self, account: Account, issuer: str, subject: str, origin: str) -> Account | None:
        """The account, which is the subject's from now on; None when it became somebody's meanwhile."""
        with suppress(ConflictError), self._journal.together():
            bound = self._store.change_account(account.id, _stays(account), subject=subject)
            self._journal.record(account.name, "account.bound", account.name, None, {"by": issuer}, origin)
            return bound
        return None

    def actor_of_cookie(self, cookie: str) -> Actor:
        """Whose session a cookie carries; a citizen when it carries none that holds."""
        text = self.unsigned(cookie)
        found = None if text is None else self._store.session(_digest(text), self._now())
        if found is None:
            return CITIZEN
        session, account = found
        now = self._now()
        if not account.active or session.expires <= now or session.seen + IDLE <= now:
            return CITIZEN
        return Actor(account.name, account.role, account.id)

    def sign_out(self, actor: Actor, cookie: str, origin: str = "") -> None:
        """End the session of a cookie."""
        text = self.unsigned(cookie)
        if text is not None:
            with self._journal.together():
                self._store.drop_session(_digest(text))
                self._journal.record(actor, "session.end", actor.name, origin=origin)

    # ------------------------------------------------------------------ tokens

    def tokens(self, actor: Actor) -> tuple[Token, ...]:
        """The API tokens of whoever asks."""
        return self._store.tokens(actor.account_id)

    def add_token(
        self, actor: Actor, name: str, scopes: frozenset[Permission], days: int | None, origin: str = ""
    ) -> tuple[Token, str]:
        """A new API token and its text, which is shown this once.

        Raises
        ------
        UserError
            If it has no name or scope, or a scope that its owner's role doesn't have.
        """
        name = " ".join(name.split())[:100]
        if not name:
            raise UserError("A token needs a name that says what it is for.")
        if not scopes:
            raise UserError("A token needs a scope: what whoever holds it may do.")
        if not all(actor.may(scope) for scope in scopes):
            raise UserError("A token can't do more than its owner.")
        text = TOKEN_PREFIX + secrets.token_urlsafe(32)
        now = self._now()
        expires = None if days is None else now + timedelta(days=days)
        with self._journal.together():
            token = self._store.add_token(actor.account_id, name, _digest(text), scopes, now, expires)
            self._journal.record(actor, "token.add", name, None, {"scopes": sorted(map(str, scopes))}, origin)
        return token, text

    def drop_token(self, actor: Actor, identity: int, origin: str = "") -> None:
        """Revoke a token of one's own."""
        with self._journal.together():
            token = self._store.drop_token(actor.account_id, identity)
            self._journal.record(actor, "token.revoke", token.name, origin=origin)

    def actor_of_token(self, text: str) -> Actor | None:
        """Whom a token stands for; None when it is unknown, over, or its account is closed."""
        if not text.startswith(TOKEN_PREFIX):
            return None
        found = self._store.token(_digest(text), self._now())
        if found is None:
            return None
        token, account = found
        if not account.active or (token.expires is not None and token.expires <= self._now()):
            return None
        return Actor(account.name, account.role, account.id, token.scopes, token.name)

    # ------------------------------------------------------------------ signatures

    def visit_cookie(self) -> str:
        """A signed cookie for somebody who hasn't signed in, so that forms can be bound to it."""
        return self.signed(secrets.token_urlsafe(32))

    def signed(self, text: str, use: str = "cookie") -> str:
        """A text with its signature, which holds for one use: a cookie is nothing in another's place."""
        return f"{text}.{self._mac(use, text)}"

    def unsigned(self, cookie: str, use: str = "cookie") -> str | None:
        """The text of a cookie whose signature is ours, and for this use."""
        text, _, signature = cookie.rpartition(".")
        wanted = self._mac(use, text)
        return (
            text
            if text and hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace"))
            else None
        )

    def form_token(self, cookie: str) -> str:
        """What a form must bring along to be accepted with this cookie."""
        return self._mac("form", cookie)

    def is_form_token(self, cookie: str, token: str) -> bool:
        """Whether a form was made for this cookie."""
        return hmac.compare_digest(self.form_token(cookie).encode(), token.encode("utf-8", "replace"))

    def _mac(self, use: str, text: str) -> str:
        if self._key_kept is None:
            self._key_kept = bytes.fromhex(self._workspace.setting_or("cookie-key", secrets.token_hex(32)))
        return hmac.new(
            self._key_kept, f"{use}\0{text}".encode("utf-8", "replace"), hashlib.sha256
        ).hexdigest()

    # ------------------------------------------------------------------ passwords

    def _hash(self, name: str, password: str) -> str:
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise UserError("A password has at least 12 characters. A sentence is easy to keep in mind.")
        if name in password.lower() or len(set(password)) < 5:
            raise UserError("This password is too easy to guess. A sentence is easy to keep in mind.")
        with self._turns:
            return self._hasher.hash(password)

    def _is_password(self, hashed: str, password: str) -> bool:
        with self._turns:
            try:
                return self._hasher.verify(hashed, password[:LONGEST_PASSWORD])
            except (VerificationError, InvalidHashError):
                return False

    def _lock(self, failures: int) -> datetime | None:
        if failures < PATIENCE:
            return None
        steps = min(failures - PATIENCE, 20)
        lasts: timedelta = min(FIRST_LOCK * 2.0**steps, LONGEST_LOCK)
        return self._now() + lasts


def _stays(account: Account) -> Callable[[Account, int], None]:
    """Refuses what was decided on an account as it was, once that proves itself otherwise or is closed."""
    proofs = (account.password, account.subject, account.active)

    def check(now: Account, _other_admins: int) -> None:
        if (now.password, now.subject, now.active) != proofs:
            raise ConflictError("The account was changed meanwhile.")

    return check


def _keep_an_admin(stays: bool) -> Callable[[Account, int], None]:
    def check(account: Account, other_admins: int) -> None:
        if account.role is Role.ADMIN and account.active and not stays and not other_admins:
            raise UserError("This is the last admin. Make somebody else admin first.")

    return check


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _attempt_digest(name: str) -> str:
    return _digest(f"attempt {name}")
