"""Protect need by need with the cheapest movement, any linear relations.

Kelly, Golden, Assad 1992 and Robertson 1995, here with the levels in order, movements known so far
skipping needs, and the price of a cell scaled by what moved last: a movement that pays per unit
spreads over many cells, one that pays weight/|z| of its own last answer gathers on few (dynamic
slope scaling, Kim and Pardalos 1999).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solver.attack import Movement
from solver.clock import Clock
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover, Needs
from solver.heuristics.surroundings import Surroundings
from solver.instance import BoolArray, FloatArray
from solver.presolve import FrozenTargetError

# A movement that meets a need at given prices (float64[n]), or None.
Finder = Callable[[int, FloatArray], Movement | None]

_SLOPES = 2
# So many movements in a row that cost nothing.
_FREE = 2
# Beyond so many columns the linear program looks only near the cell. Below, one program of everything is made
# once, and the movements that it finds are cheaper.
LARGE = 15_000
# Part of the limit after which a movement is taken as it comes.
_HASTE = 0.5


def protect_lp(
    cover: Cover,
    clock: Clock,
    weight: FloatArray | None = None,
    allowed: BoolArray | None = None,
    slopes: int = _SLOPES,
    lenient: bool = False,
    at_once: Callable[[], None] | None = None,
) -> None:
    """Meet every need of a cover by cheapest movements.

    Out of work this goes on, without second thoughts: a pattern half made protects nobody, and hiding
    everything takes longer to audit than this takes to end.

    Parameters
    ----------
    weight : float64[n], optional
        Cost of hiding as this search sees it; the problem's own by default.
    allowed : bool[n], optional
        Columns that may be hidden; default, all.
    slopes
        How often a movement is priced again by its own last answer.
    lenient
        Leave needs unmet that those columns cannot meet.
    at_once
        Meets what costs nothing, sooner where that is much.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    OutOfTimeError
        The clock's seconds are over; the cover keeps what was met until then.
    """
    problem = cover.problem
    weight = problem.weight if weight is None else weight
    open_ = np.ones(problem.n, dtype=np.bool_) if allowed is None else allowed | cover.hidden
    if open_.sum() > LARGE:
        find = nearby(Surroundings(problem, np.flatnonzero(~open_)), cover.needs, clock, slopes)
    else:
        find = anywhere(Mover(problem, cover.needs, np.flatnonzero(open_)), cover.needs, clock, slopes)
    meet_needs(cover, find, weight, lenient, at_once)


def meet_within(cover: Cover, clock: Clock) -> None:
    """Note which needs the pattern meets as it is; a small program, as nothing else may move."""
    needs, hidden = cover.needs, cover.hidden
    mover = Mover(cover.problem, needs, np.flatnonzero(hidden), in_one=False)
    mover.set_unit_prices(np.where(hidden, cover.problem.weight, 0.0))
    for need in needs.by_level.tolist():
        if cover.unmet[need]:
            move = mover.move(need, clock)
            if move is not None:
                cover.add(mover.columns, move)


def meet_needs(
    cover: Cover,
    find: Finder,
    weight: FloatArray,
    lenient: bool = False,
    at_once: Callable[[], None] | None = None,
) -> None:
    """Meet the unmet needs of a cover, highest level first.

    Parameters
    ----------
    find
        Where movements come from: :func:`anywhere` or :func:`nearby`.
    weight : float64[n]
        Cost of hiding as this search sees it.
    lenient
        Leave needs unmet that nothing can meet.
    at_once
        Called where several movements in a row cost nothing: most of what is left may cost nothing.

    Raises
    ------
    FrozenTargetError
        A need cannot be met.
    OutOfTimeError
        The finder's clock is out.
    """
    problem, needs, free = cover.problem, cover.needs, 0
    for need in needs.by_level.tolist():
        if cover.unmet[need]:
            found = find(need, np.where(cover.hidden, 0.0, weight))
            if found is not None:
                hidden = int(cover.hidden.sum())
                cover.add(*found)
                free = free + 1 if int(cover.hidden.sum()) == hidden else 0
                if at_once is not None and free == _FREE:
                    at_once()
            elif not lenient:
                raise FrozenTargetError(problem.cells[problem.column == int(needs.cell[need])])


def anywhere(mover: Mover, needs: Needs, clock: Clock, slopes: int = _SLOPES) -> Finder:
    """The cheapest movement of a mover's columns.

    `slopes` is how often it is priced again by its own last answer, until half of the limit is spent.
    """

    def find(need: int, prices: FloatArray) -> Movement | None:
        found = _cheapest(mover, needs, need, prices, clock, slopes)
        return None if found is None else (mover.columns, found)

    return find


def nearby(around: Surroundings, needs: Needs, clock: Clock, slopes: int = _SLOPES) -> Finder:
    """As :func:`anywhere`, in a neighbourhood of the cell that grows until it can move."""

    def find(need: int, prices: FloatArray) -> Movement | None:
        for columns in around.of(needs, need, prices):
            mover = Mover(around.problem, needs, columns)
            found = _cheapest(mover, needs, need, prices, clock, slopes)
            if found is not None:
                return columns, found
        return None

    return find


def _cheapest(
    mover: Mover, needs: Needs, need: int, prices: FloatArray, clock: Clock, slopes: int
) -> FloatArray | None:
    level = float(needs.level[need])
    mover.set_prices(prices, level)
    best = found = mover.move(need, clock)
    if best is None and mover.split():
        best = found = mover.move(need, clock)
    if best is None or found is None:
        return None
    least = _new_cost(best, mover, prices)
    for _ in range(slopes):
        if least == 0.0 or clock.spent > _HASTE:
            break
        mover.set_unit_prices(_slopes(found, mover, prices, level))
        again = mover.move(need, clock)
        if again is None:
            break
        cost = _new_cost(again, mover, prices)
        if cost >= least * (1 - 1e-9):
            break
        best, least, found = again, cost, again
    return best


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
