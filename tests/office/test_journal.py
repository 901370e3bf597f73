"""The journal: a chain that shows every change to what was written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.cli.main import app
from app.domain.people import Actor, Permission, Role
from app.office.office import Office

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
    assert (newest.actor, newest.subject) == ("ana (nightly)", "run 7")
    assert office.journal.latest(before=2) == (oldest,)
    assert office.journal.latest(action="job.submit") == (newest,)
    assert office.journal.actions() == ("account.add", "job.submit")


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
