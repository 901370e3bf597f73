"""Accounts, sessions, API tokens and refused sign-ins, over one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.db.database import Database
from app.domain.errors import UserError
from app.domain.people import Permission, Role, scopes_of

FORGET_ATTEMPTS = timedelta(days=1)
SEEN_STEP = timedelta(minutes=1)


@dataclass(frozen=True)
class Account:
    """An account; ``password`` is an argon2 hash, None where only single sign-on leads in."""

    id: int
    name: str
    role: Role
    password: str | None
    subject: str | None
    active: bool
    created: datetime

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {self.role})"


@dataclass(frozen=True)
class Session:
    """A session; only the digest of its cookie is known."""

    digest: str
    account_id: int
    created: datetime
    seen: datetime
    expires: datetime


@dataclass(frozen=True)
class Token:
    """An API token; only the digest of its text is known."""

    id: int
    account_id: int
    name: str
    digest: str
    scopes: frozenset[Permission]
    created: datetime
    expires: datetime | None
    used: datetime | None


@dataclass(frozen=True)
class Attempt:
    """Refused sign-ins under a name, of which only a digest is kept."""

    failures: int
    locked_until: datetime | None


class PeopleStore:
    """Rows about people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ------------------------------------------------------------------ accounts

    def accounts(self) -> tuple[Account, ...]:
        """Every account, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(t.account).order_by(t.account.c.name)).all()
        return tuple(_account(row) for row in rows)

    def account(self, identity: int) -> Account | None:
        return self._account(t.account.c.id == identity)

    def account_named(self, name: str) -> Account | None:
        return self._account(t.account.c.name == name)

    def account_of_subject(self, subject: str) -> Account | None:
        """The account that single sign-on knows as ``subject``."""
        return self._account(t.account.c.subject == subject)

    def _account(self, condition: sa.ColumnElement[bool]) -> Account | None:
        with self._database.reading() as connection:
            row = connection.execute(sa.select(t.account).where(condition)).one_or_none()
        return None if row is None else _account(row)

    def add_account(self, name: str, role: Role, password: str | None, created: datetime) -> Account:
        """A new account.

        Raises
        ------
        UserError
            If the name is taken.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table account in share row exclusive mode"))
            if connection.scalar(sa.select(t.account.c.id).where(t.account.c.name == name)) is not None:
                raise UserError(f"There is an account {name} already. Choose another name.")
            result = connection.execute(
                sa.insert(t.account).values(
                    name=name, role=str(role), password=password, active=True, created=created
                )
            )
            identity = int(result.inserted_primary_key[0])  # type: ignore[index]
        return Account(identity, name, role, password, None, True, created)

    def change_account(self, identity: int, may: Callable[[Account, int], None], **values: Any) -> Account:
        """Change an account, once ``may`` has seen it and the number of other admins that are active.

        A change of role, password or activity ends the account's sessions.

        Raises
        ------
        UserError
            If there is no such account, or what ``may`` raises.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table account in share row exclusive mode"))
            row = connection.execute(sa.select(t.account).where(t.account.c.id == identity)).one_or_none()
            if row is None:
                raise UserError("There is no such account.")
            others = sa.select(sa.func.count()).where(
                t.account.c.role == str(Role.ADMIN), t.account.c.active, t.account.c.id != identity
            )
            may(_account(row), int(connection.scalar(others) or 0))
            connection.execute(sa.update(t.account).where(t.account.c.id == identity).values(**values))
            if values.keys() & {"role", "password", "active"}:
                connection.execute(sa.delete(t.session).where(t.session.c.account_id == identity))
            changed = connection.execute(sa.select(t.account).where(t.account.c.id == identity)).one()
        return _account(changed)

    # ------------------------------------------------------------------ sessions

    def add_session(self, session: Session, may: Callable[[Account, int], None]) -> None:
        """A new session, once ``may`` has seen its account; those that are over are forgotten.

        Raises
        ------
        UserError
            What ``may`` raises.
        """
        owner = sa.select(t.account).where(t.account.c.id == session.account_id).with_for_update()
        with self._database.writing() as connection:
            may(_account(connection.execute(owner).one()), 0)
            connection.execute(sa.delete(t.session).where(t.session.c.expires < session.created))
            connection.execute(sa.insert(t.session).values(**vars(session)))

    def session(self, digest: str, now: datetime) -> tuple[Session, Account] | None:
        """A session with its account, once it is noted that it was seen."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(t.session).where(t.session.c.digest == digest)).one_or_none()
            if row is None:
                return None
            owner = connection.execute(sa.select(t.account).where(t.account.c.id == row.account_id)).one()
        session = Session(**row._mapping)
        if now - session.seen >= SEEN_STEP:
            with self._database.writing() as connection:
                connection.execute(sa.update(t.session).where(t.session.c.digest == digest).values(seen=now))
        return session, _account(owner)

    def drop_session(self, digest: str) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.delete(t.session).where(t.session.c.digest == digest))

    # ------------------------------------------------------------------ tokens

    def add_token(
        self,
        account_id: int,
        name: str,
        digest: str,
        scopes: frozenset[Permission],
        created: datetime,
        expires: datetime | None,
    ) -> Token:
        values = {
            "account_id": account_id,
            "name": name,
            "digest": digest,
            "scopes": sorted(map(str, scopes)),
            "created": created,
            "expires": expires,
        }
        with self._database.writing() as connection:
            result = connection.execute(sa.insert(t.token).values(**values))
            identity = int(result.inserted_primary_key[0])  # type: ignore[index]
        return Token(identity, account_id, name, digest, scopes, created, expires, None)

    def tokens(self, account_id: int) -> tuple[Token, ...]:
        """Tokens of an account, newest first."""
        query = sa.select(t.token).where(t.token.c.account_id == account_id).order_by(t.token.c.id.desc())
        with self._database.reading() as connection:
            return tuple(_token(row) for row in connection.execute(query))

    def token(self, digest: str, now: datetime) -> tuple[Token, Account] | None:
        """A token with its account, once it is noted that it was used."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(t.token).where(t.token.c.digest == digest)).one_or_none()
            if row is None:
                return None
            owner = connection.execute(sa.select(t.account).where(t.account.c.id == row.account_id)).one()
        token = _token(row)
        if token.used is None or now - token.used >= SEEN_STEP:
            with self._database.writing() as connection:
                connection.execute(sa.update(t.token).where(t.token.c.id == token.id).values(used=now))
        return token, _account(owner)

    def drop_token(self, account_id: int, identity: int) -> Token:
        """Revoke a token of an account.

        Raises
        ------
        UserError
            If it has no such token.
        """
        with self._database.writing() as connection:
            condition = (t.token.c.id == identity) & (t.token.c.account_id == account_id)
            row = connection.execute(sa.select(t.token).where(condition)).one_or_none()
            if row is None:
                raise UserError("There is no such token.")
            connection.execute(sa.delete(t.token).where(condition))
        return _token(row)

    # ------------------------------------------------------------------ refused sign-ins

    def attempt(self, digest: str) -> Attempt:
        """What was refused under a name."""
        columns = t.attempt.c
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(columns.failures, columns.locked_until).where(columns.digest == digest)
            ).one_or_none()
        return Attempt(0, None) if row is None else Attempt(row.failures, row.locked_until)

    def note_attempt(self, digest: str, now: datetime, lock: Callable[[int], datetime | None]) -> Attempt:
        """Count one more refusal; ``lock`` says until when that many lock the name."""
        columns = t.attempt.c
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table attempt in share row exclusive mode"))
            connection.execute(sa.delete(t.attempt).where(columns.latest < now - FORGET_ATTEMPTS))
            before = connection.scalar(sa.select(columns.failures).where(columns.digest == digest)) or 0
            until = lock(before + 1)
            connection.execute(sa.delete(t.attempt).where(columns.digest == digest))
            connection.execute(
                sa.insert(t.attempt).values(
                    digest=digest, failures=before + 1, latest=now, locked_until=until
                )
            )
        return Attempt(before + 1, until)

    def forget_attempts(self, digest: str) -> None:
        """A sign-in succeeded, or an admin unlocks the name."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(t.attempt).where(t.attempt.c.digest == digest))


def _account(row: sa.Row[Any]) -> Account:
    return Account(row.id, row.name, Role(row.role), row.password, row.subject, row.active, row.created)


def _token(row: sa.Row[Any]) -> Token:
    scopes = scopes_of(row.scopes)
    return Token(row.id, row.account_id, row.name, row.digest, scopes, row.created, row.expires, row.used)
