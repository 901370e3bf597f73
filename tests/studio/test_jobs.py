"""Jobs in the studio: asked for, watched as they go, cancelled, tried again; and what came of them."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.bootstrap.jobs import perform_errand
from app.db.jobs import JobTable
from app.domain.job import JobState, Lease
from app.domain.people import Role, command_line
from app.domain.progress import StepProgress
from app.office.office import Office
from app.office.process import Errand
from tests.pipeline.offices import write_office
from tests.studio.visitors import NAMES, Visitor


@pytest.fixture
def table(office: Office) -> JobTable:
    return JobTable(office.store.database)


@pytest.fixture
def version(office: Office, tmp_path: Path) -> int:
    return office.versions.import_folder(write_office(tmp_path / "source"), "ana").id


def claim(table: JobTable) -> Lease:
    lease = table.claim("w")
    assert lease is not None
    return lease


@pytest.mark.parametrize("pause", [0.0, 3600.0], ids=["everything is told", "the machine is very fast"])
def test_a_run_from_the_button_to_its_results(
    office: Office,
    studio: ASGIApp,
    table: JobTable,
    version: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pause: float,
) -> None:
    monkeypatch.setattr("app.office.work.REPORT_SECONDS", pause)
    admin = Visitor(studio).sign_in(Role.ADMIN)
    for visitor, may in ((admin, True), (Visitor(studio).sign_in(Role.ANALYST), False)):
        assert (
            'class="button" href="/studio/jobs"' in visitor.get(f"/studio/versions/{version}").text
        ) == may
    assert f'value="{version}"' in admin.get("/studio/jobs").text
    response = admin.post("/studio/jobs", {"version": str(version)})
    assert response.headers["location"] == "/studio/jobs/1?said=queued"
    page = admin.get("/studio/jobs/1")
    assert "waiting" in page.text
    assert 'http-equiv="refresh"' in page.text
    assert 'class="button" href="/studio/releases"' not in page.text
    assert "<script>" not in page.text
    lease = claim(table)
    url = str(office.store.database.engine.url)
    folder = tmp_path / "work" / "job"
    folder.mkdir(parents=True)
    perform_errand(Errand(url, None, 1, lease.token, str(folder)))
    page = admin.get("/studio/jobs/1")
    assert office.jobs.view(1).job.state is JobState.DONE, office.jobs.view(1).job.error
    assert 'http-equiv="refresh"' not in page.text
    assert "Results by problem" in page.text
    assert 'class="button" href="/studio/releases"' in page.text
    assert '<path class="upper"' in page.text
    auditor = Visitor(studio).sign_in(Role.AUDITOR)
    assert "Try again" not in auditor.get("/studio/jobs/1").text
    document = auditor.get("/studio/api/jobs/1").json()
    assert document["state"] == "done"
    assert document["cells"] > 0
    found = document["problems"]
    assert found
    assert all(item["secondaries"] >= 0 and 0 <= item["gap"] <= 1 for item in found)
    assert all(sum(item["reasons"].values()) >= item["primaries"] for item in found)
    assert {name for item in found for name in item["reasons"]} > {"associated"}
    status = office.store.scoped(f"version-{version}").status()
    assert sum(item["cost"] for item in found) == pytest.approx(status["cost"])
    assert office.jobs.bounds(1)[-1].upper == pytest.approx(status["cost"])
    actions = [entry.action for entry in office.journal.latest(5)]
    assert "job.submit" in actions


def test_the_results_say_that_a_release_tells_where_few_changed(
    office: Office, studio: ASGIApp, table: JobTable, version: int
) -> None:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.post("/studio/jobs", {"version": ""})
    table.finish(claim(table), JobState.DONE, figures={"cells": 100, "telltale": 62})
    assert "62 cells were shown in the last release" in admin.get("/studio/jobs/1").text
    assert admin.get("/studio/api/jobs/1").json()["telltale"] == 62
    office.jobs.submit("ada", version)
    table.finish(claim(table), JobState.DONE, figures={"cells": 100})
    assert "were shown in the last release" not in admin.get("/studio/jobs/2").text


def test_the_stream_of_a_run_that_told_nothing_ends(office: Office, studio: ASGIApp) -> None:
    number = office.store.start_job()
    office.store.finish_job(number)
    stream = Visitor(studio).sign_in(Role.AUDITOR).get(f"/studio/jobs/{number}/events")
    assert stream.status_code == 200
    assert '"over": true' in stream.text


def test_a_job_is_cancelled_and_tried_again(
    office: Office, studio: ASGIApp, table: JobTable, version: int
) -> None:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.post("/studio/jobs", {"version": ""})
    lease = claim(table)
    table.report(lease, StepProgress("suppress", 1, 4, "cutting, problem 2 of 4", 10.0, 20.0))
    page = admin.get("/studio/jobs/1").text
    assert "cutting, problem 2 of 4" in page
    assert "Cancel the job" in page
    assert admin.post("/studio/jobs/1/cancel").status_code == 303
    assert table.beat(lease).cancel
    table.finish(lease, JobState.CANCELLED)
    assert admin.post("/studio/jobs/1/cancel").status_code == 422
    assert "Try again" in admin.get("/studio/jobs/1").text
    assert admin.post("/studio/jobs/1/retry").status_code == 303
    assert office.jobs.view(1).job.state is JobState.QUEUED
    assert [entry.action for entry in office.journal.latest(2)] == ["job.retry", "job.cancel"]


def test_events_tell_the_whole_state_and_end_with_the_job(
    studio: ASGIApp, table: JobTable, version: int
) -> None:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.post("/studio/jobs", {"version": ""})
    lease = claim(table)
    table.report(lease, StepProgress("suppress", 1, 4, "<b>cutting</b>", 10.0, 20.0))
    table.finish(lease, JobState.FAILED, "no luck <script>")
    response = admin.get("/studio/jobs/1/events", headers={"last-event-id": "1"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    (event,) = re.findall(r"^id: (\d+)\ndata: (.*)\n$", response.text, re.MULTILINE)
    assert event[0] == "4"
    told = json.loads(event[1])
    assert told["over"] is True
    assert "no luck &lt;script&gt;" in told["html"]
    assert "<script" not in told["html"]
    assert admin.get("/studio/jobs/999/events").status_code == 404


@pytest.mark.parametrize("by", ["signing out", "losing the role", "a closed account"])
def test_events_end_once_their_reader_may_no_longer_read_them(
    office: Office, studio: ASGIApp, table: JobTable, version: int, by: str
) -> None:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.post("/studio/jobs", {"version": ""})
    lease = claim(table)
    begun = Event()

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if scope["path"].endswith("/events"):
                begun.set()
            await send(message)

        await studio(scope, receive, tell)

    reader, same = Visitor(watched).sign_in(Role.AUDITOR), Visitor(studio)
    same.cookies.update(reader.cookies)
    same.get("/studio/account")
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(reader.get, "/studio/jobs/1/events")
        assert begun.wait(timeout=60)
        account = next(item for item in office.people.accounts() if item.name == NAMES[Role.AUDITOR])
        if by == "signing out":
            assert same.post("/studio/sign-out").status_code == 303
        elif by == "losing the role":
            office.people.set_role(command_line("test"), account.id, Role.ANALYST)
        else:
            office.people.set_active(command_line("test"), account.id, False)
        table.report(lease, StepProgress("suppress", 1, 4, "told afterwards", 10.0, 20.0))
        answer = stream.result(timeout=60)
    assert answer.status_code == 200
    assert "told afterwards" not in answer.text


def test_an_analyst_sees_that_there_are_jobs_but_not_their_numbers(studio: ASGIApp, version: int) -> None:
    Visitor(studio).sign_in(Role.ADMIN).post("/studio/jobs", {"version": ""})
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    page = analyst.get("/studio/jobs").text
    assert "waiting" in page
    assert "Recompute" not in page
    assert analyst.get("/studio/jobs/1").status_code == 403
    assert analyst.get("/studio/jobs/1/events").status_code == 403
    assert analyst.post("/studio/jobs", {"version": ""}).status_code == 403


@pytest.mark.parametrize("wish", ["0", "-1", "x", "99999999999", "١"])
def test_there_is_no_job_on_what_is_no_version(studio: ASGIApp, version: int, wish: str) -> None:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    assert admin.post("/studio/jobs", {"version": wish}).status_code == 422
    assert admin.get("/studio/api/jobs").json() == []
