"""Sensitive cells: which, why, and how far each must be protected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.lattice import Bools

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

    def __post_init__(self) -> None:
        if np.any(self.sensitive & self.must_show):
            raise ValueError("a sensitive cell must not be one that must be shown")

    def reasons_of(self, row: int) -> tuple[str, ...]:
        return tuple(name for name, hit in self.reasons.items() if hit[row])


@dataclass(frozen=True, eq=False)
class PrimaryResult:
    """Verdicts of all cubes, in the order of the crawl's."""

    cubes: tuple[CubePrimaries, ...]
