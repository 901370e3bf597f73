"""Wires the office's use cases over the storage of one publication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.bootstrap import publication_store
from app.db.journal import JournalStore
from app.db.store import Store
from app.db.workspace import WorkspaceStore
from app.office.journal import Journal, Verdict
from app.office.versions import Versions


@dataclass(frozen=True)
class Office:
    """Everything that the office's side works with; made by `open_office`."""

    folder: Path
    store: Store
    journal: Journal
    versions: Versions


@contextmanager
def open_office(folder: Path) -> Iterator[Office]:
    """The office of a publication folder, which may be new.

    Raises
    ------
    OperatorError
        The storage can't be reached or written.
    """
    with publication_store(folder, new=True) as store:
        yield make_office(folder, store)


def make_office(folder: Path, store: Store) -> Office:
    """The office over a store that is open already."""
    workspace = WorkspaceStore(store.database)
    return Office(
        folder=folder,
        store=store,
        journal=Journal(JournalStore(store.database)),
        versions=Versions(workspace, folder / ".celosia" / "uploads"),
    )


def verify_log(folder: Path, head: str = "") -> Verdict:
    """Walk the whole chain of a publication's journal."""
    with open_office(folder) as office:
        return office.journal.verify(head)
