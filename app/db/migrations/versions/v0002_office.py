"""The office: accounts, sessions, tokens, settings, journal, versions of the publication, uploads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password", sa.Text),
        sa.Column("subject", sa.String(500)),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("locked_until", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_account"),
        sa.UniqueConstraint("name", name="uq_account_name"),
        sa.UniqueConstraint("subject", name="uq_account_subject"),
        sa.CheckConstraint("role in ('analyst', 'admin', 'auditor')", name="ck_account_role"),
    )
    op.create_table(
        "session",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("seen", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_session"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name="fk_session_account_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT),
        sa.Column("used", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_token"),
        sa.UniqueConstraint("digest", name="uq_token_digest"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name="fk_token_account_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "setting",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_setting"),
    )
    op.create_table(
        "journal",
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("moment", sa.String(40), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("origin", sa.String(200), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_journal"),
        sa.UniqueConstraint("digest", name="uq_journal_digest"),
    )
    _forbid_changes()
    _create_versions()


def _create_versions() -> None:
    op.create_table(
        "text_body",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_text_body"),
    )
    op.create_table(
        "upload",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_upload"),
    )
    op.create_table(
        "upload_chunk",
        sa.Column("upload_digest", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("upload_digest", "number", name="pk_upload_chunk"),
        sa.ForeignKeyConstraint(
            ["upload_digest"], ["upload.digest"], name="fk_upload_chunk_upload_digest", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "version",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("parent", sa.Integer),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("author", sa.String(200), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_version"),
        sa.ForeignKeyConstraint(["parent"], ["version.id"], name="fk_version_parent"),
        sa.CheckConstraint("state in ('draft', 'current', 'past')", name="ck_version_state"),
    )
    current = sa.text("state = 'current'")
    op.create_index(
        "uq_version_current",
        "version",
        ["state"],
        unique=True,
        sqlite_where=current,
        postgresql_where=current,
    )
    op.create_table(
        "version_file",
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("path", sa.String(400), nullable=False),
        sa.Column("text_digest", sa.String(64)),
        sa.Column("upload_digest", sa.String(64)),
        sa.PrimaryKeyConstraint("version_id", "path", name="pk_version_file"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["version.id"], name="fk_version_file_version_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["text_digest"], ["text_body.digest"], name="fk_version_file_text_digest"),
        sa.ForeignKeyConstraint(["upload_digest"], ["upload.digest"], name="fk_version_file_upload_digest"),
        sa.CheckConstraint(
            "(text_digest is null) <> (upload_digest is null)", name="ck_version_file_one_content"
        ),
    )


def _forbid_changes() -> None:
    """The journal only grows: the database refuses to change or delete a row of it."""
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("update", "delete"):
            op.execute(
                f"create trigger journal_no_{verb} before {verb} on journal "
                "begin select raise(abort, 'the journal only grows'); end"
            )
        return
    op.execute(
        "create function journal_only_grows() returns trigger language plpgsql as "
        "$$ begin raise exception 'the journal only grows'; end $$"
    )
    op.execute(
        "create trigger journal_only_grows before update or delete or truncate on journal "
        "for each statement execute function journal_only_grows()"
    )


def downgrade() -> None:
    for table in ("version_file", "version", "upload_chunk", "upload", "text_body"):
        op.drop_table(table)
    op.drop_table("journal")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("drop function journal_only_grows()")
    for table in ("setting", "token", "session", "account"):
        op.drop_table(table)
