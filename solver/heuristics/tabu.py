"""Memory-guided swaps around a pattern (tabu search, Khadraoui: tabular data anonymisation).

A move shows one secondary again and protects what that exposes by other cells; the cell stays
forbidden for a while, so that the search leaves the neighbourhood it came from even uphill. A
pattern better than every one before is always taken.
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.cleanup import clean_up
from solver.heuristics.lp import protect_lp
from solver.heuristics.needs import Cover
from solver.instance import BoolArray
from solver.presolve import FrozenTargetError

_CANDIDATES = 4
_PATIENCE = 60


def search_tabu(cover: Cover, clock: Clock, seed: int) -> None:
    """Improve a safe pattern, in place, until time or patience is out."""
    if cover.unmet.any():
        return
    generator = np.random.default_rng(seed)
    problem = cover.problem
    current, best = cover.copy(), cover.copy()
    until = np.zeros(problem.n, dtype=np.int64)
    idle = round_ = 0
    while idle < _PATIENCE and not clock.out:
        round_ += 1
        idle += 1
        chosen = _choose(current, until >= round_, generator)
        trials = []
        for cell in chosen:
            allowed = until < round_
            allowed[cell] = False
            trial = _without(current, cell, allowed, clock)
            if trial is None:
                # Nothing replaces this cell now: leave it alone for long.
                until[cell] = round_ + len(current.secondaries)
            else:
                trials.append((trial.cost, cell, trial))
            if clock.out:
                break
        if not trials:
            continue
        cost, cell, current = min(trials, key=lambda found: found[:2])
        until[cell] = round_ + int(generator.integers(5, 10 + len(current.secondaries) // 4))
        if cost < best.cost * (1 - 1e-9):
            best, idle = current.copy(), 0
    cover.take(best)


def _choose(cover: Cover, forbidden: BoolArray, generator: np.random.Generator) -> list[int]:
    secondaries = cover.secondaries
    secondaries = secondaries[~forbidden[secondaries]]
    if not len(secondaries):
        return []
    weight = cover.problem.weight[secondaries] + 1e-12
    count = min(_CANDIDATES, len(secondaries))
    drawn = generator.choice(secondaries, size=count, replace=False, p=weight / weight.sum())
    return sorted(int(cell) for cell in drawn)


def _without(cover: Cover, cell: int, allowed: BoolArray, clock: Clock) -> Cover | None:
    """The cover with a cell shown and its needs met otherwise, or None."""
    trial = cover.copy()
    trial.show(np.array([cell]))
    before = trial.hidden.copy()
    try:
        protect_lp(trial, clock, None, allowed)
    except (FrozenTargetError, OutOfTimeError):
        return None
    if trial.unmet.any():
        return None
    new = np.flatnonzero(trial.hidden & ~before)
    clean_up(trial, clock, new[np.argsort(-trial.problem.weight[new], kind="stable")])
    return trial
