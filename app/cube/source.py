"""What the evaluation of formulas asks of whatever holds the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.evaluate import Evaluator
from app.cube.port import Group
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Readings:
    """Values of cells (float64[n], nan: empty or hidden) and which are hidden; None: none is.

    ``unknown`` are the hidden ones that the source doesn't have at all; None: none is.
    """

    values: FloatArray
    hidden: Bools | None
    unknown: Bools | None = None


class CellSource(Protocol):
    """Where the numbers of an answer come from.

    Attributes
    ----------
    hides : bool
        Whether some cells may be hidden.
    knows_formulas : bool
        Whether it may hold cells of calculated members.
    """

    hides: bool
    knows_formulas: bool

    def holds(self, coords: IntArray, ev: Evaluator) -> Bools:
        """Which cells of calculated members it has itself, so that their formulas needn't be worked out."""
        ...

    def read(self, coords: IntArray, ev: Evaluator) -> Readings:
        """Cells of own measures and members, and those that it holds."""
        ...

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> Readings:
        """A measure that doesn't add up, over groups of members."""
        ...

    def decimals(self, measure: int) -> int | None:
        """Digits that every value of an own measure has at most; None where that isn't known."""
        ...
