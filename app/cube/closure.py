"""The rows that an answer hangs on, and the relations among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.cube.cells import Solved
from app.domain.cellset import Dependencies, Relations

Ints = NDArray[np.int64]


def closure(solved: Solved, rows: Ints) -> Ints:
    """The rows given and, after them, every row that their formulas hang on."""
    if not solved.calculated.any():
        return rows
    seen = np.zeros(len(solved.coords), dtype=bool)
    seen[rows] = True
    extra: list[Ints] = []
    frontier = np.unique(rows)
    nonlinear = np.zeros(len(solved.coords), dtype=bool)
    nonlinear[list(solved.kind)] = True
    while len(frontier):
        met = [
            matrix[chosen].indices
            for matrix, chosen in (
                (solved.linear, frontier[~nonlinear[frontier]]),
                (solved.depends, frontier[nonlinear[frontier]]),
            )
        ]
        frontier = np.unique(np.concatenate(met)).astype(np.int64)
        frontier = frontier[~seen[frontier]]
        seen[frontier] = True
        extra.append(frontier)
    return np.concatenate([rows, *extra]).astype(np.int64)


def relations_of(solved: Solved, rows: Ints) -> tuple[Relations, Dependencies]:
    """Relations of the calculated ones among ``rows``, as numbers of places in ``rows``."""
    if not solved.calculated.any():
        none, start = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        empty = np.zeros(0)
        return Relations(none, empty, start, none, empty), Dependencies(none, start, none, ())
    place = np.full(len(solved.coords), -1, dtype=np.int64)
    place[rows[::-1]] = np.arange(len(rows))[::-1]
    nonlinear = np.zeros(len(solved.coords), dtype=bool)
    nonlinear[list(solved.kind)] = True
    cells = np.flatnonzero(solved.calculated[rows] & ~nonlinear[rows])
    picked = solved.linear[rows[cells]]
    linear = Relations(
        cells.astype(np.int64),
        solved.constant[rows[cells]],
        picked.indptr.astype(np.int64),
        place[picked.indices],
        picked.data.astype(np.float64),
    )
    others = np.flatnonzero(nonlinear[rows])
    touched = solved.depends[rows[others]]
    kinds = tuple(solved.kind[row] for row in rows[others].tolist())
    return linear, Dependencies(
        others.astype(np.int64), touched.indptr.astype(np.int64), place[touched.indices], kinds
    )
