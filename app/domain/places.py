"""Where the published cells of a cube stand, as its sheets show them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray

#: What stands between the parts of a cell's key.
SEPARATOR = " | "


@dataclass(frozen=True, eq=False)
class Places:
    """Where readers meet the cells of one cube, so that any query over them can be answered.

    Attributes
    ----------
    coords : int32[n, 1+H]
        Cells at own measures and members, each row once.
    row : int64[n]
        Their rows in the release.
    keys : tuple of str
        Keys (`app.domain.cell_key`) of cells at calculated members.
    key_row : int64[m]
        Their rows in the release.
    """

    coords: IntArray
    row: NDArray[np.int64]
    keys: tuple[str, ...] = ()
    key_row: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.coords) != len(self.row) or len(self.keys) != len(self.key_row):
            raise ValueError("places and their rows differ in length")
