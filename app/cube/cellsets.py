"""Answers as cellsets, with the relations of their formulas."""

from __future__ import annotations

import numpy as np

from app.cube.answer import Answered
from app.cube.closure import closure, relations_of
from app.domain.cellset import CellSet
from app.domain.cube import Cube


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
