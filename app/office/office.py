"""The office: everything that its side works with, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.db.store import Store
from app.office.drafting import Drafting
from app.office.jobs import Jobs
from app.office.journal import Journal
from app.office.people import People
from app.office.previews import Previews
from app.office.protection import Protection
from app.office.releases import Releases
from app.office.settings import Settings
from app.office.single_sign_on import SingleSignOn
from app.office.versions import Versions


@dataclass(frozen=True)
class Office:
    """The use cases over one publication's storage; `app.bootstrap.office` makes it."""

    folder: Path
    store: Store
    journal: Journal
    people: People
    settings: Settings
    versions: Versions
    jobs: Jobs
    drafting: Drafting
    previews: Previews
    releases: Releases
    protection: Protection
    single_sign_on: SingleSignOn | None = None
