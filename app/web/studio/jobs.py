"""Jobs: recompute, watch, cancel, try again; what came of it, problem by problem."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Any, ClassVar

import anyio
from anyio.to_thread import run_sync
from babel.numbers import format_decimal, format_percent
from starlette.responses import Response, StreamingResponse

from app.domain.errors import UserError
from app.domain.job import Job
from app.domain.numbers import locale_of
from app.domain.people import Permission
from app.office.jobs import JobView
from app.office.problems import ProblemResult
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.bounds import BoundsChart, bounds_chart
from app.web.studio.reasons import reason_said
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit

routes = Routes()

_PAGE = 50
_LOG = 200
#: Streams at once in one process; whoever comes later reloads the page instead.
_STREAMS = BoundedSemaphore(64)
#: Seconds between two looks, until a sign of life, and until a stream ends and its reader asks anew.
_LOOK, _ALIVE, _LONGEST = 1.0, 15.0, 300.0


routes.tab(_("Jobs"), "/studio/jobs", Permission.READ_OFFICE, 40)

STATES = {
    "queued": _("waiting"),
    "running": _("running"),
    "done": _("done"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    "lost": _("broken off"),
}
STEPS = {
    "crawl": _("collect cells"),
    "assess": _("find sensitive cells"),
    "build": _("build problems"),
    "suppress": _("choose what to hide"),
    "audit": _("audit"),
    "release": _("release"),
}


@dataclass(frozen=True)
class JobLine:
    """A job in the list."""

    id: int
    state: str
    state_text: str
    about: str
    author: str
    submitted: str
    finished: str
    step: str


@dataclass(frozen=True, eq=False)
class JobsPage:
    """The list of jobs; ``versions`` can be worked on: value and text."""

    template: ClassVar[str] = "studio/jobs.html"
    frame: Frame
    lines: tuple[JobLine, ...]
    older: str
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Progress:
    """Where a job stands, as a fragment of its page that is sent anew whenever something happens."""

    line: JobLine
    steps: tuple[tuple[str, str, str], ...]
    message: str
    done: int
    total: int
    cells: str
    left: str
    error: str
    chart: BoundsChart | None
    log: tuple[tuple[str, str], ...]
    is_over: bool
    can_cancel: bool
    can_retry: bool
    telltale: int


@dataclass(frozen=True)
class ProblemLine:
    """A problem's results as texts."""

    number: int
    cube: str
    cells: str
    relations: str
    primaries: str
    reasons: str
    secondaries: str
    cost: str
    lower_bound: str
    gap: str
    seconds: str


@dataclass(frozen=True, eq=False)
class JobPage:
    template: ClassVar[str] = "studio/job.html"
    frame: Frame
    progress: Progress
    problems: tuple[ProblemLine, ...]


@dataclass(frozen=True, eq=False)
class JobFragment:
    template: ClassVar[str] = "studio/_job.html"
    frame: Frame
    progress: Progress


@routes.get("/studio/jobs", Permission.READ_OFFICE)
def jobs_page(visit: Visit) -> Response:
    """The last jobs, newest first."""
    before = visit.asked("before")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 10 else None
    jobs = visit.office.jobs.list(_PAGE, number)
    older = f"/studio/jobs?before={jobs[-1].id}" if len(jobs) == _PAGE else ""
    lines = tuple(_line(visit, job) for job in jobs)
    return visit.page(JobsPage(visit.frame(visit.say(_("Jobs"))), lines, older, _choices(visit)))


@routes.post("/studio/jobs", Permission.RUN_JOBS)
def submit(visit: Visit) -> Response:
    """Queue a run."""
    return visit.redirect(f"/studio/jobs/{_submit(visit, visit.text('version'))}", "queued")


@routes.get("/studio/jobs/{job:int}", Permission.READ_CONFIDENTIAL)
def job_page(visit: Visit) -> Response:
    """How a job goes, and what came of it."""
    view = _view(visit)
    number = view.job.id
    title = visit.say(_("Job {number}"), number=number)
    problems = visit.office.jobs.problems(number)
    return visit.page(
        JobPage(
            visit.frame(title, Link(visit.say(_("Jobs")), "/studio/jobs")),
            _progress(visit, view),
            tuple(_problem(visit, problem) for problem in problems),
        )
    )


@routes.get("/studio/jobs/{job:int}/events", Permission.READ_CONFIDENTIAL)
async def events(visit: Visit) -> Response:
    """The job's page as it changes: server-sent events, each with the whole fragment.

    A reader that was cut off asks again with the number of the last event it saw, or without: it gets what
    is, not what was. Who signs out, or may no longer read it, is sent nothing more from then on.
    """
    view = await run_sync(_view, visit)
    if not _STREAMS.acquire(blocking=False):
        raise RefusedError(503)
    stream = _Stream(visit, view.job.id)
    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(stream.texts(), media_type="text/event-stream", headers=headers)


