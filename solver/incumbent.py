"""Safe patterns near a point of the search."""

from __future__ import annotations

from solver.heuristics.cleanup import clean_up
from solver.heuristics.clock import Clock
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.needs import Cover, gather_needs
from solver.instance import BoolArray, FloatArray
from solver.presolve import FrozenTargetError, Problem


def make_safe(
    problem: Problem, hidden: BoolArray, price: FloatArray, allowed: BoolArray, clock: Clock
) -> BoolArray | None:
    """Hide more until a pattern is safe, then show again what it does not need.

    Parameters
    ----------
    hidden : bool[n]
        The pattern to start from.
    price : float64[n]
        Cost of hiding each column as this search sees it.
    allowed : bool[n]
        Columns that may be hidden.

    Returns
    -------
    bool[n] or None
        None if no pattern of the allowed columns is safe.
    """
    try:
        needs = gather_needs(problem)
        cover = Cover(problem, needs, hidden)
        meet_within(cover, clock)
        protect_lp(cover, clock, price, allowed)
    except FrozenTargetError:
        return None
    clean_up(cover, clock)
    return cover.hidden
