"""The tables. A released cell that isn't shown can't have a value: the database itself refuses it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from app.domain.errors import InternalError


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A moment with time zone, kept in UTC on every database."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise InternalError("a moment without time zone can't be stored")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

release = sa.Table(
    "release",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("fingerprints", sa.JSON, nullable=False),
    sa.Column("catalogue", sa.LargeBinary, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("made_by", sa.String(200), nullable=False, server_default=""),
    sa.Column("four_eyes", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("made_from", sa.String(64), nullable=False, server_default=""),
    sa.Column("basis", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("approved_by", sa.String(200)),
    sa.Column("approved", UtcDateTime),
    sa.Column("embargo", UtcDateTime),
    sa.Column("first_live", UtcDateTime),
    sa.Column("ended", UtcDateTime),
    sa.Column("reason", sa.Text, nullable=False, server_default=""),
    sa.Column("forgotten", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("pruned", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("certificate", sa.Text),
    sa.Column("telltale", sa.Integer, nullable=False, server_default="0"),
    sa.CheckConstraint(
        "state in ('draft', 'audited', 'approved', 'scheduled', 'live', 'superseded', 'withdrawn')",
        name="state",
    ),
    sa.CheckConstraint("state <> 'scheduled' or embargo is not null", name="embargo"),
)
sa.Index(
    "uq_release_live",
    release.c.state,
    unique=True,
    sqlite_where=release.c.state == "live",
    postgresql_where=release.c.state == "live",
)

release_cell = sa.Table(
    "release_cell",
    metadata,
    sa.Column("release_id", sa.ForeignKey("release.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    sa.Column("value", sa.Double),
    sa.CheckConstraint("status in (0, 1, 2)", name="status"),
    sa.CheckConstraint("(status = 0) = (value is not null)", name="value_only_where_shown"),
)

release_layout = sa.Table(
    "release_layout",
    metadata,
    sa.Column("release_id", sa.ForeignKey("release.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("sheet_id", sa.String(400), primary_key=True),
    sa.Column("query_id", sa.String(200), primary_key=True),
    sa.Column("choice", sa.String(1000), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: What a release made known, and over which data: kept for as long as anybody may remember it.
release_knowledge = sa.Table(
    "release_knowledge",
    metadata,
    sa.Column("release_id", sa.ForeignKey("release.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

fact_snapshot = sa.Table(
    "fact_snapshot",
    metadata,
    sa.Column("cube", sa.String(400), primary_key=True),
    sa.Column("fingerprint", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

step = sa.Table(
    "step",
    metadata,
    sa.Column("scope", sa.String(80), primary_key=True, server_default=""),
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("input_digest", sa.String(64), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("summary", sa.JSON, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
)

#: A job of the queue has a token while a worker holds it; a run of the command line never has one.
job = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("version", sa.Integer),
    sa.Column("scope", sa.String(80), nullable=False, server_default=""),
    sa.Column("options", sa.JSON, nullable=False, server_default="{}"),
    sa.Column("author", sa.String(200), nullable=False, server_default=""),
    sa.Column("submitted", UtcDateTime, nullable=False),
    sa.Column("started", UtcDateTime),
    sa.Column("finished", UtcDateTime),
    sa.Column("worker", sa.String(200), nullable=False, server_default=""),
    sa.Column("token", sa.String(32)),
    sa.Column("lease", UtcDateTime),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("cancel", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("step", sa.String(32), nullable=False, server_default=""),
    sa.Column("done", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("total", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("message", sa.Text, nullable=False, server_default=""),
    sa.Column("lower", sa.Double),
    sa.Column("upper", sa.Double),
    sa.Column("figures", sa.JSON),
    sa.Column("error", sa.Text),
    sa.CheckConstraint("state in ('queued', 'running', 'done', 'failed', 'cancelled', 'lost')", name="state"),
)
#: Two jobs never work in one scope at the same time: the database itself refuses it.
sa.Index(
    "uq_job_running_scope",
    job.c.scope,
    unique=True,
    sqlite_where=job.c.state == "running",
    postgresql_where=job.c.state == "running",
)
sa.Index("ix_job_state", job.c.state)

job_event = sa.Table(
    "job_event",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("step", sa.String(32), nullable=False, server_default=""),
    sa.Column("done", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("total", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("message", sa.Text, nullable=False, server_default=""),
    sa.Column("lower", sa.Double),
    sa.Column("upper", sa.Double),
    sa.CheckConstraint("kind in ('state', 'progress', 'log')", name="kind"),
)

# ---------------------------------------------------------------------- the office

account = sa.Table(
    "account",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(100), nullable=False, unique=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("password", sa.Text),
    sa.Column("subject", sa.String(500), unique=True),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.CheckConstraint("role in ('analyst', 'admin', 'auditor')", name="role"),
)

#: Refused sign-ins by a digest of the name that was tried, whether or not there is such an account.
attempt = sa.Table(
    "attempt",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("latest", UtcDateTime, nullable=False),
    sa.Column("locked_until", UtcDateTime),
)

#: Only the hash of what the cookie holds is kept, so that a copy of the database signs nobody in.
session = sa.Table(
    "session",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("seen", UtcDateTime, nullable=False),
    sa.Column("expires", UtcDateTime, nullable=False),
)

token = sa.Table(
    "token",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("expires", UtcDateTime),
    sa.Column("used", UtcDateTime),
)

#: Options of the workspace, and the key that signs its cookies.
setting = sa.Table(
    "setting",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

#: Append-only, by triggers: each row's digest is over its own content and the digest before.
journal = sa.Table(
    "journal",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("moment", sa.String(40), nullable=False),
    sa.Column("actor", sa.String(200), nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("before", sa.Text, nullable=False),
    sa.Column("after", sa.Text, nullable=False),
    sa.Column("origin", sa.String(200), nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
)

text_body = sa.Table(
    "text_body",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

upload = sa.Table(
    "upload",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("author", sa.String(200), nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
)

upload_chunk = sa.Table(
    "upload_chunk",
    metadata,
    sa.Column("upload_digest", sa.ForeignKey("upload.digest", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: Who uploaded a file, and what each called it: its bytes are kept once.
upload_holder = sa.Table(
    "upload_holder",
    metadata,
    sa.Column("upload_digest", sa.ForeignKey("upload.digest", ondelete="CASCADE"), primary_key=True),
    sa.Column("person", sa.String(200), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
)

version = sa.Table(
    "version",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("parent", sa.ForeignKey("version.id")),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("author", sa.String(200), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.CheckConstraint("state in ('draft', 'current', 'past', 'discarded')", name="state"),
)
sa.Index(
    "uq_version_current",
    version.c.state,
    unique=True,
    sqlite_where=version.c.state == "current",
    postgresql_where=version.c.state == "current",
)

version_file = sa.Table(
    "version_file",
    metadata,
    sa.Column("version_id", sa.ForeignKey("version.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("path", sa.String(400), primary_key=True),
    sa.Column("text_digest", sa.ForeignKey("text_body.digest")),
    sa.Column("upload_digest", sa.ForeignKey("upload.digest")),
    sa.CheckConstraint("(text_digest is null) <> (upload_digest is null)", name="one_content"),
)
