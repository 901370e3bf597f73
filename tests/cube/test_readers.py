"""Readers of one cube at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Lock

import numpy as np
import pytest

from app.cube.duckdb import DuckDBEngine, open_cube
from app.domain.errors import OperatorError
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


def test_readers_scan_for_different_cells_at_once(tmp_path: Path, monkeypatch) -> None:
    cube = load_publication(write_office(tmp_path, firms(1))).cubes[0]
    server = open_cube(cube)
    both = Barrier(2, timeout=30)
    scan = DuckDBEngine.scan

    def together(self, *asked):
        both.wait()
        return scan(self, *asked)

    monkeypatch.setattr(DuckDBEngine, "scan", together)
    asked = [
        parse(f"SELECT {levels}.Members ON 0 FROM [Firms]")
        for levels in ("[Place].[Town]", "[Activity].[Activity]")
    ]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(server.execute, asked))
    assert all(np.isfinite(answer.values).any() for answer in answers)


def test_readers_of_the_same_cells_share_one_scan(tmp_path: Path, monkeypatch) -> None:
    cube = load_publication(write_office(tmp_path, firms(1))).cubes[0]
    server, query = open_cube(cube), parse(QUERIES[-1])
    scans, lock, scan = [], Lock(), DuckDBEngine.scan

    def counted(self, wanted, measures):
        with lock:
            scans.extend(wanted)
        return scan(self, wanted, measures)

    monkeypatch.setattr(DuckDBEngine, "scan", counted)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(server.execute, [query] * 32))
    assert len(scans) == len(set(scans))
    for answer in answers:
        np.testing.assert_array_equal(answer.values, answers[0].values)


def test_a_scan_that_fails_is_made_again_by_who_waits_for_it(tmp_path: Path, monkeypatch) -> None:
    cube = load_publication(write_office(tmp_path, firms(1))).cubes[0]
    server, query = open_cube(cube), parse(QUERIES[-1])
    begun, may_fail, failed = Event(), Event(), []
    scan = DuckDBEngine.scan

    def once(self, *asked):
        if not failed:
            failed.append(True)
            begun.set()
            assert may_fail.wait(30)
            raise OperatorError("no memory")
        return scan(self, *asked)

    monkeypatch.setattr(DuckDBEngine, "scan", once)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.execute, query)
        assert begun.wait(30)
        second = pool.submit(server.execute, query)
        may_fail.set()
        with pytest.raises(OperatorError):
            first.result(timeout=30)
        answer = second.result(timeout=30)
    np.testing.assert_array_equal(answer.values, open_cube(cube).execute(query).values)
