"""Wires the adapters once: which storage, which cube engine, for which publication."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.db.store import Store, open_store
from app.domain.errors import OperatorError, UserError

DATABASE_VARIABLE = "CELOSIA_DATABASE_URL"


def store_url(folder: Path) -> str:
    """Where a publication's state lives: the database of the environment, or a file in its folder."""
    return os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{folder / '.celosia' / 'celosia.sqlite3'}"


@contextmanager
def publication_store(folder: Path) -> Iterator[Store]:
    """The open store of a publication folder.

    Raises
    ------
    UserError
        ``folder`` is no publication.
    OperatorError
        The storage can't be reached or written.
    """
    if not (folder / "publication.toml").is_file():
        raise UserError(
            f"{folder} is no publication: it has no publication.toml. Start one with: celosia init {folder}"
        )
    try:
        (folder / ".celosia").mkdir(exist_ok=True)
    except OSError as error:
        raise OperatorError(f"Can't write into {folder}: {error.strerror}.") from error
    store = open_store(store_url(folder))
    try:
        yield store
    finally:
        store.close()
