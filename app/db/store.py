"""The store: everything that Celosia keeps between two commands."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import sqlalchemy as sa

from app.db import tables as t
from app.db.clock import Clock, database_clock, database_now
from app.db.codec import Codec, digest_of
from app.db.database import Database
from app.db.engine import connect, migrate
from app.db.jobs import JobTable
from app.db.releases import Making, ReleaseBook
from app.domain import catalogue as catalogue_types
from app.domain import cube, masked, places, publication, shapes
from app.domain.catalogue import Catalogue
from app.domain.crawled import Address
from app.domain.errors import InternalError, OperatorError, UserError
from app.domain.history import ReleaseMark
from app.domain.job import Job
from app.domain.masked import Layout
from app.domain.progress import StepProgress
from app.domain.release import Release
from app.domain.release_life import ReleaseRecord, ReleaseState

T = TypeVar("T")

#: Classes that a released catalogue or layout is made of.
RELEASED_CLASSES: tuple[type, ...] = (
    catalogue_types.Catalogue,
    masked.Axis,
    masked.AxisMember,
    masked.CellStyle,
    masked.Layout,
    cube.Cube,
    cube.Cuts,
    cube.Hierarchy,
    cube.Level,
    cube.Measure,
    places.Places,
    publication.CalculatedDefinition,
    publication.Contact,
    publication.Folder,
    publication.MeasureProtection,
    publication.NamedSetDefinition,
    publication.Parameter,
    publication.Position,
    publication.QueryDefinition,
    publication.RuleDefinition,
    publication.Sheet,
    publication.Theme,
    shapes.Shapes,
)

RELEASED = Codec(RELEASED_CLASSES)

#: A release that knows of no other, shown at once.
ALONE = Making()
#: Bytes of a text that a key has room for beside the others.
_LONGEST_CHOICE = 500


@dataclass(frozen=True)
class StepResult:
    """What the store keeps of a finished step; ``body`` is the step's encoded value."""

    name: str
    input_digest: str
    digest: str
    body: bytes
    summary: Mapping[str, Any]
    seconds: float


class DamagedResultError(OperatorError):
    """What is stored of a step isn't what was written; the step can be run again."""


def open_store(url: str, clock: Clock = database_clock) -> Store:
    """Open the database at a SQLAlchemy URL and bring its tables up to date; ``clock`` decides embargoes.

    Raises
    ------
    OperatorError
        If it can't be reached, written or migrated.
    """
    engine = connect(url)
    migrate(engine)
    return Store(Database(engine), clock)


#: Called first in every writing transaction; raises when the writer's right to write has passed on.
Fence = Callable[[sa.Connection], None]


