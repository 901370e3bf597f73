"""A queue of jobs with leases and events; results of steps by scope."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_BEFORE = "state in ('running', 'done', 'failed', 'lost')"
_AFTER = "state in ('queued', 'running', 'done', 'failed', 'cancelled', 'lost')"


def upgrade() -> None:
    with op.batch_alter_table("step") as step:
        step.add_column(sa.Column("scope", sa.String(80), nullable=False, server_default=""))
        step.drop_constraint("pk_step", type_="primary")
        step.create_primary_key("pk_step", ["scope", "name"])
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("version", sa.Integer))
        job.add_column(sa.Column("scope", sa.String(80), nullable=False, server_default=""))
        job.add_column(sa.Column("options", sa.JSON, nullable=False, server_default="{}"))
        job.add_column(sa.Column("author", sa.String(200), nullable=False, server_default=""))
        job.add_column(sa.Column("submitted", _MOMENT))
        job.add_column(sa.Column("worker", sa.String(200), nullable=False, server_default=""))
        job.add_column(sa.Column("token", sa.String(32)))
        job.add_column(sa.Column("lease", _MOMENT))
        job.add_column(sa.Column("attempt", sa.Integer, nullable=False, server_default="0"))
        job.add_column(sa.Column("cancel", sa.Boolean, nullable=False, server_default=sa.false()))
        job.add_column(sa.Column("figures", sa.JSON))
        job.alter_column("started", existing_type=_MOMENT, nullable=True)
        job.drop_constraint("ck_job_state", type_="check")
        job.create_check_constraint("ck_job_state", _AFTER)
    op.execute("update job set submitted = started")
    # At most the last one can still be under way: a run holds the right to run alone.
    op.execute(
        "update job set state = 'lost' where state = 'running' and id < (select max(id) from job as newer)"
    )
    with op.batch_alter_table("job") as job:
        job.alter_column("submitted", existing_type=_MOMENT, nullable=False)
    running = sa.text("state = 'running'")
    op.create_index(
        "uq_job_running_scope", "job", ["scope"], unique=True, sqlite_where=running, postgresql_where=running
    )
    op.create_index("ix_job_state", "job", ["state"])
    op.create_table(
        "job_event",
        sa.Column("job_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("step", sa.String(32), nullable=False, server_default=""),
        sa.Column("done", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("total", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("message", sa.Text, nullable=False, server_default=""),
        sa.Column("lower", sa.Double),
        sa.Column("upper", sa.Double),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_job_event"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_event_job_id", ondelete="CASCADE"),
        sa.CheckConstraint("kind in ('state', 'progress', 'log')", name="ck_job_event_kind"),
    )


def downgrade() -> None:
    op.drop_table("job_event")
    op.drop_index("ix_job_state", "job")
    op.drop_index("uq_job_running_scope", "job")
    op.execute("delete from job where started is null")
    op.execute("update job set state = 'lost' where state in ('queued', 'cancelled')")
    with op.batch_alter_table("job") as job:
        job.drop_constraint("ck_job_state", type_="check")
        job.create_check_constraint("ck_job_state", _BEFORE)
        job.alter_column("started", existing_type=_MOMENT, nullable=False)
        for name in (
            "version", "scope", "options", "author", "submitted", "worker",
            "token", "lease", "attempt", "cancel", "figures",
        ):  # fmt: skip
            job.drop_column(name)
    # A step's name is its key again: results of other scopes can be computed anew.
    op.execute("delete from step where scope <> ''")
    with op.batch_alter_table("step") as step:
        step.drop_constraint("pk_step", type_="primary")
        step.drop_column("scope")
        step.create_primary_key("pk_step", ["name"])
