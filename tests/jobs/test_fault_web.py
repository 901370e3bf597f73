"""Web processes that are killed, and admins who decide at once: nothing is lost, nothing is done by half."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from app.bootstrap.jobs import Queue, make_queue
from app.cube.duckdb import open_cube
from app.db import open_store
from app.domain.people import Role, command_line
from app.office.archive import write_zip
from app.office.office import Office
from app.pipeline.define import load_publication
from app.pipeline.run import STEP_NAMES, run
from app.web.studio.parts import PARTS
from app.web.studio.shell import SESSION, create_studio
from tests.cli.test_fault_process import begin, served
from tests.db.test_releases import make
from tests.jobs.forks import Forks
from tests.jobs.test_worker import child_processes, run_out, wait_for, wait_for_end, working
from tests.jobs.webs import Web, web
from tests.pipeline.offices import firms, write_csv
from tests.studio.visitors import BASE, NAMES, PASSWORD, Visitor, staffed

TABLE = "/en/s/activity/by-place/turnover.csv"


@pytest.fixture
def staff(url: str, office: Path) -> Iterator[Office]:
    store = open_store(url)
    made = staffed(office, store)
    yield made
    made.previews.close()
    store.close()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_web_process_killed_at_any_step_of_a_job_takes_nothing_with_it(
    url: str, office: Path, staff: Office, tmp_path: Path
) -> None:
    """At each step in turn: web killed, another answers at once, then the job's own process is killed too."""
    run(load_publication(office), staff.store, open_cube)
    live = staff.store.live_release_id()
    write_csv(office / "data/firms.csv", firms(seed=7))
    queue = make_queue(staff.store, url, office)
    launch = Forks(url, office, *(f"wait {step}" for step in STEP_NAMES))
    present = Web(url, office)
    present.sign_in(Role.ADMIN)
    before = present.get(TABLE).content
    assert present.post("/studio/jobs", "/studio/jobs", version="folder").status_code == 303
    with working(queue, tmp_path / "work", launch=launch):
        for number, step in enumerate(STEP_NAMES):
            wait_for(queue, 2, step)
            present = Web(url, office, cookies=present.kill())
            assert present.get(TABLE).content == before
            told = present.get("/studio/api/jobs/2").json()
            assert (told["state"], told["step"]) == ("running", step)
            assert "/studio/jobs/2/events" in present.get("/studio/jobs/2").text
            launch.started[number].kill()
        assert wait_for(queue, 2, "done", "failed") == "done"
    assert [record.state for record in staff.store.book.all()] == ["audited", "live"]
    assert staff.store.live_release_id() == live
    (made,) = (record.id for record in staff.store.book.all() if record.id != live)
    for action in ("approve", "publish"):
        version = str(staff.store.book.get(made).version)
        page = f"/studio/releases/{made}"
        assert present.post(f"{page}/{action}", page, version=version, accept="yes").status_code == 303
    assert present.get(TABLE).content != before
    present.kill()
    assert staff.journal.verify().ok


def test_a_web_process_that_does_the_jobs_itself_is_killed_and_the_next_one_ends_them(
    office: Path, tmp_path: Path
) -> None:
    """The real command, one process for everything on SQLite: job, site and studio go on with the next."""
    queue_url = f"sqlite:///{office / '.celosia' / 'celosia.sqlite3'}"
    (office / ".celosia").mkdir()
    store = open_store(queue_url)
    queue = make_queue(store, queue_url, office)
    first = begin("serve", str(office), "--studio", "--port", "0")
    assert first.stdout is not None
    assert "http://" in first.stdout.readline()
    job = queue.jobs.submit("ana")
    wait_for(queue, job, "crawl")
    children = child_processes(first.pid)
    assert children
    first.kill()
    first.communicate()
    for child in children:
        wait_for_end(child)
    run_out(queue)
    with served(office, "--studio") as (client, process):
        assert wait_for(queue, job, "done", "failed") == "done"
        assert client.get("/studio/sign-in").status_code == 200
        process.terminate()
        said, _ = process.communicate(timeout=60)
        assert "Traceback" not in said
    assert [record.state for record in store.book.all()] == ["audited"]
    store.close()


