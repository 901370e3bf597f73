"""What was solved is what is explained and exported: cells that are tied to hidden ones stay hidden."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.db.codec import Codec, digest_of
from app.domain.errors import OperatorError, UserError
from app.office.problems import problem_results
from app.pipeline.define import load_publication
from app.pipeline.export import export_problems
from app.pipeline.promises import read_promises
from app.pipeline.run import run
from app.pipeline.running import RESULTS
from app.pipeline.suppress import Suppression
from app.pipeline.why import why
from solver import Instance, Solution, Status, audit, solve
from tests.pipeline.offices import PUBLICATION, write_office
from tests.pipeline.test_protection import Ran

NOBODY_INSIDE = PUBLICATION.replace("[confidentiality]", "[confidentiality]\ninsiders = false", 1)
RULES = {"sole contributors": PUBLICATION, "nobody inside": NOBODY_INSIDE}


def tied_of(ran: Ran, number: int) -> np.ndarray:
    """Cells (bool[n]) of a problem that were hidden beforehand."""
    return ran.suppression.solved(number, ran.problems.problems[number]).status == Status.HIDDEN


# ---------------------------------------------------------------------- explained


@pytest.mark.parametrize("rules", RULES)
def test_showing_a_cell_costs_no_less_than_the_best_pattern(tmp_path: Path, store: Store, rules: str) -> None:
    ran = Ran(write_office(tmp_path / "office", publication=RULES[rules]), store)
    asked = besides_tied = 0
    for number, (problem, solution) in enumerate(
        zip(ran.problems.problems, ran.suppression.solutions, strict=True)
    ):
        instance = ran.suppression.solved(number, problem)
        names = np.array(instance.names)
        tied = {*names[tied_of(ran, number)].tolist()}
        secondary = solution.hidden & (instance.status == Status.FREE)
        for key in names[secondary].tolist():
            found = why(ran.crawl, ran.primaries, ran.problems, ran.suppression, key)
            other = found.alternative
            if other is None or not other.possible:
                continue
            asked += 1
            besides_tied += bool(tied)
            assert key in other.shows
            assert tied.isdisjoint((*other.hides, *other.shows))
            # It is a safe pattern, and costs what it says.
            then = (solution.hidden | np.isin(names, other.hides)) & ~np.isin(names, other.shows)
            assert audit(instance, then).ok
            extra = instance.cost(then) - instance.cost(solution.hidden)
            assert other.extra_cost == pytest.approx(extra, abs=1e-9)
            if solution.status == "optimal":
                assert other.extra_cost >= 0, key
    assert asked > 5
    assert besides_tied


# ---------------------------------------------------------------------- exported


@pytest.mark.parametrize("rules", RULES)
def test_exported_problems_solve_to_what_the_run_s_patterns_cost(
    tmp_path: Path, url: str, rules: str
) -> None:
    store = open_store(url)
    ran = Ran(write_office(tmp_path / "office", publication=RULES[rules]), store)
    exported = export_problems(store, tmp_path / "out")
    store.close()
    assert [item.path.name for item in exported] == [
        f"problem-{number:04d}.jj" for number in range(1, ran.status["problems"] + 1)
    ]
    assert sum(item.cost for item in exported) == pytest.approx(ran.status["cost"])
    assert any(item.cost > 0 for item in exported)
    for number, (item, solution) in enumerate(zip(exported, ran.suppression.solutions, strict=True)):
        instance = Instance.from_jj(item.path)
        tied = tied_of(ran, number)
        assert np.array_equal(instance.status == Status.HIDDEN, tied)
        assert tied.any() == (ran.problems.problems[number].rank > 0)
        assert item.proven
        assert audit(instance, solution.hidden).ok
        assert instance.cost(solution.hidden) == pytest.approx(item.cost, abs=1e-9)
        again = solve(instance)
        assert again.status == "optimal"
        if item.insiders:
            assert again.cost <= item.cost + 1e-9
        else:
            assert again.cost == pytest.approx(item.cost, abs=1e-9)
    assert any(item.insiders for item in exported) == (rules == "sole contributors")


@contextmanager
def masked(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_exported_problems_are_for_their_owner_alone(office: Path, store: Store, tmp_path: Path) -> None:
    run(load_publication(office), store, open_cube)
    with masked(0o022):
        exported = export_problems(store, tmp_path / "some" / "out")
        assert mode(tmp_path / "some" / "out") == 0o700
        assert {mode(item.path) for item in exported} == {0o600}
        # Others may look into this folder, and at what had the name; not at what is written now.
        shared = tmp_path / "shared"
        shared.mkdir()
        (shared / exported[0].path.name).write_text("old")
        again = export_problems(store, shared)
    assert {mode(item.path) for item in again} == {0o600}
    assert [item.path.read_bytes() for item in again] == [item.path.read_bytes() for item in exported]
    assert sorted(shared.iterdir()) == [item.path for item in again]


def test_problems_are_exported_once_they_are_solved(office: Path, store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no solved problems yet"):
        export_problems(store, tmp_path / "out")
    run(load_publication(office), store, open_cube, ("crawl", "assess", "build"))
    with pytest.raises(UserError, match="no solved problems yet"):
        export_problems(store, tmp_path / "out")
    run(load_publication(office), store, open_cube)
    assert export_problems(store, tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError):
        export_problems(store, tmp_path / "file")
    text = (office / "publication.toml").read_text()
    (office / "publication.toml").write_text(text.replace("p = 10", "p = 15"))
    run(load_publication(office), store, open_cube, ("crawl", "assess", "build"))
    with pytest.raises(UserError, match="no solved problems yet"):
        export_problems(store, tmp_path / "out")


# ---------------------------------------------------------------------- earlier records


def kept_as_before(pattern: Suppression) -> bytes:
    """The pattern as it was kept when there were no statuses: altered instances by problem, where any."""

    @dataclass(frozen=True, eq=False)
    class Before:
        hidden: tuple[np.ndarray, ...]
        solutions: tuple[Solution, ...]
        instances: Mapping[int, Instance]
        attained: tuple[object, ...]
        limits: Mapping[int, np.ndarray]

    Before.__name__ = "Suppression"
    codec = Codec((Before, Solution, Instance))
    return codec.encode(Before(pattern.hidden, pattern.solutions, {}, (), {}))


def test_a_pattern_that_was_kept_before_is_read_and_what_it_lacks_is_said(
    tmp_path: Path, store: Store
) -> None:
    office = write_office(tmp_path / "office", publication=NOBODY_INSIDE)
    ran = Ran(office, store)
    promised, results = read_promises(store), problem_results(store)
    body = kept_as_before(ran.suppression)
    stored = store.step("suppress")
    assert stored is not None
    store.put_step(replace(stored, body=body, digest=digest_of(body)))
    assert read_promises(store) == promised
    assert problem_results(store) == results
    old: Suppression = RESULTS.decode(body)
    secondary = next(
        key
        for problem, solution in zip(ran.problems.problems, old.solutions, strict=True)
        for key in np.array(problem.instance.names)[
            solution.hidden & (problem.instance.status == Status.FREE)
        ].tolist()
        if why(ran.crawl, ran.primaries, ran.problems, ran.suppression, key).kind == "secondary"
    )
    with pytest.raises(UserError, match="Run the publication again"):
        why(ran.crawl, ran.primaries, ran.problems, old, secondary)
    with pytest.raises(UserError, match="Run the publication again"):
        export_problems(store, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    # A run of an earlier version had other inputs; the next one makes all anew.
    store.put_step(replace(stored, input_digest="of before", body=body, digest=digest_of(body)))
    run(load_publication(office), store, open_cube)
    assert export_problems(store, tmp_path / "out")
