"""A cube server over facts in memory: MDX in, cellsets and profiles out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.answer import Answerer
from app.cube.cellsets import Answering
from app.cube.cuboids import Cuboids
from app.cube.evaluate import Evaluator
from app.cube.facts import Facts
from app.cube.port import Group, Profiles
from app.cube.source import Readings
from app.cube.turns import aside
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, IntArray
from app.domain.known import FactRows
from app.domain.publication import CubeDefinition


class Profiling(Protocol):
    """Who tells what is behind cells."""

    def measure(self, coords: IntArray, groups: Sequence[Group], top: int) -> Profiles:
        """See `app.cube.port.CubeServer.measure`."""
        ...

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> FloatArray:
        """Values of a measure that doesn't add up in cells of groups: float64[n], nan where empty."""
        ...


class Server(Answering):
    """See `app.cube.port.CubeServer`; its facts are the `app.cube.cells.CellSource` of its answers."""

    hides = False
    knows_formulas = False

    def __init__(
        self,
        definition: CubeDefinition,
        cube: Cube,
        facts: Facts | None,
        profiler: Profiling,
        cuboids: Cuboids,
        digest: str,
        closer: Callable[[], None],
    ) -> None:
        self._cube = cube
        self._facts = facts
        self.cuboids = cuboids
        self._digest = digest
        self._closer = closer
        self._profiler = profiler
        self._answerer = Answerer(cube, definition.calculated, definition.named_sets, self)
        self._answerer.try_sets()

    # CubeServer

    def fingerprint(self) -> str:
        return self._digest

    def facts(self) -> FactRows | None:
        """See `CubeServer.facts`."""
        if self._facts is None:
            return None
        facts, who = self._facts, self._facts.who
        return FactRows(
            self._cube,
            facts.leaf,
            tuple(
                column.scale.to_float(column.limbs) if column.raw is None else column.raw
                for column in facts.measures
            ),
            None if who is None else who[facts.contributor],
        )

    def close(self) -> None:
        self._closer()

    def measure(self, coords: IntArray, groups: Sequence[Group] = (), top: int = 3) -> Profiles:
        if top < 2:
            raise ValueError("profiles hold at least the two largest contributions")
        return self._profiler.measure(np.asarray(coords, dtype=np.int32), groups, top)

    def values(self, coords: IntArray) -> FloatArray:
        return self.cuboids.values(coords)

    # app.cube.source.CellSource

    def holds(self, coords: IntArray, ev: Evaluator) -> NDArray[np.bool_]:
        return np.zeros(len(coords), dtype=np.bool_)

    def read(self, coords: IntArray, ev: Evaluator) -> Readings:
        return Readings(self.values(coords), None)

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> Readings:
        with aside():
            return Readings(self._profiler.recompute(measure, coords, groups), None)

    def decimals(self, measure: int) -> int | None:
        if not self._cube.measures[measure].additive:
            return None
        return self.cuboids.scales[measure].decimals
