"""MDX over the default engine against hand-written DuckDB SQL, as ratios; run as ``python -m bench.mdx``.

Both aggregate the same facts in memory, in turns, so that whatever else the machine does weighs on both.
*Cold* has no cuboid; *warm* has. ``--large`` loads ten million facts and tells the peak of memory.

Readers at once are measured by their throughput, as a multiple of what one reader gets on one core (DuckDB
with one thread). Every cold query groups by columns of its own, so that none is answered by what another one
left. The same by hand-written SQL is the yardstick: it is what DuckDB makes of these cores. Warm queries are
Python, of which a process has one core's worth; more of it takes more processes, as `celosia serve` begins
them: ``--http`` measures readers of a release over HTTP, as users meet it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from statistics import median
from threading import Barrier
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.cube.duckdb import DuckDBEngine, open_cube
from app.cube.load import Loader
from app.cube.server import Server
from app.domain.publication import (
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)
from app.mdx import Query, parse
from bench.readers import compare_http

ROUNDS = 15
READERS = 16
SIZES = {"a": 20, "b": 10, "c": 100, "d": 50}
#: Enough columns for 28 cold queries that have nothing in common.
MANY = {**SIZES, "e": 8, "f": 12, "g": 30, "h": 40}
PAIRS = list(combinations(MANY, 2))
#: How often warm queries are asked for one asked cold.
REPEATED = 10


def write_facts(place: Path, n: int, sizes: Mapping[str, int] = SIZES) -> None:
    """Facts with a column of so many values each and an amount of euros."""
    random = np.random.default_rng(1)
    columns = {
        name: pa.array([f"{name}{value}" for value in range(size)]).take(
            pa.array(random.integers(0, size, n))
        )
        for name, size in sizes.items()
    }
    amount = pa.array(np.exp(random.normal(9, 1, n)).astype(np.int64))
    pq.write_table(pa.table({**columns, "amount": amount}), place)


def definition(place: Path, sizes: Mapping[str, int] = SIZES) -> CubeDefinition:
    def dimension(name: str) -> DimensionDefinition:
        level = LevelDefinition(name, {"en": name}, name, {}, None)
        return DimensionDefinition(
            name, {"en": name}, (HierarchyDefinition(name, {"en": name}, {"en": "All"}, (level,)),)
        )

    return CubeDefinition(
        "Bench",
        {"en": "Bench"},
        FactsDefinition(str(place), None, None, None, None, None, None),
        tuple(map(dimension, sizes)),
        (MeasureDefinition("Amount", {"en": "Amount"}, "sum", "amount", {}, "#,##0", 0, True),),
        (),
        Position("bench", 1),
    )


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def forget(server: Server) -> None:
    """Throw the cuboids away."""
    server.cuboids.clear()


def compare(place: Path) -> dict[str, float]:
    """Ratio of MDX to SQL for 200 and 5,000 cells, cold and warm."""
    server = open_cube(definition(place))
    raw = connected(place)
    ratios: dict[str, float] = {}
    for columns, rows in (("b", "a"), ("d", "c")):
        cells = SIZES[columns] * SIZES[rows]
        query = parse(
            f"SELECT [{columns}].[{columns}].Members ON 0, [{rows}].[{rows}].Members ON 1 FROM Bench"
        )
        sql = f"SELECT {columns}, {rows}, sum(amount) FROM facts GROUP BY {columns}, {rows} ORDER BY ALL"
        by_hand, cold, warm = [], [], []
        for _ in range(ROUNDS):
            by_hand.append(seconds(lambda sql=sql: raw.execute(sql).fetchall()))
            forget(server)
            cold.append(seconds(lambda query=query: server.execute(query)))
            warm.append(seconds(lambda query=query: server.execute(query)))
        total = sum(row[2] for row in raw.execute(sql).fetchall())
        assert total == server.execute(query).values.sum()
        ratios[f"{cells} cells cold"] = median(cold) / median(by_hand)
        ratios[f"{cells} cells warm"] = median(warm) / median(by_hand)
    server.close()
    return ratios


def connected(place: Path, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """The facts for hand-written SQL."""
    raw = duckdb.connect(config={} if threads is None else {"threads": threads})
    raw.execute("CREATE TABLE facts AS SELECT * FROM read_parquet(?)", [str(place)])
    return raw


def opened(place: Path, sizes: Mapping[str, int], threads: int | None = None) -> Server:
    engine = DuckDBEngine()
    if threads is not None:
        engine.run(f"SET threads = {threads}")
    return Loader(engine, definition(place, sizes)).load()


def mdx_of(pair: tuple[str, str]) -> Query:
    x, y = pair
    return parse(f"SELECT [{x}].[{x}].Members ON 0, [{y}].[{y}].Members ON 1 FROM Bench")


def by_hand(raw: duckdb.DuckDBPyConnection) -> Callable[[tuple[str, str]], object]:
    def answer(pair: tuple[str, str]) -> object:
        x, y = pair
        sql = f"SELECT {x}, {y}, sum(amount) FROM facts GROUP BY {x}, {y} ORDER BY ALL"
        return raw.cursor().execute(sql).fetchall()

    return answer


class Readers:
    """Threads that wait for questions; the time from the first question to the last answer."""

    def __init__(self, n: int) -> None:
        self._pool = ThreadPoolExecutor(n)
        begun = Barrier(n)
        list(self._pool.map(lambda _: begun.wait(), range(n)))

    def seconds(self, answer: Callable[[Any], object], asked: Sequence[object]) -> float:
        return seconds(lambda: list(self._pool.map(answer, asked)))


def read_warm(place: Path, readers: int, meeting: Any) -> None:
    """A process of its own for some readers of warm queries."""
    server, queries = opened(place, MANY), [mdx_of(pair) for pair in PAIRS]
    pool = Readers(readers)
    pool.seconds(server.execute, queries)
    meeting.wait()
    pool.seconds(server.execute, queries * REPEATED)
    meeting.wait()


def seconds_in_processes(place: Path, processes: int) -> float:
    """All readers of warm queries, each process with its share of them, and each asked as much as one is."""
    context = multiprocessing.get_context("spawn")
    meeting = context.Barrier(processes + 1)
    share = max(1, READERS // processes)
    started = [context.Process(target=read_warm, args=(place, share, meeting)) for _ in range(processes)]
    for process in started:
        process.start()
    meeting.wait()
    taken = seconds(meeting.wait)
    for process in started:
        process.join()
    return taken


def compare_readers(place: Path) -> dict[str, float]:
    """Throughput of 16 readers as a multiple of that of one reader on one core."""
    cores = os.cpu_count() or 1
    queries = [mdx_of(pair) for pair in PAIRS]
    single, server = opened(place, MANY, 1), opened(place, MANY)
    by_one, by_all = by_hand(connected(place, 1)), by_hand(connected(place))
    one, many = Readers(1), Readers(READERS)
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS // 2):
        taken["SQL of one"].append(one.seconds(by_one, PAIRS))
        taken["SQL"].append(many.seconds(by_all, PAIRS))
        for cube in (single, server):
            forget(cube)
        taken["cold of one"].append(one.seconds(single.execute, queries))
        taken["cold"].append(many.seconds(server.execute, queries))
        taken["warm of one"].append(one.seconds(single.execute, queries * REPEATED))
        taken["warm"].append(many.seconds(server.execute, queries * REPEATED))
    best = {name: median(times) for name, times in taken.items()}
    by_process = median([seconds_in_processes(place, cores) for _ in range(3)])
    return {
        f"SQL by hand on {cores} cores": best["SQL of one"] / best["SQL"],
        f"cold MDX on {cores} cores": best["cold of one"] / best["cold"],
        "warm MDX in one process": best["warm of one"] / best["warm"],
        f"warm MDX in {cores} processes": cores * best["warm of one"] / by_process,
        "cold MDX against as many readers of SQL": best["SQL"] / best["cold"],
        "warm MDX against as many readers of SQL": best["SQL"] * REPEATED / best["warm"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--http", action="store_true", help="readers over HTTP alone")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.http:
            compare_http(Path(folder) / "office", READERS)
            return
        place = Path(folder) / "facts.parquet"
        if chosen.large:
            write_facts(place, 10_000_000)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            server = open_cube(definition(place))
            print(f"open: {server.discover().hierarchies[0].size} members")
            server.execute(parse("SELECT [a].Members ON 0, [c].Members ON 1 FROM Bench"))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(f"10,000,000 facts: peak of {peak / 2**20:.2f} GB (writing them: {before / 2**20:.2f} GB)")
            return
        write_facts(place, chosen.facts)
        for name, ratio in compare(place).items():
            print(f"{name}: {ratio:.2f} × the time of SQL")
        write_facts(place, chosen.facts, MANY)
        for name, gain in compare_readers(place).items():
            print(f"{READERS} readers, {name}: {gain:.2f} × the throughput")


if __name__ == "__main__":
    main()
