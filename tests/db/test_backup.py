"""Backups of real databases: what comes back, to either kind, and what is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db import Store, open_store
from app.db import tables as t
from app.db.backup import LEFT_OUT, back_up, inspect, restore
from app.db.database import Database
from app.db.engine import connect, migrate
from app.db.jobs import JobTable
from app.domain.errors import OperatorError, UserError
from app.domain.progress import StepProgress
from tests.databases import KINDS, database_url, new_store
from tests.db.test_store import publish, step


def contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.reading() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))
            ]
            for table in t.metadata.sorted_tables
            if table.name not in LEFT_OUT
        }


@pytest.fixture
def full(store: Store) -> Store:
    """A database with something of many kinds: moments, texts, JSON, bytes, nothing."""
    publish(store, "r1")
    publish(store, "r2")
    store.scoped("version-1").put_step(step("crawl", bytes(range(256)) * 50, primaries=3, share=0.25))
    jobs = JobTable(store.database)
    jobs.submit(1, "version-1", {"steps": ["crawl"]}, "ñandú\n\"'")
    lease = jobs.claim("w")
    assert lease is not None
    jobs.report(lease, StepProgress("crawl", 1, 2, "x", 1.5))
    return store


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_comes_back_to_either_kind(full: Store, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "backup"
    made = back_up(full.database, path)
    assert (path.stat().st_mode & 0o077) == 0
    assert made.rows["release"] == 2
    assert inspect(path).rows == made.rows
    (tmp_path / "other").mkdir()
    with database_url(kind, tmp_path / "other") as url:
        other = open_store(url)
        restore(other.database, path)
        assert repr(contents(other.database)) == repr(contents(full.database))
        assert other.live_release_id() == "r2"
        assert JobTable(other.database).submit(None, "folder", {}, "new") == 2
        with pytest.raises(UserError, match="isn't empty"):
            restore(other.database, path)
        other.close()


def test_a_backup_of_an_older_version_is_brought_up_to_date(empty_url: str, tmp_path: Path) -> None:
    engine = connect(empty_url)
    migrate(engine, "0001")
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "insert into job (state, started, step, done, total, message)"
                " values ('done', '2026-01-02 03:04:05.000006', 'audit', 1, 1, '')"
            )
        )
    path = tmp_path / "backup"
    back_up(Database(engine), path)
    engine.dispose()
    (tmp_path / "new").mkdir()
    with database_url("sqlite", tmp_path / "new") as new:
        store = open_store(new)
        restore(store.database, path)
        (job,) = store.jobs()
        assert job.submitted == job.started
        assert (job.submitted.isoformat(), job.state) == ("2026-01-02T03:04:05.000006+00:00", "done")
        store.close()


#: Ways of packing that no backup is written in; each fails in a way of its own where it is spoilt.
PACKINGS = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}


def damage(path: Path, kind: str) -> None:
    body = bytearray(path.read_bytes())
    if kind == "flipped":
        with zipfile.ZipFile(path) as archive:
            largest = max(archive.infolist(), key=lambda member: member.compress_size)
        # In what a table says: the times and versions of a zip file's own headers say nothing to a restore.
        headers = (
            largest.header_offset + 30 + int.from_bytes(body[largest.header_offset + 28 :][:2], "little")
        )
        body[headers + len(largest.filename) + largest.compress_size // 3] ^= 0x40
    elif kind == "cut":
        del body[len(body) * 2 // 3 :]
    elif kind == "manifest":
        place = body.rindex(b"celosia-backup") if b"celosia-backup" in body else len(body) - 70
        body[place] ^= 1
    elif kind == "comment":
        body[-1] ^= 1
    elif kind in PACKINGS:
        with zipfile.ZipFile(path) as old:
            members, comment = {name: old.read(name) for name in old.namelist()}, old.comment
        with zipfile.ZipFile(path, "w", PACKINGS[kind]) as new:
            for name, member in members.items():
                new.writestr(name, member)
            new.comment = comment
        body = bytearray(path.read_bytes())
        body[body.index(b"jsonl") + 12] ^= 0xFF
    path.write_bytes(bytes(body))


@pytest.mark.parametrize("kind", ["flipped", "cut", "manifest", "comment", *PACKINGS])
def test_a_damaged_backup_is_refused_and_nothing_is_written(full: Store, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "backup"
    back_up(full.database, path)
    damage(path, kind)
    (tmp_path / "new").mkdir()
    other = new_store(tmp_path / "new" / "x.sqlite3")
    with pytest.raises(UserError):
        restore(other.database, path)
    assert not any(contents(other.database).values())
    other.close()


def test_foreign_files_are_refused(full: Store, tmp_path: Path) -> None:
    good = tmp_path / "good"
    back_up(full.database, good)
    files = {}
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    for name, change in {
        "another kind": {"format": "elsewhere"},
        "a newer one": {"revision": "9999"},
        "a newer format": {"version": 2},
    }.items():
        files[name] = {**members, "manifest.json": json.dumps(json.loads(members["manifest.json"]) | change)}
    files["more than it says"] = {**members, "extra.jsonl": b"[]\n"}
    files["less than it says"] = {key: value for key, value in members.items() if key != "job.jsonl"}
    files["any zip"] = {"a.txt": b"x"}
    for name, listed in files.items():
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            for member, body in listed.items():
                archive.writestr(member, body)
            archive.comment = comment
        with pytest.raises(UserError):
            inspect(path)
    (tmp_path / "text").write_text("no zip at all")
    with pytest.raises(UserError):
        inspect(tmp_path / "text")
    with pytest.raises(OperatorError):
        inspect(tmp_path / "nowhere")
    with pytest.raises(UserError, match="exists"):
        back_up(full.database, good)


@pytest.mark.parametrize(
    "row",
    ["{no", "[1]", "1", "null", '[{"q": 1}, "a", "admin", null, null, true, {"t": "x"}]',
     '[1, "a", "admin", null, null, true, {"t": 5}]', '[1, {"b": "%"}, "admin", null, null, true, 1]',
     '[99999999999999999999, "a", "admin", null, null, true, {"t": "2026-01-01T00:00:00+00:00"}]',
     '[1, "a", "king", null, null, true, {"t": "2026-01-01T00:00:00+00:00"}]', "[" * 100_000],
    ids=lambda row: row[:20],
)  # fmt: skip
def test_rows_that_somebody_else_wrote_are_refused_and_nothing_is_written(
    full: Store, row: str, tmp_path: Path
) -> None:
    """Whoever makes a backup can make its digests, too."""
    good = tmp_path / "good"
    back_up(full.database, good)
    body = f"{row}\n".encode()
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    manifest["tables"]["account"]["sha256"] = hashlib.sha256(body).hexdigest()
    text = json.dumps(manifest).encode()
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        for name, content in {**members, "account.jsonl": body, "manifest.json": text}.items():
            archive.writestr(name, content)
        archive.comment = hashlib.sha256(text).hexdigest().encode()
    (tmp_path / "new").mkdir()
    other = new_store(tmp_path / "new" / "x.sqlite3")
    with pytest.raises((UserError, OperatorError)):
        restore(other.database, tmp_path / "other")
    assert not any(contents(other.database).values())
    other.close()


def test_a_backup_is_of_one_moment(full: Store, tmp_path: Path) -> None:
    """While it is written others write: it shows what was when it began."""
    before = contents(full.database)
    seen = []

    @sa.event.listens_for(sa.Engine, "after_cursor_execute")
    def meddle(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        # In the middle of the backup, once it reads the release's own table.
        if "FROM release ORDER BY" in " ".join(statement.split()) and not seen:
            seen.append(statement)
            other = open_store(full.database.engine.url.render_as_string(hide_password=False))
            publish(other, "r3")
            other.close()

    path = tmp_path / "backup"
    try:
        back_up(full.database, path)
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", meddle)
    assert seen
    (tmp_path / "new").mkdir()
    store = new_store(tmp_path / "new" / "x.sqlite3")
    restore(store.database, path)
    assert repr(contents(store.database)) == repr(before)
    store.close()


def test_a_backup_that_swells_without_measure_is_refused_before_it_is_read(
    full: Store, tmp_path: Path
) -> None:
    """Its hashes are right: whoever makes a bomb can make them so."""
    good = tmp_path / "good"
    back_up(full.database, good)
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    body = members["setting.jsonl"] + b'["a", "' + b"a" * (64 << 20) + b'"]\n'
    manifest = json.loads(members["manifest.json"])
    manifest["tables"]["setting"] |= {"sha256": hashlib.sha256(body).hexdigest()}
    members |= {"setting.jsonl": body, "manifest.json": json.dumps(manifest).encode()}
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = hashlib.sha256(members["manifest.json"]).hexdigest().encode()
    assert path.stat().st_size < 1 << 20
    for attempt in (inspect, lambda path: restore(full.database, path)):
        with pytest.raises(UserError, match="unpacks to more"):
            attempt(path)
