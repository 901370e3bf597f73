"""Sensitive cells: which, why, and how far each must be protected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.known import Behind
from app.domain.lattice import Bools

#: Reason of a cell whose change since an earlier release would give somebody away.
DIFFERENCE = "difference"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CubePrimaries:
    """Verdicts on the cell table of one cube (n rows, as in `CubeCells`).

    Attributes
    ----------
    sensitive, must_show : bool[n]
    lpl, upl, spl : float64[n]
        Protection levels, 0 where not sensitive.
    reasons
        Rule name to bool[n]; ``associated`` where the protecting measure's cell is sensitive.
    partner : int64[n]
        Row of the protecting measure's cell at the same place, -1 where there is none.
    holder : int64[n]
        Sole contributor, -1 unless there is exactly one.
    occupied : bool[n]
        Cells with contributors.
    known : bool[n]
        Cells that readers know from earlier releases, sensitive or not: hiding them protects nothing, so
        that they have no levels.
    behind : Behind
        What earlier releases add to the problem.
    since : mapping of row to release id
        Rows whose change since a release would give somebody away (reason `DIFFERENCE`).
    weights : float64[n], optional
        What hiding costs where a measure is weighed by another one, nan elsewhere; None where none is.
    """

    sensitive: Bools
    must_show: Bools
    lpl: Floats
    upl: Floats
    spl: Floats
    reasons: Mapping[str, Bools]
    partner: NDArray[np.int64]
    holder: NDArray[np.int64]
    occupied: Bools
    known: Bools
    behind: Behind
    since: Mapping[int, str]
    weights: Floats | None = None

    def __post_init__(self) -> None:
        if np.any(self.sensitive & self.must_show):
            raise ValueError("a sensitive cell must not be one that must be shown")

    def reasons_of(self, row: int) -> tuple[str, ...]:
        return tuple(name for name, hit in self.reasons.items() if hit[row])


@dataclass(frozen=True, eq=False)
class PrimaryResult:
    """Verdicts of all cubes, in the order of the crawl's."""

    cubes: tuple[CubePrimaries, ...]
