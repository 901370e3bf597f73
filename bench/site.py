"""Speed of the site, each figure beside its yardstick in the same run.

Throughput of a cached page and of a ``304`` by wrk (https://github.com/wg/wrk, Debian's package) as shares of
a bare Starlette route that returns the same bytes under the same headers; first rendering of a table of 200
cells beside the raw query of the cube; growth of the server's memory while it streams long files. Run it with
``python -m bench.site``; everything stays on this machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from app.bootstrap import publication_store, run_publication
from app.cli.serving import Server, reserve
from app.cube.duckdb import open_cube
from app.db.store import StepResult, open_store
from app.mdx import parse
from app.pipeline.define import load_publication
from app.web.app import create_app
from demo.starting import create_starter
from tests.web.large import ADDRESS, long_store
from tests.web.office import MemoryStore

PAGE = "/en/s/territory/places"
ROUNDS = 7
RENDERINGS = 31
SECONDS = 2
CELLS_200 = """title.en = "Two hundred cells"
order = 9

[[query]]
id = "table"
title.en = "Table"
show = "table"
mdx = \"\"\"
SELECT {[Measures].[Firms], [Measures].[Turnover]} * [Activity].[Activity].Members ON COLUMNS,
  {[Territory].[All], [Territory].[Town].Members} ON ROWS
FROM [Firms]
\"\"\"
"""


@contextmanager
def serving(make: Callable[[], ASGIApp], ours: bool = True) -> Iterator[tuple[str, int]]:
    """Address and process id of an application served by a process of its own: as ours, or uvicorn's."""
    listener = reserve("127.0.0.1", 0)
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(make, listener, ours), daemon=True
    )
    process.start()
    try:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        httpx.get(address + "/healthz", timeout=60)
        assert process.pid is not None
        yield address, process.pid
    finally:
        process.terminate()
        process.join()
        listener.close()


