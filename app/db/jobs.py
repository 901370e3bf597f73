"""The queue of jobs: one row each, held under a lease that the database's own clock ends.

Whoever claims a job gets a token. Everything that is written in the job's name is written in a transaction
that first renews the row *where the token is still the same*: a worker that was thought dead and comes back
finds its token gone and can write nothing any more, whatever its own clock says.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.db.clock import database_now
from app.db.database import Database, StorageError
from app.domain.errors import CelosiaError, InternalError
from app.domain.job import Beat, Job, JobEvent, JobState, Lease
from app.domain.progress import StepProgress

LEASE_SECONDS = 30.0
#: How many workers may be lost at one step of a job before it is given up.
MAX_ATTEMPTS = 4

_ACTIVE = ("queued", "running")


class LeaseLostError(CelosiaError):
    """Another worker has taken the job over, or it is over: whoever held it must stop."""


class JobTable:
    """Jobs and their events over one database."""

    def __init__(self, database: Database) -> None:
        self._reading = database.reading
        self._writing = database.writing

    # ------------------------------------------------------------------ for those who ask

    def submit(self, version: int | None, scope: str, options: Mapping[str, Any], author: str) -> int:
        """Put a job at the end of the queue; returns its number."""
        if not scope:
            raise InternalError("a job of the queue needs a scope of its own")
        with self._writing() as connection:
            result = connection.execute(
                sa.insert(t.job).values(
                    state="queued",
                    version=version,
                    scope=scope,
                    options=dict(options),
                    author=author,
                    submitted=database_now(),
                )
            )
            job_id = int(result.inserted_primary_key[0])  # type: ignore[index]
            _add_event(connection, job_id, "state", StepProgress("", 0, 0, "queued"))
        return job_id

    def cancel(self, job_id: int) -> bool:
        """Ask for a job to be stopped: at once while it waits; false when it was over already."""
        with self._writing() as connection:
            waiting = connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == job_id, t.job.c.state == "queued")
                .values(state="cancelled", finished=database_now(), cancel=True)
            )
            if waiting.rowcount:
                _add_event(connection, job_id, "state", StepProgress("", 0, 0, "cancelled"))
                return True
            running = connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == job_id, t.job.c.state == "running", t.job.c.token.is_not(None))
                .values(cancel=True)
            )
            if running.rowcount:
                _add_event(connection, job_id, "log", StepProgress("", 0, 0, "cancelling"))
            return bool(running.rowcount)

    def retry(self, job_id: int) -> bool:
        """Put a job that failed or was cancelled back into the queue, to go on at the step it had reached."""
        with self._writing() as connection:
            result = connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == job_id, t.job.c.state.in_(("failed", "cancelled")), t.job.c.scope != "")
                .values(state="queued", cancel=False, attempt=0, finished=None, error=None, figures=None)
            )
            if result.rowcount:
                _add_event(connection, job_id, "state", StepProgress("", 0, 0, "queued"))
        return bool(result.rowcount)

    def job(self, job_id: int) -> Job | None:
        with self._reading() as connection:
            row = connection.execute(sa.select(t.job).where(t.job.c.id == job_id)).one_or_none()
        return None if row is None else job_of(row)

    def jobs(self, limit: int = 20, before: int | None = None) -> tuple[Job, ...]:
        """The last jobs, newest first; ``before``: only those with a lower number."""
        query = sa.select(t.job).order_by(t.job.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(t.job.c.id < before)
        with self._reading() as connection:
            return tuple(job_of(row) for row in connection.execute(query))

    def events(self, job_id: int, after: int = 0, limit: int = 1000) -> tuple[JobEvent, ...]:
        """What happened to a job after its event of number ``after``, in order."""
        query = (
            sa.select(t.job_event)
            .where(t.job_event.c.job_id == job_id, t.job_event.c.number > after)
            .order_by(t.job_event.c.number)
            .limit(limit)
        )
        with self._reading() as connection:
            return tuple(
                JobEvent(row.job_id, row.number, row.at, row.kind, _progress_of(row))
                for row in connection.execute(query)
            )

    def seconds_in_step(self, job_id: int) -> float:
        """Seconds, by the database's clock, since a job's present step began."""
        began = (
            sa.select(sa.func.max(t.job_event.c.at))
            .where(t.job_event.c.job_id == job_id, t.job_event.c.message == "begins")
            .scalar_subquery()
        )
        with self._reading() as connection:
            row = connection.execute(sa.select(sa.type_coerce(began, t.UtcDateTime()), database_now())).one()
        return 0.0 if row[0] is None else max((row[1] - row[0]).total_seconds(), 0.0)

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        query = sa.select(t.job.c.state, sa.func.count()).group_by(t.job.c.state)
        with self._reading() as connection:
            found = {state: int(count) for state, count in connection.execute(query)}
        return {state.value: found.get(state.value, 0) for state in JobState}

    def active_scopes(self) -> frozenset[str]:
        """Scopes of jobs that wait or run."""
        query = sa.select(t.job.c.scope).where(t.job.c.state.in_(_ACTIVE))
        with self._reading() as connection:
            return frozenset(connection.scalars(query))

    # ------------------------------------------------------------------ for workers

    def claim(self, worker: str, seconds: float = LEASE_SECONDS, has_folder: bool = True) -> Lease | None:
        """The oldest job that nobody holds, now held by this worker; None when there is none.

        Jobs on a folder's own files are only for workers that have that folder. A job whose lease has run
        out is taken over. Of two workers that ask for the same job one gets it, and a job waits as long as
        another one works in its scope.
        """
        try:
            with self._writing() as connection:
                self._settle(connection)
                return self._take(connection, worker, seconds, has_folder)
        except StorageError as error:
            # Somebody else's job in the same scope began in this very moment: this one waits.
            if isinstance(error.__cause__, sa.exc.IntegrityError):
                return None
            raise

    def _settle(self, connection: sa.Connection) -> None:
        """End the jobs whose workers are lost and which nobody shall take over."""
        expired = (t.job.c.state == "running", t.job.c.lease < database_now())
        for state, wanted, error in (
            ("cancelled", t.job.c.cancel, None),
            ("failed", t.job.c.attempt >= MAX_ATTEMPTS, "Its workers were lost again and again."),
        ):
            ended = connection.scalars(
                sa.update(t.job)
                .where(*expired, wanted)
                .values(state=state, finished=database_now(), token=None, lease=None, error=error)
                .returning(t.job.c.id)
            ).all()
            for job_id in ended:
                _add_event(connection, job_id, "state", StepProgress("", 0, 0, state))

    def _take(self, connection: sa.Connection, worker: str, seconds: float, has_folder: bool) -> Lease | None:
        this, other = t.job.alias("this"), t.job.alias("other")
        busy = (
            sa.select(sa.literal(1))
            .where(other.c.scope == this.c.scope, other.c.state == "running")
            .correlate(this)
            .exists()
        )
        expired = sa.and_(this.c.state == "running", this.c.lease < database_now())
        free = (
            sa.select(this.c.id)
            .where(sa.or_(sa.and_(this.c.state == "queued", ~busy), expired))
            .order_by(this.c.id)
            .limit(1)
            .with_for_update(skip_locked=True, of=this)  # SQLite's writers wait for one another anyway
        )
        if not has_folder:
            free = free.where(this.c.version.is_not(None))
        token = secrets.token_hex(16)
        row = connection.execute(
            sa.update(t.job)
            .where(t.job.c.id == free.scalar_subquery())
            .values(
                state="running",
                worker=worker,
                token=token,
                lease=database_now(seconds),
                attempt=t.job.c.attempt + 1,
                started=sa.func.coalesce(t.job.c.started, database_now()),
            )
            .returning(t.job)
        ).one_or_none()
        if row is None:
            return None
        job = job_of(row)
        message = "running" if job.attempt == 1 else "taken over"
        _add_event(connection, job.id, "state", StepProgress("", 0, 0, message))
        return Lease(job, token)

    def beat(self, lease: Lease, seconds: float = LEASE_SECONDS) -> Beat:
        """Renew a lease. It can be renewed after its end too, as long as nobody has taken the job over."""
        with self._writing() as connection:
            row = connection.execute(
                sa.update(t.job)
                .where(*_held(lease))
                .values(lease=database_now(seconds))
                .returning(t.job.c.cancel)
            ).one_or_none()
        return Beat(row is not None, row is not None and row.cancel)

    def fence(self, lease: Lease) -> Any:
        """What stands before every write in the job's name (`app.db.store.Store.scoped`).

        The callable raises `LeaseLostError` when the job is somebody else's by now.
        """

        def check(connection: sa.Connection) -> None:
            held = connection.execute(
                sa.update(t.job).where(*_held(lease)).values(worker=t.job.c.worker).returning(t.job.c.id)
            ).one_or_none()
            if held is None:
                raise LeaseLostError(f"job {lease.job.id} is another worker's by now")

        return check

    def report(self, lease: Lease, progress: StepProgress) -> None:
        """Note how far a job has come.

        Raises
        ------
        LeaseLostError
        """
        values = _values_of(progress)
        if progress.message == "done":
            values["attempt"] = 1  # A step is behind us: whatever stood in the way of it doesn't count.
        with self._writing() as connection:
            self.fence(lease)(connection)
            connection.execute(sa.update(t.job).where(t.job.c.id == lease.job.id).values(values))
            _add_event(connection, lease.job.id, "progress", progress)

    def log(self, lease: Lease, message: str) -> None:
        """Add a line to a job's log; it must hold no cell value.

        Raises
        ------
        LeaseLostError
        """
        with self._writing() as connection:
            self.fence(lease)(connection)
            _add_event(connection, lease.job.id, "log", StepProgress("", 0, 0, message))

    def finish(
        self,
        lease: Lease,
        state: JobState,
        error: str | None = None,
        figures: Mapping[str, Any] | None = None,
    ) -> None:
        """End a job.

        Raises
        ------
        LeaseLostError
        """
        with self._writing() as connection:
            self.fence(lease)(connection)
            connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == lease.job.id)
                .values(
                    state=state.value,
                    finished=database_now(),
                    error=error,
                    figures=None if figures is None else dict(figures),
                    token=None,
                    lease=None,
                )
            )
            _add_event(connection, lease.job.id, "state", StepProgress("", 0, 0, state.value))

    def hand_back(self, lease: Lease, reason: str, counts: bool) -> None:
        """Put a job back into the queue for another worker; ``counts``: as an attempt that failed.

        Raises
        ------
        LeaseLostError
        """
        with self._writing() as connection:
            self.fence(lease)(connection)
            attempt = t.job.c.attempt if counts else t.job.c.attempt - 1
            connection.execute(
                sa.update(t.job)
                .where(t.job.c.id == lease.job.id)
                .values(state="queued", token=None, lease=None, attempt=attempt)
            )
            _add_event(connection, lease.job.id, "log", StepProgress("", 0, 0, reason))
            _add_event(connection, lease.job.id, "state", StepProgress("", 0, 0, "queued"))


def _held(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    return (t.job.c.id == lease.job.id, t.job.c.state == "running", t.job.c.token == lease.token)


def _add_event(connection: sa.Connection, job_id: int, kind: str, progress: StepProgress) -> None:
    # The job's row is locked by now, so that the numbers have no gap and appear in order.
    number = (
        sa.select(sa.func.coalesce(sa.func.max(t.job_event.c.number), 0) + 1)
        .where(t.job_event.c.job_id == job_id)
        .scalar_subquery()
    )
    connection.execute(
        sa.insert(t.job_event).values(
            job_id=job_id, number=number, at=database_now(), kind=kind, **_values_of(progress)
        )
    )


def _values_of(progress: StepProgress) -> dict[str, Any]:
    return {
        "step": progress.step,
        "done": progress.done,
        "total": progress.total,
        "message": progress.message,
        "lower": progress.lower if math.isfinite(progress.lower) else None,
        "upper": progress.upper if math.isfinite(progress.upper) else None,
    }


def _progress_of(row: Any) -> StepProgress:
    nan = float("nan")
    return StepProgress(
        row.step,
        row.done,
        row.total,
        row.message,
        nan if row.lower is None else row.lower,
        nan if row.upper is None else row.upper,
    )


def job_of(row: Any) -> Job:
    """A job from its row."""
    return Job(
        id=row.id,
        state=JobState(row.state),
        version=row.version,
        scope=row.scope,
        options=row.options,
        author=row.author,
        submitted=row.submitted,
        started=row.started,
        finished=row.finished,
        worker=row.worker,
        attempt=row.attempt,
        cancel=row.cancel,
        progress=_progress_of(row),
        figures=row.figures,
        error=row.error,
    )