#: What an admin asks for, and the statement within it at which the process is killed.
CHANGES: dict[str, tuple[Callable[[Web], object], str]] = {
    "a job is asked for": (
        lambda at: at.post("/studio/jobs", "/studio/jobs", version=""),
        "INSERT INTO job_event",
    ),
    "a release is shown": (
        lambda at: at.post("/studio/releases/r2/publish", "/studio/releases/r2", version="2"),
        "UPDATE release SET",
    ),
    "an account is made": (
        lambda at: at.post("/studio/people", "/studio/people", name="eva", role="admin", password=PASSWORD),
        "INSERT INTO account",
    ),
    "a draft is begun": (
        lambda at: at.post("/studio/drafts", "/studio/publication"),
        "INSERT INTO version_file",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_web_process_killed_within_a_change_has_not_made_it_and_another_can(
    url: str, office: Path, staff: Office, change: str
) -> None:
    """Killed in the change itself, and where it is recorded."""
    staff.versions.import_folder(office, "ana")
    make(staff.store, "r1", live=True)
    make(staff.store, "r2")
    staff.store.book.approve("r2", staff.store.book.get("r2").version, "eva")

    def state() -> tuple[object, ...]:
        accounts = tuple((item.name, item.role) for item in staff.people.accounts())
        return (
            staff.store.book.all(),
            staff.jobs.list(),
            tuple(item.id for item in staff.versions.drafts()),
            accounts,
        )

    ask, own = CHANGES[change]
    ada = next(item for item in staff.people.accounts() if item.name == NAMES[Role.ADMIN])
    cookies = httpx.Cookies({SESSION: staff.people.let_in(ada).cookie})
    before, entries = state(), staff.journal.verify().entries
    for where in (own, "INSERT INTO journal"):
        with web(url, office, where, cookies) as at:
            with pytest.raises(httpx.TransportError):
                ask(at)
            at.join()
        assert state() == before
        assert staff.journal.verify().entries == entries
    assert staff.journal.verify().ok
    with web(url, office, "", cookies) as at:
        answer = ask(at)
        assert isinstance(answer, httpx.Response)
        assert answer.status_code == 303, answer.text
    assert state() != before
    assert staff.journal.verify().entries > entries
    assert staff.journal.verify().ok


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_facts_that_a_killed_web_process_held_for_a_moment_are_gone_with_the_next(
    url: str, office: Path, staff: Office, tmp_path: Path
) -> None:
    """Killed while an upload, and an archive, is taken in: no file of theirs outlives the next one."""
    staff.versions.import_folder(office, "ana")
    draft = staff.versions.begin("ada")
    ada = next(item for item in staff.people.accounts() if item.name == NAMES[Role.ADMIN])
    cookies = httpx.Cookies({SESSION: staff.people.let_in(ada).cookie})
    archive = io.BytesIO()
    write_zip(staff.versions, staff.versions.version(1), archive)
    page, files = f"/studio/drafts/{draft.id}", {"facts": ("f.csv", b"a,b\n1,2\n")}
    folder = {"archive": ("office.zip", archive.getvalue())}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for sent, to, where in ((files, "data", "INSERT INTO upload"), (folder, "import", "UPDATE upload SET")):
        with web(url, office, where, cookies, temporary) as at:
            with pytest.raises(httpx.TransportError):
                at.post(f"{page}/{to}", page, sent, revision=str(draft.revision))
            at.join()
        assert list(temporary.rglob("*")), to
    with web(url, office, "", cookies, temporary) as at:
        assert at.post(f"{page}/data", page, files, revision=str(draft.revision)).status_code == 303
        assert not list(temporary.rglob("*"))


# ---------------------------------------------------------------------- two at once


@pytest.fixture
def two(staff: Office, office: Path) -> tuple[Visitor, Visitor]:
    """Two admins, each signed in."""
    staff.people.add(command_line("test"), "eva", Role.ADMIN, PASSWORD)
    staff.versions.import_folder(office, "ana")
    studio = create_studio(staff, PARTS, BASE)
    ada, eva = Visitor(studio).sign_in(Role.ADMIN), Visitor(studio)
    eva.get("/studio/sign-in")
    assert eva.post("/studio/sign-in", {"name": "eva", "password": PASSWORD}).status_code == 303
    eva.get("/studio")
    return ada, eva


def at_once(*tasks: Callable[[], httpx.Response]) -> list[httpx.Response]:
    barrier = Barrier(len(tasks))

    def go(task: Callable[[], httpx.Response]) -> httpx.Response:
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(go, tasks))


def one_of(answers: list[httpx.Response], sentence: str) -> None:
    """Exactly one did it; the other was told why not, in one sentence."""
    done = [answer for answer in answers if answer.status_code in (200, 303)]
    told = [answer for answer in answers if answer.status_code == 409]
    assert (len(done), len(told)) == (1, 1), [answer.status_code for answer in answers]
    assert told[0].text.count(sentence) == 1, told[0].text


@pytest.mark.parametrize("action", ["approve", "publish", "withdraw"])
def test_of_two_admins_who_move_a_release_one_does(
    staff: Office, two: tuple[Visitor, Visitor], action: str
) -> None:
    make(staff.store, "r1")
    if action == "publish":
        staff.store.book.approve("r1", staff.store.book.get("r1").version, "zoe")
    version = str(staff.store.book.get("r1").version)
    fields = {"version": version, "reason": "why"}
    path = f"/studio/releases/r1/{action}"
    answers = at_once(*(lambda who=who: who.post(path, fields) for who in two))
    one_of(answers, "changed meanwhile")
    assert staff.store.book.get("r1").version == int(version) + 1
    assert staff.journal.verify().ok


def test_of_two_who_edit_a_draft_one_does(staff: Office, two: tuple[Visitor, Visitor]) -> None:
    draft = staff.versions.begin("ada")
    text = staff.versions.files(draft).texts["sheets/coast.toml"]
    path = f"/studio/drafts/{draft.id}/text/sheets/coast.toml"
    fields = [{"revision": str(draft.revision), "text": f"# {name}\n{text}"} for name in ("ada", "eva")]
    answers = at_once(
        *(lambda who=who, form=form: who.post(path, form) for who, form in zip(two, fields, strict=True))
    )
    one_of(answers, "saved elsewhere meanwhile")
    saved = staff.versions.files(staff.versions.version(draft.id)).texts["sheets/coast.toml"]
    winner = next(index for index, answer in enumerate(answers) if answer.status_code != 409)
    assert saved == fields[winner]["text"]


def test_of_two_who_publish_a_draft_one_does(staff: Office, two: tuple[Visitor, Visitor]) -> None:
    drafts = [staff.versions.begin(name) for name in ("ada", "eva")]
    for draft in drafts:
        files = staff.versions.files(draft)
        text = files.texts["sheets/coast.toml"] + f"# {draft.id}\n"
        staff.drafting.put_texts(command_line("test"), draft, {"sheets/coast.toml": text})
    forms = [
        (f"/studio/drafts/{draft.id}/publish", {"revision": str(draft.revision + 1), "message": "m"})
        for draft in drafts
    ]
    answers = at_once(
        *(lambda who=who, form=form: who.post(*form) for who, form in zip(two, forms, strict=True))
    )
    one_of(answers, "became current")
    current = staff.versions.current()
    assert current is not None
    assert current.id in {draft.id for draft in drafts}


def test_two_who_recompute_have_it_done_once(
    url: str, staff: Office, two: tuple[Visitor, Visitor], tmp_path: Path
) -> None:
    """The second job waits for the first, finds everything done, and says so; there is one release."""
    answers = at_once(*(lambda who=who: who.post("/studio/jobs", {"version": "1"}) for who in two))
    assert [answer.status_code for answer in answers] == [303, 303]
    queue: Queue = make_queue(staff.store, url, None)
    with working(queue, tmp_path / "work", launch=Forks(url, None), capacity=2):
        for job in (1, 2):
            assert wait_for(queue, job, "done", "failed") == "done"
    told = [
        [event.progress.message for event in queue.jobs.events(job) if event.kind == "log"] for job in (1, 2)
    ]
    assert told[1] == [f"found {', '.join(STEP_NAMES)} done"]
    assert len(staff.store.book.all()) == 1


def test_two_admins_who_dismiss_each_other_leave_one(staff: Office, two: tuple[Visitor, Visitor]) -> None:
    ids = {item.name: item.id for item in staff.people.accounts()}
    others = (ids["eva"], ids[NAMES[Role.ADMIN]])
    at_once(
        *(
            lambda who=who, other=other: who.post(f"/studio/people/{other}/role", {"role": "auditor"})
            for who, other in zip(two, others, strict=True)
        )
    )
    assert [item.role for item in staff.people.accounts()].count(Role.ADMIN) == 1
