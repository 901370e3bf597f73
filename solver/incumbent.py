"""Safe patterns near a point of the search."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from solver.clock import Clock, OutOfTimeError, Strict
from solver.heuristics.cleanup import clean_up
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.needs import Cover, gather_needs
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem, Targets

# Part of the columns, lightest first, that a rounding may hide besides those of the point; of the limit, for
# finding covers, and of the cheapest cover's cost, how much more one may cost to be cleaned too.
_LIGHTEST, _COVERS, _DEARER = 0.25, 0.5, 1.08
_ZERO = 1e-6


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
) -> Cover | None:
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
    Cover or None
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
    return cover


def round_up(
    problem: Problem, x: FloatArray, allowed: BoolArray, clock: Clock, patience: Clock
) -> Cover | None:
    """A safe pattern near a point of the relaxation, cheap where that hides.

    Patterns of the columns that the point hides in part, of these and the lightest others, and of all: the
    fewer columns, the faster, and none of the three is always the cheapest.

    Parameters
    ----------
    x : float64[n]
        The point.
    allowed : bool[n]
        Columns that may be hidden.
    clock, patience
        How long, and how long until there is one at all.
    """
    support = allowed & (x > _ZERO)
    price = problem.weight * (1 - x)
    lightest = np.argsort(problem.weight, kind="stable")[: int(_LIGHTEST * problem.n)]
    light = support.copy()
    light[lightest] = allowed[lightest]
    covers: list[Cover] = []
    with suppress(OutOfTimeError, FrozenTargetError):
        strict = Strict(patience)
        start = Cover(problem, gather_needs(problem, strict))
        meet_within(start, strict)
        for columns in (support, light, allowed):
            if covers and clock.spent > _COVERS:
                break
            strict = Strict(clock if covers else patience)
            cover = start.copy()
            with suppress(FrozenTargetError):
                protect_lp(cover, strict, price, columns, slopes=0, lenient=columns is light)
                if cover.unmet.any():
                    protect_lp(cover, strict, price, allowed, slopes=0)
                covers.append(cover)
    covers.sort(key=lambda found: found.cost)
    costs = [cover.cost for cover in covers]
    for cover, cost in zip(covers, costs, strict=True):
        if cost <= _DEARER * costs[0]:
            clean_up(cover, clock)
    return min(covers, key=lambda found: found.cost, default=None)
