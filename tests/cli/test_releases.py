"""What the commands that move a release say, word by word: they are read before something is shown to all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.bootstrap import publication_store
from app.cli.main import app
from app.db.store import Store
from tests.db.test_releases import make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "office"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    folder.mkdir()
    (folder / "publication.toml").touch()
    with publication_store(folder, new=True) as opened:
        yield opened


def releases(*arguments: object) -> tuple[int, str]:
    """Exit code of the command, and all that it says, in one line."""
    done = CliRunner().invoke(app, ["releases", *map(str, arguments)])
    return done.exit_code, " ".join(done.output.split())


def test_a_release_goes_its_way_in_words(folder: Path, store: Store) -> None:
    make(store, "r1")
    assert releases("approve", folder, "r1", "--by", "Eva") == (0, "Release r1 is approved.")
    assert str(store.book.get("r1").approved_by).endswith("for Eva")
    assert releases("revoke", folder, "r1") == (0, "Release r1 is audited.")
    code, said = releases("publish", folder, "r1")
    assert code == 2
    assert "r1 is audited" in said
    releases("approve", folder, "r1")
    day = (datetime.now(UTC) + timedelta(days=30)).date()
    said = f"Release r1 is scheduled until {day} 09:00 UTC."
    assert releases("schedule", folder, "r1", f"{day}T09:00", "--zone", "Atlantic/Reykjavik") == (0, said)
    releases("unschedule", folder, "r1")
    assert releases("publish", folder, "r1") == (0, "Release r1 is live.")


def test_what_tells_where_few_changed_is_approved_by_the_command_that_is_named(
    folder: Path, store: Store
) -> None:
    make(store, "r1", telltale=62)
    code, said = releases("approve", folder, "r1")
    assert code == 2
    assert "62 cells" in said
    remedy = f"celosia releases approve {folder} r1 --accept-telltale"
    assert remedy in said
    assert store.book.get("r1").state == "audited"
    named = remedy.split()[2:]
    assert releases(*named) == (0, "Release r1 is approved.")


def test_a_release_that_there_is_not(folder: Path, store: Store) -> None:
    make(store, "r1")
    code, said = releases("approve", folder, "r2")
    assert code == 2
    assert said == "There is no release r2. See them with: celosia releases list D"
    assert releases("list", folder)[0] == 0
