"""Protect all cells together: a few linear programs in which only the lightest columns may move.

A program that moves the cells of all needs at once, each up to its level, meets most of them where one for
each need takes hundreds of times longer. The lightest columns alone come first, then more and more; what is
left then is met need by need. Clean-up makes a good pattern of it, and where time runs out, this is the
way to an answer.
"""

from __future__ import annotations

import numpy as np

from solver.attack import Region
from solver.clock import Clock, OutOfTimeError
from solver.heuristics.closure import Closure
from solver.heuristics.lp import LARGE, protect_lp
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, IntArray

# Parts of the columns that may move, lightest first.
_PARTS = (0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5)
# On tables too large for one program of everything, the first of them alone.
_FIRST = 4
_IN_HASTE = 0.5
# Part of the needs that a program in haste has to meet to be worth another one.
_WORTH = 1 / 3
# All of them take so many times as long as the first: where there are fewer seconds, boxes do more with them.
_GROWTH = 15
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
    _sweep_parts(cover, clock, _PARTS if cover.problem.n <= LARGE else _PARTS[:_FIRST])
    if cover.problem.n > LARGE:
        _find_boxes(cover, clock)
    protect_lp(cover, clock)


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


def _sweep_parts(cover: Cover, clock: Clock, parts: tuple[float, ...]) -> None:
    patterns = [_lightest(cover, part) for part in parts]
    began = clock.seconds_left
    for number, hidden in enumerate(patterns):
        if cover.unmet.sum() <= _FEW:
            break
        sweep(cover, hidden | cover.hidden, clock)
        left = clock.seconds_left
        if number == 0 and began is not None and left is not None and left < _GROWTH * (began - left):
            raise OutOfTimeError


def _lightest(cover: Cover, part: float) -> BoolArray:
    """The pattern of a cover with that part of the other columns, lightest first."""
    free = np.flatnonzero(~cover.hidden)
    lightest = free[np.argsort(cover.problem.weight[free], kind="stable")]
    hidden = cover.hidden.copy()
    hidden[lightest[: int(np.ceil(part * len(lightest)))]] = True
    return hidden


def sweep(cover: Cover, hidden: BoolArray, clock: Clock) -> None:
    """Move the cells of unmet needs together while that meets some of them; only what is hidden moves."""
    problem = cover.problem
    region = Region(problem, problem.lo * hidden, problem.hi * hidden, clock)
    while True:
        unmet = np.flatnonzero(cover.unmet & (cover.needs.attacker == 0))
        if len(unmet) <= _FEW:
            return
        met = 0
        for side in (1.0, -1.0):
            mine = unmet[cover.needs.side[unmet] == side]
            mine = mine[cover.unmet[mine]]
            if len(mine):
                met += _move(cover, region, mine)
                clock.charge(problem.n)
        if met <= len(unmet) // 6:
            return


def _move(cover: Cover, region: Region, needs: IntArray) -> int:
    """Move the cells of some needs by their levels, as near as goes; how many needs that meets."""
    before = int(cover.unmet.sum())
    wanted = (cover.needs.side * cover.needs.level)[needs]
    move = region.sweep(cover.needs.cell[needs], wanted)
    if move is not None:
        moving = np.flatnonzero(move)
        cover.add(moving, move[moving])
    return before - int(cover.unmet.sum())
