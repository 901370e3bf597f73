"""Pick methods by size: several cheap patterns first, exact improvement of neighbourhoods last."""

from __future__ import annotations

from collections.abc import Callable

from solver.heuristics.cleanup import clean_up
from solver.heuristics.clock import Clock
from solver.heuristics.improve import improve
from solver.heuristics.lp import meet_within
from solver.heuristics.methods import protect
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.network import find_network
from solver.instance import BoolArray, FloatArray
from solver.presolve import Problem

# One method tells about a pattern; others are tried while they cost less than this part of the
# limit each, judged by what the first took.
_PORTFOLIO = 0.08
_ON_NETWORKS = ("shortest-path", "mcnf", "modular", "lp")
_ELSEWHERE = ("lp", "modular", "gauss")
_LARGE = 3000


def first_pattern(problem: Problem, clock: Clock, seed: int = 0, start: BoolArray | None = None) -> Cover:
    """The cheapest of the covers that fit into a part of the limit.

    Raises
    ------
    FrozenTargetError
        No pattern is safe.
    """
    methods = _ELSEWHERE if find_network(problem) is None else _ON_NETWORKS
    best = protect(problem, methods[0], clock, seed, start)
    for method in methods[1:]:
        if clock.spent > _PORTFOLIO or (method == "gauss" and problem.n > _LARGE):
            break
        other = protect(problem, method, clock, seed)
        best = min((best, other), key=lambda found: found.cost)
    return best


def improve_pattern(
    problem: Problem,
    hidden: BoolArray,
    clock: Clock,
    seed: int = 0,
    report: Callable[[BoolArray], None] | None = None,
    guide: FloatArray | None = None,
) -> Cover | None:
    """A cover of a safe pattern (bool[n]) made cheaper within the limit; None if it wasn't.

    `report` hears of every step; `guide` is a point of the relaxation (see :func:`improve`).
    """
    cover = Cover(problem, gather_needs(problem), hidden)
    meet_within(cover, clock)
    if cover.unmet.any():
        return None
    # Moves hide what they move: the cover starts from what they use.
    clean_up(cover, clock)
    improve(cover, clock, seed, report=report, guide=guide)
    clean_up(cover, clock)
    return cover if problem.cost(cover.hidden) < problem.cost(hidden) else None
