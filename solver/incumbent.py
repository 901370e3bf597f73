"""Safe patterns near a point of the search."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from solver.attack import Movement, check_pattern
from solver.clock import Clock, OutOfTimeError, Strict
from solver.heuristics.cleanup import clean_up
from solver.heuristics.light import sweep
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.rounding import Rounding
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem, Targets

# Part of the limit for finding covers, and of the cheapest cover's cost, how much more one may cost to be
# cleaned too.
_COVERS, _DEARER = 0.5, 1.08
# Part of the limit for the clean-up of one: a better point makes better ones.
_CLEANING = 0.25
# Where one in haste takes more than this part of the patience, others may not end: it is thinned first.
_SLOW = 0.04
# More needs than that are met together, as far as that goes: one by one, those that can't move within what is
# hidden in any case took half of the limit.
_MANY = 200


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


def settle(problem: Problem, hidden: BoolArray, clock: Clock) -> tuple[BoolArray, list[Movement]] | None:
    """A safe pattern that contains another one (bool[n]), without search for a cheap one, and movements that
    prove some of it; None if time did not suffice.
    """
    moves: list[Movement] = []
    shortfalls = check_pattern(problem, hidden, clock, moves=moves)
    if not shortfalls:
        return hidden, moves
    exposed = np.unique(np.array([shortfall.target for shortfall in shortfalls]))
    found = complete(problem, hidden, exposed, clock)
    return None if found is None else (found, moves)


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
    limit = clock if patient else Strict(clock)
    try:
        cover = Cover(problem, gather_needs(problem, limit), hidden)
        meet_within(cover, limit)
        protect_lp(cover, limit, price, allowed)
    except (FrozenTargetError, OutOfTimeError):
        return None
    clean_up(cover, clock if patient else clock.part(_CLEANING))
    return cover


def round_up(problem: Problem, rounding: Rounding, clock: Clock, patience: Clock) -> Cover | None:
    """The cheapest of three roundings: the fewer columns, the faster, and none of the three is always the
    cheapest. One made in haste is what remains where time suffices for none, and where programs are slow, the
    cheapest movements among its columns come before those of more columns.

    Parameters
    ----------
    rounding
        Of the point.
    clock, patience
        How long, and how long until there is one at all.
    """
    covers: list[Cover] = []
    with suppress(OutOfTimeError, FrozenTargetError):
        start = Cover(problem, gather_needs(problem, Strict(patience)))
        if start.unmet.sum() <= _MANY:
            meet_within(start, Strict(patience))
        else:
            sweep(start, start.hidden.copy(), Strict(patience))
        before = patience.spent
        covers.append(rounding.haste(start, Strict(patience)))
        if patience.spent - before > _SLOW:
            covers.append(rounding.thin(start, covers[0], Strict(patience)))
        for kind in rounding.kinds:
            enough = len(covers) > 1
            if enough and clock.spent > _COVERS:
                break
            covers.append(rounding.cover(start, kind, Strict(clock if enough else patience)))
    covers.sort(key=lambda found: found.cost)
    costs = [cover.cost for cover in covers]
    for cover, cost in zip(covers, costs, strict=True):
        if cost <= _DEARER * costs[0]:
            clean_up(cover, clock.part(_CLEANING))
    return min(covers, key=lambda found: found.cost, default=None)
