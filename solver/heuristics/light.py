"""Protect all cells together: a few linear programs in which only the lightest columns may move.

A program that moves the cells of all needs at once, each up to its level, meets most of them where one for
each need takes hundreds of times longer. It begins with the company that single relations ask for: what must
be paid in any case is free later. The lightest columns come first, then more of them, until there is time for
the cheapest movements of what is left, again among the lightest columns first. Clean-up makes a good pattern
of it, and where time runs out, this is the way to an answer.
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.closure import Closure
from solver.heuristics.lp import LARGE, anywhere, protect_lp
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.heuristics.relations import find_company
from solver.heuristics.together import Together
from solver.instance import BoolArray

# Parts of the columns that may move together, lightest first; and from which of them on movements need by
# need are tried before more columns move together.
_TOGETHER, _EARLIEST = (0.0, 0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5), 0.125
# Parts of the columns for those, in turn.
_ALONE = (0.25, 0.5, 0.75)
# So many needs are tried in that part of the limit; if all would take more than this part of what is left,
# more columns move together. All take about half of what the first ones tell.
_SAMPLE, _TRIAL, _AFFORDED = 20, 0.04, 1.5
# If more columns can't move together any longer, but so many times what is left would do, movements need by
# need are tried: time ends among the last needs, not before the first.
_HALF = 4.0
# A movement takes as long as this power of the part of the columns.
_POWER = 2.5
# Part of the limit for the company of single relations.
_COMPANY = 0.3
# More columns take so many times as long as the last: with fewer seconds, they don't move together.
_GROWTH = 2.5
# So few needs are met one by one.
_FEW = 4
# Sets of columns for a need in haste, and how many columns.
_BOXES, _BOX = 3, 2000


def protect_light(cover: Cover, clock: Clock) -> None:
    """Meet the unmet needs of a cover.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    OutOfTimeError
        The clock's seconds are over.
    """
    company = find_company(cover.problem, clock.part(_COMPANY)).hidden
    if company is not None:
        cover.hidden |= company
    together = _move_together(cover, clock)
    for part in _ALONE:
        hidden = _lightest(cover, part)
        if part > together and hidden.sum() <= LARGE:
            protect_lp(cover, clock, None, hidden, slopes=0, lenient=True)
    if cover.problem.n > LARGE:
        _find_boxes(cover, clock)
    protect_lp(cover, clock)


def _move_together(cover: Cover, clock: Clock) -> float:
    """Meet needs together until there is time to meet the others one by one; the part of the columns that
    have moved. Without time for more columns or for that, boxes do more.
    """
    before, took = 0.0, 0.0
    for part in _TOGETHER:
        if cover.unmet.sum() <= _FEW:
            break
        needed = _time_for_all(cover, clock, before) if before >= _EARLIEST else np.inf
        if needed <= _AFFORDED:
            break
        left = clock.seconds_left
        if left is not None and left < _GROWTH * took:
            if needed <= _HALF:
                break
            raise OutOfTimeError
        sweep(cover, _lightest(cover, part), clock)
        took = 0.0 if left is None else left - (clock.seconds_left or 0.0)
        before = part
    return before


def _time_for_all(cover: Cover, clock: Clock, together: float) -> float:
    """How long movements need by need would take, as a part of what is left of the limit: those of some needs
    of all levels tell.
    """
    part, later = ([part for part in _ALONE if part > together] + [1.0, 1.0])[:2]
    hidden = _lightest(cover, part)
    if hidden.sum() > LARGE:
        return np.inf
    if not clock.limited:
        return 0.0
    find = anywhere(Mover(cover.problem, cover.needs, np.flatnonzero(hidden)), cover.needs, clock, slopes=0)
    order = cover.needs.by_level[cover.unmet[cover.needs.by_level]]
    trial, asked, failed, spent, before = clock.part(_TRIAL), 0, 0, clock.spent, len(order)
    for need in order[:: -(-len(order) // _SAMPLE)].tolist():
        if trial.out:
            break
        if cover.unmet[need]:
            asked += 1
            found = find(need, np.where(cover.hidden, 0.0, cover.problem.weight))
            if found is None:
                failed += 1
            else:
                cover.add(*found)
    left = int(cover.unmet.sum())
    # A movement meets several needs, the first ones more than the last.
    several = (1 + max((before - left) / max(asked, 1), 1.0)) / 2
    each = (clock.spent - spent) / max(asked, 1)
    # What doesn't move among these is asked again, among more.
    each *= 1 + failed / max(asked, 1) * (later / part) ** _POWER
    return float(left / several * each / max(1 - clock.spent, 1e-9))


def _find_boxes(cover: Cover, clock: Clock) -> None:
    """Meet needs one by one, each among few columns, cheap or with much room: programs of milliseconds."""
    problem, needs = cover.problem, cover.needs
    closure = Closure(problem)
    for need in needs.by_level.tolist():
        if not cover.unmet[need]:
            continue
        cell, level = int(needs.cell[need]), float(needs.level[need])
        prices = np.where(cover.hidden, 0.0, problem.weight)
        known = problem.known[needs.attacker[need]]
        for roomy in (False, True):
            columns = closure.columns(cell, level, prices, known, _BOXES, _BOX, roomy_first=roomy)
            mover = Mover(problem, needs, columns)
            mover.set_prices(prices, level)
            move = mover.move(need, clock)
            if move is not None:
                cover.add(columns, move)
                break


def _lightest(cover: Cover, part: float) -> BoolArray:
    """The pattern of a cover with that part of the other columns, lightest first."""
    free = np.flatnonzero(~cover.hidden)
    lightest = free[np.argsort(cover.problem.weight[free], kind="stable")]
    hidden = cover.hidden.copy()
    hidden[lightest[: int(np.ceil(part * len(lightest)))]] = True
    return hidden


def sweep(cover: Cover, hidden: BoolArray, clock: Clock) -> None:
    """Move the cells of unmet needs together while that meets some of them; only what is hidden moves."""
    problem, needs = cover.problem, cover.needs
    together = Together(problem, problem.lo * hidden, problem.hi * hidden, clock)
    while True:
        unmet = np.flatnonzero(cover.unmet & (needs.attacker == 0))
        if len(unmet) <= _FEW:
            return
        for side in (1.0, -1.0):
            mine = unmet[needs.side[unmet] == side]
            mine = mine[cover.unmet[mine]]
            move = together.move(needs.cell[mine], (needs.side * needs.level)[mine])
            if move is not None:
                moving = np.flatnonzero(move)
                cover.add(moving, move[moving])
        met = len(unmet) - int((cover.unmet & (needs.attacker == 0)).sum())
        if met <= len(unmet) // 6:
            return
