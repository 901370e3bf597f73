"""Protect need by need with the cheapest movement, any linear relations.

Kelly, Golden, Assad 1992 and Robertson 1995, here with the levels in order, movements known so far
skipping needs, and the price of a cell scaled by what moved last: a movement that pays per unit
spreads over many cells, one that pays weight/|z| of its own last answer gathers on few (dynamic
slope scaling, Kim and Pardalos 1999).
"""

from __future__ import annotations

import numpy as np

from solver.heuristics.clock import Clock
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover, Needs
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem

_SLOPES = 2


def protect_lp(problem: Problem, cover: Cover, clock: Clock) -> None:
    """Meet every need of a cover by cheapest movements.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    meet_needs(Mover(problem, cover.needs), cover, problem.weight, clock)


def meet_needs(mover: Mover, cover: Cover, weight: FloatArray, clock: Clock, slopes: int = _SLOPES) -> None:
    """Meet the unmet needs of a cover, highest level first, at the given weights (float64[n]).

    `slopes` is how often a movement is priced again by its own last answer; out of time, a
    movement is taken as it comes.
    """
    problem, needs = cover.problem, cover.needs
    order = needs.by_level
    for need in order[cover.unmet[order]].tolist():
        if not cover.unmet[need]:
            continue
        prices = np.where(cover.hidden, 0.0, weight)
        mover.set_prices(prices, float(needs.level[need]))
        found = mover.move(need)
        clock.charge(mover.size)
        if found is None:
            raise FrozenTargetError(_original(problem, int(needs.cell[need])))
        best, least = found, _new_cost(found, mover, prices)
        for _ in range(slopes):
            if least == 0.0 or clock.out:
                break
            mover.set_unit_prices(_slopes(found, mover, prices, float(needs.level[need])))
            again = mover.move(need)
            clock.charge(mover.size)
            if again is None:
                break
            cost = _new_cost(again, mover, prices)
            if cost < least * (1 - 1e-9):
                best, least = again, cost
            elif cost > least or (again == found).all():
                break
            found = again
        cover.add(mover.columns, best)


def _moving(move: FloatArray) -> BoolArray:
    return np.asarray(np.abs(move) > 1e-8 * min(1.0, np.abs(move).max(initial=0.0)))


def _new_cost(move: FloatArray, mover: Mover, prices: FloatArray) -> float:
    return float(prices[mover.columns[_moving(move)]].sum())


def _slopes(move: FloatArray, mover: Mover, prices: FloatArray, level: float) -> FloatArray:
    room = np.maximum(mover.hi, mover.lo)
    share = np.where(_moving(move), np.minimum(np.abs(move), room), np.minimum(room, level))
    unit = prices.copy()
    unit[mover.columns] /= np.maximum(share / level, 1e-9)
    return unit


def _original(problem: Problem, column: int) -> IntArray:
    return np.asarray(problem.cells[problem.column == column])
