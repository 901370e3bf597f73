from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap.jobs import Queue, make_queue
from app.db import open_store
from tests.databases import KINDS, database_url
from tests.pipeline.offices import write_office


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_url(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a database without tables."""
    with database_url(request.param, tmp_path, empty=True) as made:
        yield made


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return write_office(tmp_path / "office")


@pytest.fixture
def queue(url: str, office: Path) -> Iterator[Queue]:
    store = open_store(url)
    yield make_queue(store, url, office)
    store.close()
