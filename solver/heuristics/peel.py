"""Show the heaviest secondaries again batch by batch, and hide of each batch what movements need.

Clean-up asks for one secondary after the other whether all that used it can move without it: a hundred
programs for each, where the movements of a pattern use most of it. Here all needs are met anew, by movements
to which all that is hidden is free but for a batch of secondaries. What costs nothing moves both ways in one
column, one movement meets many needs, and each program goes on from the last one's basis. What is left is no
minimal pattern, but near one.
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.light import sweep
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.instance import IntArray

# So many batches, of at least so many secondaries: 24 come to a pattern 2% cheaper, and take twice as long.
_BATCHES, _LEAST = 12, 8


def peel(cover: Cover, clock: Clock) -> None:
    """Make a cover that meets all its needs cheaper, in place, the heaviest first, as the clock allows."""
    secondaries = cover.secondaries
    size = max(_LEAST, -(-len(secondaries) // _BATCHES))
    for begin in range(0, len(secondaries), size):
        batch = secondaries[begin : begin + size]
        if clock.out:
            return
        try:
            rest = _met_without(cover, batch[cover.hidden[batch]], clock)
        except OutOfTimeError:
            return
        if rest is not None and rest.cost < cover.cost:
            cover.take(rest)


def _met_without(cover: Cover, batch: IntArray, clock: Clock) -> Cover | None:
    """The cover without a batch but for what movements need of it; None if floating point finds none."""
    problem, needs = cover.problem, cover.needs
    rest = cover.without(batch)
    sweep(rest, rest.hidden.copy(), clock)
    price = np.zeros(problem.n)
    price[batch] = problem.weight[batch]
    mover = Mover(problem, needs, np.flatnonzero(cover.hidden), in_one=True)
    mover.set_unit_prices(price)
    for need in needs.by_level.tolist():
        if not rest.unmet[need]:
            continue
        move = mover.move(need, clock, go_on=True)
        if move is None:
            return None
        rest.add(mover.columns, move)
        new = batch[rest.hidden[batch] & (price[batch] > 0)]
        if len(new):
            price[new] = 0.0
            mover.set_unit_prices(price)
    return None if rest.unmet.any() else rest
