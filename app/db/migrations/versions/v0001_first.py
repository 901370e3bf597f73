"""Releases, steps, jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "release",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fingerprints", sa.JSON, nullable=False),
        sa.Column("catalogue", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_release"),
        sa.CheckConstraint("state in ('draft', 'live', 'superseded')", name="ck_release_state"),
    )
    live = sa.text("state = 'live'")
    op.create_index(
        "uq_release_live", "release", ["state"], unique=True, sqlite_where=live, postgresql_where=live
    )
    op.create_table(
        "release_cell",
        sa.Column("release_id", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("value", sa.Double),
        sa.PrimaryKeyConstraint("release_id", "number", name="pk_release_cell"),
        sa.ForeignKeyConstraint(
            ["release_id"], ["release.id"], name="fk_release_cell_release_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint("status in (0, 1, 2)", name="ck_release_cell_status"),
        sa.CheckConstraint(
            "(status = 0) = (value is not null)", name="ck_release_cell_value_only_where_shown"
        ),
    )
    op.create_table(
        "release_layout",
        sa.Column("release_id", sa.String(32), nullable=False),
        sa.Column("sheet_id", sa.String(400), nullable=False),
        sa.Column("query_id", sa.String(200), nullable=False),
        sa.Column("choice", sa.String(1000), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release_id", "sheet_id", "query_id", "choice", name="pk_release_layout"),
        sa.ForeignKeyConstraint(
            ["release_id"], ["release.id"], name="fk_release_layout_release_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "step",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("input_digest", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_step"),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True)),
        sa.Column("step", sa.String(32), nullable=False, server_default=""),
        sa.Column("done", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("total", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("message", sa.Text, nullable=False, server_default=""),
        sa.Column("lower", sa.Double),
        sa.Column("upper", sa.Double),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.CheckConstraint("state in ('running', 'done', 'failed', 'lost')", name="ck_job_state"),
    )


def downgrade() -> None:
    for table in ("job", "step", "release_layout", "release_cell", "release"):
        op.drop_table(table)
