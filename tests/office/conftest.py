from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap.office import make_office
from app.db import open_store
from app.office.office import Office
from tests.databases import KINDS, database_url


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_url(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def office(url: str, tmp_path: Path) -> Iterator[Office]:
    store = open_store(url)
    yield make_office(tmp_path / "publication", store)
    store.close()
