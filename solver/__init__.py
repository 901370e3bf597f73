"""Cell suppression: which cells of linked tables to hide so that nothing hidden can be worked out.

A package of its own: ``from solver import Instance, solve, audit`` or ``python -m solver``.
"""

from solver.audit import AuditReport, Exposure, audit
from solver.errors import InfeasibleError, InputError, InternalError, SolverError, UnreachableLevelError
from solver.explain import Explanation, explain
from solver.instance import Insider, Instance, Status
from solver.solution import Progress, Solution
from solver.solve import solve

__all__ = [
    "AuditReport",
    "Explanation",
    "Exposure",
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
    "audit",
    "explain",
    "solve",
]
