"""Wires the office's use cases over the storage of one publication."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.bootstrap import publication_store
from app.bootstrap.engines import open_cube
from app.db.jobs import JobTable
from app.db.journal import JournalStore
from app.db.people import PeopleStore
from app.db.store import Store
from app.db.workspace import WorkspaceStore
from app.domain.errors import UserError
from app.domain.people import Role, command_line
from app.office.drafting import Drafting
from app.office.jobs import Jobs
from app.office.journal import Journal, Verdict
from app.office.office import Office
from app.office.people import People
from app.office.previews import Previews
from app.office.protection import Protection
from app.office.releases import Releases
from app.office.settings import Settings
from app.office.single_sign_on import SingleSignOn, provider_of
from app.office.versions import Versions


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
    journal = Journal(JournalStore(store.database))
    settings = Settings(workspace, journal)
    provider = provider_of(os.environ)
    state = folder / ".celosia"
    versions = Versions(workspace, state / "uploads")
    return Office(
        folder=folder,
        store=store,
        journal=journal,
        people=People(PeopleStore(store.database), workspace, journal),
        jobs=Jobs(JobTable(store.database), store, journal),
        settings=settings,
        versions=versions,
        drafting=Drafting(versions, journal),
        single_sign_on=None if provider is None else SingleSignOn(provider),
        previews=Previews(versions, store, settings, open_cube, state / "drafts"),
        releases=Releases(store, journal),
        protection=Protection(folder, store, versions, journal, open_cube),
    )


def take_in_folder(office: Office, user: str) -> str:
    """Make the folder's own files the first version if there is none yet; gives what kept it from that."""
    actor = command_line(user)
    if office.versions.current() is not None or not (office.folder / "publication.toml").is_file():
        return ""
    try:
        with office.journal.together():
            version = office.versions.import_folder(office.folder, actor.name)
            facts = {"message": version.message}
            subject = f"version {version.id}"
            office.journal.record(actor, "version.publish", subject, None, facts, "command line")
    except UserError as error:
        return str(error)
    return ""


def add_account(folder: Path, user: str, name: str, role: Role, password: str | None) -> bool:
    """A new account, made on the machine itself; so begins every office. Gives whether there is an admin."""
    with open_office(folder) as office:
        office.people.add(command_line(user), name, role, password, "command line")
        return any(item.role is Role.ADMIN and item.active for item in office.people.accounts())


def verify_log(folder: Path, head: str = "") -> Verdict:
    """Walk the whole chain of a publication's journal."""
    with open_office(folder) as office:
        return office.journal.verify(head)
