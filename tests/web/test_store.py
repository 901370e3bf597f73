"""The site over real databases says exactly what it says over values in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.releases import Making
from app.db.store import StepResult, Store, open_store
from app.web.app import create_app
from tests.databases import KINDS, database_url
from tests.web.office import MemoryStore, Office, key_of
from tests.web.visitor import ask, crawl

STEP = StepResult("release", "a", "b", b"", {}, 0.1)
#: When all releases here went public.
RELEASED = Office().release("r1")[0].created


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with database_url(request.param, tmp_path) as url:
        opened = open_store(url, lambda connection: RELEASED)
        yield opened
        opened.close()


def publish(store: Store, office: MemoryStore) -> None:
    catalogue = office.catalogue(office.live.id)
    assert catalogue is not None
    making = Making(basis=tuple(record.id for record in store.book.all()))
    store.publish(office.live, catalogue, office.layouts, STEP, making)


def test_every_answer_is_the_same_as_from_memory(store: Store) -> None:
    office = MemoryStore()
    publish(store, office)
    expected, given = crawl(create_app(office)), crawl(create_app(store))
    assert given.keys() == expected.keys()
    for path, response in given.items():
        assert response.content == expected[path].content, path
        assert response.headers == expected[path].headers, path


def test_the_database_holds_no_hidden_number(store: Store) -> None:
    office = MemoryStore()
    publish(store, office)
    release = store.live_release()
    assert release is not None
    hidden = {key_of(cell) for cell in office.office.hidden}
    rows = [row for row, key in enumerate(release.keys) if key in hidden]
    assert len(rows) == len(hidden) > 0
    assert all(release.values[row] != release.values[row] for row in rows)


def test_a_second_release_takes_over_as_a_whole(store: Store) -> None:
    publish(store, MemoryStore())
    site = create_app(store, patience=0)
    before = ask(site, "/en/s/time/years")
    changed = Office()
    changed.hidden |= {cell for cell in changed.truth if cell[-1].endswith("&[2021]")} - changed.empty
    publish(store, MemoryStore(changed, "r2"))
    after = ask(site, "/en/s/time/years")
    assert before.status_code == after.status_code == 200
    assert after.text.count("[c]") > before.text.count("[c]")
    assert ask(site, "/r/r1/en/s/time/years").text.count("[c]") == before.text.count("[c]")


def test_without_a_release_the_site_says_so(store: Store) -> None:
    assert ask(create_app(store), "/en/").status_code == 503