class Store:
    """Releases, results of steps and runs over one database. Made by `open_store`.

    Results of steps belong to a scope, one line of work: commands work in the scope ``""``, each job of the
    queue in that of its version, so that jobs at the same time don't overwrite one another's results.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock = database_clock,
        scope: str = "",
        fence: Fence | None = None,
    ) -> None:
        self.database = database
        self.book = ReleaseBook(database, clock)
        self._engine = database.engine
        self._reading = database.reading
        self.scope = scope
        self._fence = fence
        self._cells: tuple[str, tuple[str, ...], np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = None

    def close(self) -> None:
        self.database.close()

    def scoped(self, scope: str, fence: Fence | None = None) -> Store:
        """The same database in another scope; ``fence`` stands before everything that it writes."""
        return Store(self.database, self.book.clock, scope, fence)

    def of_last_run(self) -> Store:
        """The scope in which a step was finished last; this one before there is any."""
        with self._reading() as connection:
            scope = connection.scalar(sa.select(t.step.c.scope).order_by(t.step.c.created.desc()).limit(1))
        return self if scope is None or scope == self.scope else self.scoped(scope)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self.database.writing() as connection:
            if self._fence is not None:
                self._fence(connection)
            yield connection

    # ------------------------------------------------------------------ read side: releases

    def live_release_id(self) -> str | None:
        """Id of the live release, None when there is none."""
        return self.book.live_id()

    def live_release(self) -> Release | None:
        """The live release, None when there is none."""
        release_id = self.live_release_id()
        return None if release_id is None else self.release(release_id)

    def releases(self) -> tuple[ReleaseMark, ...]:
        """Every release as readers may know of it, oldest first."""
        return tuple(_mark(record) for record in reversed(self.book.present()))

    def release(self, release_id: str) -> Release | None:
        """A release by id, None when there is no such."""
        with self._reading() as connection:
            found = connection.execute(
                sa.select(t.release.c.state, t.release.c.created, t.release.c.fingerprints).where(
                    t.release.c.id == release_id
                )
            ).one_or_none()
            if found is None:
                return None
            cells = self._cells
            if cells is None or cells[0] != release_id:
                columns = t.release_cell.c
                rows = connection.execute(
                    sa.select(columns.key, columns.status, columns.value, columns.number)
                    .where(columns.release_id == release_id)
                    .order_by(columns.number)
                ).all()
                if any(row[3] != place for place, row in enumerate(rows)):
                    raise OperatorError(f"Cells of release {release_id} are lost. Make it again.")
                keys = tuple(row[0] for row in rows)
                status = np.fromiter((row[1] for row in rows), dtype=np.int8, count=len(rows))
                values = np.array([row[2] for row in rows], dtype=np.float64)
                self._cells = cells = (release_id, keys, status, values)
        return Release(
            id=release_id,
            state=found.state,
            created=found.created,
            fingerprints=found.fingerprints,
            keys=cells[1],
            status=cells[2],
            values=cells[3],
        )

    def layout(
        self, release_id: str, sheet_id: str, query_id: str, choice: Sequence[str] = ()
    ) -> Layout | None:
        """Layout of a query for one choice of its sheet's parameters; None when not released."""
        columns = t.release_layout.c
        with self._reading() as connection:
            body = connection.scalar(
                sa.select(columns.body).where(
                    columns.release_id == release_id,
                    columns.sheet_id == sheet_id,
                    columns.query_id == query_id,
                    columns.choice.in_({_choice_key(choice), _choice_text(choice)}),
                )
            )
        return None if body is None else _expect(Layout, RELEASED.decode(body))

    def catalogue(self, release_id: str) -> Catalogue | None:
        """What the release says about itself; None when there is no such release."""
        columns = t.release.c
        with self._reading() as connection:
            found = connection.execute(
                sa.select(columns.catalogue, columns.first_live).where(columns.id == release_id)
            ).one_or_none()
        if found is None or not found.catalogue:
            return None
        catalogue = _expect(Catalogue, RELEASED.decode(found.catalogue))
        # It was written down when the release was made: under an embargo, days before readers saw it.
        return replace(catalogue, released=found.first_live) if found.first_live else catalogue

    def certificate(self, release_id: str) -> str | None:
        """The text of a release's certificate."""
        return self.book.certificate(release_id)

    # ------------------------------------------------------------------ write side: releases

    def publish(
        self,
        release: Release,
        catalogue: Catalogue,
        layouts: Mapping[Address, Layout],
        result: StepResult,
        making: Making = ALONE,
        spent: Callable[[], float] | None = None,
    ) -> None:
        """Keep an audited release, with the step result that says so; live at once if that is wanted.

        Whole or not at all. ``spent`` says how many seconds the step has taken, once all else is written; the
        result's own are kept when it is None.

        Raises
        ------
        OperatorError
            If the database can't take it; nothing has changed then.
        """
        cells = [
            {"release_id": release.id, "number": number, "key": key, "status": status, "value": value}
            for number, (key, status, value) in enumerate(
                zip(
                    release.keys,
                    release.status.tolist(),
                    (None if math.isnan(value) else value for value in release.values.tolist()),
                    strict=True,
                )
            )
        ]
        bodies = [
            {
                "release_id": release.id,
                "sheet_id": sheet_id,
                "query_id": query_id,
                "choice": _choice_key(choice),
                "body": RELEASED.encode(layout),
            }
            for (sheet_id, query_id, choice), layout in layouts.items()
        ]
        with self._writing() as connection:
            connection.execute(
                sa.insert(t.release).values(
                    id=release.id,
                    state=str(ReleaseState.AUDITED),
                    created=release.created,
                    fingerprints=dict(release.fingerprints),
                    catalogue=RELEASED.encode(catalogue),
                    made_by=making.by,
                    made_from=making.made_from,
                    basis=list(making.basis),
                    certificate=making.certificate,
                    telltale=making.telltale,
                )
            )
            if cells:
                connection.execute(sa.insert(t.release_cell), cells)
            if bodies:
                connection.execute(sa.insert(t.release_layout), bodies)
            self.book.put(connection, release.id, making)
            self._put_step(connection, result if spent is None else replace(result, seconds=spent()))

    # ------------------------------------------------------------------ steps

    def step(self, name: str) -> StepResult | None:
        """The last result of a step.

        Raises
        ------
        DamagedResultError
            If what is stored isn't what was written.
        """
        with self._reading() as connection:
            row = connection.execute(sa.select(t.step).where(self._mine, t.step.c.name == name)).one_or_none()
        if row is None:
            return None
        if digest_of(row.body) != row.digest:
            raise DamagedResultError(f"The stored result of step {name} is damaged. Run that step again.")
        return StepResult(row.name, row.input_digest, row.digest, row.body, row.summary, row.seconds)

    def put_step(self, result: StepResult) -> None:
        """Keep a step's result in place of its last one, and forget those of the steps after it."""
        with self._writing() as connection:
            self._put_step(connection, result)

    def forget_steps(self, names: Sequence[str]) -> None:
        """Forget the results of these steps."""
        with self._writing() as connection:
            connection.execute(sa.delete(t.step).where(self._mine, t.step.c.name.in_(list(names))))

    def scopes(self) -> Mapping[str, StepResult | None]:
        """All scopes, that of the last finished step first, each with its result of ``release`` if any."""
        last = sa.func.max(t.step.c.created)
        with self._reading() as connection:
            names = sa.select(t.step.c.scope).group_by(t.step.c.scope).order_by(last.desc())
            found = connection.scalars(names).all()
        return {name: self.scoped(name).step("release") for name in found}

    def forget_scope(self, scope: str) -> None:
        """Forget all results of a scope."""
        with self._writing() as connection:
            connection.execute(sa.delete(t.step).where(t.step.c.scope == scope))

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        return t.step.c.scope == self.scope

    def _put_step(self, connection: sa.Connection, result: StepResult) -> None:
        order = STEP_ORDER.index(result.name)
        connection.execute(sa.delete(t.step).where(self._mine, t.step.c.position >= order))
        connection.execute(
            sa.insert(t.step).values(
                scope=self.scope,
                name=result.name,
                position=order,
                input_digest=result.input_digest,
                digest=result.digest,
                body=result.body,
                summary=dict(result.summary),
                seconds=result.seconds,
                created=datetime.now(UTC),
            )
        )

    def status(self) -> dict[str, Any]:
        """Figures of the live release and of this scope's run, as `celosia status --json` prints them."""
        with self._reading() as connection:
            live = connection.execute(
                sa.select(t.release.c.id, t.release.c.state, t.release.c.created).where(
                    t.release.c.state == "live"
                )
            ).one_or_none()
            steps = connection.execute(
                sa.select(t.step.c.name, t.step.c.summary, t.step.c.seconds)
                .where(self._mine)
                .order_by(t.step.c.position)
            ).all()
        status: dict[str, Any] = {
            "release": None
            if live is None
            else {"id": live.id, "state": live.state, "created": live.created.isoformat()},
        }
        status |= dict.fromkeys(STATUS_KEYS)
        for row in steps:
            status |= row.summary
        status["seconds"] = {row.name: row.seconds for row in steps}
        return status

    # ------------------------------------------------------------------ jobs

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the right to run the pipeline; it ends with the process, however that ends.

        Raises
        ------
        UserError
            If another process holds it.
        """
        busy = UserError("Another run of this publication is under way. Wait for it, or stop it.")
        if self._engine.dialect.name == "sqlite":
            path = Path(f"{self._engine.url.database}.lock")
            with _opened(path) as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise busy from None
                self._mark_lost_jobs()
                yield
        else:
            with self._reading() as connection:
                if not connection.scalar(sa.text("select pg_try_advisory_lock(:key)"), {"key": LOCK_KEY}):
                    raise busy
                connection.commit()
                try:
                    self._mark_lost_jobs()
                    yield
                finally:
                    # A session that the server lost has given it back already.
                    with suppress(sa.exc.SQLAlchemyError):
                        connection.scalar(sa.text("select pg_advisory_unlock(:key)"), {"key": LOCK_KEY})

    def start_job(self) -> int:
        """Note that a run begins; returns its number."""
        with self._writing() as connection:
            result = connection.execute(
                sa.insert(t.job).values(state="running", submitted=database_now(), started=database_now())
            )
        return int(result.inserted_primary_key[0])  # type: ignore[index]

    def report(self, job_id: int, progress: StepProgress) -> None:
        """Note how far a job has come."""
        with self._writing() as connection:
            connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == job_id)
                .values(
                    step=progress.step,
                    done=progress.done,
                    total=progress.total,
                    message=progress.message,
                    lower=_number(progress.lower),
                    upper=_number(progress.upper),
                )
            )

    def finish_job(self, job_id: int, error: str | None = None) -> None:
        """Note that a job is over, and why if it failed."""
        with self._writing() as connection:
            connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == job_id)
                .values(state="failed" if error else "done", finished=database_now(), error=error)
            )

    def jobs(self, limit: int = 20) -> tuple[Job, ...]:
        """The last jobs and runs, newest first."""
        return JobTable(self.database).jobs(limit)

    def _mark_lost_jobs(self) -> None:
        with self._writing() as connection:
            connection.execute(
                sa.update(t.job)
                .where(t.job.c.state == "running", t.job.c.token.is_(None))
                .values(state="lost", finished=database_now())
            )


#: What `Store.status` always has, None until a run has found it out.
STATUS_KEYS = (
    "cells",
    "implied_cells",
    "equations",
    "problems",
    "primaries",
    "implied_primaries",
    "secondaries",
    "lowered_levels",
    "hidden_share",
    "exposures",
    "cost",
    "lower_bound",
    "telltale",
)

LOCK_KEY = 0x43454C4F534941


def _opened(path: Path) -> IO[str]:
    try:
        return path.open("a")
    except OSError as error:
        raise OperatorError(f"File {path} can't be written: {error.strerror}.") from error


#: The pipeline's steps in order; a new result of one makes those after it worthless.
STEP_ORDER = ("crawl", "assess", "build", "suppress", "audit", "release")


def _mark(record: ReleaseRecord) -> ReleaseMark:
    """A release that never was public is nobody's business, and one without cells can't be read again."""
    state = record.state if record.first_live else ReleaseState.DRAFT
    return ReleaseMark(
        record.id,
        str(ReleaseState.WITHDRAWN if record.pruned and record.first_live else state),
        record.first_live or record.created,
    )


def _expect(cls: type[T], value: object) -> T:
    if not isinstance(value, cls):
        raise InternalError(f"expected a stored {cls.__name__}, found {type(value).__name__}")
    return value


def _choice_text(choice: Sequence[str]) -> str:
    return json.dumps(list(choice), ensure_ascii=False)


def _choice_key(choice: Sequence[str]) -> str:
    """What a choice is found by: its text, or a digest of one that no index can hold.

    SQLite took texts of any length, and older releases there have them.
    """
    body = _choice_text(choice).encode()
    return body.decode() if len(body) <= _LONGEST_CHOICE else hashlib.sha256(body).hexdigest()


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
