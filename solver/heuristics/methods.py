"""The heuristics by name: each leaves a cover that meets every need and hides nothing in vain."""

from __future__ import annotations

from collections.abc import Callable

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.cleanup import clean_up
from solver.heuristics.gauss import protect_gauss
from solver.heuristics.haste import finish_in_haste
from solver.heuristics.hypercube import protect_hypercube
from solver.heuristics.light import protect_light
from solver.heuristics.lp import LARGE, meet_within, protect_lp
from solver.heuristics.mcnf import protect_mcnf
from solver.heuristics.modular import protect_modular
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.network import find_network
from solver.heuristics.shortest_path import protect_shortest_path
from solver.heuristics.tabu import search_tabu
from solver.instance import BoolArray
from solver.presolve import Problem

CONSTRUCT: dict[str, Callable[[Cover, Clock], None]] = {
    "lp": protect_lp,
    "shortest-path": protect_shortest_path,
    "mcnf": protect_mcnf,
    "hypercube": protect_hypercube,
    "modular": protect_modular,
    "gauss": protect_gauss,
    "light": protect_light,
}
HEURISTICS = (*CONSTRUCT, "tabu")
# Without any limit, tabu search does this much work per component.
_TABU_WORK = 20.0
# Part of the seconds for finding a pattern; the rest is for ending it in haste, and for clean-up, which comes
# to little where there are more than so many columns.
_CONSTRUCTION, _MANY, _LONGER = 0.7, 5_000, 0.85
# Seconds for clean-up where none are left: what is made in haste is dear, and on small tables this suffices.
_GRACE = 0.08


def protect(
    problem: Problem, method: str, clock: Clock, seed: int = 0, start: BoolArray | None = None
) -> Cover:
    """A safe pattern by one heuristic.

    Parameters
    ----------
    problem
        The component.
    method
        One of :data:`HEURISTICS`, or "auto": shortest paths where the relations are a network,
        "lp" elsewhere.
    clock
        Out of work, clean-up and search stop early; out of seconds, what is not protected until then is
        protected in haste. The pattern is safe all the same.
    seed
        Of the random choices.
    start : bool[n], optional
        A pattern to repair and clean up instead, if that comes out cheaper.

    Raises
    ------
    FrozenTargetError
        No pattern is safe.
    """
    needs = gather_needs(problem, Clock())
    cover = Cover(problem, needs)
    if method == "auto":
        method = "lp" if find_network(problem) is None else "shortest-path"
    try:
        early = clock.early(_CONSTRUCTION if problem.n <= _MANY else _LONGER)
        early.check()
        CONSTRUCT.get(method, protect_lp)(cover, early)
    except OutOfTimeError:
        finish_in_haste(cover, clock)
    if clock.seconds_left != 0:
        clean_up(cover, clock)
    if clock.seconds_left == 0 and problem.n <= LARGE:
        clean_up(cover, Clock(_GRACE))
    if start is not None:
        cover = _repaired(Cover(problem, needs, start), cover, clock)
    if method == "tabu":
        search_tabu(cover, clock if clock.limited else Clock(work=_TABU_WORK), seed)
        clean_up(cover, clock)
    return cover


def _repaired(start: Cover, other: Cover, clock: Clock) -> Cover:
    """A given pattern made safe and cleaned up, or the other one if that is cheaper."""
    try:
        meet_within(start, clock)
        protect_lp(start, clock)
    except OutOfTimeError:
        return other
    clean_up(start, clock)
    return min((start, other), key=lambda found: found.cost)
