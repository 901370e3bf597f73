"""Manual rule: cells that a person marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solver.errors import InputError
from solver.rules.base import Hits, percentage
from solver.rules.profiles import Floats, Profiles


@dataclass(frozen=True, eq=False)
class Manual:
    """The listed cells are sensitive.

    Parameters
    ----------
    cells
        i8[m], indices of the cells.
    lpl, upl, spl
        f8[m] or one number: stated protection levels. Where ``lpl`` or ``upl`` is left out or NaN it is
        ``percent`` of the absolute value; the default is 10.

    Raises
    ------
    InputError
        If a level is negative or lengths disagree. When applied: if there is no such cell.
    """

    cells: ArrayLike
    lpl: ArrayLike = np.nan
    upl: ArrayLike = np.nan
    spl: ArrayLike = 0.0
    percent: float = 10.0

    def __post_init__(self) -> None:
        cells = np.atleast_1d(np.asarray(self.cells, dtype=np.int64))
        object.__setattr__(self, "cells", cells)
        for name in ("lpl", "upl", "spl"):
            given = np.asarray(getattr(self, name), dtype=np.float64)
            if given.ndim and given.shape != cells.shape:
                raise InputError(f"{name} of the manual rule has shape {given.shape} for {len(cells)} cells.")
            level = np.array(np.broadcast_to(given, cells.shape))
            if (level < 0).any() or np.isinf(level).any():
                raise InputError(
                    f"{name} of the manual rule is negative or infinite.",
                    cell=str(int(cells[np.argmax((level < 0) | np.isinf(level))])),
                    remedy="Give a finite level of 0 or more.",
                )
            object.__setattr__(self, name, level)
        percentage("percent of the manual rule", self.percent)

    @property
    def name(self) -> str:
        return "manual"

    @property
    def flag(self) -> str:
        return "M"

    @property
    def depth(self) -> int:
        return 0

    def apply(self, profiles: Profiles) -> Hits:
        n = len(profiles)
        cells = np.asarray(self.cells, dtype=np.int64)
        outside = (cells < 0) | (cells >= n)
        if outside.any():
            raise InputError(
                f"the manual rule marks cell {cells[np.argmax(outside)]}, but there are {n} cells."
            )
        hit = np.zeros(n, dtype=np.bool_)
        hit[cells] = True
        relative = self.percent / 100 * np.abs(profiles.value[cells])

        def levels(stated: ArrayLike, default: Floats) -> Floats:
            result = np.zeros(n)
            numbers = np.asarray(stated, dtype=np.float64)
            np.maximum.at(result, cells, np.where(np.isnan(numbers), default, numbers))
            return result

        return Hits(
            hit, levels(self.lpl, relative), levels(self.upl, relative), levels(self.spl, 0 * relative)
        )
