"""Readers of MDX over HTTP, as users meet it: sixteen beside one, of ``celosia serve``.

They ask for cells of a release over XMLA. Each reader has a connection of its own and asks again as soon as
it is answered. All are in one process that does nothing else; its share of the processor is told beside the
gain, since it takes its part of the same cores.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep

from app.bootstrap import run_publication
from demo.starting import create_starter

SECONDS = 4.0
ROUNDS = 5
_SOAP = (
    '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>'
    '<Execute xmlns="urn:schemas-microsoft-com:xml-analysis"><Command><Statement>{}</Statement></Command>'
    "<Properties><PropertyList/></Properties></Execute></Body></Envelope>"
)
#: Tables, formulas and sets chosen by values, of a starter's cube.
QUERIES = (
    "SELECT {[Measures].[Firms], [Measures].[Turnover]} ON 0, [Territory].Members ON 1 FROM Firms",
    "SELECT [Activity].Members ON 0, [Territory].Members ON 1 FROM Firms WHERE [Measures].[Turnover]",
    "WITH MEMBER [Measures].[Each] AS [Measures].[Turnover] / [Measures].[Firms] "
    "SELECT {[Measures].[Each]} ON 0, [Territory].Members * [Activity].Members ON 1 FROM Firms",
    "SELECT {[Measures].[Firms]} ON 0, Order([Territory].Members, [Measures].[Turnover], BDESC) ON 1 "
    "FROM Firms",
)


@contextmanager
def served(folder: Path, processes: int) -> Iterator[tuple[str, int]]:
    """Host and port of the publication's site, served as its office serves it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = free.getsockname()
    program = [sys.executable, "-c", "from app.cli import main; main()"]
    command = [*program, "serve", str(folder), "--port", str(place[1]), "--processes", str(processes)]
    server = subprocess.Popen(command, env={**os.environ, "CELOSIA_REQUESTS_PER_SECOND": "0"})
    try:
        while not _answers(place):
            assert server.poll() is None, "celosia serve has ended"
            sleep(0.1)
        yield place
    finally:
        server.terminate()
        server.wait()


def _answers(place: tuple[str, int]) -> bool:
    connection = HTTPConnection(*place, timeout=60)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _read(place: tuple[str, int], bodies: Sequence[bytes], until: float) -> int:
    """Answers that one reader gets."""
    connection, n = HTTPConnection(*place, timeout=60), 0
    for body in cycle(bodies):
        if perf_counter() >= until:
            break
        connection.request("POST", "/xmla", body, {"Content-Type": "text/xml"})
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status == 200, told[:500]
        assert b"Fault" not in told, told[:500]
        n += 1
    connection.close()
    return n


def throughput(place: tuple[str, int], readers: int) -> tuple[float, float]:
    """Answers a second, and the share of a core that the readers themselves took."""
    bodies = [_SOAP.format(query).encode() for query in QUERIES]
    shifted = [
        list(islice(cycle(bodies), k % len(bodies), k % len(bodies) + len(bodies))) for k in range(readers)
    ]
    with ThreadPoolExecutor(readers) as pool:
        begun, own = perf_counter(), process_time()
        answers = sum(pool.map(lambda asked: _read(place, asked, begun + SECONDS), shifted))
        taken = perf_counter() - begun
    return answers / taken, (process_time() - own) / taken


def compare_http(folder: Path, readers: int, say: Callable[[str], object] = print) -> None:
    """Tell the gain of many readers beside one, of one process and of one for each core."""
    create_starter(folder)
    run_publication(folder)
    cores = os.cpu_count() or 1
    for processes in dict.fromkeys((1, cores)):
        with served(folder, processes) as place:
            throughput(place, readers)
            rounds = [(throughput(place, 1), throughput(place, readers)) for _ in range(ROUNDS)]
        one, many = (median(pair[k][0] for pair in rounds) for k in (0, 1))
        gain = median(many[0] / one[0] for one, many in rounds)
        own = median(pair[1][1] for pair in rounds)
        what = f"{processes} process{'es' if processes > 1 else ''} of celosia serve"
        say(f"{readers} readers over HTTP, {what}: {gain:.2f} × one reader")
        say(f"  {many:.0f} and {one:.0f} answers a second; the readers themselves took {own:.0%} of a core")
