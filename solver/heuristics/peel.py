"""Show the heaviest secondaries again batch by batch, and hide of each batch what movements need.

Clean-up asks for one secondary after the other whether all that used it can move without it: a hundred
programs for each, where the movements of a pattern use most of it. Here all needs are met anew, by movements
to which all that is hidden is free but for a batch of secondaries. What costs nothing moves both ways in one
column, one movement meets many needs, and each program goes on from the last one's basis. What is left is no
minimal pattern, but near one. Where time ends first, the needs not met yet keep the movements that they had.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.light import sweep
from solver.heuristics.mover import ALIKE, Mover
from solver.heuristics.needs import Cover
from solver.heuristics.relations import find_company
from solver.instance import IntArray

# So many batches, of at least so many secondaries: 24 come to a pattern 2% cheaper, and take twice as long.
_BATCHES, _LEAST = 12, 8
# Of more hidden columns than that a batch takes long, whatever its size: there are so few, after a first one
# of all that single relations don't ask for; what these ask for may take this part of the limit.
WIDE, _WIDE_BATCHES = 2_000, 4
_COMPANY = 0.05
# So many needs are met at a time then, far from each other.
_GROUP = 8


def peel(cover: Cover, clock: Clock) -> None:
    """Make a cover that meets all its needs cheaper, in place, the heaviest first, as the clock allows."""
    wide = cover.hidden.sum() > WIDE
    if wide:
        company = find_company(cover.problem, clock.part(_COMPANY)).hidden
        if company is not None:
            _peel_off(cover, cover.secondaries[~company[cover.secondaries]], clock, _GROUP)
    secondaries = cover.secondaries
    size = max(_LEAST, -(-len(secondaries) // (_WIDE_BATCHES if wide else _BATCHES)))
    for begin in range(0, len(secondaries), size):
        batch = secondaries[begin : begin + size]
        _peel_off(cover, batch[cover.hidden[batch]], clock, _GROUP if wide else 1)


def _peel_off(cover: Cover, batch: IntArray, clock: Clock, group: int = 1) -> None:
    """Show what can be spared of a batch (int64[k]), so many needs at a time; what time does not suffice for
    stays as it is.
    """
    if clock.out or not len(batch):
        return
    rest = cover.without(batch)
    try:
        if not _meet_without(rest, cover, batch, clock, group):
            return
    except OutOfTimeError:
        rest.meet_as(cover)
    if rest.cost < cover.cost:
        cover.take(rest)


def _meet_without(rest: Cover, cover: Cover, batch: IntArray, clock: Clock, group: int) -> bool:
    """Meet the needs of a cover without a batch again, with as little of it as may be; False if floating
    point does not find how.
    """
    problem, needs = cover.problem, cover.needs
    sweep(rest, rest.hidden.copy(), clock)
    price = np.zeros(problem.n)
    price[batch] = problem.weight[batch]
    mover = Mover(problem, needs, np.flatnonzero(cover.hidden), in_one=True)
    mover.set_unit_prices(price)

    def meet(need: int, others: Sequence[int] = ()) -> bool:
        move = mover.move(need, clock, go_on=True, others=others)
        if move is None:
            return False
        rest.add(mover.columns, move)
        new = batch[rest.hidden[batch] & (price[batch] > 0)]
        if len(new):
            price[new] = 0.0
            mover.set_unit_prices(price)
        return True

    for need in needs.by_level.tolist():
        if not rest.unmet[need]:
            continue
        others = _apart(rest, need, group - 1)
        if not (others and meet(need, others)) and not meet(need):
            return False
    return not rest.unmet.any()


def _apart(cover: Cover, need: int, count: int) -> list[int]:
    """So many more unmet needs with levels like that one's, high ones first, whose cells have no relation in
    common with its cell or with each other.
    """
    if not count:
        return []
    needs, rows = cover.needs, cover.problem.transposed
    unmet = cover.unmet & (needs.attacker == needs.attacker[need])
    unmet &= needs.level * ALIKE >= needs.level[need]
    chosen, taken = list[int](), set(_relations(rows, int(needs.cell[need])))
    for other in needs.by_level[unmet[needs.by_level]].tolist():
        mine = _relations(rows, int(needs.cell[other]))
        if taken.isdisjoint(mine):
            chosen.append(other)
            taken.update(mine)
            if len(chosen) == count:
                break
    return chosen


def _relations(rows: sparse.csr_array, column: int) -> list[int]:
    found: list[int] = rows.indices[rows.indptr[column] : rows.indptr[column + 1]].tolist()
    return found
