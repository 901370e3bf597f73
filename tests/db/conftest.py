from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Store, open_store
from tests.databases import KINDS, database_url


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
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()