@routes.post("/studio/jobs/{job:int}/cancel", Permission.RUN_JOBS)
def cancel(visit: Visit) -> Response:
    """Stop a job."""
    number = visit.number("job")
    visit.office.jobs.cancel(number, visit.actor, visit.origin)
    return visit.redirect(f"/studio/jobs/{number}", "cancelled")


@routes.post("/studio/jobs/{job:int}/retry", Permission.RUN_JOBS)
def retry(visit: Visit) -> Response:
    """Queue a job again."""
    number = visit.number("job")
    visit.office.jobs.retry(number, visit.actor, visit.origin)
    return visit.redirect(f"/studio/jobs/{number}", "queued")


# ---------------------------------------------------------------------- for programs


@routes.get("/studio/api/jobs", Permission.READ_OFFICE)
def jobs_document(visit: Visit) -> Response:
    """The last jobs."""
    return visit.json([_document(job) for job in visit.office.jobs.list(_PAGE)])


@routes.post("/studio/api/jobs", Permission.RUN_JOBS)
def submit_document(visit: Visit) -> Response:
    """Queue a run: ``{"version": 3}``, the current version without."""
    return visit.json({"id": _submit(visit, str(visit.json_body().get("version") or ""))}, 202)


@routes.get("/studio/api/jobs/{job:int}", Permission.READ_CONFIDENTIAL)
def job_document(visit: Visit) -> Response:
    """A job as it stands, with its results by problem once they are there."""
    view = _view(visit)
    problems = visit.office.jobs.problems(view.job.id)
    progress = view.job.progress
    return visit.json(
        _document(view.job)
        | {
            "seconds_left": view.seconds_left,
            "cells": view.cells,
            "telltale": view.telltale,
            "lower_bound": progress.lower if math.isfinite(progress.lower) else None,
            "cost": progress.upper if math.isfinite(progress.upper) else None,
            "error": view.job.error,
            "problems": [vars(problem) | {"reasons": dict(problem.reasons)} for problem in problems],
        }
    )


@routes.post("/studio/api/jobs/{job:int}/cancel", Permission.RUN_JOBS)
def cancel_document(visit: Visit) -> Response:
    """Stop a job."""
    visit.office.jobs.cancel(visit.number("job"), visit.actor, visit.origin)
    return visit.json({}, 202)


@routes.post("/studio/api/jobs/{job:int}/retry", Permission.RUN_JOBS)
def retry_document(visit: Visit) -> Response:
    """Queue a job again."""
    visit.office.jobs.retry(visit.number("job"), visit.actor, visit.origin)
    return visit.json({}, 202)


# ---------------------------------------------------------------------- parts


class _Stream:
    """One reader's events."""

    def __init__(self, visit: Visit, job: int) -> None:
        self._visit = visit
        self._job = job
        self._seen = 0
        self._began = False

    async def texts(self) -> AsyncIterator[str]:
        try:
            yield "retry: 2000\n\n"
            quiet, whole = 0.0, 0.0
            while whole < _LONGEST:
                text, is_over = await run_sync(self._news)
                if text:
                    quiet = 0.0
                    yield text
                if is_over:
                    return
                await anyio.sleep(_LOOK)
                quiet, whole = quiet + _LOOK, whole + _LOOK
                if quiet >= _ALIVE:
                    quiet = 0.0
                    yield ": still here\n\n"
        finally:
            _STREAMS.release()

    def _news(self) -> tuple[str, bool]:
        """The fragment as an event, empty when nothing has happened, and whether it is the last.

        Whoever asks is judged after the reading: what happens once the right is lost is in no fragment sent.
        """
        told, is_over = self._look()
        return (told, is_over) if self._may_read() else ("", True)

    def _look(self) -> tuple[str, bool]:
        jobs = self._visit.office.jobs
        found = jobs.events(self._job, self._seen)
        if not found and self._began:
            return "", False
        self._began = True
        self._seen = found[-1].number if found else self._seen
        # What is over without having told a thing, as a run of the command line, ends the stream as well.
        progress = _progress(self._visit, jobs.view(self._job))
        page = JobFragment(self._visit.frame(""), progress)
        body = json.dumps({"html": self._visit.studio.render(page).decode(), "over": progress.is_over})
        return f"id: {self._seen}\ndata: {body}\n\n", progress.is_over

    def _may_read(self) -> bool:
        """Whether whoever asked is still signed in and may see a job; asked after each look."""
        try:
            actor = self._visit.studio.actor_of(self._visit.request)
        except RefusedError:
            return False
        self._visit = replace(self._visit, actor=actor)
        return actor.may(Permission.READ_CONFIDENTIAL)


