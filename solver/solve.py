"""`solve`: reduce, search each component, put together, audit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from solver.arguments import as_number, choice, pattern, require, told, whole
from solver.attack import Movement, check_pattern, without_safe_targets
from solver.audit import Exposure, find_exposures
from solver.clock import Clock
from solver.costs import cost_unit, in_full, in_units, told_in_full
from solver.crew import Crew
from solver.cuts import exposed_in_relations
from solver.errors import (
    InfeasibleError,
    InputError,
    InternalError,
    NumericalError,
    SolverError,
    UnreachableLevelError,
)
from solver.exact import Search
from solver.explain import obstacles, reasons
from solver.heuristics.auto import first_pattern, improve_pattern
from solver.heuristics.bound import relations_bound
from solver.heuristics.methods import HEURISTICS, protect
from solver.heuristics.needs import Cover
from solver.heuristics.network import find_network
from solver.incumbent import make_safe
from solver.instance import BoolArray, Instance, IntArray, Status
from solver.pace import exact_share, pace_of
from solver.presolve import FrozenTargetError, Problem, Reduction, reduce_instance
from solver.solution import Progress, ProgressCallback, Solution
from solver.stricter import repaired, with_higher_levels

_T = TypeVar("_T")
METHODS = ("auto", "exact", *HEURISTICS)
_AUTO_WORK, _KEPT, _RAISES = 15.0, 0.3, 3


def solve(
    instance: Instance,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    work_limit: float | None = None,
    start: BoolArray | None = None,
) -> Solution:
    """Find a cheap pattern that protects every cell, and prove how cheap it could be.

    Parameters
    ----------
    method
        "exact" (to proven optimality), a heuristic's name, or "auto": exact within limits,
        heuristics and neighbourhoods beyond.
    time_limit
        Seconds. None: limits of deterministic work alone, so that the same input gives the same
        pattern on every machine.
    threads
        Components that are searched at a time; the pattern is the same for any number, without a
        limit of seconds.
    seed
        Of random choices: the result depends on nothing else.
    progress
        Called with :class:`Progress` at every change, in the caller's thread.
    work_limit
        Deterministic effort, in about seconds of one core.
    start : bool[n], optional
        A pattern to start from, such as last year's.

    Raises
    ------
    InfeasibleError
        No pattern is safe; names cells, relations and must-show cells in the way.
    UnreachableLevelError
        Levels ask more than the external bounds allow (``instance.clipped()`` mends that).
    InputError
        Unknown method, a limit, seed or number of threads below what there is, or a start of the
        wrong shape.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    choice(method, "method", METHODS)
    for name, limit in {"time_limit": time_limit, "work_limit": work_limit}.items():
        if limit is not None:
            as_number(limit, name, 0.0, "Give 0 or more, or leave it out.")
    threads, seed = whole(threads, "threads", 1), whole(seed, "seed", 0)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {told(progress)}.", "Give a function, or leave it out.")
    start = None if start is None else pattern(start, "start", instance.n)
    unit = cost_unit(instance.weight)
    callback = told_in_full(progress, unit)
    run = _Run(in_units(instance, unit), method, time_limit, threads, seed, callback, work_limit)
    return in_full(run.solution(start), instance, unit)


# Of a limit, this part and these seconds are kept for the end, but never more than that part.
_SPARED = (0.03, 0.004, 0.06)
# The gap up to which `auto` returns to the exact search.
_NEAR = 0.03
# Part of it while HiGHS solves with ease what is asked of it, and part of the limit of `exact` after which it
# hopes for a cheaper pattern, no longer for a proof.
_EASY_SHARE, _PROOF = 0.95, 0.85
# Part of it that a first pattern near the relaxation may take; beyond so many columns one comes before that.
_PATIENCE, _LATE = 0.9, 5_000
# Part of the limit for a bound on those.
_BOUND_SHARE = 0.05
# What some components leave of the limit goes to the others while it is more than this part.
_WORTH = 0.1


