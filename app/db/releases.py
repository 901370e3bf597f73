"""The book of releases: where each stands, and every move from one state to the next.

Each move is one transaction under one lock, and names the version of the release that it was decided on, so
that of two people who decide at once the second is told. What moves stands in the journal by the same
transaction, whoever moved it: people in the studio, the command line, a run, or an embargo that passed. The
database's clock decides about embargoes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.db.clock import Clock, database_clock
from app.db.database import Database
from app.db.journal import Note, write_note
from app.db.release_rows import live_id, record_of, records
from app.domain.errors import ConflictError, OperatorError, UserError
from app.domain.people import EMBARGO
from app.domain.release_life import (
    WAITING,
    ReleaseAction,
    ReleaseRecord,
    ReleaseState,
    Trail,
    check_embargo,
)

log = logging.getLogger("celosia.releases")

#: Key of the PostgreSQL lock under which releases move.
MOVE_LOCK = 0x43454C52454C
#: Seconds until a scheduled release that couldn't be switched on is tried again.
RETRY_SECONDS = 5.0


#: The office's setting about approval.
FOUR_EYES = "four-eyes"


@dataclass(frozen=True)
class Making:
    """How a release came about.

    Attributes
    ----------
    by : str
        Who had it computed.
    made_from : str
        Digest of the pattern.
    basis : tuple of str
        Releases that its audit took as known.
    live : bool
        Approve it at once and show it, unless somebody else has to approve it.
    keep : int
        Releases taken down whose cells are kept, so that they can be shown again.
    knowledge : bytes
        What it makes known, encoded.
    snapshots : mapping of (cube, fingerprint) to bytes
        The facts that it was made from, encoded.
    certificate : str or None
    trail : Trail, optional
        What the journal says of its making; ``by`` when left out.
    telltale : int
        As in `ReleaseRecord`. A release that has any isn't shown at once unless ``accepted``.
    accepted : bool
        Whoever wants it shown accepts what its pattern tells.
    """

    by: str = "operator"
    made_from: str = ""
    basis: tuple[str, ...] = ()
    live: bool = True
    keep: int = 10
    knowledge: bytes = b""
    snapshots: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    certificate: str | None = None
    trail: Trail | None = None
    telltale: int = 0
    accepted: bool = False


@dataclass(frozen=True)
class _Deed:
    """A move as it is recorded: its name in the journal, who decided it, who made it from where, and more."""

    action: str
    actor: str
    trail: Trail
    facts: Mapping[str, object] = field(default_factory=dict)


class ReleaseBook:
    """States of releases over one database; see `app.db.store.Store` for their cells.

    Parameters
    ----------
    database : Database
    clock : callable
        What time it is, by a connection.
    """

    def __init__(self, database: Database, clock: Clock = database_clock) -> None:
        self._database = database
        self.clock = clock
        self._retry = float("-inf")

    # ------------------------------------------------------------------ reading

    def all(self) -> tuple[ReleaseRecord, ...]:
        """Every release, newest first."""
        with self._database.reading() as connection:
            return records(connection)

    def get(self, release_id: str) -> ReleaseRecord:
        """A release by id.

        Raises
        ------
        UserError
            When there is none.
        """
        with self._database.reading() as connection:
            return record_of(connection, release_id)

    def now(self) -> datetime:
        """The time by the clock that decides."""
        with self._database.reading() as connection:
            return self.clock(connection)

    def live_id(self) -> str | None:
        """Id of the release that is live now."""
        return next((record.id for record in self.present() if record.state is ReleaseState.LIVE), None)

    def present(self) -> tuple[ReleaseRecord, ...]:
        """Every release, newest first; one whose embargo has passed goes live before it is told."""
        with self._database.reading() as connection:
            known = records(connection)
            waiting = [record.embargo for record in known if record.state is ReleaseState.SCHEDULED]
            due = any(waiting) and min(filter(None, waiting)) <= self.clock(connection)
        if not due or monotonic() < self._retry:
            return known
        try:
            self.release_due()
        except OperatorError as error:
            # What is live stays so: an old release is better than none, and gives nothing new away.
            log.error("a scheduled release couldn't be switched on: %s", error)
            self._retry = monotonic() + RETRY_SECONDS
            return known
        return self.all()

    def certificate(self, release_id: str) -> str | None:
        """The text of a release's certificate, None when it has none or there is no such release."""
        with self._database.reading() as connection:
            return connection.scalar(sa.select(t.release.c.certificate).where(t.release.c.id == release_id))

    def knowledge(self, release_id: str) -> bytes | None:
        """What a release made known, as it was encoded."""
        columns = t.release_knowledge.c
        with self._database.reading() as connection:
            return connection.scalar(sa.select(columns.body).where(columns.release_id == release_id))

    def snapshot(self, cube: str, fingerprint: str) -> bytes | None:
        """The facts that a release was made from, as they were encoded."""
        columns = t.fact_snapshot.c
        with self._database.reading() as connection:
            return connection.scalar(
                sa.select(columns.body).where(columns.cube == cube, columns.fingerprint == fingerprint)
            )

    def has_snapshot(self, cube: str, fingerprint: str) -> bool:
        """Whether the facts of a release are kept."""
        columns = t.fact_snapshot.c
        query = sa.select(columns.cube).where(columns.cube == cube, columns.fingerprint == fingerprint)
        with self._database.reading() as connection:
            return connection.scalar(query) is not None

    # ------------------------------------------------------------------ moves

    def approve(
        self,
        release_id: str,
        version: int,
        actor: str,
        *,
        accepted: bool = False,
        trail: Trail | None = None,
    ) -> ReleaseRecord:
        """Say that an audited release may be shown, and, if it is so, that its telltale cells are accepted.

        Raises
        ------
        UserError
            If it can't be moved so, or somebody moved it since ``version``; as of every move.
        """
        return self._move(
            release_id,
            version,
            ReleaseAction.APPROVE,
            actor,
            trail,
            lambda record, now: {"approved_by": actor, "approved": now},
            accepted=accepted,
        )

    def revoke(
        self, release_id: str, version: int, actor: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Take an approval back."""
        return self._move(
            release_id,
            version,
            ReleaseAction.REVOKE,
            actor,
            trail,
            lambda record, now: {"approved_by": None, "approved": None, "embargo": None},
        )

    def schedule(
        self, release_id: str, version: int, actor: str, embargo: datetime, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Let an approved release go live by itself at a moment."""

        def values(record: ReleaseRecord, now: datetime) -> Mapping[str, Any]:
            check_embargo(embargo, now)
            return {"embargo": embargo}

        return self._move(release_id, version, ReleaseAction.SCHEDULE, actor, trail, values)

    def unschedule(
        self, release_id: str, version: int, actor: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Let a scheduled release wait for a new decision."""
        return self._move(
            release_id, version, ReleaseAction.UNSCHEDULE, actor, trail, lambda record, now: {"embargo": None}
        )

    def publish(
        self, release_id: str, version: int, actor: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Show an approved release now, in place of the live one."""
        return self._move(release_id, version, ReleaseAction.PUBLISH, actor, trail)

    def roll_back(
        self, release_id: str, version: int, actor: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Show an earlier release again: nothing in it is new to anybody."""
        return self._move(release_id, version, ReleaseAction.ROLL_BACK, actor, trail)

    def withdraw(
        self, release_id: str, version: int, actor: str, reason: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Take a release down for good, or never show it."""
        if not reason.strip():
            raise UserError("A withdrawal needs a reason: it is kept with the release.")
        return self._move(
            release_id,
            version,
            ReleaseAction.WITHDRAW,
            actor,
            trail,
            lambda record, now: {
                "reason": reason.strip(),
                "embargo": None,
                "ended": now if record.state is ReleaseState.LIVE else record.ended,
            },
        )

    def forget(
        self, release_id: str, version: int, actor: str, reason: str, *, trail: Trail | None = None
    ) -> ReleaseRecord:
        """Decide that what a release showed needn't count as known, because nobody can have seen it."""
        if not reason.strip():
            raise UserError("To forget what a release showed needs a reason: it is kept with the release.")
        with self._database.writing() as connection:
            _lock(connection)
            record = self._current(connection, release_id, version)
            if record.state is ReleaseState.LIVE:
                raise UserError(f"Release {release_id} is live: everybody can see it.")
            deed = _Deed("forget", actor, trail or Trail(actor))
            values = {"forgotten": True, "reason": reason.strip()}
            return self._write(connection, record, record.state, deed, values)

    def release_due(self) -> str | None:
        """Make scheduled releases live whose embargo has passed; the id of the one that is live then."""
        with self._database.writing() as connection:
            _lock(connection)
            now = self.clock(connection)
            due = [
                record
                for record in records(connection)
                if record.state is ReleaseState.SCHEDULED and record.embargo and record.embargo <= now
            ]
            deed = _Deed(str(ReleaseAction.PUBLISH), EMBARGO, Trail(EMBARGO, "the database's clock"))
            for record in sorted(due, key=lambda item: (item.embargo, item.created)):
                current = record_of(connection, record.id)
                if current.state is ReleaseState.SCHEDULED:
                    self._go_live(connection, current, deed, now)
            return live_id(connection)

    def put(self, connection: sa.Connection, release_id: str, making: Making) -> None:
        """Complete a row just written: as audited, and live when that is wanted and allowed."""
        _lock(connection)
        four_eyes = _four_eyes(connection)
        trail = making.trail or Trail(making.by)
        connection.execute(
            sa.update(t.release).where(t.release.c.id == release_id).values(four_eyes=four_eyes)
        )
        connection.execute(
            sa.insert(t.release_knowledge).values(release_id=release_id, body=making.knowledge)
        )
        for (cube, fingerprint), body in making.snapshots.items():
            columns = t.fact_snapshot.c
            known = sa.select(columns.cube).where(columns.cube == cube, columns.fingerprint == fingerprint)
            if connection.scalar(known) is None:
                connection.execute(
                    sa.insert(t.fact_snapshot).values(cube=cube, fingerprint=fingerprint, body=body)
                )
        made: dict[str, object] = {"state": str(ReleaseState.AUDITED), "basis": list(making.basis)}
        if making.telltale:
            made["telltale"] = making.telltale
        note = Note(trail.who, "release.make", release_id, {}, made, trail.origin)
        write_note(connection, note, self.clock(connection))
        if making.live and not four_eyes and (making.accepted or not making.telltale):
            record = record_of(connection, release_id)
            if not _basis_holds(connection, record):
                raise UserError(
                    "Another release was shown while this one was computed: together they might give "
                    "somebody away. Nothing was published. Run the pipeline again."
                )
            now = self.clock(connection)
            approved = self._write(
                connection,
                record,
                ReleaseState.APPROVED,
                _Deed(str(ReleaseAction.APPROVE), making.by, trail, _accepted(record)),
                {"approved_by": making.by, "approved": now},
            )
            self._go_live(connection, approved, _Deed(str(ReleaseAction.PUBLISH), making.by, trail), now)
        _prune(connection, making.keep)

    # ------------------------------------------------------------------ how a move is made

    def _move(
        self,
        release_id: str,
        version: int,
        action: ReleaseAction,
        actor: str,
        trail: Trail | None,
        values: Callable[[ReleaseRecord, datetime], Mapping[str, Any]] = lambda record, now: {},
        accepted: bool = False,
    ) -> ReleaseRecord:
        with self._database.writing() as connection:
            _lock(connection)
            record = self._current(connection, release_id, version)
            record = replace(record, four_eyes=record.four_eyes or _four_eyes(connection))
            target = record.after(action, actor, accepted=accepted)
            now = self.clock(connection)
            deed = _Deed(str(action), actor, trail or Trail(actor), _accepted(record) if accepted else {})
            if target is ReleaseState.LIVE:
                _check_basis(connection, record)
                return self._go_live(connection, record, deed, now)
            if action in (ReleaseAction.APPROVE, ReleaseAction.SCHEDULE):
                _check_basis(connection, record)
            return self._write(connection, record, target, deed, values(record, now))

    def _current(self, connection: sa.Connection, release_id: str, version: int) -> ReleaseRecord:
        record = record_of(connection, release_id)
        if record.version != version:
            raise ConflictError(
                f"Release {release_id} was changed meanwhile: it is {record.state} now. "
                "Look at it again before you decide."
            )
        return record

    def _go_live(
        self, connection: sa.Connection, record: ReleaseRecord, deed: _Deed, now: datetime
    ) -> ReleaseRecord:
        outdated = replace(deed, action="outdate")
        if not _basis_holds(connection, record):
            return self._write(connection, record, ReleaseState.DRAFT, outdated, _UNDECIDED)
        for other in records(connection):
            if other.state is ReleaseState.LIVE:
                superseded = replace(deed, action="supersede")
                self._write(connection, other, ReleaseState.SUPERSEDED, superseded, {"ended": now})
        shown = self._write(
            connection,
            record,
            ReleaseState.LIVE,
            deed,
            {"first_live": record.first_live or now, "embargo": None},
        )
        for other in records(connection):
            if other.state in WAITING and not _basis_holds(connection, other):
                self._write(connection, other, ReleaseState.DRAFT, outdated, _UNDECIDED)
        return shown

    def _write(
        self,
        connection: sa.Connection,
        record: ReleaseRecord,
        state: ReleaseState,
        deed: _Deed,
        values: Mapping[str, Any],
    ) -> ReleaseRecord:
        connection.execute(
            sa.update(t.release)
            .where(t.release.c.id == record.id)
            .values(state=str(state), version=record.version + 1, **values)
        )
        facts = {name: _fact(value) for name, value in values.items() if value is not None}
        if deed.trail.who != deed.actor:
            facts["by"] = deed.actor.removeprefix(f"{deed.trail.who} for ")
        note = Note(
            deed.trail.who,
            f"release.{deed.action}",
            record.id,
            {"state": str(record.state)},
            {"state": str(state), **facts, **deed.facts},
            deed.trail.origin,
        )
        write_note(connection, note, self.clock(connection))
        return record_of(connection, record.id)


def _accepted(record: ReleaseRecord) -> Mapping[str, object]:
    """What the journal says of telltale cells that somebody accepts."""
    return {"accepted_telltale": record.telltale} if record.telltale else {}


def _fact(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


_UNDECIDED: Mapping[str, Any] = {"approved_by": None, "approved": None, "embargo": None}


def _lock(connection: sa.Connection) -> None:
    """One move at a time: whoever comes second sees what the first one did.

    On SQLite a transaction that writes is alone from its beginning.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": MOVE_LOCK})


def _four_eyes(connection: sa.Connection) -> bool:
    """The office's option that somebody else has to approve a release."""
    return connection.scalar(sa.select(t.setting.c.value).where(t.setting.c.name == FOUR_EYES)) == "yes"


def _missing(connection: sa.Connection, record: ReleaseRecord) -> set[str]:
    """Releases with another pattern that readers know and the audit of this one didn't take in."""
    known = {
        other.id
        for other in records(connection)
        if other.was_shown and other.id != record.id and not _same_pattern(other, record)
    }
    return known - set(record.basis)


def _same_pattern(one: ReleaseRecord, other: ReleaseRecord) -> bool:
    return one.made_from == other.made_from != ""


def _basis_holds(connection: sa.Connection, record: ReleaseRecord) -> bool:
    # What was shown before is known already, whatever came after it.
    return record.was_shown or not _missing(connection, record)


def _check_basis(connection: sa.Connection, record: ReleaseRecord) -> None:
    if not _basis_holds(connection, record):
        raise UserError(
            f"Release {record.id} was audited before another one was shown: together they might give "
            "somebody away. Run the pipeline again."
        )


def _prune(connection: sa.Connection, keep: int) -> None:
    """Drop cells and layouts of all but the last releases that are over; what they made known stays."""
    over = [
        record
        for record in records(connection)
        if record.state in (ReleaseState.DRAFT, ReleaseState.SUPERSEDED, ReleaseState.WITHDRAWN)
        and not record.pruned
    ]
    for record in over[keep:]:
        for table in (t.release_cell, t.release_layout):
            connection.execute(sa.delete(table).where(table.c.release_id == record.id))
        if record.first_live is None:
            connection.execute(
                sa.delete(t.release_knowledge).where(t.release_knowledge.c.release_id == record.id)
            )
        connection.execute(
            sa.update(t.release)
            .where(t.release.c.id == record.id)
            .values(pruned=True, catalogue=b"", version=record.version + 1)
        )
