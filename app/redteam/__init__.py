"""The red team: what somebody who knows only the public site can work out of it.

Shares nothing with the pipeline but the linear programs of `solver.lp`: it reads the pages and the
downloads as anybody may, builds the relations anew from their labels, and bounds every hidden cell.
"""

from app.redteam.attack import attack
from app.redteam.report import Finding, Promise, Report

__all__ = ["Finding", "Promise", "Report", "attack"]