class _Run:
    def __init__(
        self,
        instance: Instance,
        method: str,
        time_limit: float | None,
        threads: int,
        seed: int,
        progress: ProgressCallback | None,
        work_limit: float | None,
    ) -> None:
        self._began = time.perf_counter()
        self._instance, self._method = instance, method
        self._raises = 0
        self._time_limit, self._threads, self._seed = time_limit, threads, seed
        self._progress = progress
        if work_limit is None and time_limit is None and method == "auto":
            work_limit = _AUTO_WORK
        seconds = None
        if time_limit is not None:
            seconds = time_limit - min(_SPARED[0] * time_limit + _SPARED[1], _SPARED[2] * time_limit)
        self._work_limit = work_limit
        self._halted = threading.Event()
        self._clock = Clock(seconds, work_limit, self._halted)
        # That of the first patterns, once their search has its own.
        self._earlier: Clock | None = None
        # Of each component: for its last turn, and whether that ended with it.
        self._clocks: list[Clock] = []
        self._short: list[bool] = []
        self._crew = Crew(threads, self._stop)
        self._trace: list[tuple[float, float, float]] = []
        self._interrupted = False
        # Movements of each component that prove levels, besides those of the search.
        self._known: list[list[Movement]] = []

    def solution(self, start: BoolArray | None) -> Solution:
        beyond = self._instance.out_of_reach
        if len(beyond):
            raise UnreachableLevelError(
                obstacles(self._instance, beyond), "Lower the levels or clip them to the bounds."
            )
        reduction = self._reduce()
        searches = self._search(reduction, start)
        hidden = reduction.expand([search.incumbent for search in searches])
        cost = self._instance.cost(hidden)
        bound = min(reduction.base_cost + sum(search.bound for search in searches), cost)
        moves = [known + search.moves for known, search in zip(self._known, searches, strict=True)]
        closed = all(search.closed for search in searches)
        if closed:
            bound = cost
        found = Solution(
            hidden=hidden,
            cost=cost,
            lower_bound=bound,
            gap=(cost - bound) / cost if cost > 0 else 0.0,
            status="optimal" if closed else "feasible",
            method=self._method,
            seconds=time.perf_counter() - self._began,
            statistics=self._statistics(reduction, searches),
            trace=tuple(self._trace),
        )
        return self._audited(found, reduction.expand_moves(moves), start)

    def _audited(self, found: Solution, moves: sparse.csr_array, start: BoolArray | None) -> Solution:
        """What was found, once it passes the audit; movements (float64[k, n]) spare that most of its work."""
        try:
            exposures = self._verify(found.hidden, moves)
        except KeyboardInterrupt:
            # What there is is wanted, and nothing leaves here unaudited. A second interrupt ends all.
            self._stop()
            found = replace(found, statistics={**found.statistics, "stopped": "interrupt"})
            exposures = self._verify(found.hidden, moves)
        if not exposures:
            return found
        cells = np.array([exposure.cell for exposure in exposures])
        if not np.any(~found.hidden & (self._instance.status == Status.FREE)):
            raise _infeasible(self._instance, cells)
        if self._raises >= _RAISES:
            names = ", ".join(exposure.name for exposure in exposures[:10])
            raise InternalError(f"the audit refuses the pattern found; exposed: {names}")
        # Exact arithmetic finds levels missed by less than the search can tell. The bound still holds.
        self._raises += 1
        self._instance = with_higher_levels(self._instance, cells)
        more = None
        if found.status != "optimal" or self._clock.out:
            # Another search would begin at nothing, with little time: what this one found is worth more.
            more = repaired(self._instance, found.hidden, cells)
        if more is None:
            again = self.solution(start)
            return again.proven(again.cost, found.lower_bound)
        hidden, known = more
        cost = self._instance.cost(hidden)
        told = {**found.statistics, "repairs": self._raises}
        seconds = time.perf_counter() - self._began
        better = replace(found, hidden=hidden, cost=cost, seconds=seconds, statistics=told)
        both = sparse.csr_array(sparse.vstack([moves, known]))
        return self._audited(better.proven(cost, found.lower_bound), both, start)

    def _reduce(self) -> Reduction:
        try:
            return reduce_instance(self._instance)
        except FrozenTargetError as error:
            raise _infeasible(self._instance, error.cells) from None

    def _search(self, reduction: Reduction, start: BoolArray | None) -> list[Search]:
        self._keep_time_for_audit(time.perf_counter() - self._began)
        part = self._clock.part(0.2)
        looked = self._crew.run([partial(_in_danger, problem, part) for problem in reduction.problems])
        problems, self._known = [found[0] for found in looked], [found[1] for found in looked]
        self._clocks, self._short = [self._clock] * len(problems), [False] * len(problems)
        found = self._take_turns(problems, list(range(len(problems))), partial(self._begin, start=start))
        if self._time_limit is None and self._work_limit is not None and not self._interrupted:
            # However long the first patterns took, part of the work is kept for a bound.
            left = max(self._work_limit - self._clock.work, _KEPT * self._work_limit)
            self._earlier, self._clock = self._clock, Clock(None, left, self._halted)
        reporter = _Reporter(reduction.base_cost, len(problems), self._note, self._crew)
        searches = []
        for k, (problem, (bound, first, cover)) in enumerate(zip(problems, found, strict=True)):
            search = Search(problem, self._clock, first, reporter.of(k), cover)
            reporter.start(k, search.cost)
            search.prove(bound if cover is None else max(bound, cover.bound))
            searches.append(search)
        late = self._time_limit is not None and self._clock.out
        open_ = [] if late else list(range(len(searches)))
        while open_ and not self._interrupted:
            self._take_turns(problems, open_, lambda k, _: self._work_on(k, searches[k]))
            left = self._clock.spent < 1 - _WORTH
            open_ = [k for k in open_ if left and self._short[k] and not searches[k].closed]
        unsafe = [k for k, search in enumerate(searches) if not search.safe]
        answers = self._take_turns(problems, unsafe, partial(self._answer, start=start))
        for k, answer in zip(unsafe, answers, strict=True):
            searches[k].accept(*answer)
        return searches

    def _take_turns(
        self, problems: list[Problem], chosen: list[int], work: Callable[[int, Problem], _T]
    ) -> list[_T]:
        """Work on some components, each with its part of what is left of the limit, as large as it is."""
        sizes = [problems[k].n for k in chosen]

        def turn(place: int) -> _T:
            k = chosen[place]
            clock = self._clock
            if len(chosen) > 1:
                share = self._threads * sizes[place] / sum(sizes[place:])
                clock = clock.turn(min(share, 1.0), sizes[place] / sum(sizes))
            self._clocks[k] = clock
            result = work(k, problems[k])
            self._short[k] = clock.out
            return result

        results = self._crew.run([partial(turn, place) for place in range(len(chosen))])
        if len(chosen) > 1:
            self._clock.charge(1e6 * sum(self._clocks[k].work for k in chosen))
        return results

    def _work_on(self, number: int, search: Search) -> None:
        """Search a component on its clock."""
        if self._interrupted:
            return
        clock = self._clocks[number]
        try:
            if self._method == "exact":
                search.limit_to(clock.part(_PROOF))
                search.run()
                search.limit_to(clock)
                if search.safe and not search.closed and not clock.out:
                    self._improve(number, search, clock)
            elif self._method == "auto":
                self._search_and_improve(number, search)
            else:
                search.prove(relations_bound(search.problem, clock))
        except KeyboardInterrupt:
            self._stop()

    def _stop(self) -> None:
        """Somebody asked for what there is: no time is left."""
        self._interrupted = True
        self._halted.set()

    def _begin(
        self, number: int, problem: Problem, start: BoolArray | None
    ) -> tuple[float, BoolArray | None, Cover | None]:
        """What is known of a component's cost before its search, and a first pattern if that comes before."""
        bound = self._early_bound(number, problem)
        if start is None and self._is_late(problem):
            return bound, None, None
        return bound, *self._answer(number, problem, start)

    def _answer(
        self, number: int, problem: Problem, start: BoolArray | None
    ) -> tuple[BoolArray, Cover | None]:
        """A first pattern; one in haste, if an interrupt came first. A second interrupt ends all."""
        try:
            return self._first(number, problem, start)
        except KeyboardInterrupt:
            self._stop()
            return self._first(number, problem, start)

    def _early_bound(self, number: int, problem: Problem) -> float:
        """What `auto` knows of a large component's cost, should time end with the first pattern."""
        if self._method != "auto" or self._is_late(problem):
            return 0.0
        return relations_bound(problem, self._clocks[number].part(_BOUND_SHARE))

    def _is_late(self, problem: Problem) -> bool:
        """Does the exact search come before heuristics? Near its relaxation, patterns are cheaper, but where
        seconds are few there may be none in time. Large networks have good patterns and bounds at once.
        """
        if self._method == "exact":
            return problem.n <= _LATE or find_network(problem) is None
        return self._method == "auto" and problem.n <= _LATE and bool(pace_of(problem, self._time_limit))

    def _search_and_improve(self, number: int, search: Search) -> None:
        """The exact search for a part of what is left, then heuristics on its incumbent; again the exact
        search where these came near its bound.
        """
        clock = self._clocks[number]
        pace = pace_of(search.problem, self._time_limit)
        if pace is not None and pace.hopeful:
            search.limit_to(clock, pace=pace)
            search.run()
            if not search.safe:
                search.accept(*self._first(number, search.problem, None))
        for share in (exact_share(search.problem, clock.seconds_left), 1.0):
            search.limit_to(clock.part(share), clock.part(_PATIENCE), clock.part(max(share, _EASY_SHARE)))
            search.run()
            search.limit_to(clock)
            if search.closed:
                return
            near = search.cost - search.bound <= _NEAR * search.cost
            late = self._is_late(search.problem) and not search.rounded and not clock.out
            if not search.safe or (share < 1 and not near and late):
                search.accept(*self._first(number, search.problem, None))
            if clock.out:
                return
            self._improve(number, search, clock.part(0.5) if near else clock)
            if not near and search.cost - search.bound > _NEAR * search.cost:
                return

    def _improve(self, number: int, search: Search, clock: Clock) -> None:
        hidden, guide, known = search.incumbent, search.rounding, search.cover
        better = None
        with suppress(NumericalError):
            better = improve_pattern(search.problem, hidden, clock, self._seed, search.accept, guide, known)
        if better is not None:
            self._known[number] += better.movements()
            search.accept(better.hidden, better)

    def _first(
        self, number: int, problem: Problem, start: BoolArray | None
    ) -> tuple[BoolArray, Cover | None]:
        """A safe pattern, and the movements of it that are known."""
        clock = self._clocks[number]
        begin = None if start is None else problem.local(np.asarray(start, dtype=np.bool_))
        try:
            late = self._is_late(problem)
            if self._method == "exact" and begin is None and late:
                everything = np.ones(problem.n, dtype=np.bool_)
                quick = make_safe(problem, problem.forced, problem.weight, everything, clock, patient=True)
                if quick is not None:
                    return quick.hidden, quick
            if self._method in HEURISTICS:
                cover = protect(problem, self._method, clock, self._seed, begin)
            else:
                # The exact search comes next: what the start makes tells it enough to begin with.
                only = self._method == "exact" or (begin is not None and late)
                cover = first_pattern(problem, clock, self._seed, begin, only_start=only)
            self._known[number] += cover.movements()
            return cover.hidden, cover
        except (FrozenTargetError, NumericalError) as error:
            cells = _unreachable(problem, error.cells if isinstance(error, FrozenTargetError) else None)
            if len(cells):
                raise _infeasible(self._instance, cells) from None
            return np.ones(problem.n, dtype=np.bool_), None

    def _keep_time_for_audit(self, seconds: float) -> None:
        """The audit at the end takes about as long as the reduction, or twice that: the pattern's movements
        are at hand, and prove nearly all of it.
        """
        left = self._clock.seconds_left
        if left is not None:
            self._clock = Clock(left - min(2 * seconds, 0.3 * left), self._work_limit, self._halted)

    def _verify(self, hidden: BoolArray, moves: sparse.csr_array) -> tuple[Exposure, ...]:
        if (hidden & (self._instance.status == Status.SHOWN)).any():
            raise InternalError("a pattern hides a cell that must be shown")
        return find_exposures(self._instance, hidden, moves)

    def _note(self, phase: str, lower: float, upper: float) -> None:
        seconds = time.perf_counter() - self._began
        self._trace.append((seconds, lower, upper))
        if self._progress is not None:
            self._progress(Progress(phase, lower, upper, seconds))

    def _statistics(self, reduction: Reduction, searches: list[Search]) -> dict[str, Any]:
        out = "time" if self._time_limit is not None else "work"
        clocks = [self._clock] if self._earlier is None else [self._earlier, self._clock]
        ended = any(clock.out for clock in clocks)
        short = any(
            (ended or late) and not search.closed for late, search in zip(self._short, searches, strict=True)
        )
        stopped = "interrupt" if self._interrupted else (out if short else "")
        return {
            "cells": self._instance.n,
            "relations": self._instance.m,
            "components": len(searches),
            "columns": sum(problem.n for problem in reduction.problems),
            "targets": sum(len(problem.targets) for problem in reduction.problems),
            "nodes": sum(search.nodes for search in searches),
            "cuts": sum(search.cuts for search in searches),
            "work": sum(clock.work for clock in clocks),
            "repairs": self._raises,
            "stopped": stopped,
        }


