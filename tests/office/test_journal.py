"""The journal: a chain that shows every change to what was written."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.bootstrap import publication_store
from app.bootstrap.office import open_office, take_in_folder
from app.cli.main import app
from app.db import open_store
from app.db import tables as t
from app.db.journal import JournalStore
from app.domain.errors import OperatorError, UserError
from app.domain.people import Actor, Permission, Role, command_line, same_person
from app.domain.release_life import ReleaseAction, Trail
from app.office.journal import Journal
from app.office.office import Office
from tests.db.test_releases import Clock, make, move
from tests.pipeline.offices import write_office

ANA = Actor("ana", Role.ADMIN, 1)


def test_entries_come_back_as_they_were_recorded(office: Office) -> None:
    robot = Actor("ana", Role.ADMIN, 1, frozenset({Permission.RUN_JOBS}), "nightly")
    office.journal.record(ANA, "account.add", "ben", None, {"role": "analyst", "números": [1, "é\0"]}, "::1")
    office.journal.record(robot, "job.submit", "run\n7", {"state": "x"}, {"state": "y"})
    newest, oldest = office.journal.latest()
    assert (oldest.number, oldest.actor, oldest.action, oldest.subject, oldest.origin) == (
        1,
        "ana",
        "account.add",
        "ben",
        "::1",
    )
    assert (oldest.before, oldest.after) == ({}, {"role": "analyst", "números": [1, "é\0"]})
    assert (newest.actor, newest.subject, newest.origin) == ("ana", "run 7", "token nightly")
    assert office.journal.latest(before=2) == (oldest,)
    assert office.journal.latest(action="job.submit") == (newest,)
    assert office.journal.actions() == ("account.add", "job.submit")


def test_one_person_has_one_name_whichever_way_they_come(tmp_path: Path) -> None:
    """By cookie, by token, by command, through jobs: versions, uploads, releases and the journal agree."""
    folder = write_office(tmp_path / "office")
    assert CliRunner().invoke(app, ["run", str(folder)]).exit_code == 0
    me = command_line(getpass.getuser()).name
    with open_office(folder) as office:
        assert take_in_folder(office, getpass.getuser()) == ""
        assert {record.made_by for record in office.releases.all()} == {me}
        assert {record.approved_by for record in office.releases.all()} == {me}
        assert {version.author for version in office.versions.history()} == {me}
        assert {(item.actor, item.origin) for item in office.journal.latest()} == {(me, "command line")}
        robot = Actor("ana", Role.ADMIN, 1, frozenset(Permission), "nightly")
        (release,) = office.releases.all()
        office.releases.move(
            robot, ReleaseAction.WITHDRAW, release.id, release.version, "::1", reason="wrong"
        )
        office.jobs.submit(robot, 1, origin="::1")
        office.settings.set_four_eyes(ANA, True, "::1")
        mine = office.journal.latest(actor="ana")
        assert [(item.action, item.origin) for item in mine] == [
            ("settings.four-eyes", "::1"),
            ("job.submit", "::1, token nightly"),
            ("release.withdraw", "::1, token nightly"),
        ]
        assert not [item.after for item in mine if "by" in item.after]
        people = {item.actor for item in office.journal.latest()}
        assert people == {"ana", me}


def test_old_entries_with_a_token_behind_the_name_stay_in_the_chain_and_are_found(office: Office) -> None:
    office.journal.record("ana (nightly)", "job.submit", "run")
    office.journal.record("anabel", "job.submit", "run")
    office.journal.record(ANA, "account.add", "ben")
    assert [item.actor for item in office.journal.latest(actor="ana")] == ["ana", "ana (nightly)"]
    assert office.journal.verify().ok


@pytest.mark.parametrize("name", ["nobody", "embargo", "root@command-line", " Root@Command-Line "])
def test_no_account_can_pass_for_whoever_acts_without_one(office: Office, name: str) -> None:
    with pytest.raises(UserError, match="without an account"):
        office.people.add(ANA, name, Role.ADMIN, "a lattice of olive wood")


def test_who_made_a_release_by_command_does_not_approve_it_by_another_of_their_names(
    tmp_path: Path,
) -> None:
    folder, me = write_office(tmp_path / "office"), getpass.getuser()
    with open_office(folder) as office:
        office.settings.set_four_eyes(ANA, True)
    assert CliRunner().invoke(app, ["run", str(folder)]).exit_code == 0
    with open_office(folder) as office:
        (release,) = office.releases.all()
    # Nobody vouches for another name: who runs the command is the same person.
    for own in ((), ("--by", me), ("--by", command_line(me).name), ("--by", "eva"), ("--by", "x for eva")):
        refused = CliRunner().invoke(app, ["releases", "approve", str(folder), release.id, *own])
        assert refused.exit_code == 2, refused.output
        assert "four eyes" in refused.stderr
    with open_office(folder) as office:
        approved = office.store.book.approve(release.id, release.version, "eva")
        assert (approved.made_by, approved.approved_by) == (command_line(me).name, "eva")
    # And whoever made it at the studio doesn't approve it at the command line, by whatever name.
    for one, other in (("eva", f"{me}@command-line for eva"), ("ana@command-line for eva", "eva")):
        assert same_person(one, other)
    assert not same_person("ana@command-line for eva", "ben@command-line for eda")


def test_the_database_refuses_to_change_or_delete_an_entry(office: Office) -> None:
    office.journal.record(ANA, "account.add", "ben")
    for statement in ("update journal set actor = 'eve'", "delete from journal"):
        with (
            pytest.raises(sa.exc.DBAPIError, match="only grows"),
            office.store.database.engine.begin() as raw,
        ):
            raw.execute(sa.text(statement))
    assert office.journal.verify().ok


@pytest.mark.parametrize(
    "forgery",
    [
        "update journal set actor = 'eve' where number = 3",
        "update journal set after = '{}' where number = 3",
        "update journal set subject = subject || action, action = '' where number = 3",
        "delete from journal where number = 3",
        "update journal set number = number + 10 where number > 2",
        "delete from journal where number = 1",
    ],
)
def test_whoever_gets_round_the_database_breaks_the_chain(office: Office, forgery: str) -> None:
    for number in range(5):
        office.journal.record(ANA, "account.add", f"p{number}", None, {"role": "analyst"})
    engine = office.store.database.engine
    with engine.begin() as raw:
        if engine.dialect.name == "sqlite":
            raw.execute(sa.text("drop trigger journal_no_update"))
            raw.execute(sa.text("drop trigger journal_no_delete"))
        else:
            raw.execute(sa.text("alter table journal disable trigger user"))
        raw.execute(sa.text(forgery))
    verdict = office.journal.verify()
    assert verdict.broken_at in (1, 3)
    assert not verdict.ok


def test_a_noted_digest_shows_that_the_end_was_cut_off(office: Office) -> None:
    for number in range(3):
        office.journal.record(ANA, "account.add", f"p{number}")
    head = office.journal.verify().head
    assert office.journal.verify(head).ok
    engine = office.store.database.engine
    with engine.begin() as raw:
        if engine.dialect.name == "sqlite":
            raw.execute(sa.text("drop trigger journal_no_delete"))
        else:
            raw.execute(sa.text("alter table journal disable trigger user"))
        raw.execute(sa.text("delete from journal where number = 3"))
    assert office.journal.verify().ok
    assert not office.journal.verify(head).ok


def test_many_writers_make_one_chain(office: Office) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: office.journal.record(ANA, "account.add", f"p{n}"), range(40)))
    verdict = office.journal.verify()
    assert (verdict.entries, verdict.ok) == (40, True)


def test_the_command_tells_the_head_and_fails_for_another(tmp_path: Path) -> None:
    runner = CliRunner()
    told = runner.invoke(app, ["verify-log", str(tmp_path / "d")])
    assert (told.exit_code, told.stdout) == (0, "0 entries, unbroken. Digest of the last: none\n")
    refused = runner.invoke(app, ["verify-log", str(tmp_path / "d"), "--head", "f" * 64])
    assert refused.exit_code == 1
    assert "cut off" in refused.stderr


def test_an_embargo_that_passes_stands_in_the_journal_and_so_does_what_it_brings_about(url: str) -> None:
    clock = Clock()
    store = open_store(url, clock)
    make(store, "r1", live=True)
    make(store, "r2")
    make(store, "r3", known=False)
    move(store, "r2", "approve", actor="eva")
    moment = clock.now + timedelta(hours=1)
    trail = Trail("eva", "10.0.0.9")
    store.book.schedule("r2", store.book.get("r2").version, "eva", moment, trail=trail)
    clock.now = moment
    assert store.live_release_id() == "r2"
    journal = Journal(JournalStore(store.database))
    told = [
        (item.action, item.subject, item.actor, item.before.get("state"), item.after["state"], item.origin)
        for item in reversed(journal.latest(20))
    ]
    by_clock = ("embargo", "the database's clock")
    assert told[-4:] == [
        ("release.schedule", "r2", "eva", "approved", "scheduled", "10.0.0.9"),
        ("release.supersede", "r1", by_clock[0], "live", "superseded", by_clock[1]),
        ("release.publish", "r2", by_clock[0], "scheduled", "live", by_clock[1]),
        ("release.outdate", "r3", by_clock[0], "audited", "draft", by_clock[1]),
    ]
    assert ("release.make", "r1", "ana", None, "audited", "") in told
    assert journal.latest(2)[1].moment == moment
    assert journal.verify().ok
    store.close()


def test_a_move_that_can_not_be_recorded_is_not_made(office: Office) -> None:
    make(office.store, "r1")
    with office.store.database.engine.begin() as connection:
        connection.execute(sa.text("alter table journal rename to elsewhere"))
    with pytest.raises(OperatorError):
        move(office.store, "r1", "approve")
    assert office.store.book.get("r1").state == "audited"


def test_no_change_of_the_office_is_made_that_can_not_be_recorded(office: Office, tmp_path: Path) -> None:
    boss = office.people.add(command_line("test"), "ada", Role.ADMIN, "a lattice of olive wood")
    other = office.people.add(command_line("test"), "ben", Role.ANALYST, "a lattice of olive wood")
    version = office.versions.import_folder(write_office(tmp_path / "source"), "ana")
    draft = office.drafting.begin(ANA)
    job = office.jobs.submit(ANA, version.id)
    actor = Actor("ada", Role.ADMIN, boss.id)
    changes: list[Callable[[], object]] = [
        lambda: office.people.add(actor, "eve", Role.ADMIN, None),
        lambda: office.people.set_role(actor, other.id, Role.ADMIN),
        lambda: office.people.set_active(actor, other.id, False),
        lambda: office.people.set_password(actor, other.id, "another lattice of wood"),
        lambda: office.people.add_token(actor, "t", frozenset({Permission.RUN_JOBS}), 1),
        lambda: office.people.let_in(boss),
        lambda: office.settings.set_four_eyes(actor, True),
        lambda: office.settings.set_sources(actor, ("sqlite:///x.db",)),
        lambda: office.jobs.submit(actor, version.id),
        lambda: office.jobs.cancel(job, actor),
        lambda: office.drafting.begin(actor),
        lambda: office.drafting.put_texts(
            actor, office.drafting.draft(draft.id), {"sheets/new.toml": "title.en = 'New'"}
        ),
        lambda: office.drafting.delete(actor, office.drafting.draft(draft.id), "sheets/coast.toml"),
        lambda: office.drafting.discard(actor, office.drafting.draft(draft.id)),
    ]

    def rows() -> list[list[tuple[object, ...]]]:
        with office.store.database.reading() as connection:
            return [
                [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]
                for table in t.metadata.sorted_tables
                if table.name != "journal"
            ]

    with office.store.database.engine.begin() as connection:
        connection.execute(sa.text("alter table journal rename to elsewhere"))
    before = rows()
    for change in changes:
        with pytest.raises(OperatorError):
            change()
        assert rows() == before
    with office.store.database.engine.begin() as connection:
        connection.execute(sa.text("alter table elsewhere rename to journal"))
    for change in changes:
        change()
    assert office.journal.verify().ok


def test_what_the_command_line_does_to_releases_stands_in_the_journal(tmp_path: Path) -> None:
    folder = write_office(tmp_path / "office")
    for arguments in (("run",), ("releases", "list")):
        assert CliRunner().invoke(app, [*arguments, str(folder)]).exit_code == 0
    with publication_store(folder) as store:
        live = str(store.live_release_id())
    command = ["releases", "withdraw", str(folder), live, "--reason", "a wrong total", "--by", "eva"]
    assert CliRunner().invoke(app, command).exit_code == 0
    with open_office(folder) as office:
        told = [(item.action, item.subject) for item in reversed(office.journal.latest())]
        assert told == [(f"release.{action}", live) for action in ("make", "approve", "publish", "withdraw")]
        last = office.journal.latest(1)[0]
        me = command_line(getpass.getuser()).name
        assert {(item.actor, item.origin) for item in office.journal.latest()} == {(me, "command line")}
        assert (last.after["state"], last.after["reason"], last.after["by"]) == (
            "withdrawn",
            "a wrong total",
            "eva",
        )
        assert office.journal.verify().ok
