"""Rows of releases as records, within a transaction."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.domain.errors import UserError
from app.domain.release_life import ReleaseRecord, ReleaseState

_COLUMNS = tuple(
    t.release.c[name]
    for name in (
        "id", "state", "version", "created", "made_by", "four_eyes", "made_from", "basis", "approved_by",
        "approved", "embargo", "first_live", "ended", "reason", "forgotten", "pruned", "telltale",
    )
)  # fmt: skip


def records(connection: sa.Connection) -> tuple[ReleaseRecord, ...]:
    """Every release, newest first."""
    rows = connection.execute(sa.select(*_COLUMNS).order_by(t.release.c.created.desc(), t.release.c.id)).all()
    return tuple(_from_row(row) for row in rows)


def record_of(connection: sa.Connection, release_id: str) -> ReleaseRecord:
    """A release by id.

    Raises
    ------
    UserError
        When there is none.
    """
    row = connection.execute(sa.select(*_COLUMNS).where(t.release.c.id == release_id)).one_or_none()
    if row is None:
        raise UserError(f"There is no release {release_id}. See them with: celosia releases list D")
    return _from_row(row)


def _from_row(row: sa.Row[Any]) -> ReleaseRecord:
    values = dict(row._mapping)
    return ReleaseRecord(**{**values, "state": ReleaseState(row.state), "basis": tuple(row.basis)})


def live_id(connection: sa.Connection) -> str | None:
    """Id of the release whose state is live."""
    return connection.scalar(sa.select(t.release.c.id).where(t.release.c.state == str(ReleaseState.LIVE)))