class _Reporter:
    """Adds up the bounds of the components."""

    def __init__(
        self, base: float, count: int, note: Callable[[str, float, float], None], crew: Crew
    ) -> None:
        self._base, self._note, self._crew = base, note, crew
        self._lower, self._upper = [0.0] * count, [0.0] * count

    def start(self, k: int, upper: float) -> None:
        self._upper[k] = upper

    def of(self, k: int) -> Callable[[str, float, float], None]:
        def note(phase: str, lower: float, upper: float) -> None:
            self._lower[k], self._upper[k] = lower, upper
            self._note(phase, self._base + sum(self._lower), self._base + sum(self._upper))

        def report(phase: str, lower: float, upper: float) -> None:
            self._crew.tell(partial(note, phase, lower, upper))

        return report


def _in_danger(problem: Problem, clock: Clock) -> tuple[Problem, list[Movement]]:
    """A component without the targets that are safe in any case."""
    return without_safe_targets(problem, exposed_in_relations(problem), clock)


def _infeasible(instance: Instance, cells: IntArray) -> SolverError:
    """The error that explains why cells can't be protected; ours, if the audit finds that they can."""
    found = reasons(instance, cells)
    if not found:
        return InternalError("no pattern was found, but the audit finds everything hidden safe")
    return InfeasibleError(found)


def _unreachable(problem: Problem, suspects: IntArray | None) -> IntArray:
    """Original cells of some targets that even hiding everything leaves exposed, suspects first; none where
    floating point can't tell."""
    everything = np.ones(problem.n, dtype=np.bool_)
    try:
        shortfalls = []
        if suspects is not None:
            columns = np.unique(problem.column[np.isin(problem.cells, suspects)])
            only = np.flatnonzero(np.isin(problem.targets.cell, columns))
            shortfalls = check_pattern(problem, everything, Clock(), only=only)
        if not shortfalls:
            shortfalls = check_pattern(problem, everything, Clock(), stop_at=1)
    except NumericalError:
        return np.empty(0, dtype=np.int64)
    found = np.unique(np.array([problem.targets.cell[s.target] for s in shortfalls], dtype=np.int64))
    return problem.cells[np.isin(problem.column, found)]
