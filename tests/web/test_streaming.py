"""Long files: the same bytes as short ones would have, made while they are sent."""

from __future__ import annotations

import asyncio
import tracemalloc
from io import StringIO

import pandas as pd
import pytest
from starlette.types import Message

from app.domain.observations import observations_of
from app.serve.answer import LiveReader
from app.web.app import create_app
from app.web.arrange import Arrangement
from app.web.contents import Contents
from app.web.files import LONG
from app.web.formats.registry import BY_EXTENSION
from app.web.locate import HEAD
from app.web.pages import Site
from tests.web.large import ADDRESS, long_store
from tests.web.visitor import ask

CELLS = 2 * LONG


def test_a_long_file_has_every_cell_once_and_in_order() -> None:
    store = long_store(CELLS)
    site = create_app(store)
    response = ask(site, ADDRESS, headers={"accept-encoding": "identity"})
    assert "content-length" not in response.headers
    frame = pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)
    layout = store.layouts["time/years", "table", ()]
    assert len(frame) == layout.cell.size > CELLS
    assert list(frame.columns[:2]) == ["[District]", "District"]
    each = int((frame.District == "District 0, north").sum())
    first, last = (part.drop(columns=["[District]", "District"]) for part in (frame[:each], frame[-each:]))
    assert (first.to_numpy() == last.to_numpy()).all()
    assert set(frame.OBS_STATUS) == {"A", "Q", "M"}
    assert (frame[frame.OBS_STATUS != "A"].OBS_VALUE == "").all()


@pytest.mark.parametrize("extension", ["csv", "sdmx-csv"])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_long_file_is_the_same_in_every_coding(coding: str, extension: str) -> None:
    site = create_app(long_store(CELLS))
    address = ADDRESS.replace(".csv", f".{extension}")
    plain = ask(site, address, headers={"accept-encoding": "identity"})
    packed = ask(site, address, headers={"accept-encoding": coding})
    assert packed.headers["content-encoding"] == coding
    assert packed.content == plain.content
    assert packed.headers["etag"] != plain.headers["etag"]
    again = ask(site, address, headers={"accept-encoding": coding, "if-none-match": packed.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = ask(site, address, "HEAD", headers={"accept-encoding": coding})
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(packed.headers)


def test_the_tag_of_a_long_file_changes_with_what_is_in_it() -> None:
    store = long_store(CELLS)
    site = create_app(store, patience=0)
    tags = {ask(site, address).headers["etag"] for address in (ADDRESS, ADDRESS.replace("/en/", "/es/"))}
    store.office.hidden |= set(list(store.office.truth)[:50]) - store.office.empty
    store.live = store.office.release("r2")[0]
    tags.add(ask(site, ADDRESS).headers["etag"])
    assert len(tags) == 3


def test_a_client_that_hangs_up_stops_the_work(caplog: pytest.LogCaptureFixture) -> None:
    site = create_app(long_store(20 * LONG))
    sent: list[int] = []
    gone = asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(len(message.get("body", b"")))
        if len(sent) == 3:
            gone.set()
        await asyncio.sleep(0)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": ADDRESS,
        "raw_path": ADDRESS.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
        HEAD: False,
    }
    with caplog.at_level("INFO"):
        asyncio.run(site(scope, receive, send))
    assert len(sent) < 50
    assert [record.levelname for record in caplog.records if record.name == "celosia.guard"] == ["INFO"]


def test_memory_does_not_grow_with_the_file() -> None:
    peaks = []
    for cells in (LONG, 8 * LONG):
        store = long_store(cells)
        contents = Contents(LiveReader(store).catalogue("r1"))
        entry = contents.sheet("time/years")
        served = LiveReader(store).answer("r1", "time/years", "table", ())
        site = Site(contents, "en", "http://site.test")
        download = site.view(entry, entry.sheet.queries[0], (), served, Arrangement()).download()
        assert len(observations_of(served.masked)) > cells
        tracemalloc.start()
        try:
            size = sum(len(part) for part in BY_EXTENSION["csv"].parts(download))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert size > 40 * cells
    assert peaks[1] < 1.5 * peaks[0] < 6e6
