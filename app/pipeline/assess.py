"""assess: contributor profiles and rules make cells sensitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.cube.port import Profiles as CubeProfiles
from app.domain.crawled import Crawl, CubeCells
from app.domain.cube import IntArray, Measure
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.lattice import Longs
from app.domain.primary import DIFFERENCE, CubePrimaries, PrimaryResult
from app.domain.progress import ProgressCallback, StepProgress
from app.domain.publication import CellDecision, Confidentiality, MeasureProtection, Publication
from app.pipeline.cell_table import as_groups
from app.pipeline.define_rules import rule_of
from app.pipeline.earlier import NO_PAST, Levels, LookedBack, Past, look_back, nothing_earlier
from app.pipeline.judging import (
    MIN_TOP,
    associated_percent,
    protectors_hit,
    requested_profiles,
    solver_profiles,
)
from app.pipeline.members import find_member
from app.pipeline.rests import rests_of
from app.pipeline.together import Together
from app.pipeline.twins import Twin, find_twins, recorded
from app.pipeline.union_rules import UnionRules
from solver.rules import Manual, Profiles, Request, Rule, Threshold, Zero, assess


def assess_cells(
    publication: Publication,
    crawl: Crawl,
    servers: Mapping[str, CubeServer],
    progress: ProgressCallback | None = None,
    past: Past = NO_PAST,
) -> PrimaryResult:
    """Apply every rule to every cell with contributors, published or implied.

    Raises
    ------
    UserError
        With every manual decision on a cell that there isn't, and measures that break their own promises.
    OperatorError
        If the data changed since the crawl.
    """
    mistakes: list[Mistake] = []
    results = []
    judge = UnionRules(publication.confidentiality, crawl, servers)
    for done, cells in enumerate(crawl.cubes):
        server = servers[cells.cube.name]
        if server.fingerprint() != cells.fingerprint:
            raise OperatorError(
                f"The data of cube {cells.cube.name} changed since the crawl. Run the pipeline again."
            )
        if progress is not None:
            progress(StepProgress("assess", done, len(crawl.cubes), cells.cube.name))
        assessor = _Assessor(publication.confidentiality, cells, server, mistakes)
        verdicts = assessor.result(past)
        behind = verdicts.behind.and_more(rests_of(done, cells, judge), len(cells))
        results.append(replace(verdicts, behind=behind))
    if mistakes:
        raise UserError(mistakes)
    return PrimaryResult(tuple(results))


class _Assessor:
    def __init__(
        self,
        confidentiality: Confidentiality,
        cells: CubeCells,
        server: CubeServer,
        mistakes: list[Mistake],
    ) -> None:
        self._confidentiality = confidentiality
        self._cells = cells
        self._server = server
        self._mistakes = mistakes
        self._measure = {measure.name: number for number, measure in enumerate(cells.cube.measures)}
        self._protections = [item for item in confidentiality.measures if item.cube == cells.cube.name]
        n = len(cells)
        self._sensitive = np.zeros(n, dtype=np.bool_)
        self._must_show = np.zeros(n, dtype=np.bool_)
        self._lpl, self._upl, self._spl = np.zeros(n), np.zeros(n), np.zeros(n)
        self._reasons: dict[str, NDArray[np.bool_]] = {}
        self._partner = np.full(n, -1, dtype=np.int64)
        self._holder = np.full(n, -1, dtype=np.int64)
        self._occupied = np.zeros(n, dtype=np.bool_)
        self._waived = np.zeros(n, dtype=np.bool_)
        self._mass = np.zeros(n)

    def result(self, past: Past) -> CubePrimaries:
        manual = self._decide()
        by_name = {item.measure: item for item in self._protections}
        self._check_signs()
        self._check_parts()
        for measure in self._cells.cube.measures:
            rows = self._rows_of(measure)
            if len(rows):
                self._assess(measure, by_name.get(measure.name), rows, manual)
        for protection in self._ordered():
            self._associate(protection, by_name)
        looked = self._look_back(past, by_name)
        return CubePrimaries(
            self._sensitive,
            self._must_show,
            self._lpl,
            self._upl,
            self._spl,
            self._reasons,
            self._partner,
            self._holder,
            self._occupied,
            looked.known,
            looked.behind,
            looked.since,
            self._weights(),
        )

    def _weights(self) -> NDArray[np.float64] | None:
        """Values of the measures that others are weighed by."""
        weighed = [item for item in self._protections if item.weight == "measure"]
        if not weighed:
            return None
        weights = np.full(len(self._cells), np.nan)
        for item in weighed:
            rows = self._rows_of(self._cells.cube.measures[self._measure[item.measure]])
            coords = self._cells.coords[rows].copy()
            coords[:, 0] = self._measure[item.weighed_by]
            if len(rows):
                weights[rows] = self._profiles(coords, ()).mass
        return weights

    # ------------------------------------------------------------------ earlier releases

    def _look_back(self, past: Past, by_name: Mapping[str, MeasureProtection]) -> LookedBack:
        """Take in what earlier releases showed: known cells, and changes that give somebody away."""
        cells = self._cells
        shown = past.shown.get(cells.cube.name, ())
        if not shown:
            return nothing_earlier(len(cells))
        rules = {
            number: self._rules_on_changes(number, by_name) for number in range(len(cells.cube.measures))
        }
        top = max([MIN_TOP, *(_depth(rule) for listed in rules.values() for rule in listed)])

        def judge(number: int, found: CubeProfiles) -> Levels:
            return _judge_changes(cells.cube.measures[number], found, rules[number])

        looked = look_back(cells, shown, self._server.facts(), past.snapshot, judge, top)
        for levels in (self._lpl, self._upl, self._spl):
            levels[looked.known] = 0.0
        differs = looked.differs & ~self._waived
        for row in np.flatnonzero(differs & self._must_show).tolist():
            self._mistakes.append(
                Mistake(
                    "",
                    0,
                    0,
                    f"{cells.keys(np.array([row]))[0]} must be shown, but its change since release "
                    f"{looked.since[row]} would give respondents away.",
                    "Take the decision back, or wait until more respondents have changed.",
                )
            )
        differs &= ~self._must_show
        self._sensitive |= differs
        self._lpl[differs] = np.maximum(self._lpl[differs], looked.level[differs])
        self._upl[differs] = np.maximum(self._upl[differs], looked.level[differs])
        if differs.any():
            self._reason(DIFFERENCE)[differs] = True
        return looked

    def _rules_on_changes(self, number: int, by_name: Mapping[str, MeasureProtection]) -> list[Rule]:
        """A measure's own rules and those of the measures that protect it."""
        rules: list[Rule] = []
        name: str | None = self._cells.cube.measures[number].name
        while name:
            protection = by_name.get(name)
            if protection is None:
                break
            rules.extend(rule_of(item) for item in protection.rules)
            name = protection.associated_with
        return [rule for rule in dict.fromkeys(rules) if not isinstance(rule, Zero | Request)]

    # ------------------------------------------------------------------ rules

    def _rows_of(self, measure: Measure) -> Longs:
        """Cells of an own measure that contributors stand behind."""
        own = self._cells.coords[:, 0] == self._measure[measure.name]
        return np.flatnonzero(own & self._cells.has_contributors & ~self._cells.is_derived)

    def _rules(self, protection: MeasureProtection | None, measure: Measure) -> list[Rule]:
        rules = [rule_of(item) for item in protection.rules] if protection is not None else []
        if self._confidentiality.hide_zeros and not any(isinstance(rule, Zero) for rule in rules):
            rules.append(Zero(10.0**-measure.decimals))
        return rules

    def _assess(
        self, measure: Measure, protection: MeasureProtection | None, rows: Longs, manual: Mapping[int, float]
    ) -> None:
        rules = self._rules(protection, measure)
        found = self._profiles(self._cells.coords[rows], rules)
        self._occupied[rows] = found.count > 0
        self._holder[rows] = found.holder
        self._mass[rows] = found.mass
        self._check_values(rows, found)
        self._apply(rows, measure, found, rules)
        if not measure.nonnegative:
            self._widen(rows, rules)
        place = {int(row): number for number, row in enumerate(rows)}
        for row, percent in manual.items():
            if row in place and found.count[place[row]] > 0:
                profiles = solver_profiles(measure, found)
                self._take(rows, profiles, [Manual([place[row]], percent=percent)])

    def _widen(self, rows: Longs, rules: Sequence[Rule]) -> None:
        """Gains and losses that cancel are no less confidential: levels of thin cells are of their size."""
        for rule in rules:
            if isinstance(rule, Threshold):
                thin = rows[self._reason(rule.name)[rows]]
                level = rule.percent / 100 * self._mass[thin]
                self._lpl[thin] = np.maximum(self._lpl[thin], level)
                self._upl[thin] = np.maximum(self._upl[thin], level)

    def _profiles(self, coords: IntArray, rules: Sequence[Rule]) -> CubeProfiles:
        own, groups = as_groups(self._cells.space, coords)
        depth = max([MIN_TOP, *(rule.depth for rule in rules)])
        return self._server.measure(own, groups, depth)

    def _apply(self, rows: Longs, measure: Measure, found: CubeProfiles, rules: Sequence[Rule]) -> None:
        asked = [rule for rule in rules if isinstance(rule, Request)]
        others = [rule for rule in rules if not isinstance(rule, Request)]
        self._take(rows, solver_profiles(measure, found), others)
        if asked:
            self._take(rows, requested_profiles(measure, found), asked)

    def _take(self, rows: Longs, profiles: Profiles, rules: Sequence[Rule]) -> None:
        verdict = assess(profiles, rules)
        kept = ~self._waived[rows] & ~self._must_show[rows]
        self._sensitive[rows] |= verdict.sensitive & kept
        for mine, theirs in ((self._lpl, verdict.lpl), (self._upl, verdict.upl), (self._spl, verdict.spl)):
            mine[rows] = np.maximum(mine[rows], np.where(kept, theirs, 0))
        for name, hit in verdict.reasons.items():
            self._reason(name)[rows] |= hit & kept

    def _reason(self, name: str) -> NDArray[np.bool_]:
        return self._reasons.setdefault(name, np.zeros(len(self._cells), dtype=np.bool_))

    # ------------------------------------------------------------------ associated measures

    def _ordered(self) -> list[MeasureProtection]:
        """Associated measures, each after the one that protects it."""
        waiting = [item for item in self._protections if item.associated_with is not None]
        ordered: list[MeasureProtection] = []
        while waiting:
            names = {item.measure for item in waiting}
            ready = [item for item in waiting if item.associated_with not in names]
            ordered.extend(ready)
            waiting = [item for item in waiting if item.associated_with in names]
        return ordered

    def _associate(self, protection: MeasureProtection, by_name: Mapping[str, MeasureProtection]) -> None:
        """Where the protecting measure's cell is sensitive, this measure's cell is too."""
        cells = self._cells
        measure = cells.cube.measures[self._measure[protection.measure]]
        rows = self._rows_of(measure)
        if not len(rows):
            return
        above = protection.associated_with or ""
        twin = cells.coords[rows].copy()
        twin[:, 0] = self._measure[above]
        row = find_rows(cells, twin)
        self._partner[rows] = row
        hit = np.zeros(len(rows), dtype=np.bool_)
        hit[row >= 0] = self._sensitive[row[row >= 0]]
        lonely = np.flatnonzero(row < 0)
        if len(lonely):
            hit[lonely] = protectors_hit(cells.cube, by_name, above, twin[lonely], self._profiles)
        hit &= self._occupied[rows] & ~self._waived[rows] & ~self._must_show[rows]
        level = associated_percent(protection, by_name[above]) / 100 * self._mass[rows]
        chosen = rows[hit]
        self._sensitive[chosen] |= level[hit] > 0
        self._lpl[chosen] = np.maximum(self._lpl[chosen], level[hit])
        self._upl[chosen] = np.maximum(self._upl[chosen], level[hit])
        self._reason("associated")[chosen] = True

    # ------------------------------------------------------------------ manual decisions

    def _decide(self) -> Mapping[int, float]:
        """Manual decisions: marks waived and must-show cells; per cent of each cell to hide."""
        manual: dict[int, float] = {}
        for decision in self._confidentiality.decisions:
            if decision.cube != self._cells.cube.name:
                continue
            row = self._row_of(decision)
            if row is None:
                continue
            if decision.decision == "hide":
                manual[row] = decision.percent
            elif decision.decision == "show":
                self._must_show[row] = True
            else:
                self._waived[row] = True
        return manual

    @cached_property
    def _twins(self) -> tuple[Twin, ...]:
        cube = self._cells.cube
        return find_twins(Together(self._server, cube), cube, self._cells.space)

    def _row_of(self, decision: CellDecision) -> int | None:
        cube, at = self._cells.cube, decision.at
        coords = np.array([[0, *(tree.default_member for tree in cube.hierarchies)]], dtype=np.int32)
        coords[0, 0] = self._measure[decision.measure]
        for text in decision.members:
            member = find_member(self._server, text, at, self._mistakes)
            if member is None:
                return None
            h = cube.hierarchy_index[member.hierarchy]
            coords[0, 1 + h] = cube.hierarchies[h].index_of[member.unique_name]
        row = int(find_rows(self._cells, recorded(self._cells.space, self._twins, coords))[0])
        if row < 0:
            self._mistakes.append(
                Mistake(at.file, at.line, at.column, "No sheet shows this cell.", "Leave the decision out.")
            )
            return None
        return row

    # ------------------------------------------------------------------ checks

    def _check_values(self, rows: Longs, found: CubeProfiles) -> None:
        """The profiles must tell the same values as the crawl: else neither can be trusted."""
        crawled = np.nan_to_num(self._cells.values[rows])
        if np.any(np.abs(crawled - found.value) > 1e-6 * (1 + np.abs(crawled))):
            raise OperatorError(
                f"The data of cube {self._cells.cube.name} differ from what was crawled. "
                "Run the pipeline again."
            )

    def _check_signs(self) -> None:
        """A measure that says it is never negative must not be: readers are told so."""
        for measure in self._cells.cube.measures:
            rows = self._rows_of(measure)
            if measure.nonnegative and np.any(self._cells.values[rows] < 0):
                self._mistakes.append(
                    Mistake(
                        "",
                        0,
                        0,
                        f"Measure {measure.name} of cube {self._cells.cube.name} has negative cells.",
                        "Write nonnegative = false for it.",
                    )
                )

    def _check_parts(self) -> None:
        """A part must not be more than its whole in any cell; where the engine gives its facts, the crawl
        has asked every record."""
        cells = self._cells
        for measure in cells.cube.measures:
            rows = self._rows_of(measure)
            for whole in measure.of_which if len(rows) else ():
                above = cells.coords[rows].copy()
                above[:, 0] = self._measure[whole]
                row = find_rows(cells, above)
                part, most = cells.values[rows[row >= 0]], cells.values[row[row >= 0]]
                if np.any(part - most > 1e-6 * (1 + np.abs(most))):
                    self._mistakes.append(
                        Mistake(
                            "", 0, 0, f"Measure {measure.name} isn't part of {whole}: a cell has more of it."
                        )
                    )


