"""Safe patterns near a point of the search."""

from __future__ import annotations

from dataclasses import replace

from solver.clock import Clock, OutOfTimeError, Strict
from solver.heuristics.cleanup import clean_up
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.needs import Cover, gather_needs
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem, Targets


def complete(problem: Problem, hidden: BoolArray, exposed: IntArray, clock: Clock) -> BoolArray | None:
    """Hide more until the targets that a pattern leaves exposed (indices) are safe, and no second
    thoughts: quick when they are few.

    Returns
    -------
    bool[n] or None
        None if time did not suffice, or nothing protects them.
    """
    old = problem.targets
    levels = (old.lower[exposed], old.upper[exposed], old.sliding[exposed])
    part = replace(problem, targets=Targets(old.attacker[exposed], old.cell[exposed], *levels))
    try:
        cover = Cover(part, gather_needs(part, clock), hidden)
        protect_lp(cover, Strict(clock), problem.weight)
    except (FrozenTargetError, OutOfTimeError):
        return None
    return cover.hidden


def make_safe(
    problem: Problem,
    hidden: BoolArray,
    price: FloatArray,
    allowed: BoolArray,
    clock: Clock,
    *,
    patient: bool = False,
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
    patient
        Go on when the clock is out of work.

    Returns
    -------
    bool[n] or None
        None if no pattern of the allowed columns is safe, or time did not suffice to find one.
    """
    clock = clock if patient else Strict(clock)
    try:
        cover = Cover(problem, gather_needs(problem, clock), hidden)
        meet_within(cover, clock)
        protect_lp(cover, clock, price, allowed)
    except (FrozenTargetError, OutOfTimeError):
        return None
    clean_up(cover, clock)
    return cover.hidden
