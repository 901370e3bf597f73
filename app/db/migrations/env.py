"""Runs migrations over the connection that `app.db.engine.migrate` hands in."""

from __future__ import annotations

from alembic import context

from app.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