def _depth(rule: Rule) -> int:
    """How many contributors a rule has to see one by one."""
    return max(rule.depth, rule.n) if isinstance(rule, Threshold) else rule.depth


def _judge_changes(measure: Measure, found: CubeProfiles, rules: Sequence[Rule]) -> Levels:
    """The rules on changes, whichever their sign; whoever nets to nothing changed nothing."""
    top = np.abs(found.top)
    moved = (top > 0).sum(axis=1)
    count = np.where(moved < top.shape[1], moved, found.count)
    verdict = assess(
        Profiles(
            value=found.mass,
            count=count,
            top=top,
            kind="frequency" if measure.is_frequency else "magnitude",
            mass=found.mass,
            negative_values=True,
        ),
        rules,
    )
    return Levels(verdict.sensitive, np.maximum(np.maximum(verdict.lpl, verdict.upl), verdict.spl))


def find_rows(cells: CubeCells, coords: IntArray) -> Longs:
    """Rows of the cell table with these coordinates, -1 where there is none."""
    table, wanted = cells.space.pack(cells.coords, coords)
    order = np.argsort(table, kind="stable")
    place = np.minimum(np.searchsorted(table[order], wanted), len(order) - 1)
    row = order[place]
    return np.where(table[row] == wanted, row, -1)
