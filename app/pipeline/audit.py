"""audit: what can each attacker find out about each hidden cell? Anything exposed refuses the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.domain.crawled import Crawl, CubeCells
from app.domain.errors import InternalError
from app.domain.lattice import Bools
from app.domain.primary import CubePrimaries, PrimaryResult
from app.domain.progress import ProgressCallback, StepProgress
from app.pipeline.build import Problems
from app.pipeline.suppress import (
    Judge,
    Suppression,
    derived_hidden,
    extremes_of,
    learned_by_insiders,
    narrowed_by_insiders,
)
from app.pipeline.unions import exposed_unions, unions_in
from solver import AuditReport, audit
from solver.errors import SolverError


@dataclass(frozen=True)
class Breach:
    """A cell that isn't as hidden as it must be: which, to whom, and how it comes out."""

    cube: str
    cell: str
    attacker: str
    how: str


@dataclass(frozen=True, eq=False)
class ReleaseAudit:
    """The reports of all problems, and every breach found; ``ok`` only if all was checked and none is."""

    reports: tuple[AuditReport, ...]
    breaches: tuple[Breach, ...]

    @property
    def complete(self) -> bool:
        return all(report.complete for report in self.reports)

    @property
    def ok(self) -> bool:
        return self.complete and not self.breaches


def audit_release(
    crawl: Crawl,
    primaries: PrimaryResult,
    problems: Problems,
    suppression: Suppression,
    judge: Judge,
    progress: ProgressCallback | None = None,
) -> ReleaseAudit:
    """Check the final pattern against every attacker, and the rules that are not the solver's.

    Unions with levels are attacked like cells. ``judge`` tells of those that the pattern leaves derivable
    and nobody gave levels.

    Raises
    ------
    InternalError
        If the audit can't be finished: then nothing may be released.
    """
    reports: list[AuditReport] = []
    breaches: list[Breach] = []
    for number, problem in enumerate(problems.problems):
        if progress is not None:
            progress(StepProgress("audit", number, len(problems.problems), "attacking"))
        cells = crawl.cubes[problem.cube]
        instance = suppression.solved(number, problem)
        hidden = problem.pattern(
            instance, suppression.hidden[problem.cube], cells.n_given, primaries.cubes[problem.cube].known
        )
        try:
            report = audit(instance, hidden)
        except SolverError as error:
            raise InternalError("the audit couldn't be finished") from error
        reports.append(report)
        breaches.extend(
            Breach(cells.cube.name, exposure.name, exposure.attacker, "computed from what is shown")
            for exposure in report.exposures
        )
        breaches.extend(
            Breach(cells.cube.name, instance.name(cell), "a sole contributor", "computed from its own cells")
            for told in learned_by_insiders(problem, instance, hidden).values()
            for cell in told.tolist()
        )
        unions = unions_in(problem.instance, instance)
        breaches.extend(
            Breach(cells.cube.name, instance.name(cell), "a sole contributor", "bounded by its own cells")
            for told in narrowed_by_insiders(problem, cells, instance, hidden, unions).values()
            for cell in told.tolist()
        )
        leveled = {union.parts.tobytes() for union in unions}
        breaches.extend(
            Breach(cells.cube.name, union.name, "outsider", "a sum computed from what is shown")
            for union in exposed_unions(problem.cube, cells, problem.rows, instance, hidden, judge, leveled)
        )
    covered = [np.zeros(len(cells), dtype=np.bool_) for cells in crawl.cubes]
    for problem in problems.problems:
        covered[problem.cube][problem.rows] = True
    for cells, verdicts, hidden, inside in zip(
        crawl.cubes, primaries.cubes, suppression.hidden, covered, strict=True
    ):
        breaches.extend(_broken_rules(cells, verdicts, hidden, inside))
    for number, (cells, verdicts) in enumerate(zip(crawl.cubes, primaries.cubes, strict=True)):
        extremes = extremes_of(number, cells, verdicts, problems, suppression, judge)
        breaches.extend(
            Breach(cells.cube.name, told, "outsider", f"attained, as shown by {', '.join(by)}")
            for told, by in extremes.told(suppression.hidden[number])
        )
    return ReleaseAudit(tuple(reports), tuple(breaches))


def _broken_rules(
    cells: CubeCells, verdicts: CubePrimaries, hidden: Bools, covered: Bools
) -> Iterator[Breach]:
    related = np.zeros(len(cells), dtype=np.bool_)
    related[cells.equations.indices] = True
    tied = verdicts.partner >= 0
    partner_hidden = np.zeros(len(cells), dtype=np.bool_)
    partner_hidden[tied] = hidden[verdicts.partner[tied]]
    shown = np.arange(len(cells)) < cells.n_published
    shown &= ~hidden
    checks = {
        "sensitive, but shown": verdicts.sensitive & ~hidden,
        "shown though its protecting cell is hidden": (
            shown & partner_hidden & verdicts.occupied & ~verdicts.must_show
        ),
        "a ratio shown though an operand is hidden": shown & derived_hidden(cells, hidden),
        "sensitive and in a relation, but in no problem": (
            verdicts.sensitive & ~verdicts.known & related & ~covered & (np.nan_to_num(cells.values) != 0)
        ),
    }
    for how, wrong in checks.items():
        for key in cells.keys(np.flatnonzero(wrong)):
            yield Breach(cells.cube.name, key, "outsider", how)
