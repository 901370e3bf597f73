"""Threshold rule (minimum frequency)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.arguments import told
from solver.errors import InputError
from solver.rules.base import Hits, is_whole, percentage
from solver.rules.profiles import Profiles


@dataclass(frozen=True)
class Threshold:
    """A cell with contributors, but fewer than ``n``, is sensitive.

    The contributors counted are the units (or holdings) themselves; ``weighted=True`` counts them with
    their sampling weights instead. In a frequency table a value v in 1..n-1 must stay as uncertain as the
    interval 1..n: ``lpl = v - 1``, ``upl = n - v``. In a magnitude table, and for a frequency value of n or
    more (few sampled units with large weights), it must stay uncertain by ``percent`` of its absolute
    value on both sides; the default is 10.

    Raises
    ------
    InputError
        If n is below 2 (such a threshold never hits) or the percentage is not above 0.
    """

    n: int
    percent: float = 10.0
    weighted: bool = False

    def __post_init__(self) -> None:
        if not is_whole(self.n) or self.n < 2:
            raise InputError(
                f"threshold is {told(self.n)}.", remedy="Give a whole number of contributors, 2 or more."
            )
        percentage("percent of the threshold rule", self.percent)

    @property
    def name(self) -> str:
        return f"freq<{self.n}"

    @property
    def flag(self) -> str:
        return "A"

    @property
    def depth(self) -> int:
        return 0

    def apply(self, profiles: Profiles) -> Hits:
        counted = profiles.weighted_count if self.weighted else profiles.count
        hit = profiles.occupied & (counted < self.n)
        relative = self.percent / 100 * np.abs(profiles.value)
        lpl, upl = relative, relative
        if profiles.kind == "frequency":
            small = profiles.value < self.n
            lpl = np.where(small, np.maximum(profiles.value - 1, 0), relative)
            upl = np.where(small, self.n - profiles.value, relative)
        return Hits(hit, hit * lpl, hit * upl, np.zeros(len(profiles)))
