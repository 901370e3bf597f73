"""Accounts and sign-in: what is refused, what ends, and what nobody can find out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher, extract_parameters
from click.testing import Result
from typer.testing import CliRunner

from app.bootstrap.office import open_office
from app.cli.main import app
from app.db.people import PeopleStore
from app.db.workspace import WorkspaceStore
from app.domain.errors import UserError
from app.domain.people import CITIZEN, PERMISSIONS, Actor, Permission, Role, command_line
from app.office.office import Office
from app.office.people import IDLE, LASTS, PATIENCE, People

BOSS = command_line("root")
PASSWORD = "a lattice of olive wood"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def people(office: Office, clock: Clock) -> People:
    database = office.store.database
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    return People(PeopleStore(database), WorkspaceStore(database), office.journal, quick, clock)


def test_a_session_carries_its_account_until_it_ends(people: People, clock: Clock) -> None:
    ana = people.add(BOSS, " Ana ", Role.ANALYST, PASSWORD)
    signed = people.sign_in("ANA", PASSWORD)
    assert signed is not None
    assert people.actor_of_cookie(signed.cookie) == Actor("ana", Role.ANALYST, ana.id)
    clock.now += IDLE - timedelta(minutes=1)
    assert people.actor_of_cookie(signed.cookie).role is Role.ANALYST
    clock.now += IDLE
    assert people.actor_of_cookie(signed.cookie) == CITIZEN
    again = people.sign_in("ana", PASSWORD)
    assert again is not None
    assert again.cookie != signed.cookie
    people.sign_out(again.actor, again.cookie)
    assert people.actor_of_cookie(again.cookie) == CITIZEN


def test_a_session_ends_after_its_hours_however_busy(people: People, clock: Clock) -> None:
    people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    signed = people.sign_in("ana", PASSWORD)
    assert signed is not None
    for _ in range(LASTS // timedelta(hours=1) - 1):
        clock.now += timedelta(hours=1)
        assert people.actor_of_cookie(signed.cookie).role is Role.ANALYST
    clock.now += timedelta(hours=1)
    assert people.actor_of_cookie(signed.cookie) == CITIZEN


def test_a_cookie_that_we_did_not_sign_is_nobodys(people: People) -> None:
    people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    signed = people.sign_in("ana", PASSWORD)
    assert signed is not None
    text, _, signature = signed.cookie.rpartition(".")
    for forged in (text, f"{text}.", f"{text}.{'0' * 64}", f"x{signed.cookie}", "", ".", "é.ñ", signature):
        assert people.actor_of_cookie(forged) == CITIZEN


def test_neither_passwords_nor_cookies_nor_tokens_are_in_the_database(people: People, office: Office) -> None:
    ana = people.add(BOSS, "ana", Role.ADMIN, PASSWORD)
    signed = people.sign_in("ana", PASSWORD)
    assert signed is not None
    _, token = people.add_token(signed.actor, "nightly", frozenset({Permission.RUN_JOBS}), None)
    with office.store.database.engine.connect() as raw:
        kept = "".join(
            str(raw.execute(sa.text(f"select * from {table}")).all())
            for table in ("account", "session", "token", "journal", "attempt")
        )
    for secret in (PASSWORD, signed.cookie, signed.cookie.split(".")[0], token, token[8:]):
        assert secret not in kept
    assert PASSWORD not in repr(ana)


def test_refusals_lock_a_name_longer_each_time_whether_or_not_it_exists(people: People, clock: Clock) -> None:
    people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    for name in ("ana", "nobody-of-that-name"):
        for _ in range(PATIENCE):
            assert people.sign_in(name, "wrong") is None
    assert people.sign_in("ana", PASSWORD) is None, "locked"
    clock.now += timedelta(seconds=31)
    assert people.sign_in("ana", "wrong") is None
    clock.now += timedelta(seconds=61)
    assert people.sign_in("ana", PASSWORD) is None, "locked for longer"
    clock.now += timedelta(hours=1)
    assert people.sign_in("ana", PASSWORD) is not None
    assert people.sign_in("ana", "wrong") is None
    assert people.sign_in("ana", PASSWORD) is not None, "the count began again"


def test_an_admin_unlocks(people: People) -> None:
    ana = people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    for _ in range(PATIENCE):
        people.sign_in("ana", "wrong")
    assert people.locked_until(ana) is not None
    people.unlock(BOSS, ana.id)
    assert people.sign_in("ana", PASSWORD) is not None


def test_every_refusal_costs_the_same_work(
    people: People, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One password checked and the same statements, whatever the reason: a clock has nothing to tell."""
    people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    people.add(BOSS, "sso", Role.ANALYST, None)
    closed = people.add(BOSS, "closed", Role.ANALYST, PASSWORD)
    people.set_active(BOSS, closed.id, False)
    for _ in range(PATIENCE):
        people.sign_in("locked", "wrong")
    people.add(BOSS, "locked", Role.ANALYST, PASSWORD)
    verified: list[str] = []
    original = PasswordHasher.verify

    def verify(self: PasswordHasher, hashed: str, password: str) -> bool:
        verified.append(hashed)
        return bool(original(self, hashed, password))

    monkeypatch.setattr(PasswordHasher, "verify", verify)
    engine = office.store.database.engine
    seen: dict[str, list[str]] = {}
    for name, password in (
        ("ana", "wrong"), ("nobody", "wrong"), ("sso", "wrong"), ("closed", PASSWORD), ("locked", PASSWORD),
    ):  # fmt: skip
        statements: list[str] = []

        def note(_c: object, _k: object, statement: str, *_: object, into: list[str] = statements) -> None:
            into.append(statement)

        sa.event.listen(engine, "before_cursor_execute", note)
        assert people.sign_in(name, password) is None
        sa.event.remove(engine, "before_cursor_execute", note)
        seen[name] = statements
    assert len(verified) == 5
    assert len({str(extract_parameters(hashed)) for hashed in verified}) == 1
    assert all(statements == seen["ana"] for statements in seen.values())


