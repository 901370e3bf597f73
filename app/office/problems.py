"""Results of a run, problem by problem: how large, why primary, how much was hidden besides, how good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.db.store import Store
from app.domain.crawled import Crawl
from app.domain.primary import PrimaryResult
from app.pipeline.build import Problems
from app.pipeline.running import RESULTS
from app.pipeline.suppress import Suppression


@dataclass(frozen=True)
class ProblemResult:
    """One problem of a run, solved.

    ``reasons`` counts primaries by rule (a cell may have several); ``cost`` is the weight of the
    secondaries, ``lower_bound`` what any safe pattern costs at least, ``gap`` what lies between, 0 to 1.
    """

    number: int
    cube: str
    cells: int
    relations: int
    primaries: int
    reasons: Mapping[str, int]
    secondaries: int
    cost: float
    lower_bound: float
    gap: float
    seconds: float
    method: str
    is_optimal: bool


def problem_results(store: Store) -> tuple[ProblemResult, ...]:
    """Every problem of the run in the store's scope, in the order of solving; none before it is solved."""
    stored = [store.step(name) for name in ("crawl", "assess", "build", "suppress")]
    if any(result is None for result in stored):
        return ()
    values = [RESULTS.decode(result.body) for result in stored if result is not None]
    crawl: Crawl = values[0]
    primaries: PrimaryResult = values[1]
    problems: Problems = values[2]
    suppression: Suppression = values[3]
    results = []
    for number, (problem, solution) in enumerate(
        zip(problems.problems, suppression.solutions, strict=True), 1
    ):
        cells, verdicts = crawl.cubes[problem.cube], primaries.cubes[problem.cube]
        rows = problem.rows
        published = rows < cells.n_published
        sensitive = verdicts.sensitive[rows]
        hidden = solution.hidden[: len(rows)]
        results.append(
            ProblemResult(
                number=number,
                cube=cells.cube.name,
                cells=len(rows),
                relations=problem.instance.m,
                primaries=int(sensitive.sum()),
                reasons={
                    name: count for name, hit in verdicts.reasons.items() if (count := int(np.sum(hit[rows])))
                },
                secondaries=int((hidden & published & ~sensitive).sum()),
                cost=solution.cost,
                lower_bound=solution.lower_bound,
                gap=solution.gap,
                seconds=solution.seconds,
                method=solution.method,
                is_optimal=solution.status == "optimal",
            )
        )
    return tuple(results)
