"""Answers as cellsets, with the relations of their formulas."""

from __future__ import annotations

import numpy as np

from app.cube.answer import Answered, Answerer
from app.cube.closure import closure, relations_of
from app.cube.explanation import Explanation
from app.cube.port import Shown
from app.domain.cellset import AxisMember, CellSet
from app.domain.cube import Cube
from app.mdx import Query


class Answering:
    """The questions of an `app.cube.port.CubeServer` that are all answered by way of its cells' values."""

    _cube: Cube
    _answerer: Answerer

    def discover(self) -> Cube:
        return self._cube

    def members(self, set_text: str) -> tuple[AxisMember, ...]:
        return self._answerer.members(set_text)

    def execute(self, query: Query) -> CellSet:
        return cellset_of(self._cube, self._answerer.answer(query))

    def arrange(self, query: Query, shown: Shown) -> CellSet:
        return cellset_of(self._cube, self._answerer.answer(query, shown=shown))

    def explore(self, query: Query) -> CellSet:
        return cellset_of(self._cube, self._answerer.answer(query, raw=True))

    def explain(self, query: Query) -> tuple[Explanation, ...]:
        """See `app.cube.answer.Answerer.explain`."""
        return self._answerer.explain(query)


def cellset_of(cube: Cube, answer: Answered) -> CellSet:
    """The raw cellset of an answer."""
    solved, cells = answer.solved, answer.cells
    rows = closure(solved, np.concatenate([cells, answer.read]))
    linear, nonlinear = relations_of(solved, rows)
    texts = {}
    if solved.texts:
        texts = {n: solved.texts[row] for n, row in enumerate(cells.tolist()) if row in solved.texts}
    return CellSet(
        cube,
        answer.axes,
        answer.slicer,
        answer.calculated,
        solved.coords[rows].astype(np.int32),
        len(cells),
        solved.values[rows],
        linear,
        nonlinear,
        texts,
        len(answer.read),
    )
