"""Refused sign-ins are counted by name, whether or not there is such an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("latest", sa.DateTime(timezone=True), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("digest", name="pk_attempt"),
    )
    with op.batch_alter_table("account") as account:
        account.drop_column("failures")
        account.drop_column("locked_until")


def downgrade() -> None:
    with op.batch_alter_table("account") as account:
        account.add_column(sa.Column("failures", sa.Integer, nullable=False, server_default="0"))
        account.add_column(sa.Column("locked_until", sa.DateTime(timezone=True)))
    op.drop_table("attempt")
