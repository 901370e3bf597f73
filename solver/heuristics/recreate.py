"""Ruin and recreate: show some neighbouring secondaries again, and protect anew at distorted prices.

Schrimpf et al. 2000. What is lost is small, so a round takes milliseconds where an exact neighbourhood
takes seconds; the distortion lets the cheapest movement leave the way it took before. A round that ends
little dearer than the cheapest pattern is gone on from, so that the search drifts along plateaus and over low
ridges, less and less as time runs out (threshold accepting, Dueck and Scheuer 1990). What a relaxation hides
counts as cheaper, and where the table is a network, paths come before programs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.cleanup import Blockers, clean_up
from solver.heuristics.lp import LARGE, meet_needs, nearby, protect_lp
from solver.heuristics.merge import Pool
from solver.heuristics.needs import Cover
from solver.heuristics.network import find_network
from solver.heuristics.reflect import meet_at_once
from solver.heuristics.shortest_path import Paths
from solver.heuristics.surroundings import Surroundings
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError

_LEAST, _MOST = 3, 10
_NOISE = (0.1, 0.5)
# What the relaxation hides of a column makes it so much cheaper.
_GUIDED = 0.5
# How far above the cheapest pattern the search may go at first, as a part of its cost, and in secondaries of
# usual weight; at the end of the time, not at all.
_UPHILL, _SECONDARIES = 0.03, 2
# Secondaries near the ruin that are tried for redundancy, as a multiple of it.
_COMPANY = 3
# Part of the columns, lightest first, that movements are sought among besides the hidden ones, where there
# are more than so many: programs of fewer are small enough.
_LIGHT, _FEW = 0.4, 500
# Cheapest cells of each node of a network that paths go along, besides the hidden ones.
_CELLS = 16
# Columns looked at for each secondary wanted.
_REACH = 60


class Recreation:
    """A search by ruin and recreate that can be interrupted and gone on with.

    Parameters
    ----------
    cover
        A pattern that meets every need by known moves.
    clock
        Of the search as a whole.
    seed
        Of the choices.
    pool
        Takes every pattern met.
    guide : float64[n], optional
        How much a relaxation hides of each column: so much cheaper the search takes it for.
    """

    def __init__(
        self, cover: Cover, clock: Clock, seed: int, pool: Pool, guide: FloatArray | None = None
    ) -> None:
        self._clock, self._pool = clock, pool
        self._generator = np.random.default_rng(seed)
        self._tools = _Tools(cover, guide)
        self._current, self._best = cover.copy(), cover.cost

    def run(
        self,
        cover: Cover,
        clock: Clock,
        report: Callable[[BoolArray], None] | None = None,
        patience: int = 1000,
    ) -> None:
        """Improve the cheapest pattern so far, in place, until time or hope is out.

        Parameters
        ----------
        cover
            What the last run left, or a cheaper one.
        clock
            How long.
        report
            Called with every cheaper pattern.
        patience
            Stop after so many rounds in a row without a gain.
        """
        if cover.cost < self._best * (1 - 1e-9):
            self._current = cover.copy()
        idle = 0
        while idle < patience and not clock.out:
            secondaries = self._current.secondaries
            if not len(secondaries):
                break
            trial = _round(self._current, self._tools, secondaries, self._generator, clock)
            idle += 1
            if trial is not None:
                self._pool.add(trial)
            uphill = min(_UPHILL, _SECONDARIES / len(secondaries))
            worst = cover.cost * (1 + uphill * max(1 - self._clock.spent, 0.0))
            if trial is None or trial.cost > max(worst, self._current.cost) * (1 + 1e-12):
                continue
            self._current = trial
            if trial.cost < cover.cost * (1 - 1e-9):
                idle = 0
                cover.take(trial.copy())
                if report is not None:
                    report(cover.hidden.copy())
        self._best = cover.cost


class _Tools:
    """What every round needs, made once."""

    def __init__(self, cover: Cover, guide: FloatArray | None) -> None:
        problem = cover.problem
        self.prices = problem.weight if guide is None else problem.weight * (1 - _GUIDED * guide)
        self.around = Surroundings(problem)
        self.blockers = Blockers(cover)
        network = find_network(problem)
        self._paths = None if network is None else Paths(problem, network, _CELLS)
        weight = np.where(problem.forced, 0.0, problem.weight)
        self._light = weight <= np.quantile(weight, _LIGHT if problem.n > _FEW else 1.0)

    def protect(self, cover: Cover, weight: FloatArray, clock: Clock) -> None:
        """Meet the needs left unmet, at these weights (float64[n]); among the light columns, if that goes."""
        if self._paths is not None:
            self._paths.follow(cover, clock, weight)
        if cover.problem.n > LARGE:
            meet_needs(cover, nearby(self.around, cover.needs, clock, slopes=0), weight)
            return
        meet_at_once(cover, clock)
        columns = cover.hidden | self._light
        at_once = partial(meet_at_once, cover, clock)
        protect_lp(cover, clock, weight, columns, slopes=0, lenient=True, at_once=at_once)
        if cover.unmet.any():
            protect_lp(cover, clock, weight, slopes=0)


def _round(
    cover: Cover, tools: _Tools, secondaries: IntArray, generator: np.random.Generator, clock: Clock
) -> Cover | None:
    problem = cover.problem
    centre = int(generator.choice(secondaries))
    count = int(generator.integers(_LEAST, _MOST + 1))
    prices = np.where(cover.hidden, 0.0, problem.weight)
    columns = tools.around.nearby.ranking(centre, prices, _REACH * count)
    near = columns[cover.hidden[columns] & ~problem.forced[columns]][: count * _COMPANY]
    trial = cover.copy()
    trial.show(near[:count])
    low, high = _NOISE
    spread = generator.uniform(low, high)
    weight: FloatArray = tools.prices * generator.uniform(1 - spread, 1 + spread, problem.n)
    before = trial.hidden.copy()
    try:
        tools.protect(trial, weight, clock)
    except (FrozenTargetError, OutOfTimeError):
        return None
    if trial.unmet.any():
        return None
    new = np.flatnonzero(trial.hidden & ~before)
    candidates = np.union1d(new, near)
    candidates = candidates[trial.hidden[candidates] & ~problem.forced[candidates]]
    order = np.lexsort((candidates, -problem.weight[candidates]))
    clean_up(trial, clock, candidates[order], tools.around, tools.blockers)
    return trial
