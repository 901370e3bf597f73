"""The life of a release: approval, embargo, withdrawal; what it made known; its certificate."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_OLD = "state in ('draft', 'live', 'superseded')"
_NEW = "state in ('draft', 'audited', 'approved', 'scheduled', 'live', 'superseded', 'withdrawn')"


def upgrade() -> None:
    with op.batch_alter_table("release") as table:
        table.drop_constraint("ck_release_state", type_="check")
        table.create_check_constraint("ck_release_state", _NEW)
        table.add_column(sa.Column("version", sa.Integer, nullable=False, server_default="1"))
        table.add_column(sa.Column("made_by", sa.String(200), nullable=False, server_default=""))
        table.add_column(sa.Column("four_eyes", sa.Boolean, nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("made_from", sa.String(64), nullable=False, server_default=""))
        table.add_column(sa.Column("basis", sa.JSON, nullable=False, server_default="[]"))
        table.add_column(sa.Column("approved_by", sa.String(200)))
        table.add_column(sa.Column("approved", sa.DateTime(timezone=True)))
        table.add_column(sa.Column("embargo", sa.DateTime(timezone=True)))
        table.add_column(sa.Column("first_live", sa.DateTime(timezone=True)))
        table.add_column(sa.Column("ended", sa.DateTime(timezone=True)))
        table.add_column(sa.Column("reason", sa.Text, nullable=False, server_default=""))
        table.add_column(sa.Column("forgotten", sa.Boolean, nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("pruned", sa.Boolean, nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("certificate", sa.Text))
        table.create_check_constraint("ck_release_embargo", "state <> 'scheduled' or embargo is not null")
    op.execute("update release set first_live = created where state <> 'draft'")
    op.create_table(
        "release_knowledge",
        sa.Column("release_id", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release_id", name="pk_release_knowledge"),
        sa.ForeignKeyConstraint(
            ["release_id"], ["release.id"], name="fk_release_knowledge_release_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "fact_snapshot",
        sa.Column("cube", sa.String(400), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("cube", "fingerprint", name="pk_fact_snapshot"),
    )


def downgrade() -> None:
    op.drop_table("fact_snapshot")
    op.drop_table("release_knowledge")
    with op.batch_alter_table("release") as table:
        table.drop_constraint("ck_release_embargo", type_="check")
        table.drop_constraint("ck_release_state", type_="check")
    op.execute("update release set state = 'draft' where state in ('audited', 'approved', 'scheduled')")
    op.execute("update release set state = 'superseded' where state = 'withdrawn'")
    with op.batch_alter_table("release") as table:
        table.create_check_constraint("ck_release_state", _OLD)
        for column in (
            "version", "made_by", "four_eyes", "made_from", "basis", "approved_by", "approved", "embargo",
            "first_live", "ended", "reason", "forgotten", "pruned", "certificate",
        ):  # fmt: skip
            table.drop_column(column)
