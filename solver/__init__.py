"""Cell suppression: which cells of linked tables to hide so that nothing hidden can be worked out.

Or, instead of hiding cells, tables that are changed: adjusted, or rounded.

A package of its own: ``from solver import Instance, solve, audit`` or ``python -m solver``.
"""

from solver import early  # noqa: F401  (first, as all else takes a while)

# isort: split
from solver.adjust import Adjustment, AdjustmentReport, adjust, audit_adjustment
from solver.audit import AuditReport, Exposure, InsiderInterval, audit, insider_intervals
from solver.errors import (
    InfeasibleError,
    InputError,
    InternalError,
    MultipleInputError,
    SolverError,
    UndecidedError,
    UnreachableLevelError,
)
from solver.explain import Explanation, explain
from solver.hierarchy import Hierarchy
from solver.instance import Insider, Instance, Status
from solver.protect import Protection, protect
from solver.publish import IntervalTable, publish_intervals
from solver.rounding import Rounding, RoundingReport, round_table
from solver.solution import Progress, Solution
from solver.solve import solve

__all__ = [
    "Adjustment",
    "AdjustmentReport",
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
    "IntervalTable",
    "MultipleInputError",
    "Progress",
    "Protection",
    "Rounding",
    "RoundingReport",
    "Solution",
    "SolverError",
    "Status",
    "UndecidedError",
    "UnreachableLevelError",
    "adjust",
    "audit",
    "audit_adjustment",
    "explain",
    "insider_intervals",
    "protect",
    "publish_intervals",
    "round_table",
    "solve",
]
