from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Store
from tests.databases import KINDS, database_url, new_store
from tests.pipeline.offices import write_office


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_url(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = new_store(tmp_path / "celosia.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return write_office(tmp_path / "office")
