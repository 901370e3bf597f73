"""A publication whose facts stay in PostgreSQL: what its file says, and the same release as from a file."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from app.bootstrap.engines import open_cube
from app.domain.errors import UserError
from app.domain.release import Release
from app.pipeline.define import load_publication
from app.pipeline.run import run
from tests.cube.engines import fill
from tests.databases import database_url, new_store
from tests.pipeline.offices import write_office

FILE = 'file = "../data/firms.csv"'


def published(folder: Path) -> Release:
    store = new_store(folder / "store.sqlite3")
    try:
        run(load_publication(folder), store, open_cube)
        release = store.live_release()
        assert release is not None
        return release
    finally:
        store.close()


def rewritten(folder: Path, *changes: tuple[str, str]) -> Path:
    write_office(folder)
    (path,) = (folder / "cubes").glob("*.toml")
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    return folder


def test_the_same_release(tmp_path: Path) -> None:
    plain = rewritten(tmp_path / "plain")
    wanted = published(plain)
    with database_url("postgresql", tmp_path, empty=True) as url:
        with psycopg.connect(url) as connection:
            fill(load_publication(plain).cubes[0], lambda statement: connection.execute(statement.encode()))
        changes = ("[facts]", f'engine = "postgresql"\n[facts]\nurl = "{url}"\ntable = "facts"'), (FILE, "")
        found = published(rewritten(tmp_path / "office", *changes))
    assert found.keys == wanted.keys
    assert found.status.tolist() == wanted.status.tolist()


def test_a_table_is_named_as_the_database_names_it(tmp_path: Path) -> None:
    for engine, quoted in (("postgresql", '"fa`c""ts"'), ("spark", '`fa``c"ts`')):
        changes = ("[facts]", f'engine = "{engine}"\n[facts]\nurl = "x"\ntable = \'fa`c"ts\''), (FILE, "")
        (cube,) = load_publication(rewritten(tmp_path / engine, *changes)).cubes
        assert cube.facts.sql == f"select * from {quoted}"


def test_a_database_is_no_file(tmp_path: Path) -> None:
    folder = rewritten(tmp_path, ("[facts]", 'engine = "postgresql"\n[facts]'))
    with pytest.raises(UserError, match="not from a file") as caught:
        load_publication(folder)
    assert all(mistake.file and mistake.line for mistake in caught.value.mistakes)