def _submit(visit: Visit, wish: str) -> int:
    if wish == "folder":
        return visit.office.jobs.submit(visit.actor, None, origin=visit.origin)
    if wish and not (wish.isascii() and wish.isdigit() and len(wish) < 10):
        raise UserError(visit.say(_("There is no such version.")))
    versions = visit.office.versions
    version = versions.version(int(wish)) if wish else versions.current()
    if version is None:
        raise UserError(visit.say(_("There is no version yet. Save one, or import a folder.")))
    return visit.office.jobs.submit(visit.actor, version.id, origin=visit.origin)


def _choices(visit: Visit) -> tuple[tuple[str, str], ...]:
    found = []
    current = visit.office.versions.current()
    if current is not None:
        found.append((str(current.id), visit.say(_("version {number}"), number=current.id)))
    if (visit.office.folder / "publication.toml").is_file():
        found.append(("folder", visit.say(_("the files of the folder"))))
    return tuple(found)


def _view(visit: Visit) -> JobView:
    try:
        return visit.office.jobs.view(visit.number("job"))
    except UserError:
        raise RefusedError(404) from None


def _line(visit: Visit, job: Job) -> JobLine:
    if job.version is not None:
        about = visit.say(_("version {number}"), number=job.version)
    else:
        about = visit.say(_("the files of the folder"))
    return JobLine(
        id=job.id,
        state=job.state.value,
        state_text=visit.say(STATES[job.state.value]),
        about=about,
        author=job.author,
        submitted=visit.moment(job.submitted),
        finished=visit.moment(job.finished),
        step=visit.say(STEPS[job.progress.step]) if job.progress.step in STEPS else "",
    )


def _progress(visit: Visit, view: JobView) -> Progress:
    job = view.job
    reached = list(STEPS).index(job.progress.step) if job.progress.step in STEPS else -1
    finished = job.state.value == "done"
    steps = tuple(
        (name, visit.say(text), "done" if finished or place < reached else "now" if place == reached else "")
        for place, (name, text) in enumerate(STEPS.items())
    )
    may = visit.actor.may(Permission.RUN_JOBS)
    events = visit.office.jobs.events(job.id, limit=100_000)
    log = [
        (visit.moment(event.at), event.progress.message) for event in events if event.kind in ("log", "state")
    ]
    return Progress(
        line=_line(visit, job),
        steps=steps,
        message="" if job.state.is_over else job.progress.message,
        done=job.progress.done,
        total=job.progress.total,
        cells="" if view.cells is None else format_decimal(view.cells, locale=locale_of(visit.language)),
        left=_duration(visit, view.seconds_left),
        error=job.error or "",
        chart=bounds_chart(visit.office.jobs.bounds(job.id), visit.language),
        log=tuple(log[-_LOG:]),
        is_over=job.state.is_over,
        can_cancel=may and job.can_be_cancelled and bool(job.scope),
        can_retry=may and job.can_be_retried,
        telltale=view.telltale,
    )


def _duration(visit: Visit, seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 100:
        return visit.say(_("about {count} s"), count=max(round(seconds), 1))
    return visit.say(_("about {count} min"), count=round(seconds / 60))


def _problem(visit: Visit, problem: ProblemResult) -> ProblemLine:
    locale = locale_of(visit.language)

    def number(value: float) -> str:
        return format_decimal(float(f"{value:.6g}"), locale=locale)

    return ProblemLine(
        number=problem.number,
        cube=problem.cube,
        cells=number(problem.cells),
        relations=number(problem.relations),
        primaries=number(problem.primaries),
        reasons="; ".join(
            f"{reason_said(name, visit.language)} ({count})" for name, count in problem.reasons.items()
        ),
        secondaries=number(problem.secondaries),
        cost=number(problem.cost),
        lower_bound=number(problem.lower_bound),
        gap=format_percent(problem.gap, "0.00%", locale=locale),
        seconds=f"{problem.seconds:.1f}",
    )


def _document(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "state": job.state.value,
        "version": job.version,
        "author": job.author,
        "submitted": job.submitted.isoformat(),
        "started": None if job.started is None else job.started.isoformat(),
        "finished": None if job.finished is None else job.finished.isoformat(),
        "attempt": job.attempt,
        "step": job.progress.step,
        "done": job.progress.done,
        "total": job.progress.total,
    }
