"""The store over a real SQLite file and a real PostgreSQL database."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from app.db import Store, open_store
from app.db import tables as t
from app.db.codec import digest_of
from app.db.engine import connect, migrate
from app.db.releases import Making
from app.db.store import StepResult
from app.domain.catalogue import Catalogue
from app.domain.cube import Cube, Hierarchy, Level, Measure
from app.domain.errors import OperatorError, UserError
from app.domain.masked import Axis, AxisMember, CellStatus, CellStyle, Layout
from app.domain.progress import StepProgress
from app.domain.publication import Folder, MeasureProtection, Position, QueryDefinition, RuleDefinition, Sheet
from app.domain.release import Release

ROOT = Path(__file__).resolve().parents[2]
NAN = float("nan")
ADDRESS = ("s", "q", ("[Place].[Town].&[1]",))


def make_release(identity: str) -> Release:
    return Release(
        identity,
        "live",
        datetime.now(UTC),
        {"Cube": "abc"},
        ("Cube | [Measures].[n]", "Cube | [Measures].[n] | [Place].[Town].&[1]", "Cube | ñ"),
        np.array([CellStatus.SHOWN, CellStatus.CONFIDENTIAL, CellStatus.EMPTY], dtype=np.int8),
        np.array([12.5, NAN, NAN]),
    )


def make_catalogue(identity: str) -> Catalogue:
    place = Hierarchy(
        "Place",
        "Place",
        "[Place]",
        {"en": "Place"},
        (Level("(All)", "[Place].[(All)]", {}), Level("Town", "[Place].[Town]", {"en": "Town"})),
        True,
        0,
        ("All", "1"),
        ("[Place].[All]", "[Place].[Town].&[1]"),
        {"en": ("All", "Ávila")},
        np.array([-1, 0], dtype=np.int32),
        np.array([0, 1], dtype=np.int32),
        {"x": ("", "3")},
    )
    measure = Measure("n", "[Measures].[n]", {"en": "n"}, "count", {}, "#,##0", 0)
    query = QueryDefinition("q", {"en": "Q"}, "SELECT", "table", Position("f.toml", 3), {"chart": "bar"})
    sheet = Sheet("s", {"en": "S"}, {}, (query,), (), Position("f.toml", 1))
    return Catalogue(
        release_id=identity,
        released=datetime.now(UTC),
        title={"en": "T", "es": "Título"},
        description={},
        publisher={},
        languages=("en", "es"),
        root=Folder("", {"en": "T"}, {}, (), (sheet,)),
        choices={"s": ()},
        cube_of={("s", "q"): "Cube"},
        cubes={"Cube": Cube("Cube", {"en": "Cube"}, (place,), (measure,))},
        protection=(MeasureProtection("Cube", "n", (RuleDefinition("threshold", {"n": 3}),), None, "unit"),),
        hide_zeros=False,
        insiders=True,
    )


def make_layout() -> Layout:
    member = AxisMember("[Place]", "[Place].[Town].&[1]", {"en": "Ávila"}, "Town", 1, "[Place].[All]")
    return Layout(
        (Axis(((member,), (member,))),),
        (member,),
        np.array([0, -1]),
        np.array([0, 0], dtype=np.int32),
        (CellStyle("#,##0", 0, {"en": "people"}),),
    )


def step(name: str, body: bytes = b"body", **summary: object) -> StepResult:
    return StepResult(name, "input", digest_of(body), body, summary, 1.5)


def publish(store: Store, identity: str) -> Release:
    release = make_release(identity)
    layouts = {ADDRESS: make_layout()}
    making = Making(basis=tuple(record.id for record in store.book.all()))
    store.publish(release, make_catalogue(identity), layouts, step("release", identity.encode()), making)
    return release


def test_a_new_store_shows_nothing(store: Store) -> None:
    assert store.live_release_id() is None
    assert store.live_release() is None
    assert store.catalogue("r") is None
    assert store.layout("r", "s", "q") is None
    assert store.status()["release"] is None


def test_a_release_comes_back_as_it_went_in(store: Store) -> None:
    release = publish(store, "r1")
    found = store.live_release()
    assert found is not None
    assert (found.id, found.state, found.keys) == ("r1", "live", release.keys)
    assert (found.created, found.fingerprints) == (release.created, release.fingerprints)
    np.testing.assert_array_equal(found.status, release.status)
    np.testing.assert_array_equal(found.values, release.values)
    layout, wanted = store.layout("r1", *ADDRESS), make_layout()
    assert layout is not None
    assert (layout.axes, layout.slicer, layout.styles) == (wanted.axes, wanted.slicer, wanted.styles)
    np.testing.assert_array_equal(layout.cell, wanted.cell)
    catalogue, given = store.catalogue("r1"), make_catalogue("r1")
    assert catalogue is not None
    assert (catalogue.root, catalogue.protection, catalogue.cube_of) == (
        given.root,
        given.protection,
        given.cube_of,
    )
    assert catalogue.cubes["Cube"].hierarchies[0].caption(1, "en") == "Ávila"


@pytest.mark.parametrize("letters", [1, 100, 480, 5000])
def test_a_choice_of_members_with_long_keys_is_found(store: Store, letters: int) -> None:
    """No index holds a text of any length; what is random can't be packed either."""
    key = "".join(map(chr, np.random.default_rng(1).integers(0x4E00, 0x9FFF, letters)))
    choices = [(key, key), (key, f"{key}."), (f"{key}.", key)]
    layouts = {("s", "q", choice): make_layout() for choice in choices[:2]}
    store.publish(make_release("r1"), make_catalogue("r1"), layouts, step("release", b"r1"))
    assert [store.layout("r1", "s", "q", choice) is not None for choice in choices] == [True, True, False]


