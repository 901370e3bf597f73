"""Zero rule: a zero to which somebody contributed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solver.arguments import as_number
from solver.rules.base import Hits
from solver.rules.profiles import Profiles


@dataclass(frozen=True)
class Zero:
    """A cell of value 0 that has contributors is sensitive: it tells that each of them reported 0.

    The interval must reach ``width`` up, and as far down where contributions may be negative. A cell
    without contributors is empty and stays safe.

    Raises
    ------
    InputError
        If the width is not a finite number above 0.
    """

    width: float

    def __post_init__(self) -> None:
        name = "width of the zero rule"
        as_number(self.width, name, math.ulp(0.0), "Give a number above 0.", finite=True)

    @property
    def name(self) -> str:
        return "zero"

    @property
    def flag(self) -> str:
        return "Z"

    @property
    def depth(self) -> int:
        return 0

    def apply(self, profiles: Profiles) -> Hits:
        hit = profiles.occupied & (profiles.value == 0)
        upl = hit * float(self.width)
        return Hits(hit, upl, upl, np.zeros(len(profiles)))
