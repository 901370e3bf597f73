"""The database's own clock: the only one that machines which share it can agree on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from app.db.tables import UtcDateTime

#: What time it is: asked within a transaction.
Clock = Callable[[sa.Connection], datetime]


class database_now(FunctionElement[datetime]):  # noqa: N801 (used as an SQL function)
    """The moment by the database's clock, or ``seconds`` after it."""

    type = UtcDateTime()
    inherit_cache = False

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = float(seconds)
        super().__init__()


@compiles(database_now, "sqlite")
def _sqlite_now(element: database_now, _compiler: Any, **_: Any) -> str:
    # As SQLAlchemy writes moments, so that they compare as texts.
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', '{element.seconds:+.3f} seconds') || '000')"


@compiles(database_now, "postgresql")
def _postgresql_now(element: database_now, _compiler: Any, **_: Any) -> str:
    return f"(clock_timestamp() + interval '{element.seconds:.3f} seconds')"


def database_clock(connection: sa.Connection) -> datetime:
    """What the database's clock says now."""
    moment = connection.scalar(sa.select(database_now()))
    assert isinstance(moment, datetime)
    return moment.astimezone(UTC)
