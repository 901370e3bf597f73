from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.shell import create_studio
from tests.databases import new_store
from tests.studio.visitors import BASE, staffed


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    store = new_store(tmp_path / "celosia.sqlite3")
    yield staffed(tmp_path / "publication", store)
    store.close()


@pytest.fixture
def studio(office: Office) -> ASGIApp:
    return create_studio(office, PARTS, BASE)
