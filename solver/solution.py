"""What `solve` gives back, and what it reports on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from solver.discreet import Discreet
from solver.instance import BoolArray

SolutionStatus = Literal["optimal", "feasible", "infeasible"]


@dataclass(frozen=True)
class Progress:
    """Where a run stands: phase, proven lower bound, cost of the incumbent, seconds so far."""

    phase: str
    lower: float
    upper: float
    seconds: float


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Discreet):
    """A safe suppression pattern and what is proven about it.

    Attributes
    ----------
    hidden : bool[n]
        The pattern: primaries, virtual cells and secondaries.
    cost
        Weight of the secondaries.
    lower_bound
        No safe pattern costs less.
    gap
        (cost − lower_bound) / cost, 0 when the cost is 0.
    status
        "optimal" when the gap is closed, else "feasible".
    method, seconds, statistics
        How it was found; `statistics["stopped"]` is "time" if a time limit cut the run short.
    trace
        (seconds, lower bound, cost) at every change.
    """

    hidden: BoolArray
    cost: float
    lower_bound: float
    gap: float
    status: SolutionStatus
    method: str
    seconds: float
    statistics: Mapping[str, Any] = field(default_factory=dict)
    trace: tuple[tuple[float, float, float], ...] = ()

    def __post_init__(self) -> None:
        hidden = np.array(self.hidden, dtype=np.bool_)
        hidden.setflags(write=False)
        object.__setattr__(self, "hidden", hidden)
        if self.cost < 0 or not 0 <= self.gap <= 1:
            raise ValueError("cost and gap of a solution must be at least 0, the gap at most 1")
        if self.lower_bound > self.cost * (1 + 1e-9) + 1e-9:
            raise ValueError("the lower bound of a solution must not exceed its cost")

    def proven(self, cost: float, lower_bound: float) -> Solution:
        """The same pattern where it costs something else, or something else is proven of it."""
        bound = min(lower_bound, cost)
        gap = (cost - bound) / cost if cost > 0 else 0.0
        status: SolutionStatus = "optimal" if gap == 0 else "feasible"
        return replace(self, cost=cost, lower_bound=bound, gap=gap, status=status)
