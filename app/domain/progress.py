"""How far a run has come, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StepProgress:
    """Where a step of the pipeline stands.

    ``done`` of ``total`` parts (``total`` 0: not known yet); ``lower`` and ``upper`` are the proven lower
    bound and the cost of the best pattern while the solver runs, nan elsewhere. Holds no cell value.
    """

    step: str
    done: int
    total: int
    message: str = ""
    lower: float = float("nan")
    upper: float = float("nan")


ProgressCallback = Callable[[StepProgress], None]
