"""Exact improvement of neighbourhoods: fix most of a pattern, search the rest to the optimum.

A neighbourhood is a heavy secondary, the secondaries near it, and the cheapest shown columns around
them. Everything else keeps its state: shown columns leave the problem, hidden ones become forced,
and only the targets that lose their known moves remain. What is left is a small component for the
exact search. (Local branching's idea, Fischetti and Lodi 2003, on the table's own geometry.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.clock import Clock, OutOfTimeError
from solver.exact import Search
from solver.heuristics.mover import Mover
from solver.heuristics.nearby import Nearby
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem, Targets

_FIRST_SIZE = 40
_LEAST_SIZE, _MOST_SIZE = 10, 400
# Shown columns per secondary in a neighbourhood, and hidden ones that may move along.
_COMPANY, _CROWD = 8, 12
# Effort on one neighbourhood, as a part of what is left.
_SHARE = 0.2
# Part of that for the search itself.
_SEARCHING = 0.85


def improve(
    cover: Cover,
    clock: Clock,
    seed: int,
    patience: int = 40,
    report: Callable[[BoolArray], None] | None = None,
    guide: FloatArray | None = None,
) -> bool:
    """Replace parts of a safe pattern by cheaper ones until time or hope is out; False if not one
    neighbourhood was searched to the end.

    Parameters
    ----------
    cover
        A pattern that meets every need by known moves; changed in place.
    clock
        How long.
    seed
        Of the choice of neighbourhoods.
    patience
        Stop after so many neighbourhoods in a row without a gain.
    report
        Called with every cheaper pattern.
    guide : float64[n], optional
        How much a relaxation hides of each column: near what it hides, the search looks first.
    """
    generator = np.random.default_rng(seed)
    nearby = Nearby(cover.problem)
    size, idle = _FIRST_SIZE, 0
    tabu: dict[int, int] = {}
    round_ = 0
    any_ = False
    while not clock.out and idle < patience:
        secondaries = cover.secondaries
        if not len(secondaries):
            break
        centre = _choose(cover, secondaries, tabu, round_, generator)
        round_ += 1
        tabu[centre] = round_
        whole = len(secondaries) <= size
        free, open_ = _neighbourhood(cover, nearby, centre, size, guide)
        before = cover.cost
        limit = clock.part(_SHARE)
        solved = search_free(cover, free, open_, limit)
        any_ |= solved
        gained = cover.cost < before * (1 - 1e-9)
        idle = 0 if gained else idle + 1
        if gained and report is not None:
            report(cover.hidden.copy())
        if solved and whole and not gained:
            idle = max(idle, patience - 5)
        if not solved:
            size = max(_LEAST_SIZE, int(size * 0.7))
        elif not gained:
            size = min(_MOST_SIZE, int(size * 1.1) + 1)
    return any_


def _choose(
    cover: Cover, secondaries: IntArray, tabu: dict[int, int], round_: int, generator: np.random.Generator
) -> int:
    """A heavy secondary that was not the centre lately."""
    weight = cover.problem.weight[secondaries]
    age = np.array([round_ - tabu.get(int(c), -len(secondaries)) for c in secondaries], dtype=np.float64)
    chance = (weight + weight.mean() + 1e-12) * np.minimum(age, len(secondaries)) ** 2 + 1e-12
    return int(generator.choice(secondaries, p=chance / chance.sum()))


def _neighbourhood(
    cover: Cover, nearby: Nearby, centre: int, size: int, guide: FloatArray | None
) -> tuple[BoolArray, BoolArray]:
    """Free columns around a centre (`size` secondaries and their company), and all that may move."""
    problem = cover.problem
    prices = np.where(problem.forced, 0.0, problem.weight)
    if guide is not None:
        prices = prices * (1.0 - 0.9 * guide)
    order = nearby.ranking(centre, prices)
    free = np.zeros(problem.n, dtype=np.bool_)
    loose = order[~problem.forced[order]]
    free[loose[cover.hidden[loose]][:size]] = True
    free[loose[~cover.hidden[loose]][: size * _COMPANY]] = True
    free[centre] = True
    open_ = free.copy()
    open_[order[cover.hidden[order]][: size * _CROWD]] = True
    open_[cover.support(np.flatnonzero(free & cover.hidden))] = True
    return free, open_


def search_free(cover: Cover, free: BoolArray, open_: BoolArray, clock: Clock) -> bool:
    """Make a cover the cheapest of all that differ from it in some free columns (bool[n]), in place, while no
    others than the open ones (bool[n]) move; True if that ended with a proof.
    """
    mine = np.flatnonzero(free & cover.hidden)
    lost = cover.would_lose(mine)
    if not len(lost):
        cover.show(mine)
        return True
    part = _restrict(cover, free, open_, lost)
    # What it finds takes a little time to be taken over.
    search = Search(part.problem, clock.early(_SEARCHING), part.pattern, _silent)
    search.run()
    if search.cost < part.problem.cost(part.pattern) * (1 - 1e-9) - 1e-12:
        hidden = cover.hidden.copy()
        hidden[part.columns] = search.incumbent
        _adopt(cover, hidden, mine, lost, clock)
    return search.closed


def _silent(phase: str, lower: float, upper: float) -> None:
    """Nobody watches a neighbourhood."""


@dataclass(frozen=True, eq=False)
class _Part:
    problem: Problem
    columns: IntArray
    pattern: BoolArray


def _restrict(cover: Cover, free: BoolArray, open_: BoolArray, lost: IntArray) -> _Part:
    problem, needs = cover.problem, cover.needs
    columns = np.flatnonzero(open_)
    position = np.full(problem.n, -1, dtype=np.int64)
    position[columns] = np.arange(len(columns))
    matrix = sparse.csr_array(problem.matrix[:, columns])
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    forced = ~free[columns]
    wanted = np.unique(needs.cell[lost] * len(problem.known) + needs.attacker[lost])
    targets = problem.targets
    keep = np.flatnonzero(np.isin(targets.cell * len(problem.known) + targets.attacker, wanted))
    kept = Targets(
        targets.attacker[keep],
        position[targets.cell[keep]],
        targets.lower[keep],
        targets.upper[keep],
        targets.sliding[keep],
    )
    part = Problem(
        matrix=matrix,
        weight=np.where(forced, 0.0, problem.weight[columns]),
        forced=forced,
        lo=problem.lo[columns],
        hi=problem.hi[columns],
        known=tuple(position[known][position[known] >= 0] for known in problem.known),
        targets=kept,
        scale=problem.scale,
        cells=columns,
        column=np.arange(len(columns)),
    )
    return _Part(part, columns, cover.hidden[columns])


def _adopt(cover: Cover, hidden: BoolArray, mine: IntArray, lost: IntArray, clock: Clock) -> None:
    """Take over a cheaper pattern, with moves for the needs that lost theirs."""
    twin = cover.copy()
    twin.show(mine)
    mover = Mover(cover.problem, cover.needs, np.flatnonzero(hidden))
    mover.set_unit_prices(np.where(hidden, cover.problem.weight, 0.0))
    for need in lost.tolist():
        if twin.unmet[need]:
            try:
                move = mover.move(need, clock)
            except OutOfTimeError:
                return
            if move is None:
                return
            twin.add(mover.columns, move)
    if not twin.unmet.any():
        cover.take(twin)
