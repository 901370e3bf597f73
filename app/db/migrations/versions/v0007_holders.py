"""Who uploaded a file, person by person; drafts that are thrown away keep their number."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_OLD = "state in ('draft', 'current', 'past')"
_NEW = "state in ('draft', 'current', 'past', 'discarded')"


def upgrade() -> None:
    op.create_table(
        "upload_holder",
        sa.Column("upload_digest", sa.String(64), nullable=False),
        sa.Column("person", sa.String(200), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("upload_digest", "person", name="pk_upload_holder"),
        sa.ForeignKeyConstraint(
            ["upload_digest"],
            ["upload.digest"],
            name="fk_upload_holder_upload_digest",
            ondelete="CASCADE",
        ),
    )
    op.execute(
        "insert into upload_holder (upload_digest, person, name) select digest, author, name from upload"
    )
    _states(_NEW)


def downgrade() -> None:
    op.execute("delete from version where state = 'discarded'")
    _states(_OLD)
    op.drop_table("upload_holder")


def _states(condition: str) -> None:
    with op.batch_alter_table("version") as table:
        table.drop_constraint("ck_version_state", type_="check")
        table.create_check_constraint("ck_version_state", condition)
