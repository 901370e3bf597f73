"""MDX over the default engine against hand-written DuckDB SQL, as ratios; run as ``python -m bench.mdx``.

Both aggregate the same facts in memory, in turns, so that whatever else the machine does weighs on both.
*Cold* has no cuboid; *warm* has. ``--large`` loads ten million facts and tells the peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.cube.duckdb import open_cube
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
from app.mdx import parse

ROUNDS = 15
READERS = 16
SIZES = {"a": 20, "b": 10, "c": 100, "d": 50}


def write_facts(place: Path, n: int) -> None:
    """Facts with columns of 20, 10, 100 and 50 values and an amount of euros."""
    random = np.random.default_rng(1)
    columns = {
        name: pa.array([f"{name}{value}" for value in range(size)]).take(
            pa.array(random.integers(0, size, n))
        )
        for name, size in SIZES.items()
    }
    amount = pa.array(np.exp(random.normal(9, 1, n)).astype(np.int64))
    pq.write_table(pa.table({**columns, "amount": amount}), place)


def definition(place: Path) -> CubeDefinition:
    def dimension(name: str) -> DimensionDefinition:
        level = LevelDefinition(name, {"en": name}, name, {}, None)
        return DimensionDefinition(
            name, {"en": name}, (HierarchyDefinition(name, {"en": name}, {"en": "All"}, (level,)),)
        )

    return CubeDefinition(
        "Bench",
        {"en": "Bench"},
        FactsDefinition(str(place), None, None, None, None, None, None),
        tuple(map(dimension, SIZES)),
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
    """Ratio of MDX to SQL for 200 and 5,000 cells, cold and warm; of 16 readers to one for the same work,
    and to 16 readers of SQL.
    """
    server = open_cube(definition(place))
    raw = duckdb.connect()
    raw.execute("CREATE TABLE facts AS SELECT * FROM read_parquet(?)", [str(place)])
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
    pairs = [(x, y) for x in SIZES for y in SIZES if x != y] * 4
    queries = [
        parse(f"SELECT [{x}].[{x}].Members ON 0, [{y}].[{y}].Members ON 1 FROM Bench") for x, y in pairs
    ]
    statements = [f"SELECT {x}, {y}, sum(amount) FROM facts GROUP BY {x}, {y} ORDER BY ALL" for x, y in pairs]

    def by_readers(readers: int, work: Callable[[Any], object], asked: Sequence[object]) -> float:
        with ThreadPoolExecutor(readers) as pool:
            return seconds(lambda: list(pool.map(work, asked)))

    def by_sql(sql: str) -> object:
        return raw.cursor().execute(sql).fetchall()

    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS // 2):
        for readers in (1, READERS):
            forget(server)
            taken[f"cold {readers}"].append(by_readers(readers, server.execute, queries))
            taken[f"warm {readers}"].append(by_readers(readers, server.execute, queries))
            taken[f"SQL {readers}"].append(by_readers(readers, by_sql, statements))
    for what in ("cold", "warm", "SQL"):
        ratios[f"{READERS} readers {what}"] = median(taken[f"{what} {READERS}"]) / median(taken[f"{what} 1"])
    for what in ("cold", "warm"):
        ratios[f"{READERS} readers of {what} MDX"] = median(taken[f"{what} {READERS}"]) / median(
            taken[f"SQL {READERS}"]
        )
    server.close()
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
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
            against = "SQL" if "readers" not in name else "their SQL" if "MDX" in name else "one reader"
            print(f"{name}: {ratio:.2f} × {against}")


if __name__ == "__main__":
    main()
