"""Levels a little higher, where exact arithmetic finds one missed by less than a search can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from solver.attack import Movement, check_pattern
from solver.clock import Clock
from solver.incumbent import complete
from solver.instance import BoolArray, Instance, IntArray
from solver.presolve import FrozenTargetError, reduce_instance

_STRICTER = 1e-5


def with_higher_levels(instance: Instance, cells: IntArray) -> Instance:
    """The instance with the levels of these cells, and of all insiders, a little higher; no higher than
    the bounds allow.
    """
    raised = {key: getattr(instance, key).copy() for key in ("lpl", "upl", "spl")}
    for levels in raised.values():
        levels[cells] *= 1 + _STRICTER
    insiders = tuple(
        replace(insider, **{key: getattr(insider, key) * (1 + _STRICTER) for key in raised})
        for insider in instance.insiders
    )
    return instance.replace(**raised, insiders=insiders).clipped()


def repaired(
    instance: Instance, hidden: BoolArray, cells: IntArray
) -> tuple[BoolArray, sparse.csr_array] | None:
    """More hidden, until these cells and all insiders' are safe; quick, as it is next to nothing they miss.

    Parameters
    ----------
    instance
        With the levels that are to be met.
    hidden : bool[n]
        The pattern, safe but for them.
    cells
        Whose targets are looked at.

    Returns
    -------
    pattern, movements
        bool[n] and float64[k, n]: what proves those that were safe already. None if nothing protects them.
    """
    try:
        reduction = reduce_instance(instance)
    except FrozenTargetError:
        return None
    patterns: list[BoolArray] = []
    moves: list[list[Movement]] = []
    for problem in reduction.problems:
        local, known = problem.local(hidden), list[Movement]()
        columns = problem.column[np.isin(problem.cells, cells)]
        targets = problem.targets
        only = np.flatnonzero(np.isin(targets.cell, columns) | (targets.attacker > 0))
        shortfalls = check_pattern(problem, local, Clock(), only=only, moves=known)
        more: BoolArray | None = local
        if shortfalls:
            exposed = np.unique(np.array([shortfall.target for shortfall in shortfalls]))
            more = complete(problem, local, exposed, Clock())
        if more is None:
            return None
        patterns.append(more)
        moves.append(known)
    return hidden | reduction.expand(patterns), reduction.expand_moves(moves)
