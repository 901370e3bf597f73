"""How many cells a release newly hides because few changed in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("release") as table:
        table.add_column(sa.Column("telltale", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("release") as table:
        table.drop_column("telltale")
