"""Cells a second of the crawl step on the demo, as a ratio to what is asked for, and its peak memory.

Generates the demo in a temporary folder, opens its cube, and crawls it a few times; the best counts, since
whatever else the machine does only slows it down. Run it with ``python -m bench.crawl``.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from app.cube.duckdb import open_cube
from app.pipeline.crawl import crawl
from app.pipeline.define import load_publication
from demo.generate import create_demo

WANTED_CELLS_A_SECOND = 20_000
WANTED_MEGABYTES = 1_500
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        create_demo(Path(folder))
        publication = load_publication(Path(folder))
        best, least, cells = 0.0, float("inf"), 0
        for _ in range(ROUNDS):
            servers = {cube.name: open_cube(cube) for cube in publication.cubes}
            wall, work = perf_counter(), process_time()
            found = crawl(publication, servers)
            wall, work = perf_counter() - wall, process_time() - work
            for server in servers.values():
                server.close()
            cells = found.n_published
            best, least = max(best, cells / wall), min(least, work)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{cells:,} published cells")
    print(f"wall clock: {best:,.0f} cells a second, {best / WANTED_CELLS_A_SECOND:.2f} times the bar")
    print(
        f"processor:  {cells / least:,.0f} cells a second, {cells / least / WANTED_CELLS_A_SECOND:.2f} times"
    )
    print(f"peak memory: {peak:,.0f} MB, {peak / WANTED_MEGABYTES:.2f} of the bar")


if __name__ == "__main__":
    main()
