"""p%-rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.rules.base import Hits, exceeds, percentage
from solver.rules.profiles import Profiles


@dataclass(frozen=True)
class PPercent:
    """A cell is sensitive if its second contributor can estimate the largest within ``p`` per cent.

    That is, if ``total − x₁ − x₂ < p/100 · x₁``. The interval must reach
    ``upl = p/100 · x₁ − (total − x₁ − x₂)`` up, and as far down. The remainder is never taken below zero.

    Raises
    ------
    InputError
        If p is not above 0.
    """

    p: float

    def __post_init__(self) -> None:
        percentage("p of the p%-rule", self.p)

    @property
    def name(self) -> str:
        return f"p%{self.p:g}"

    @property
    def flag(self) -> str:
        return "F"

    @property
    def depth(self) -> int:
        return 2

    def apply(self, profiles: Profiles) -> Hits:
        rest = np.maximum(profiles.mass - profiles.largest(2), 0)
        # A remainder this far below the total is the rounding of the subtraction.
        rest[rest <= 1e-12 * profiles.mass] = 0
        allowed = self.p / 100 * profiles.largest(1)
        hit = profiles.occupied & exceeds(allowed, rest)
        level = np.where(hit, allowed - rest, 0.0)
        return Hits(hit, level, level, np.zeros(len(profiles)))
