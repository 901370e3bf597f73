from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Event, Semaphore

import numpy as np
import pytest

from app.domain.errors import OperatorError
from app.domain.masked import CellStatus, Layout
from app.domain.masking import mask
from app.serve.answer import LiveReader, NotPublishedError, ReleaseMovedError
from tests.web.office import MemoryStore, Office

YEARS = ("time/years", "table", ())


def some_layout(store: MemoryStore) -> Layout:
    layout = store.layout("r1", *YEARS)
    assert layout is not None
    return layout


def test_shown_cells_carry_the_released_number_and_hidden_ones_none() -> None:
    store = MemoryStore()
    masked = LiveReader(store).answer("r1", *YEARS).masked
    assert set(masked.status.tolist()) == set(CellStatus) - {CellStatus.UNRELEASED}
    shown = masked.status == CellStatus.SHOWN
    assert np.all(np.isfinite(masked.values[shown]))
    assert np.all(np.isnan(masked.values[~shown]))


def test_without_a_release_everything_is_hidden() -> None:
    masked = mask(some_layout(MemoryStore()), None)
    assert np.all(masked.status == CellStatus.UNRELEASED)
    assert np.all(np.isnan(masked.values))


def test_cells_that_the_release_does_not_know_are_not_released() -> None:
    store = MemoryStore()
    layout = some_layout(store)
    strange = layout.cell.copy()
    strange[0], strange[1] = -1, 10**9
    masked = mask(replace(layout, cell=strange), store.live)
    assert masked.status[:2].tolist() == [CellStatus.UNRELEASED] * 2
    assert np.all(np.isnan(masked.values[:2]))


def test_a_cell_called_shown_without_a_number_is_hidden() -> None:
    store = MemoryStore()
    layout = some_layout(store)
    values = store.live.values.copy()
    values[layout.cell[0]] = np.nan
    masked = mask(layout, replace(store.live, values=values))
    assert masked.status[0] == CellStatus.CONFIDENTIAL


@pytest.mark.parametrize(
    "address",
    [
        ("time/years", "nope", ()),
        ("nope", "table", ()),
        ("time/years", "table", ("[Year].[Year].&[2021]",)),
        ("territory/places", "table", ()),
    ],
)
def test_an_unknown_address_is_not_published(address: tuple[str, str, tuple[str, ...]]) -> None:
    with pytest.raises(NotPublishedError):
        LiveReader(MemoryStore()).answer("r1", *address)


def test_a_release_that_is_not_live_gives_no_answer() -> None:
    reader = LiveReader(MemoryStore(release_id="r2"))
    with pytest.raises(ReleaseMovedError):
        reader.answer("r1", *YEARS)
    with pytest.raises(ReleaseMovedError):
        reader.catalogue("r1")


def test_a_switch_of_releases_is_noticed_when_patience_is_over() -> None:
    now = [0.0]
    store = MemoryStore()
    reader = LiveReader(store, patience=1.0, clock=lambda: now[0])
    assert reader.live_id() == "r1"
    store.live = Office().release("r2")[0]
    now[0] = 0.9
    assert reader.live_id() == "r1"
    now[0] = 1.0
    assert reader.live_id() == "r2"
    assert reader.answer("r2", *YEARS).masked.release_id == "r2"


def test_who_waited_for_a_store_that_failed_is_not_made_to_wait_for_another_try() -> None:
    store, begun, gate, came = MemoryStore(), Event(), Event(), Semaphore(0)
    releases, tries, moments = store.releases, list[int](), count(1)

    def failing() -> object:
        tries.append(1)
        begun.set()
        assert gate.wait(60)
        raise OperatorError("nobody there")

    def clock() -> float:
        came.release()
        return float(next(moments))

    store.releases = failing  # type: ignore[method-assign,assignment]
    reader = LiveReader(store, clock=clock)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(reader.marks)
        assert begun.wait(60)
        waiting = [pool.submit(reader.marks) for _ in range(3)]
        for _ in range(2 + len(waiting)):
            assert came.acquire(timeout=60)
        gate.set()
        for task in (first, *waiting):
            with pytest.raises(OperatorError, match="nobody"):
                task.result()
    assert len(tries) == 1
    store.releases = releases  # type: ignore[method-assign]
    assert reader.live_id() == "r1"
