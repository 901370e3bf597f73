"""Storage on SQLite and PostgreSQL: releases, results of the pipeline's steps, jobs."""

from app.db.store import Store, open_store

__all__ = ["Store", "open_store"]
