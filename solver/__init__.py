"""Cell suppression: which cells of linked tables to hide so that nothing hidden can be worked out.

A package of its own: ``from solver import Instance, solve, audit`` or ``python -m solver``.
"""

from solver.audit import AuditReport, Exposure, InsiderInterval, audit, insider_intervals
from solver.errors import (
    InfeasibleError,
    InputError,
    InternalError,
    MultipleInputError,
    SolverError,
    UnreachableLevelError,
)
from solver.explain import Explanation, explain
from solver.hierarchy import Hierarchy
from solver.instance import Insider, Instance, Status
from solver.protect import Protection, protect
from solver.solution import Progress, Solution
from solver.solve import solve

__all__ = [
    "AuditReport",
    "Explanation",
    "Exposure",
    "Hierarchy",
    "InfeasibleError",
    "InputError",
    "Insider",
    "InsiderInterval",
    "Instance",
    "InternalError",
    "MultipleInputError",
    "Progress",
    "Protection",
    "Solution",
    "SolverError",
    "Status",
    "UnreachableLevelError",
    "audit",
    "explain",
    "insider_intervals",
    "protect",
    "solve",
]
