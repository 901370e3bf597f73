"""Safe patterns near a point of the search."""

from __future__ import annotations

import numpy as np

from solver.heuristics.cleanup import clean_up
from solver.heuristics.clock import Clock
from solver.heuristics.lp import meet_needs, protect_lp
from solver.heuristics.mover import Mover
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
        _meet_for_free(cover, clock)
        protect_lp(cover, clock, price, allowed)
    except FrozenTargetError:
        return None
    clean_up(cover, clock)
    return cover.hidden


def _meet_for_free(cover: Cover, clock: Clock) -> None:
    """Note which needs the pattern meets as it is; a small program, as nothing else may move."""
    needs = cover.needs
    mover = Mover(cover.problem, needs, np.flatnonzero(cover.hidden))
    for need in needs.by_level.tolist():
        if cover.unmet[need]:
            move = mover.move(need)
            clock.charge(mover.size)
            if move is not None:
                cover.add(mover.columns, move)


def improve(problem: Problem, hidden: BoolArray, allowed: BoolArray, clock: Clock) -> BoolArray:
    """Do without each secondary of a safe pattern in turn, heaviest first, where that comes cheaper.

    A cell is shown for good, the needs it leaves are met by the cheapest movements, and what those
    make superfluous is shown as well; the better of old and new pattern goes on.
    """
    needs = gather_needs(problem)
    cover = Cover(problem, needs, hidden)
    _meet_for_free(cover, clock)
    mover = Mover(problem, needs, np.flatnonzero(allowed | hidden))
    column = _heaviest(problem, cover, np.inf)
    while column is not None and not clock.out:
        limit = float(problem.weight[column])
        trial = cover.copy()
        one = np.array([column])
        trial.show(one)
        mover.close(one)
        try:
            meet_needs(mover, trial, problem.weight, clock)
            clean_up(trial, clock)
            if trial.cost < cover.cost * (1 - 1e-9) - 1e-9 and not trial.hidden[column]:
                cover = trial
        except FrozenTargetError:
            # The cell is needed whatever else is hidden.
            pass
        mover.open(one)
        column = _heaviest(problem, cover, limit)
    return cover.hidden


def _heaviest(problem: Problem, cover: Cover, below: float) -> int | None:
    """The heaviest secondary lighter than `below`."""
    secondaries = cover.secondaries
    lighter = secondaries[problem.weight[secondaries] < below]
    return int(lighter[0]) if len(lighter) else None
