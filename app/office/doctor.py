"""What may be wrong with an installation: looked at one by one, each with what to do about it."""

from __future__ import annotations

import resource
import shutil
import tempfile
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import sqlalchemy as sa
from babel import Locale, UnknownLocaleError

from app.db.clock import database_now
from app.db.database import Database
from app.db.engine import current_revision, head_revision
from app.db.jobs import JobTable
from app.db.store import Store
from app.domain.errors import CelosiaError
from app.office.journal import Journal
from app.pipeline.selftest import solver_works

_GIGA = 1 << 30
_LITTLE, _HARDLY = 1.0, 0.1
_CLOCKS_APART = 5.0
_FILES = 1024


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """What one look found, and what to do where it isn't ok."""

    name: str
    state: State
    words: str
    remedy: str = ""


def _ok(name: str, words: str) -> Finding:
    return Finding(name, State.OK, words)


@dataclass(frozen=True)
class Patient:
    """What is looked at; ``folder`` None: a database alone. ``files`` must be there, by what they are."""

    folder: Path | None
    store: Store
    journal: Journal
    files: Mapping[str, Path]
    environment: Mapping[str, str]

    @property
    def database(self) -> Database:
        return self.store.database


def examine(patient: Patient) -> Iterator[Finding]:
    """All looks, in order; one that breaks is a finding itself."""
    for name, look in LOOKS.items():
        try:
            yield from look(name, patient)
        except (CelosiaError, OSError, sa.exc.SQLAlchemyError) as error:
            words = str(error) if isinstance(error, CelosiaError) else type(error).__name__
            yield Finding(name, State.FAILED, words, "Mend that first.")


def _database(name: str, patient: Patient) -> Iterator[Finding]:
    engine = patient.database.engine
    revision, head = current_revision(engine), head_revision()
    if revision != head:
        yield Finding(
            name, State.FAILED, f"tables are at revision {revision}, not {head}", "Start any command once."
        )
        return
    if engine.dialect.name == "sqlite":
        with patient.database.reading() as connection:
            broken = connection.exec_driver_sql("PRAGMA quick_check").scalars().all()
        if broken != ["ok"]:
            yield Finding(name, State.FAILED, "the file is damaged", "Restore a backup into a new file.")
            return
    version = ".".join(map(str, engine.dialect.server_version_info or ()))
    yield _ok(name, f"{engine.dialect.name} {version}".strip() + f", revision {revision}")


def _writing(name: str, patient: Patient) -> Iterator[Finding]:
    with patient.database.writing() as connection:
        connection.execute(sa.text("create temporary table celosia_doctor (a integer)"))
        connection.execute(sa.text("drop table celosia_doctor"))
    yield _ok(name, "the database takes what is written")


def _clocks(name: str, patient: Patient) -> Iterator[Finding]:
    before = datetime.now(UTC)
    with patient.database.reading() as connection:
        told = connection.execute(sa.select(database_now())).scalar_one()
    after = datetime.now(UTC)
    apart = max((before - told).total_seconds(), (told - after).total_seconds(), 0.0)
    if apart > _CLOCKS_APART:
        words = f"this machine and the database's differ by {apart:.0f} s"
        yield Finding(name, State.WARNING, words, "Keep both by NTP: embargoes go by a clock.")
    else:
        yield _ok(name, "this machine and the database's agree")


def _disk(name: str, patient: Patient) -> Iterator[Finding]:
    places = {"temporary files": Path(tempfile.gettempdir())}
    if patient.folder is not None:
        places["the publication"] = patient.folder
    for what, place in places.items():
        free = shutil.disk_usage(place).free / _GIGA
        words = f"{free:.1f} GB free for {what}"
        if free < _HARDLY:
            yield Finding(name, State.FAILED, words, "Make room: nothing can be computed like this.")
        elif free < _LITTLE:
            yield Finding(name, State.WARNING, words, "Make room before the next run.")
        else:
            yield _ok(name, words)


