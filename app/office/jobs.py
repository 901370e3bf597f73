"""The queue as people see it: submit, watch, cancel, retry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.db.jobs import JobTable
from app.db.store import Store
from app.domain.errors import UserError
from app.domain.job import Job, JobEvent, time_left
from app.domain.people import Actor
from app.office.journal import Journal
from app.office.problems import ProblemResult, problem_results
from app.pipeline.run import STEP_NAMES

#: Scope of jobs that work on the files of the workers' own folder instead of a version.
FOLDER_SCOPE = "folder"
#: Points of a chart of bounds; more can't be told apart.
CHART_POINTS = 400


def scope_of(version: int | None) -> str:
    """Where the results of runs on a version are kept."""
    return FOLDER_SCOPE if version is None else f"version-{version}"


@dataclass(frozen=True)
class JobView:
    """A job with what is worked out from its events: estimated seconds left, and the cells it is about.

    ``telltale`` counts the cells of its release that are newly hidden because few changed in them.
    """

    job: Job
    seconds_left: float | None
    cells: int | None
    telltale: int = 0


@dataclass(frozen=True)
class BoundsPoint:
    """Both bounds at a moment: seconds since the search began, proven lower bound, cost of the pattern."""

    seconds: float
    lower: float
    upper: float


#: Jobs that are looked through for one that took another's place.
_LATER = 500


class Jobs:
    """Use cases of the queue.

    Parameters
    ----------
    table : JobTable
    store : Store
        Of the same database.
    """

    def __init__(self, table: JobTable, store: Store, journal: Journal) -> None:
        self._table = table
        self._store = store
        self._journal = journal

    def submit(
        self,
        actor: Actor | str,
        version: int | None = None,
        options: Mapping[str, Any] | None = None,
        origin: str = "",
    ) -> int:
        """Queue a run on a version, or on the folder's own files; returns the job's number.

        Options are ``steps``: names of the pipeline's steps, all when absent.

        Raises
        ------
        UserError
            An option that isn't known, or a step that there isn't.
        """
        chosen = dict(options or {})
        unknown = chosen.keys() - {"steps"}
        if unknown:
            raise UserError(f"Jobs have no option {', '.join(sorted(unknown))}.")
        wrong = [name for name in chosen.get("steps", ()) if name not in STEP_NAMES]
        if wrong:
            raise UserError(f"There is no step {', '.join(map(str, wrong))}. Use {', '.join(STEP_NAMES)}.")
        name = actor if isinstance(actor, str) else actor.name
        about = {"version": version, **chosen}
        with self._journal.together():
            number = self._table.submit(version, scope_of(version), chosen, name)
            self._journal.record(actor, "job.submit", scope_of(version), after=about, origin=origin)
        return number

    def cancel(self, job_id: int, actor: Actor | str = "", origin: str = "") -> None:
        """Stop a job: at once while it waits, at the next chance while it runs.

        Raises
        ------
        UserError
            There is no such job, or it is over.
        """
        if self._known(job_id).state.is_over:
            raise UserError(f"Job {job_id} is over: there is nothing to cancel.")
        with self._journal.together():
            if not self._table.cancel(job_id):
                raise UserError(f"Job {job_id} is over: there is nothing to cancel.")
            self._journal.record(actor, "job.cancel", str(job_id), origin=origin)

    def retry(self, job_id: int, actor: Actor | str = "", origin: str = "") -> None:
        """Queue a job again that failed or was cancelled; it goes on at the step it had reached.

        Raises
        ------
        UserError
            There is no such job, or it neither failed nor was cancelled.
        """
        nothing = f"Job {job_id} neither failed nor was cancelled: there is nothing to try again."
        if not self._known(job_id).can_be_retried:
            raise UserError(nothing)
        with self._journal.together():
            if not self._table.retry(job_id):
                raise UserError(nothing)
            self._journal.record(actor, "job.retry", str(job_id), origin=origin)

    def view(self, job_id: int) -> JobView:
        """A job as it stands.

        Raises
        ------
        UserError
            There is no such job.
        """
        job = self._known(job_id)
        if job.state.is_over:
            figures = job.figures or {}
            return JobView(job, None, figures.get("cells"), figures.get("telltale") or 0)
        here = self._store.scoped(job.scope).status()
        before = self._store.of_last_run().status()["seconds"] | here["seconds"]
        left = time_left(job.progress, self._table.seconds_in_step(job_id), before, STEP_NAMES)
        return JobView(job, left, here["cells"])

    def list(self, limit: int = 50, before: int | None = None) -> tuple[Job, ...]:
        """The last jobs, newest first."""
        return self._table.jobs(limit, before)

    def events(self, job_id: int, after: int = 0, limit: int = 500) -> tuple[JobEvent, ...]:
        """What happened to a job after its event of number ``after``."""
        return self._table.events(job_id, after, limit)

    def problems(self, job_id: int) -> tuple[ProblemResult, ...]:
        """Results of a job by problem, once it is over; none when another run took their place."""
        job = self._known(job_id)
        # While a job is under way, steps of the run before it may stand beside its own.
        if not job.state.is_over or any(
            later.id > job_id and later.scope == job.scope for later in self._table.jobs(_LATER)
        ):
            return ()
        return problem_results(self._store.scoped(job.scope))

    def bounds(self, job_id: int) -> tuple[BoundsPoint, ...]:
        """Both bounds of a job's search through time, summed over the problems solved so far."""
        events = [
            event
            for event in self._table.events(job_id, limit=1_000_000)
            if event.kind == "progress" and event.progress.step == "suppress"
        ]
        return _bounds(events)

    def _known(self, job_id: int) -> Job:
        job = self._table.job(job_id)
        if job is None:
            raise UserError(f"There is no job {job_id}.")
        return job


def _bounds(events: Sequence[JobEvent]) -> tuple[BoundsPoint, ...]:
    points: list[BoundsPoint] = []
    before, here, problem = (0.0, 0.0), (0.0, 0.0), 0
    for event in events:
        state = event.progress
        if not (math.isfinite(state.lower) or math.isfinite(state.upper)):
            continue
        if state.done != problem:
            before, problem = (before[0] + here[0], before[1] + here[1]), state.done
        here = (state.lower if math.isfinite(state.lower) else 0.0, state.upper)
        seconds = (event.at - events[0].at).total_seconds()
        points.append(BoundsPoint(seconds, before[0] + here[0], before[1] + here[1]))
    step = max(math.ceil(len(points) / CHART_POINTS), 1)
    kept = points[::step]
    return tuple(kept if not points or kept[-1] is points[-1] else [*kept, points[-1]])
