"""The heuristics by name: each leaves a cover that meets every need and hides nothing in vain."""

from __future__ import annotations

from collections.abc import Callable

from solver.heuristics.cleanup import clean_up
from solver.heuristics.clock import Clock
from solver.heuristics.gauss import protect_gauss
from solver.heuristics.hypercube import protect_hypercube
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.mcnf import protect_mcnf
from solver.heuristics.modular import protect_modular
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.network import find_network
from solver.heuristics.shortest_path import protect_shortest_path
from solver.heuristics.tabu import search_tabu
from solver.instance import BoolArray
from solver.presolve import Problem

_CONSTRUCT: dict[str, Callable[[Cover, Clock], None]] = {
    "lp": protect_lp,
    "shortest-path": protect_shortest_path,
    "mcnf": protect_mcnf,
    "hypercube": protect_hypercube,
    "modular": protect_modular,
    "gauss": protect_gauss,
}
HEURISTICS = (*_CONSTRUCT, "tabu")
# Without any limit, tabu search does this much work per component.
_TABU_WORK = 20.0


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
        Out of time, clean-up and search stop early; the pattern is safe all the same.
    seed
        Of the random choices.
    start : bool[n], optional
        A pattern to repair and clean up instead, if that comes out cheaper.

    Raises
    ------
    FrozenTargetError
        No pattern is safe.
    """
    needs = gather_needs(problem)
    cover = Cover(problem, needs)
    if method == "auto":
        method = "lp" if find_network(problem) is None else "shortest-path"
    _CONSTRUCT.get(method, protect_lp)(cover, clock)
    clean_up(cover, clock)
    if start is not None:
        other = Cover(problem, needs, start)
        meet_within(other, clock)
        protect_lp(other, clock)
        clean_up(other, clock)
        cover = min((other, cover), key=lambda found: found.cost)
    if method == "tabu":
        search_tabu(cover, clock if clock.limited else Clock(work=_TABU_WORK), seed)
        clean_up(cover, clock)
    return cover