def _rights(name: str, patient: Patient) -> Iterator[Finding]:
    if patient.folder is None:
        yield _ok(name, "no folder: the database holds everything")
        return
    state = patient.folder / ".celosia"
    mode = state.stat().st_mode & 0o777
    if mode & 0o077:
        words = f"others on this machine may look into {state} ({mode:o}), which holds hidden numbers"
        yield Finding(name, State.WARNING, words, f"chmod 700 {state}")
    else:
        yield _ok(name, f"{state} is its owner's alone")


def _temporary(name: str, patient: Patient) -> Iterator[Finding]:
    with tempfile.NamedTemporaryFile(prefix="celosia-doctor-") as file:
        yield _ok(name, f"workers may write into {Path(file.name).parent}")


def _open_files(name: str, patient: Patient) -> Iterator[Finding]:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        yield Finding(name, State.WARNING, f"at most {soft} open files", f"ulimit -n {_FILES} or more")
    else:
        yield _ok(name, f"up to {soft} open files")


def _solver(name: str, patient: Patient) -> Iterator[Finding]:
    if solver_works():
        yield _ok(name, "a small problem is solved, proven and audited")
    else:
        yield Finding(name, State.FAILED, "the small problem isn't solved right", "Install it again.")


def _locales(name: str, patient: Patient) -> Iterator[Finding]:
    try:
        for language in ("en", "es", "ca"):
            Locale.parse(language)
        zoneinfo.ZoneInfo("Europe/Madrid")
    except (UnknownLocaleError, zoneinfo.ZoneInfoNotFoundError) as error:
        yield Finding(name, State.FAILED, f"{error} isn't known here", "Install tzdata and babel again.")
    else:
        yield _ok(name, "languages and time zones are known")


def _files(name: str, patient: Patient) -> Iterator[Finding]:
    lost = [what for what, path in patient.files.items() if not path.exists()]
    if lost:
        yield Finding(name, State.FAILED, f"lost: {', '.join(lost)}", "Install it again.")
    else:
        yield _ok(name, ", ".join(patient.files))


def _journal(name: str, patient: Patient) -> Iterator[Finding]:
    verdict = patient.journal.verify()
    if verdict.ok:
        yield _ok(name, f"{verdict.entries} entries, unbroken")
    else:
        words = f"broken at entry {verdict.broken_at}: it isn't what was written"
        yield Finding(
            name, State.FAILED, words, "Find out who wrote into the database, and restore a backup."
        )


def _release(name: str, patient: Patient) -> Iterator[Finding]:
    release = patient.store.live_release()
    if release is None:
        yield Finding(name, State.WARNING, "none is live: the public sees nothing", "Publish one.")
    else:
        yield _ok(name, f"{release.id} is live, {len(release.keys):,} cells")


def _jobs(name: str, patient: Patient) -> Iterator[Finding]:
    counts = JobTable(patient.database).counts()
    words = f"{counts['queued']} waiting, {counts['running']} running, {counts['failed']} failed"
    if counts["queued"] and not counts["running"]:
        yield Finding(name, State.WARNING, words, "Jobs wait and nobody works: start celosia worker.")
    else:
        yield _ok(name, words)


def _address(name: str, patient: Patient) -> Iterator[Finding]:
    url = patient.environment.get("CELOSIA_PUBLIC_URL", "")
    if url.startswith("https://"):
        yield _ok(name, url)
    elif url:
        yield Finding(name, State.WARNING, f"{url} isn't HTTPS", "Passwords travel readable: use HTTPS.")
    else:
        words = "CELOSIA_PUBLIC_URL isn't set"
        yield Finding(name, State.WARNING, words, "Set it before others than this machine use the site.")


#: Every look by its name.
LOOKS: Mapping[str, Callable[[str, Patient], Iterator[Finding]]] = {
    "database": _database,
    "writing": _writing,
    "clocks": _clocks,
    "disk": _disk,
    "rights": _rights,
    "temporary files": _temporary,
    "open files": _open_files,
    "solver": _solver,
    "languages": _locales,
    "files": _files,
    "journal": _journal,
    "release": _release,
    "jobs": _jobs,
    "address": _address,
}
