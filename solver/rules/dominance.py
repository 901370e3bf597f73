"""(n,k)-dominance rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.arguments import told
from solver.errors import InputError
from solver.rules.base import Hits, exceeds, is_whole, percentage
from solver.rules.profiles import Profiles


@dataclass(frozen=True)
class Dominance:
    """A cell whose ``n`` largest contributions exceed ``k`` per cent of its total is sensitive.

    The published value must be believable up to where the rule no longer hits:
    ``upl = 100/k · (x₁ + … + xₙ) − total``, and as far down. Shares are of the sum of absolute
    contributions, so the rule also holds for tables with negative values.

    Raises
    ------
    InputError
        If n is below 1 or k is not in (0, 100).
    """

    n: int
    k: float

    def __post_init__(self) -> None:
        if not is_whole(self.n) or self.n < 1:
            raise InputError(
                f"n of the dominance rule is {told(self.n)}.", remedy="Give a whole number, 1 or more."
            )
        if percentage("k of the dominance rule", self.k, 100) == 100:
            raise InputError(
                "k of the dominance rule is 100, which nothing exceeds.", remedy="Give less than 100."
            )

    @property
    def name(self) -> str:
        return f"({self.n},{self.k:g})"

    @property
    def flag(self) -> str:
        return "B" if self.n == 1 else "C"

    @property
    def depth(self) -> int:
        return self.n

    def apply(self, profiles: Profiles) -> Hits:
        largest = profiles.largest(self.n)
        hit = profiles.occupied & exceeds(100 * largest, self.k * profiles.mass)
        level = np.where(hit, np.maximum(100 / self.k * largest - profiles.mass, 0), 0.0)
        return Hits(hit, level, level, np.zeros(len(profiles)))