def test_a_change_of_role_password_or_activity_ends_sessions_and_tokens_follow(people: People) -> None:
    ana = people.add(BOSS, "ana", Role.ADMIN, PASSWORD)
    people.add(BOSS, "ben", Role.ADMIN, PASSWORD)
    first = people.sign_in("ana", PASSWORD)
    assert first is not None
    scopes = frozenset({Permission.RUN_JOBS, Permission.READ_OFFICE})
    _, text = people.add_token(first.actor, "nightly", scopes, 30)
    people.set_role(BOSS, ana.id, Role.AUDITOR)
    assert people.actor_of_cookie(first.cookie) == CITIZEN
    robot = people.actor_of_token(text)
    assert robot is not None
    assert robot.may(Permission.READ_OFFICE)
    assert not robot.may(Permission.RUN_JOBS), "an auditor's token starts nothing"
    people.set_active(BOSS, ana.id, False)
    assert people.actor_of_token(text) is None
    assert people.sign_in("ana", PASSWORD) is None


def test_a_token_does_no_more_than_its_scopes_and_ends(people: People, clock: Clock) -> None:
    people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    signed = people.sign_in("ana", PASSWORD)
    assert signed is not None
    with pytest.raises(UserError, match="more than its owner"):
        people.add_token(signed.actor, "t", frozenset({Permission.MANAGE_ACCOUNTS}), None)
    token, text = people.add_token(signed.actor, "t", frozenset({Permission.READ_OFFICE}), 1)
    robot = people.actor_of_token(text)
    assert robot is not None
    assert [item for item in Permission if robot.may(item)] == [Permission.NONE, Permission.READ_OFFICE]
    clock.now += timedelta(days=2)
    assert people.actor_of_token(text) is None
    people.drop_token(signed.actor, token.id)
    assert people.tokens(signed.actor) == ()
    assert people.actor_of_token("celosia_nothing") is None


def test_the_last_admin_stays(people: People) -> None:
    ana = people.add(BOSS, "ana", Role.ADMIN, PASSWORD)
    with pytest.raises(UserError, match="last admin"):
        people.set_role(BOSS, ana.id, Role.ANALYST)
    with pytest.raises(UserError, match="last admin"):
        people.set_active(BOSS, ana.id, False)
    ben = people.add(BOSS, "ben", Role.ADMIN, PASSWORD)
    people.set_active(BOSS, ana.id, False)
    with pytest.raises(UserError, match="last admin"):
        people.set_role(BOSS, ben.id, Role.AUDITOR)


@pytest.mark.parametrize("password", ["short", "ana ana ana ana", "aaaaaaaaaaaaaa", "x" * 1001, ""])
def test_weak_passwords_are_refused(people: People, password: str) -> None:
    with pytest.raises(UserError):
        people.add(BOSS, "ana", Role.ADMIN, password)
    assert people.accounts() == ()


@pytest.mark.parametrize(
    "name", ["", "a", "ana b", "ana\n", "<b>ana</b>", "ña", "x" * 101, "-ana", "ana/../x"]
)
def test_odd_names_are_refused(people: People, name: str) -> None:
    if name == "ana\n":
        assert people.add(BOSS, name, Role.ADMIN, PASSWORD).name == "ana"
        return
    with pytest.raises(UserError):
        people.add(BOSS, name, Role.ADMIN, PASSWORD)


