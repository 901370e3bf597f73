"""Safe patterns near a point of the search."""

from __future__ import annotations

import numpy as np

from solver.heuristics.cleanup import clean_up
from solver.heuristics.clock import Clock
from solver.heuristics.lp import meet_needs
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
        columns = np.flatnonzero(allowed | cover.hidden)
        meet_needs(Mover(problem, needs, columns), cover, price, clock)
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