def test_a_newer_release_supersedes_the_older(store: Store) -> None:
    publish(store, "r1")
    publish(store, "r2")
    assert store.live_release_id() == "r2"
    older = store.release("r1")
    assert older is not None
    assert older.state == "superseded"
    live = store.book.get("r2")
    store.book.withdraw("r2", live.version, "admin", "a test")
    assert store.live_release() is None


def test_a_release_that_fails_leaves_no_trace(store: Store) -> None:
    publish(store, "r1")
    with pytest.raises(OperatorError):
        publish(store, "r1")
    making = Making(basis=("r1",))
    assert store.live_release_id() == "r1"
    release = make_release("r3")
    layouts = {("s" * 300, "q" * 300, ("c",)): make_layout(), ADDRESS: make_layout()}
    broken = StepResult("release", "input", "d" * 64, b"", {"nan": object()}, 1.0)
    with pytest.raises((OperatorError, TypeError)):
        store.publish(release, make_catalogue("r3"), layouts, broken, making)
    assert store.live_release_id() == "r1"
    assert store.release("r3") is None
    assert store.layout("r3", *ADDRESS) is None


def test_the_database_refuses_a_number_in_a_hidden_cell(url: str) -> None:
    store = open_store(url)
    publish(store, "r1")
    store.close()
    engine = connect(url)
    change = sa.update(t.release_cell).where(t.release_cell.c.status != 0).values(value=7.0)
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(change)
    two = sa.update(t.release).values(state="live")
    engine.dispose()
    store = open_store(url)
    publish(store, "r2")
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(two)
    engine.dispose()
    store.close()


def test_a_new_step_result_makes_later_ones_worthless(store: Store) -> None:
    for name in ("crawl", "assess", "build"):
        store.put_step(step(name))
    store.put_step(step("assess", b"other", primaries=3))
    assert store.step("crawl") is not None
    assert store.step("assess") == step("assess", b"other", primaries=3)
    assert store.step("build") is None
    status = store.status()
    assert status["primaries"] == 3
    assert set(status["seconds"]) == {"crawl", "assess"}
    store.forget_steps(["crawl"])
    assert store.step("crawl") is None


def test_a_damaged_result_is_told(url: str) -> None:
    store = open_store(url)
    store.put_step(step("crawl"))
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(sa.update(t.step).values(body=b"bodx"))
    engine.dispose()
    with pytest.raises(OperatorError, match="damaged"):
        store.step("crawl")
    store.close()


def test_only_one_run_at_a_time(url: str) -> None:
    first, second = open_store(url), open_store(url)
    with first.exclusive():
        with pytest.raises(UserError, match="under way"), second.exclusive():
            pytest.fail("two runs at once")
        job = first.start_job()
        first.report(job, StepProgress("suppress", 1, 3, "cutting", 2.0, 5.0))
    with second.exclusive():
        states = [item.state for item in second.jobs()]
        assert states == ["lost"]
        job = second.start_job()
        second.finish_job(job, "no luck")
    failed = second.jobs()[0]
    assert (failed.state, failed.error) == ("failed", "no luck")
    lost = second.jobs()[1].progress
    assert (lost.step, lost.done, lost.total, lost.lower, lost.upper) == ("suppress", 1, 3, 2.0, 5.0)
    first.close()
    second.close()


def test_migrations_go_both_ways_and_agree_with_the_tables(empty_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = connect(empty_url)
    migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, t.metadata) == []
    migrate(engine, "base")
    with engine.connect() as connection:
        assert set(sa.inspect(connection).get_table_names()) <= {"alembic_version"}
    migrate(engine)
    engine.dispose()
    store = open_store(empty_url)
    publish(store, "r1")
    store.close()


def test_a_database_of_a_newer_program_is_refused(url: str) -> None:
    open_store(url).close()
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(sa.text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    with pytest.raises(OperatorError, match="another version"):
        open_store(url)


@pytest.mark.parametrize("kind", ["mysql://root@localhost/x", "no url at all"])
def test_other_databases_are_the_users_mistake(kind: str) -> None:
    with pytest.raises(UserError):
        open_store(kind)


def test_an_unreachable_database_is_the_operators_matter(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as caught:
        open_store("postgresql://someone:secretword@127.0.0.1:1/none")
    assert "secretword" not in str(caught.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError):
        open_store(f"sqlite:///{tmp_path / 'file' / 'x.sqlite3'}")
    (tmp_path / "junk.sqlite3").write_bytes(b"this is no database" * 100)
    with pytest.raises(OperatorError):
        open_store(f"sqlite:///{tmp_path / 'junk.sqlite3'}")


FULL_DISK = """
import resource, sys
from tests.db.test_store import publish, step
from app.db import open_store
from app.domain.errors import OperatorError
store = open_store(sys.argv[1])
publish(store, "r1")
limit = 400_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    store.put_step(step("crawl", bytes(3_000_000)))
except OperatorError as error:
    print("refused", error)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
"""


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "refused The database couldn't be written" in done.stdout, done.stderr
    store = open_store(url)
    assert store.live_release_id() == "r1"
    assert store.step("crawl") is None
    assert store.step("release") is not None
    store.close()
