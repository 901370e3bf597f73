"""The life of a release over real databases: who may move it, when it shows, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
import sqlalchemy as sa

from app.db import Store, open_store
from app.db import tables as t
from app.db.engine import connect, migrate
from app.db.releases import Making
from app.db.workspace import WorkspaceStore
from app.domain.errors import UserError
from app.domain.release_life import MOVES, ReleaseAction, ReleaseState, embargo_moment
from tests.db.test_store import ADDRESS, make_catalogue, make_layout, make_release, step

START = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self, connection: sa.Connection) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def office(url: str, clock: Clock) -> Iterator[Store]:
    opened = open_store(url, clock)
    yield opened
    opened.close()


def make(store: Store, identity: str, *, pattern: str = "", known: bool = True, **making: object) -> None:
    basis = tuple(record.id for record in store.book.all()) if known else ()
    store.publish(
        make_release(identity),
        make_catalogue(identity),
        {ADDRESS: make_layout()},
        step("release", identity.encode()),
        Making(**{"by": "ana", "basis": basis, "live": False, "made_from": pattern or identity, **making}),
    )


def move(store: Store, identity: str, action: str, *more: object, actor: str = "eva") -> ReleaseState:
    record = store.book.get(identity)
    return getattr(store.book, action)(identity, record.version, actor, *more).state


def test_from_audited_to_live_and_on(office: Store) -> None:
    make(office, "r1")
    assert office.book.get("r1").state == "audited"
    assert office.live_release_id() is None
    with pytest.raises(UserError, match="is audited"):
        move(office, "r1", "publish")
    assert move(office, "r1", "approve") == "approved"
    assert office.book.get("r1").approved_by == "eva"
    assert move(office, "r1", "revoke") == "audited"
    assert office.book.get("r1").approved_by is None
    move(office, "r1", "approve")
    assert move(office, "r1", "publish") == "live"
    make(office, "r2")
    move(office, "r2", "approve")
    move(office, "r2", "publish")
    assert office.live_release_id() == "r2"
    assert office.book.get("r1").state == "superseded"
    assert move(office, "r1", "roll_back") == "live"
    assert (office.live_release_id(), office.book.get("r2").state) == ("r1", "superseded")
    with pytest.raises(UserError, match="reason"):
        move(office, "r1", "withdraw", " ")
    assert move(office, "r1", "withdraw", "a wrong total") == "withdrawn"
    assert office.live_release_id() is None
    assert office.book.get("r1").reason == "a wrong total"
    with pytest.raises(UserError, match="withdrawn"):
        move(office, "r1", "roll_back")


def test_every_move_from_every_state_does_what_the_table_says(office: Store, clock: Clock) -> None:
    arguments = {ReleaseAction.SCHEDULE: (START + timedelta(days=9),), ReleaseAction.WITHDRAW: ("why",)}
    paths = {
        "audited": (),
        "approved": ("approve",),
        "scheduled": ("approve", "schedule"),
        "live": ("approve", "publish"),
        "withdrawn": ("withdraw",),
    }
    for state, path in paths.items():
        for action in ReleaseAction:
            identity = f"{state}-{action}"
            make(office, identity, pattern="same")
            for name in path:
                move(office, identity, name, *arguments.get(ReleaseAction(name), ()))
            assert office.book.get(identity).state == state
            name = action.replace("-", "_")
            before = office.book.get(identity)
            if state in MOVES[action][0]:
                assert move(office, identity, name, *arguments.get(action, ())) == MOVES[action][1]
                assert office.book.get(identity).version > before.version
                assert action in before.actions()
            else:
                with pytest.raises(UserError, match=state):
                    move(office, identity, name, *arguments.get(action, ()))
                assert office.book.get(identity) == before
                assert action not in before.actions()


def test_four_eyes_want_another_person(office: Store) -> None:
    WorkspaceStore(office.database).set_setting("four-eyes", "yes")
    make(office, "r1", live=True)
    assert office.book.get("r1").state == "audited"
    with pytest.raises(UserError, match="somebody else"):
        move(office, "r1", "approve", actor="ana")
    assert move(office, "r1", "approve", actor="eva") == "approved"


def test_of_two_admins_at_once_one_is_told(office: Store) -> None:
    make(office, "r1")
    version = office.book.get("r1").version
    barrier = Barrier(2)

    def decide(action: str) -> str:
        barrier.wait()
        more = ("no",) if action == "withdraw" else ()
        try:
            return str(getattr(office.book, action)("r1", version, action, *more).state)
        except UserError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(decide, ("approve", "withdraw")))
    assert sum("was changed meanwhile" in answer for answer in answers) == 1
    assert office.book.get("r1").version == version + 1


def test_two_releases_published_at_once_leave_one_live(office: Store) -> None:
    for name in ("r1", "r2"):
        make(office, name, pattern="same")
        move(office, name, "approve")
    barrier = Barrier(2)

    def publish(name: str) -> str:
        barrier.wait()
        return str(move(office, name, "publish"))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(publish, ("r1", "r2"))) == ["live", "live"]
    assert sorted(office.book.get(name).state for name in ("r1", "r2")) == ["live", "superseded"]


# ---------------------------------------------------------------------- embargo


def test_an_embargo_is_kept_to_the_instant_and_needs_nobody(office: Store, clock: Clock) -> None:
    make(office, "r1", live=True)
    make(office, "r2")
    move(office, "r2", "approve")
    embargo = START + timedelta(hours=1)
    assert move(office, "r2", "schedule", embargo) == "scheduled"
    clock.now = embargo - timedelta(microseconds=1)
    assert office.live_release_id() == "r1"
    clock.now = embargo
    assert office.live_release_id() == "r2"
    found = office.book.get("r2")
    assert (found.state, found.first_live, found.embargo) == ("live", embargo, None)
    assert office.book.get("r1").state == "superseded"
    # What readers are told is when they could see it, and never when it was made.
    told = office.catalogue("r2")
    assert told is not None
    assert told.released == embargo


def test_a_clock_set_back_takes_nothing_down_and_one_set_forward_is_no_harm(
    office: Store, clock: Clock
) -> None:
    make(office, "r1", live=True)
    make(office, "r2")
    move(office, "r2", "approve")
    move(office, "r2", "schedule", START + timedelta(hours=1))
    clock.now = START - timedelta(days=400)
    assert office.live_release_id() == "r1"
    clock.now = START + timedelta(days=1)
    assert office.live_release_id() == "r2"
    clock.now = START - timedelta(days=1)
    assert office.live_release_id() == "r2"
    assert office.book.release_due() == "r2"
    assert move(office, "r1", "roll_back") == "live"
    clock.now = START + timedelta(days=1)
    assert office.live_release_id() == "r1"


def test_the_databases_own_clock_decides(url: str) -> None:
    with_clock = open_store(url)
    now = with_clock.book.now()
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)
    make(with_clock, "r1")
    move(with_clock, "r1", "approve")
    for wrong in (now - timedelta(seconds=1), now + timedelta(days=9000)):
        with pytest.raises(UserError, match=r"passed|ahead"):
            move(with_clock, "r1", "schedule", wrong)
    move(with_clock, "r1", "schedule", now + timedelta(hours=1))
    assert with_clock.live_release_id() is None
    with_clock.close()


def test_many_processes_meet_the_embargo_and_switch_once(url: str, clock: Clock) -> None:
    stores = [open_store(url, clock) for _ in range(4)]
    make(stores[0], "r1", live=True)
    make(stores[0], "r2")
    move(stores[0], "r2", "approve")
    move(stores[0], "r2", "schedule", START + timedelta(hours=1))
    version = stores[0].book.get("r2").version
    clock.now = START + timedelta(hours=2)
    barrier = Barrier(4)

    def ask(store: Store) -> str | None:
        barrier.wait()
        return store.live_release_id()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, stores)) == {"r2"}
    assert stores[0].book.get("r2").version == version + 1
    for store in stores:
        store.close()


def test_a_withdrawn_or_revoked_release_misses_its_embargo(office: Store, clock: Clock) -> None:
    for name, action, more in (("r1", "withdraw", ("no",)), ("r2", "revoke", ()), ("r3", "unschedule", ())):
        make(office, name)
        move(office, name, "approve")
        move(office, name, "schedule", START + timedelta(hours=1))
        move(office, name, action, *more)
    clock.now = START + timedelta(days=1)
    assert office.live_release_id() is None


def test_local_times_are_told_or_refused() -> None:
    assert embargo_moment("2026-10-25T09:00", "Europe/Madrid") == datetime(2026, 10, 25, 8, tzinfo=UTC)
    assert embargo_moment("2026-07-01T09:00", "Europe/Madrid") == datetime(2026, 7, 1, 7, tzinfo=UTC)
    assert embargo_moment("2026-07-01 09:00-05:00") == datetime(2026, 7, 1, 14, tzinfo=UTC)
    for text, zone, said in (
        ("2026-10-25T02:30", "Europe/Madrid", "strike twice"),
        ("2026-03-29T02:30", "Europe/Madrid", "skip"),
        ("2026-03-29T02:30", "", "names no time zone"),
        ("2026-03-29T02:30", "Europe/Atlantis", "no time zone Europe"),
        ("2026-03-29T02:30", "../../etc/passwd", "no time zone"),
        ("tomorrow", "Europe/Madrid", "no date and time"),
        # Beyond the calendar in UTC.
        ("0001-01-01T00:00+14:00", "", "no date and time"),
        ("9999-12-31T23:59-05:00", "UTC", "no date and time"),
        ("0001-01-01T00:00", "Asia/Tokyo", "no date and time"),
        ("9999-12-31T23:59", "America/New_York", "no date and time"),
    ):
        with pytest.raises(UserError, match=said):
            embargo_moment(text, zone)


# ---------------------------------------------------------------------- what was shown


def test_a_release_audited_before_another_was_shown_can_not_follow_it(office: Store, clock: Clock) -> None:
    make(office, "r1")
    make(office, "r2", known=False)
    make(office, "r3", known=False, pattern="r1")
    make(office, "r4")
    for name in ("r1", "r2", "r3", "r4"):
        move(office, name, "approve")
    move(office, "r2", "schedule", START + timedelta(hours=1))
    move(office, "r1", "publish")
    states = {name: office.book.get(name).state for name in ("r2", "r3", "r4")}
    # r3 shows the very same, and r4 was audited with r1 in mind.
    assert states == {"r2": "draft", "r3": "approved", "r4": "approved"}
    assert office.book.get("r2").approved_by is None
    clock.now = START + timedelta(days=1)
    assert office.live_release_id() == "r1"
    make(office, "r5", known=False)
    with pytest.raises(UserError, match="audited before another"):
        move(office, "r5", "approve")
    with pytest.raises(UserError, match="was shown while this one was computed"):
        make(office, "r6", known=False, live=True)
    assert "r6" not in {record.id for record in office.book.all()}


def test_what_nobody_saw_can_be_forgotten_with_a_reason(office: Store) -> None:
    make(office, "r1", live=True)
    make(office, "r2", live=True)
    make(office, "r3", known=False)
    with pytest.raises(UserError, match="live"):
        move(office, "r2", "forget", "no")
    for name in ("r1",):
        assert move(office, name, "forget", "shown on a test server only") == "superseded"
    with pytest.raises(UserError, match="audited before"):
        move(office, "r3", "approve")
    move(office, "r2", "withdraw", "it too")
    move(office, "r2", "forget", "it too")
    assert move(office, "r3", "approve") == "approved"


def test_the_cells_of_old_releases_are_pruned_but_not_what_they_made_known(office: Store) -> None:
    for number in range(4):
        make(
            office, f"r{number}", live=True, keep=1, knowledge=b"known", snapshots={("Cube", "abc"): b"facts"}
        )
    assert (office.book.get("r0").pruned, office.book.get("r2").pruned) == (True, False)
    assert office.layout("r0", *ADDRESS) is None
    assert office.catalogue("r0") is None
    assert office.book.knowledge("r0") == b"known"
    assert office.book.snapshot("Cube", "abc") == b"facts"
    with pytest.raises(UserError, match="pruned"):
        move(office, "r0", "roll_back")
    assert move(office, "r2", "roll_back") == "live"
    assert office.live_release() is not None


# ---------------------------------------------------------------------- migration


def test_releases_survive_the_migration_both_ways(url: str) -> None:
    store = open_store(url)
    make(store, "r1", live=True)
    make(store, "r2", live=True)
    make(store, "r3")
    store.close()
    engine = connect(url)
    migrate(engine, "0001")
    with engine.connect() as connection:
        states = dict(connection.execute(sa.text("select id, state from release")).all())
        assert states == {"r1": "superseded", "r2": "live", "r3": "draft"}
        cells = connection.scalar(sa.select(sa.func.count()).select_from(t.release_cell))
        assert cells == 9
    engine.dispose()
    store = open_store(url)
    assert store.live_release_id() == "r2"
    assert store.book.get("r1").first_live is not None
    assert store.book.get("r3").first_live is None
    layout = store.layout("r1", *ADDRESS)
    assert layout is not None
    store.close()
