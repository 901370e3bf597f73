"""Readers of one cube at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np

from app.cube.duckdb import DuckDBEngine, open_cube
from app.mdx import parse
from app.pipeline.define import load_publication
from tests.pipeline.offices import firms, write_office

LEVELS = ["[Place].[Region]", "[Place].[Town]", "[Activity].[Activity]", "[Size].[Size]"]
QUERIES = [
    f"SELECT {a}.Members ON 0, {b}.Members ON 1 FROM [Firms] WHERE [Measures].[{measure}]"
    for a in LEVELS
    for b in LEVELS
    if a.split(".")[0] != b.split(".")[0]
    for measure in ("Firms", "Turnover", "Average")
]


def test_readers_at_once_get_what_one_gets(tmp_path: Path) -> None:
    cube = load_publication(write_office(tmp_path, firms(1))).cubes[0]
    alone, together = open_cube(cube), open_cube(cube)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda text: together.execute(parse(text)), QUERIES * 3))
    for text, answer in zip(QUERIES * 3, answers, strict=True):
        np.testing.assert_array_equal(answer.values, alone.execute(parse(text)).values)


def test_a_reader_who_needs_nothing_new_does_not_wait_for_others(tmp_path: Path, monkeypatch) -> None:
    cube = load_publication(write_office(tmp_path, firms(1))).cubes[0]
    server = open_cube(cube)
    ready, slow = parse(QUERIES[0]), parse(QUERIES[-1])
    expected = server.execute(ready).values
    begun, may_end = Event(), Event()
    scan = DuckDBEngine.scan

    def slowly(self, *asked):
        begun.set()
        assert may_end.wait(30)
        return scan(self, *asked)

    monkeypatch.setattr(DuckDBEngine, "scan", slowly)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(server.execute, slow)
        try:
            assert begun.wait(30)
            answer = pool.submit(server.execute, ready).result(timeout=30)
            assert not waiting.done()
        finally:
            may_end.set()
        waiting.result(timeout=30)
    np.testing.assert_array_equal(answer.values, expected)
