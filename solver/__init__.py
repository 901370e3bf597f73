"""Cell suppression: which cells of linked tables to hide so that nothing hidden can be worked out.

A package of its own: ``from solver import Instance, solve, audit`` or ``python -m solver``.
"""

from solver.errors import InfeasibleError, InputError, InternalError, SolverError, UnreachableLevelError
from solver.instance import Insider, Instance, Status
from solver.solution import Progress, Solution

__all__ = [
    "InfeasibleError",
    "InputError",
    "Insider",
    "Instance",
    "InternalError",
    "Progress",
    "Solution",
    "SolverError",
    "Status",
    "UnreachableLevelError",
]
