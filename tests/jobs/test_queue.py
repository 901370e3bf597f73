"""The queue over both databases: who gets a job, who loses it, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bootstrap.jobs import Queue, make_queue
from app.db import open_store
from app.db.codec import digest_of
from app.db.jobs import MAX_ATTEMPTS, LeaseLostError
from app.db.store import StepResult
from app.domain.errors import UserError
from app.domain.job import JobState, time_left
from app.domain.progress import StepProgress
from app.pipeline.run import STEP_NAMES

#: A lease that has run out the moment it is given.
EXPIRED = -1.0


def messages(queue: Queue, job: int) -> list[str]:
    return [event.progress.message for event in queue.jobs.events(job)]


def step(name: str) -> StepResult:
    return StepResult(name, "input", digest_of(b"body"), b"body", {}, 2.0)


def test_jobs_are_done_in_order_and_told_of(queue: Queue) -> None:
    first = queue.jobs.submit("ana")
    second = queue.jobs.submit("ben", version=7)
    lease = queue.table.claim("w")
    assert lease is not None
    assert (lease.job.id, lease.job.author, lease.job.version) == (first, "ana", None)
    queue.table.report(lease, StepProgress("suppress", 1, 3, "cutting", 2.0, 5.0))
    queue.table.log(lease, "a line")
    view = queue.jobs.view(first)
    assert (view.job.state, view.job.progress.lower) == (JobState.RUNNING, 2.0)
    queue.table.finish(lease, JobState.DONE, figures={"cells": 12})
    view = queue.jobs.view(first)
    assert (view.job.state, view.cells) == (JobState.DONE, 12)
    assert view.job.finished is not None
    assert messages(queue, first) == ["queued", "running", "cutting", "a line", "done"]
    assert [event.number for event in queue.jobs.events(first)] == [1, 2, 3, 4, 5]
    assert [event.number for event in queue.jobs.events(first, after=3)] == [4, 5]
    assert [(point.lower, point.upper) for point in queue.jobs.bounds(first)] == [(2.0, 5.0)]
    assert [job.id for job in queue.jobs.list()] == [second, first]
    assert [job.id for job in queue.jobs.list(before=second)] == [first]
    assert queue.table.counts()["queued"] == 1


def test_of_many_workers_one_gets_the_job(queue: Queue, url: str) -> None:
    together = Barrier(6)
    jobs = [queue.jobs.submit("ana", version=number) for number in range(3)]
    others = [make_queue(open_store(url), url, None) for _ in range(6)]

    def claim(other: Queue) -> int | None:
        together.wait()
        lease = other.table.claim("w")
        return None if lease is None else lease.job.id

    with ThreadPoolExecutor(6) as pool:
        got = [job for job in pool.map(claim, others) if job is not None]
    assert len(set(got)) == len(got)
    rest = []
    while (lease := queue.table.claim("w")) is not None:
        rest.append(lease.job.id)
    assert sorted(got + rest) == jobs
    for other in others:
        other.store.close()


def test_two_jobs_on_one_version_wait_for_each_other_and_others_do_not(queue: Queue, url: str) -> None:
    one = queue.jobs.submit("ana", version=1)
    again = queue.jobs.submit("ana", version=1)
    two = queue.jobs.submit("ana", version=2)
    first, second = queue.table.claim("w"), queue.table.claim("w")
    assert first is not None
    assert second is not None
    assert (first.job.id, second.job.id) == (one, two)
    assert queue.table.claim("w") is None
    queue.table.finish(first, JobState.DONE)
    third = queue.table.claim("w")
    assert third is not None
    assert third.job.id == again


def test_workers_without_the_folder_leave_its_jobs(queue: Queue) -> None:
    queue.jobs.submit("ana")
    version = queue.jobs.submit("ana", version=3)
    lease = queue.table.claim("w", has_folder=False)
    assert lease is not None
    assert lease.job.id == version
    assert queue.table.claim("w", has_folder=False) is None


WRITES: dict[str, Callable[[Queue, object], object]] = {
    "report": lambda queue, lease: queue.table.report(lease, StepProgress("crawl", 1, 2)),
    "log": lambda queue, lease: queue.table.log(lease, "x"),
    "finish": lambda queue, lease: queue.table.finish(lease, JobState.DONE),
    "hand back": lambda queue, lease: queue.table.hand_back(lease, "x", counts=True),
    "step": lambda queue, lease: queue.store.scoped("folder", queue.table.fence(lease)).put_step(
        step("crawl")
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_who_lost_the_lease_can_write_nothing_any_more(queue: Queue, write: str) -> None:
    job = queue.jobs.submit("ana")
    slow = queue.table.claim("slow", EXPIRED)
    assert slow is not None
    queue.table.report(slow, StepProgress("crawl", 1, 2))  # late, but nobody else has it
    fast = queue.table.claim("fast")
    assert fast is not None
    assert (fast.job.id, fast.job.attempt) == (job, 2)
    before = len(queue.jobs.events(job))
    with pytest.raises(LeaseLostError):
        WRITES[write](queue, slow)
    assert not queue.table.beat(slow).held
    assert queue.table.beat(fast).held
    assert len(queue.jobs.events(job)) == before
    assert queue.store.scoped("folder").step("crawl") is None
    WRITES[write](queue, fast)


def test_a_late_beat_renews_a_lease_that_nobody_took(queue: Queue) -> None:
    queue.jobs.submit("ana")
    lease = queue.table.claim("w", EXPIRED)
    assert lease is not None
    assert queue.table.beat(lease).held
    assert queue.table.claim("other") is None


def test_a_job_that_loses_its_workers_is_given_up_unless_it_gets_on(queue: Queue) -> None:
    job = queue.jobs.submit("ana")
    for _ in range(MAX_ATTEMPTS - 1):
        assert queue.table.claim("w", EXPIRED) is not None
    lease = queue.table.claim("w", EXPIRED)
    assert lease is not None
    queue.table.report(lease, StepProgress("crawl", 1, 1, "done"))
    for _ in range(MAX_ATTEMPTS - 1):
        assert queue.table.claim("w", EXPIRED) is not None
    assert queue.table.claim("w") is None
    view = queue.jobs.view(job)
    assert view.job.state is JobState.FAILED
    assert "lost" in str(view.job.error)
    queue.jobs.retry(job)
    assert queue.table.claim("w") is not None


def test_cancel_and_retry(queue: Queue) -> None:
    waiting = queue.jobs.submit("ana", version=1)
    queue.jobs.cancel(waiting)
    assert queue.jobs.view(waiting).job.state is JobState.CANCELLED
    with pytest.raises(UserError, match="is over"):
        queue.jobs.cancel(waiting)
    queue.jobs.retry(waiting)
    with pytest.raises(UserError, match="neither failed"):
        queue.jobs.retry(waiting)
    lease = queue.table.claim("w", EXPIRED)
    assert lease is not None
    assert not queue.table.beat(lease, EXPIRED).cancel
    queue.jobs.cancel(waiting)
    assert queue.table.beat(lease, EXPIRED).cancel
    # Its worker is gone: nobody takes a job over that shall not run.
    assert queue.table.claim("w") is None
    assert queue.jobs.view(waiting).job.state is JobState.CANCELLED
    with pytest.raises(UserError, match="There is no job 999"):
        queue.jobs.view(999)


def test_a_worker_that_is_shut_down_costs_no_attempt(queue: Queue) -> None:
    job = queue.jobs.submit("ana")
    for _ in range(2 * MAX_ATTEMPTS):
        lease = queue.table.claim("w")
        assert lease is not None
        queue.table.hand_back(lease, "shut down", counts=False)
    assert queue.jobs.view(job).job.state is JobState.QUEUED


def test_what_jobs_are_asked_for_is_checked(queue: Queue) -> None:
    with pytest.raises(UserError, match="no option"):
        queue.jobs.submit("ana", options={"shell": "x"})
    with pytest.raises(UserError, match="There is no step"):
        queue.jobs.submit("ana", options={"steps": ["crawl", "dance"]})
    assert queue.jobs.list() == ()


def test_results_of_different_versions_do_not_meet(queue: Queue) -> None:
    one, two = queue.store.scoped("version-1"), queue.store.scoped("version-2")
    one.put_step(step("crawl"))
    two.put_step(step("crawl"))
    two.put_step(step("assess"))
    one.put_step(step("crawl"))
    assert two.step("assess") is not None
    assert queue.store.step("crawl") is None
    assert queue.store.of_last_run().scope == "version-1"
    assert list(queue.store.scopes()) == ["version-1", "version-2"]
    queue.store.forget_scope("version-1")
    assert one.step("crawl") is None
    assert two.step("crawl") is not None


@given(
    step=st.sampled_from(["", *STEP_NAMES]),
    done=st.integers(0, 10),
    total=st.integers(0, 10),
    in_step=st.floats(0, 1e6),
    before=st.dictionaries(st.sampled_from(STEP_NAMES), st.floats(0, 1e6)),
)
def test_time_left_is_never_negative_and_only_told_when_known(
    step: str, done: int, total: int, in_step: float, before: dict[str, float]
) -> None:
    left = time_left(StepProgress(step, min(done, total), total), in_step, before, STEP_NAMES)
    assert left is None or left >= 0
    later = STEP_NAMES if not step else STEP_NAMES[STEP_NAMES.index(step) + 1 :]
    if any(name not in before for name in later):
        assert left is None
    elif step in before or not step:
        assert left is not None
        assert left <= sum(before.values()) * (1 + 1e-9)