def test_single_sign_on_binds_a_name_once(people: People) -> None:
    people.add(BOSS, "ana@office.org", Role.ANALYST, None)
    assert people.let_in_subject("https://id", "7", "eve@office.org") is None
    first = people.let_in_subject("https://id", "7", "Ana@office.org")
    assert first is not None
    assert people.let_in_subject("https://id", "7", "renamed@office.org") is not None
    assert people.let_in_subject("https://id", "8", "ana@office.org") is None, "the name changed hands"
    people.add(BOSS, "ada", Role.ADMIN, PASSWORD)
    assert people.let_in_subject("https://id", "9", "ada") is None, "made for whoever knows its password"
    people.set_password(BOSS, people.accounts()[1].id, PASSWORD)
    assert people.let_in_subject("https://id", "7", "ana@office.org") is not None, "bound it stays"


class Slow(PasswordHasher):
    """While it checks a password, something else happens in the office."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def verify(self, *asked: str | bytes) -> Literal[True]:
        right = super().verify(*asked)
        self.meanwhile()
        return right


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("cost", [1, 2])
def test_what_ends_sessions_ends_one_that_is_about_to_begin(
    people: People, office: Office, clock: Clock, closed: bool, cost: int
) -> None:
    """A dismissal, or another password, while the old one is being checked, be it to hash it anew."""
    ana = people.add(BOSS, "ana", Role.ANALYST, PASSWORD)
    slow = Slow(time_cost=cost, memory_cost=64, parallelism=1)
    database = office.store.database
    other = People(PeopleStore(database), WorkspaceStore(database), office.journal, slow, clock)

    def meanwhile() -> None:
        if closed:
            people.set_active(BOSS, ana.id, False)
        else:
            people.set_password(BOSS, ana.id, PASSWORD[::-1])

    slow.meanwhile = meanwhile
    assert other.sign_in("ana", PASSWORD) is None
    with database.reading() as connection:
        assert connection.execute(sa.text("select count(*) from session")).scalar_one() == 0
    assert closed or people.sign_in("ana", PASSWORD) is None
    people.set_active(BOSS, ana.id, True)
    assert people.sign_in("ana", PASSWORD if closed else PASSWORD[::-1]) is not None


def test_a_form_token_belongs_to_its_cookie(people: People) -> None:
    one, two = people.visit_cookie(), people.visit_cookie()
    assert people.is_form_token(one, people.form_token(one))
    assert not people.is_form_token(two, people.form_token(one))
    assert not people.is_form_token(one, "")


def test_who_may_do_what() -> None:
    assert PERMISSIONS[Role.CITIZEN] == {Permission.NONE}
    assert PERMISSIONS[Role.ADMIN] == set(Permission)
    changes = set(Permission) - {
        Permission.NONE, Permission.OWN_ACCOUNT, Permission.READ_OFFICE,
        Permission.READ_CONFIDENTIAL, Permission.READ_JOURNAL, Permission.READ_FACTS,
        Permission.READ_ACCOUNTS,
    }  # fmt: skip
    assert not PERMISSIONS[Role.AUDITOR] & changes
    assert not PERMISSIONS[Role.ANALYST] & {
        Permission.READ_CONFIDENTIAL, Permission.APPROVE_RELEASES, Permission.MANAGE_RELEASES,
        Permission.SET_RULES, Permission.DECIDE_CELLS, Permission.MANAGE_ACCOUNTS, Permission.RUN_JOBS,
    }  # fmt: skip


def test_the_first_admin_begins_on_the_command_line(tmp_path: Path) -> None:
    folder = str(tmp_path / "office")
    runner = CliRunner()

    def add(name: str, *role: str) -> Result:
        command = ["account", "add", folder, name, "--password-stdin", *role]
        return runner.invoke(app, command, input=f"{PASSWORD}\n")

    unnamed = add("ana")
    assert unnamed.exit_code == 2, "nobody is an admin by default"
    assert "--role" in unnamed.stderr
    assert "entries" in runner.invoke(app, ["verify-log", folder]).stdout
    assert "There is no admin yet" in add("ben", "--role", "analyst").stdout
    told = add("ana", "--role", "admin")
    assert told.exit_code == 0, told.output
    assert PASSWORD not in told.output
    assert "no admin" not in told.output
    again = add("ana", "--role", "admin")
    assert again.exit_code == 2
    assert "already" in again.stderr
    assert "2 entries" in runner.invoke(app, ["verify-log", folder]).stdout
    with open_office(Path(folder)) as office:
        assert {item.name: item.role for item in office.people.accounts()} == {
            "ana": Role.ADMIN,
            "ben": Role.ANALYST,
        }
