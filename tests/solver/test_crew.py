"""Independent tables in one instance: searched at a time, each with its part of the limit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from solver import InfeasibleError, Instance, Progress, audit, solve
from solver.generate import generate, side_by_side


def _flat(size: str, primaries: int, seed: int) -> Instance:
    return generate("random", size, primaries=primaries, seed=seed)


@pytest.fixture(scope="module")
def tables() -> list[Instance]:
    return [_flat("8x8", 5, 1), _flat("4x3x3", 3, 2), generate("counts", "6x6", seed=3)]


@pytest.mark.parametrize("method", ["exact", "auto", "light"])
def test_any_number_of_threads_gives_the_same_pattern(method: str, tables: list[Instance]) -> None:
    instance = side_by_side(*tables)
    found = [solve(instance, method, threads=threads, work_limit=0.2) for threads in (1, 2)]
    assert all((other.hidden == found[0].hidden).all() for other in found)
    assert len({(other.lower_bound, other.statistics["work"]) for other in found}) == 1
    assert audit(instance, found[0].hidden).ok


def test_tables_side_by_side_cost_what_they_cost_alone(tables: list[Instance]) -> None:
    alone = [solve(table, "exact") for table in tables]
    together = solve(side_by_side(*tables), "exact", threads=2)
    assert together.status == "optimal"
    assert together.statistics["components"] == len(tables)
    assert together.cost == sum(solution.cost for solution in alone)


def test_order_of_cells_and_equations_changes_no_cost_on_threads(tables: list[Instance]) -> None:
    instance = side_by_side(*tables)
    generator = np.random.default_rng(5)
    cells, rows = generator.permutation(instance.n), generator.permutation(instance.m)
    shuffled = Instance.from_arrays(
        instance.value[cells],
        instance.matrix[rows][:, cells],
        status=instance.status[cells],
        weight=instance.weight[cells],
        upper_bound=instance.upper_bound[cells],
        lpl=instance.lpl[cells],
        upl=instance.upl[cells],
    )
    found = solve(shuffled, "exact", threads=2)
    assert found.cost == solve(instance, "exact", threads=2).cost
    back = np.zeros(instance.n, dtype=np.bool_)
    back[cells] = found.hidden
    assert audit(instance, back).ok


@pytest.mark.parametrize("threads", [1, 2])
def test_a_hard_table_leaves_the_other_its_part_of_the_work(threads: int) -> None:
    hard, easy = _flat("5x5x5", 10, 4), _flat("6x6", 4, 5)
    solution = solve(side_by_side(hard, easy), "auto", threads=threads, work_limit=1.5)
    assert solution.statistics["stopped"] == "work"
    assert solution.statistics["work"] < 2.0
    mine = side_by_side(hard, easy).cost(solution.hidden & (np.arange(hard.n + easy.n) >= hard.n))
    assert mine == solve(easy, "exact").cost


def test_progress_is_told_in_the_callers_thread(tables: list[Instance]) -> None:
    seen: list[tuple[int, Progress]] = []
    solve(
        side_by_side(*tables), "exact", threads=3, progress=lambda p: seen.append((threading.get_ident(), p))
    )
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    lower, upper = zip(*((p.lower, p.upper) for _, p in seen), strict=True)
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_an_interrupt_stops_all_threads_and_returns_what_there_is(method: str) -> None:
    instance = side_by_side(*(_flat("7x7x7", 20, seed) for seed in (1, 2)))

    def interrupt(progress: Progress) -> None:
        if not told:
            told.append(progress)
            raise KeyboardInterrupt

    told: list[Progress] = []
    before = threading.active_count()
    solution = solve(instance, method, threads=2, progress=interrupt, work_limit=5.0)
    assert solution.statistics["stopped"] == "interrupt"
    assert threading.active_count() == before
    assert audit(instance, solution.hidden).ok


def test_a_mistake_in_progress_ends_all_threads() -> None:
    def fail(progress: Progress) -> None:
        raise ZeroDivisionError

    before = threading.active_count()
    instance = side_by_side(*(_flat("7x7x7", 20, seed) for seed in (1, 2)))
    with pytest.raises(ZeroDivisionError):
        solve(instance, "exact", threads=2, progress=fail)
    assert threading.active_count() == before


def test_of_two_tables_that_nothing_protects_the_same_is_named_whatever_the_threads() -> None:
    hopeless = Instance.from_arrays(
        [9.0, 4.0, 5.0, 3.0, 2.0],
        [[1, -1, -1, 0, 0], [0, 0, 1, -1, -1]],
        status=["z", "u", "s", "s", "s"],
        lpl=[0, 1, 0, 0, 0],
        upl=[0, 1, 0, 0, 0],
        upper_bound=[9, 9, 5, 3, 2],
    )
    instance = side_by_side(hopeless, _flat("6x6", 3, 1), hopeless)
    messages = set()
    for threads in (1, 2):
        with pytest.raises(InfeasibleError) as refused:
            solve(instance, "exact", threads=threads)
        messages.add(str(refused.value))
    assert len(messages) == 1
