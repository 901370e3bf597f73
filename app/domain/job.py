"""Jobs: runs of the pipeline that wait in a queue, are held under a lease, and tell of themselves.

No value here is a cell's: messages name steps, phases and numbers of problems.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.domain.progress import StepProgress


class JobState(StrEnum):
    """``lost`` is a run of the command line whose process was killed; jobs of the queue are taken over."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def is_over(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True)
class Job:
    """A run of the pipeline.

    ``version`` is the publication's version that it works on, None for the files of a folder as they are;
    ``attempt`` counts the workers that took it up; ``figures`` are those of `celosia status`, once done.
    """

    id: int
    state: JobState
    version: int | None
    scope: str
    options: Mapping[str, Any]
    author: str
    submitted: datetime
    started: datetime | None
    finished: datetime | None
    worker: str
    attempt: int
    cancel: bool
    progress: StepProgress
    figures: Mapping[str, Any] | None
    error: str | None

    @property
    def can_be_cancelled(self) -> bool:
        return not self.state.is_over and not self.cancel

    @property
    def can_be_retried(self) -> bool:
        return self.state in (JobState.FAILED, JobState.CANCELLED) and bool(self.scope)


@dataclass(frozen=True)
class JobEvent:
    """What happened to a job; ``kind`` is state, progress or log. Numbered from 1 within the job."""

    job_id: int
    number: int
    at: datetime
    kind: str
    progress: StepProgress


@dataclass(frozen=True)
class Lease:
    """The right to work on a job, for whoever knows the token, until the database's clock passes its end."""

    job: Job
    token: str = field(repr=False)


@dataclass(frozen=True)
class Beat:
    """The answer to a heartbeat: is the lease still ours, and does somebody want the job stopped?"""

    held: bool
    cancel: bool


def time_left(
    progress: StepProgress, in_step: float, before: Mapping[str, float], order: Sequence[str]
) -> float | None:
    """Estimated seconds until a job is done, None when nothing tells.

    Parameters
    ----------
    progress
        Where it is.
    in_step
        Seconds since its step began.
    before
        Seconds that each step took last time.
    order
        Names of the steps.
    """
    if progress.step not in order:
        return sum(before.values()) if all(name in before for name in order) else None
    later = order[order.index(progress.step) + 1 :]
    if any(name not in before for name in later):
        return None
    share = progress.done / progress.total if progress.total else 0.0
    usual = before.get(progress.step)
    if usual is not None:
        here = max(usual - in_step, usual * (1 - share) if share else 0.0)
    elif 0 < share <= 1:
        here = in_step * (1 - share) / share
    else:
        return None
    left = here + sum(before[name] for name in later)
    return left if math.isfinite(left) else None