def _serve(make: Callable[[], ASGIApp], listener: socket.socket, ours: bool) -> None:
    if ours:
        Server(make()).run(sockets=[listener])
        return
    config = uvicorn.Config(make(), log_level="error", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def stored(folder: Path) -> str:
    """URL of a database with the tests' office's release."""
    office = MemoryStore()
    url = f"sqlite:///{folder / 'bench.sqlite3'}"
    store = open_store(url)
    catalogue = office.catalogue(office.live.id)
    assert catalogue is not None
    store.publish(office.live, catalogue, office.layouts, StepResult("release", "", "", b"", {}, 0.0))
    store.close()
    return url


def bare(status: int, body: bytes, headers: list[tuple[str, str]]) -> Starlette:
    """The same bytes and headers by Starlette alone."""
    named = {name: value for name, value in headers if name not in ("date", "content-length")}

    async def page(request: Request) -> Response:
        return Response(body, status, named)

    return Starlette(routes=[Route(PAGE, page)])


def throughput(address: str, headers: dict[str, str]) -> float:
    """Requests a second."""
    said = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    command = ["wrk", "-t1", "-c16", f"-d{SECONDS}s", *said, address + PAGE]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert found is not None
    assert "Socket errors" not in told, told
    return float(found.group(1))


def share(ours: str, headers: dict[str, str]) -> tuple[float, float]:
    """Our throughput as a share of the bare route's, and requests a second; the median of rounds in turns."""
    with httpx.Client() as client:
        request = client.build_request("GET", ours + PAGE, headers=headers)
        response = client.send(request, stream=True)
        body = b"".join(response.iter_raw())
        status, told = response.status_code, response.headers.multi_items()
    with serving(lambda: bare(status, body, told), ours=False) as (theirs, _):
        assert httpx.get(theirs + PAGE, headers=headers).status_code == status
        pairs = [(throughput(ours, headers), throughput(theirs, headers)) for _ in range(ROUNDS)]
    return median(one / other for one, other in pairs), median(one for one, _ in pairs)


def cached_pages(url: str) -> None:
    """Print the shares of a cached page and of a 304."""
    for name, patience in (("", 0.25), (", release asked from the database every time", 0.0)):
        with serving(lambda patience=patience: create_app(open_store(url), patience)) as (ours, _):
            packed = {"Accept-Encoding": "gzip"}
            tag = httpx.get(ours + PAGE, headers=packed).headers["etag"]
            cases = {
                "cached page": {"Accept-Encoding": "identity"},
                "cached page, gzip": packed,
                "304": {**packed, "If-None-Match": tag},
            }
            for case, headers in cases.items():
                part, each = share(ours, headers)
                print(f"{case}{name}: {part:.0%} of bare Starlette ({each:.0f} requests/s)")


def first_rendering(folder: Path) -> None:
    """Print the time of a first rendering beside that of the raw query, by turns in one run.

    Processor time of all threads besides the clock's: it says the same on a machine that does other work.
    """
    create_starter(folder)
    sheet = folder / "sheets" / "economy" / "bench.toml"
    sheet.write_text(CELLS_200, encoding="utf-8")
    run_publication(folder)
    publication = load_publication(folder)
    (query,) = (q for s in publication.root.walk() if s.id == "economy/bench" for q in s.queries)
    raw: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    tree = parse(query.mdx)
    with publication_store(folder) as store:
        for _ in range(RENDERINGS):
            with closing(open_cube(publication.cubes[0])) as server:
                server.discover()
                begun = _now()
                cells = server.execute(tree).values.size
                raw.append(_since(begun))
            site = httpx.ASGITransport(create_app(store))
            ours.append(_first(site))
    for number, clock in enumerate(("processor", "clock")):
        page, query = (median(times[number] for times in taken) * 1e3 for taken in (ours, raw))
        print(
            f"first rendering of {cells} cells, by the {clock}: {page:.1f} ms; raw query {query:.1f} ms; "
            f"allowed {query * 1.5 + 10:.1f} ms; share {page / (query * 1.5 + 10):.0%}"
        )


def _now() -> tuple[float, float]:
    return process_time(), perf_counter()


def _since(begun: tuple[float, float]) -> tuple[float, float]:
    """Seconds of all threads, and of the clock."""
    return process_time() - begun[0], perf_counter() - begun[1]


def _first(site: httpx.ASGITransport) -> tuple[float, float]:
    async def timed() -> tuple[float, float]:
        async with httpx.AsyncClient(transport=site, base_url="http://localhost") as client:
            # The release and the templates are in memory, the page is not.
            await client.get("/en/s/economy/activities")
            begun = _now()
            response = await client.get("/en/s/economy/bench")
            assert response.status_code == 200
            return _since(begun)

    return asyncio.run(timed())


def streaming(cells: int) -> None:
    """Print how much the server's memory grows while a file of so many cells is sent."""
    with serving(lambda: create_app(long_store(cells))) as (address, pid):
        httpx.get(
            address + ADDRESS.replace(".csv", ".csv?"), headers={"range": "bytes=0-0"}, timeout=None
        ).close()
        before, peak, size, begun = _resident(pid), 0, 0, perf_counter()
        with httpx.stream(
            "GET", address + ADDRESS, headers={"accept-encoding": "identity"}, timeout=None
        ) as sent:
            for number, part in enumerate(sent.iter_raw()):
                size += len(part)
                if number % 20 == 0:
                    peak = max(peak, _resident(pid))
        taken = perf_counter() - begun
    grown = (peak - before) / 2**20
    print(f"CSV of {cells} cells: {size / 2**20:.0f} MB in {taken:.1f} s, memory grows by {grown:.1f} MB")


def _resident(pid: int) -> int:
    """Bytes of a process in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def main() -> None:
    """Measure everything."""
    if shutil.which("wrk") is None:
        sys.exit("The benchmark needs wrk: apt-get install wrk")
    with TemporaryDirectory() as made:
        cached_pages(stored(Path(made)))
        first_rendering(Path(made) / "starter")
    for cells in (100_000, 1_000_000):
        streaming(cells)


if __name__ == "__main__":
    main()
