"""assess: the rules on unions of hidden cells, asked as patterns come about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.cube.port import CubeServer, Group
from app.cube.port import Profiles as CubeProfiles
from app.domain.crawled import Crawl
from app.domain.cube import IntArray, Measure
from app.domain.equation import Floats
from app.domain.errors import OperatorError
from app.domain.lattice import Bools
from app.domain.primary import CubePrimaries
from app.domain.publication import Confidentiality, MeasureProtection
from app.pipeline.define_rules import rule_of
from app.pipeline.judging import (
    MIN_TOP,
    associated_percent,
    protectors_hit,
    requested_profiles,
    solver_profiles,
)
from app.pipeline.together import Together
from app.pipeline.unions import UnionVerdicts
from app.pipeline.weigh import weigh
from solver.rules import Request, Rule, Threshold, Zero, assess


class UnionRules:
    """A `UnionJudge` and `ExtremeJudge` of a publication's rules over its open cubes."""

    def __init__(
        self, confidentiality: Confidentiality, crawl: Crawl, servers: Mapping[str, CubeServer]
    ) -> None:
        self._confidentiality = confidentiality
        self._crawl = crawl
        self._servers = servers
        self._checked: set[int] = set()
        self._together: dict[int, Together] = {}
        self._by_name: list[Mapping[str, MeasureProtection]] = [
            {item.measure: item for item in confidentiality.measures if item.cube == cells.cube.name}
            for cells in crawl.cubes
        ]

    def watched(self, cube: int) -> Bools:
        """bool[M]: measures whose protection asks for unions."""
        by_name = self._by_name[cube]
        listed = [
            measure.name in by_name and by_name[measure.name].unions
            for measure in self._crawl.cubes[cube].cube.measures
        ]
        return np.array(listed, dtype=np.bool_)

    def protects(self, cube: int, measure: int) -> bool:
        """Whether a measure has rules, or is hidden with another one."""
        protection = self._by_name[cube].get(self._crawl.cubes[cube].cube.measures[measure].name)
        return protection is not None and bool(protection.rules or protection.associated_with)

    def together(self, cube: int, columns: tuple[int, ...]) -> IntArray | None:
        """Combinations of leaves of some hierarchies that have facts (int32[f, len(columns)]), if that can be
        found out.

        Raises
        ------
        OperatorError
            If the data changed since the crawl.
        """
        cells = self._crawl.cubes[cube]
        server = self._unchanged(cube)
        asked = self._together.setdefault(cube, Together(server, cells.cube))
        met = asked(columns)
        return None if met is None else met[0]

    def cost(self, cube: int, verdicts: CubePrimaries) -> Floats:
        """What hiding each cell of a cube's table costs (float64[n]), whatever else is hidden."""
        cells = self._crawl.cubes[cube]
        return weigh(self._confidentiality, cells, verdicts, cells.equations.matrix(len(cells)))

    def judge(self, cube: int, coords: IntArray, groups: Sequence[Group]) -> UnionVerdicts:
        """The rules of each group's measure, and of those that protect it.

        Raises
        ------
        OperatorError
            If the data changed since the crawl.
        """
        cells = self._crawl.cubes[cube]
        server = self._unchanged(cube)
        n = len(coords)
        verdicts = UnionVerdicts(np.zeros(n, dtype=np.bool_), np.zeros(n), np.zeros(n), np.zeros(n))

        def profiles(asked: IntArray, rules: Sequence[Rule]) -> CubeProfiles:
            return server.measure(asked, groups, max([MIN_TOP, *(rule.depth for rule in rules)]))

        for number in np.unique(coords[:, 0]).tolist():
            rows = np.flatnonzero(coords[:, 0] == number)
            measure = cells.cube.measures[number]
            by_name = self._by_name[cube]
            protection = by_name[measure.name]
            rules = [rule for rule in map(rule_of, protection.rules) if not isinstance(rule, Zero)]
            found = profiles(coords[rows], rules)
            own = _judged(measure, found, rules)
            above = protection.associated_with
            if above is not None:
                hit = protectors_hit(cells.cube, by_name, above, coords[rows], profiles)
                level = np.where(hit, associated_percent(protection, by_name[above]) / 100 * found.mass, 0.0)
                own.sensitive[level > 0] = True
                np.maximum(own.lpl, level, out=own.lpl)
                np.maximum(own.upl, level, out=own.upl)
            verdicts.sensitive[rows] = own.sensitive
            verdicts.lpl[rows], verdicts.upl[rows], verdicts.spl[rows] = own.lpl, own.upl, own.spl
        return verdicts

    def _unchanged(self, cube: int) -> CubeServer:
        cells = self._crawl.cubes[cube]
        server = self._servers[cells.cube.name]
        if cube not in self._checked and server.fingerprint() != cells.fingerprint:
            raise OperatorError(
                f"The data of cube {cells.cube.name} changed since the crawl. Run the pipeline again."
            )
        self._checked.add(cube)
        return server


def _judged(measure: Measure, found: CubeProfiles, rules: Sequence[Rule]) -> UnionVerdicts:
    """A measure's own rules."""
    asked = [rule for rule in rules if isinstance(rule, Request)]
    plain = assess(solver_profiles(measure, found), [rule for rule in rules if rule not in asked])
    request = assess(requested_profiles(measure, found), asked)
    lpl, upl = np.maximum(plain.lpl, request.lpl), np.maximum(plain.upl, request.upl)
    if not measure.nonnegative:
        # Gains and losses that cancel are no less confidential, as with cells.
        for rule in rules:
            if isinstance(rule, Threshold):
                level = np.where(plain.reasons[rule.name], rule.percent / 100 * found.mass, 0.0)
                lpl, upl = np.maximum(lpl, level), np.maximum(upl, level)
    spl = np.maximum(plain.spl, request.spl)
    return UnionVerdicts(plain.sensitive | request.sensitive, lpl, upl, spl)
