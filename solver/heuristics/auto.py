"""Pick methods by size: several cheap patterns first, exact improvement of neighbourhoods last."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from solver.clock import Clock, OutOfTimeError, Strict
from solver.heuristics.cleanup import clean_up
from solver.heuristics.improve import improve
from solver.heuristics.lp import meet_within
from solver.heuristics.merge import MANY, Pool, merge_lightest
from solver.heuristics.methods import CONSTRUCT, protect
from solver.heuristics.needs import Cover, gather_needs
from solver.heuristics.network import find_network
from solver.heuristics.recreate import Recreation
from solver.heuristics.rounding import Rounding
from solver.instance import BoolArray, FloatArray
from solver.presolve import FrozenTargetError, Problem

# One method tells about a pattern; others are tried while they cost less than this part of the
# limit each, judged by what the first took.
_PORTFOLIO, _MOST = 0.08, 0.4
_ON_NETWORKS = ("shortest-path", "light", "mcnf", "modular", "lp")
_ELSEWHERE = ("light", "lp", "modular", "gauss")
_LARGE = 3000
# Part of the limit for a slice of ruin and recreate, of mergers, or of exact neighbourhoods.
_SLICES = (0.1, 0.25, 0.1)
# Their order where the last ones of all gained nothing.
_ORDER = (0, 0, 2, 0, 0, 1)
# Other patterns to begin with, and the part of the limit for each to be found, and to be improved before one
# of them is chosen.
_STARTS, _ATTEMPT = ("modular", "light"), 0.05
# Patterns near a relaxation to begin with: what the rounding begins with, distortion of prices, and power of
# what the point leaves of a column, in turn; how many at most, the part of the limit for them, and how much
# dearer than the cheapest one of its kind one may be to be cleaned up.
_DRAWS = ((2, 0.1, 1), (2, 0.1, 3), (2, 0.05, 1), (2, 0.3, 1), (0, 0.6, 1))
_MOST_DRAWS, _DRAWING, _DEARER = 12, 0.35, 1.05


def first_pattern(
    problem: Problem, clock: Clock, seed: int = 0, start: BoolArray | None = None, *, only_start: bool = False
) -> Cover:
    """The cheapest of the covers that fit into a part of the limit; ``only_start``: what ``start`` makes.

    Raises
    ------
    FrozenTargetError
        No pattern is safe.
    """
    methods = _ELSEWHERE if find_network(problem) is None else _ON_NETWORKS
    best = protect(problem, methods[0], clock, seed, start)
    for method in () if only_start else methods[1:]:
        if clock.spent > _PORTFOLIO or (method == "gauss" and problem.n > _LARGE):
            break
        other = protect(problem, method, clock.early(_MOST), seed)
        best = min((best, other), key=lambda found: found.cost)
    return best


def improve_pattern(
    problem: Problem,
    hidden: BoolArray,
    clock: Clock,
    seed: int = 0,
    report: Callable[[BoolArray], None] | None = None,
    guide: Rounding | None = None,
    known: Cover | None = None,
) -> Cover | None:
    """A cover of a safe pattern (bool[n]) made cheaper within the limit; None if it wasn't.

    `report` hears of every step; `guide` is a point of the relaxation; `known` has the
    moves of the pattern, if they are at hand.
    """
    try:
        if known is None:
            cover = Cover(problem, gather_needs(problem, clock), hidden)
            meet_within(cover, clock)
        else:
            cover = known.copy()
    except OutOfTimeError:
        return None
    if cover.unmet.any():
        return None
    # Moves hide what they move: the cover starts from what they use.
    clean_up(cover, clock)
    if problem.n > MANY and find_network(problem) is None and not clock.out:
        merge_lightest(cover, clock)
        clean_up(cover, clock)
    near = None if guide is None else guide.x
    pool = Pool(seed, near)
    pool.add(cover)
    if cover.minimal and not clock.out:
        if guide is None:
            _race(cover, clock, seed, pool)
        else:
            _draw(cover, guide, clock, seed, pool)
        if report is not None:
            report(cover.hidden.copy())
    _polish(cover, clock, seed, pool, report, near)
    clean_up(cover, clock)
    return cover if problem.cost(cover.hidden) < problem.cost(hidden) else None


def _draw(cover: Cover, guide: Rounding, clock: Clock, seed: int, pool: Pool) -> None:
    """Other patterns near the relaxation, at distorted prices; the cheapest goes on."""
    generator = np.random.default_rng(seed)
    strict = Strict(clock.part(_DRAWING))
    least, covers = dict.fromkeys(_DRAWS, np.inf), [cover.copy()]
    start = Cover(cover.problem, cover.needs)
    with suppress(FrozenTargetError, OutOfTimeError):
        meet_within(start, strict)
        for number in range(_MOST_DRAWS):
            draw = _DRAWS[number % len(_DRAWS)]
            kind, spread, power = draw
            other = guide.cover(start, kind, strict, spread, generator, power)
            # What costs more before clean-up mostly does so after it.
            least[draw] = min(least[draw], other.cost)
            if other.cost <= _DEARER * least[draw]:
                covers.append(other)
                clean_up(other, strict)
                pool.add(other)
    best = min(covers, key=lambda found: found.cost)
    if best.cost < cover.cost:
        cover.take(best)


def _race(cover: Cover, clock: Clock, seed: int, pool: Pool) -> None:
    """Ruin and recreate from this and from other patterns soon found; the cheapest after a while goes on."""
    covers = [cover.copy()]
    for method in _STARTS:
        limit = Strict(clock.part(_ATTEMPT))
        start = Cover(cover.problem, cover.needs)
        with suppress(FrozenTargetError, OutOfTimeError):
            CONSTRUCT[method](start, limit)
            clean_up(start, limit)
            if start.minimal:
                covers.append(start)
    if len(covers) > 1:
        for start in covers:
            turn = clock.part(_ATTEMPT)
            Recreation(start, turn, seed, pool).run(start, turn)
    best = min(covers, key=lambda found: found.cost)
    if best.cost < cover.cost:
        cover.take(best)


def _polish(
    cover: Cover,
    clock: Clock,
    seed: int,
    pool: Pool,
    report: Callable[[BoolArray], None] | None,
    guide: FloatArray | None,
) -> None:
    """Ruin and recreate, mergers, exact neighbourhoods, in slices: whichever gained most in its last one."""
    clock = clock.part(1.0)
    recreation = Recreation(cover, clock, seed, pool, guide)
    gains = [np.inf, 0.0, np.inf]
    round_, idle = 0, set[int]()
    while not clock.out:
        which = int(np.argmax(gains))
        if gains[which] <= 0:
            begin = round_ % len(_ORDER)
            # Mergers wait for patterns enough.
            able_now = {0, 1, 2} - idle - (set() if pool.enough else {1})
            turns = [w for w in _ORDER[begin:] + _ORDER[:begin] if gains[w] == 0 and w in able_now]
            if not turns:
                break
            which = turns[0]
        before, spent = cover.cost, clock.spent
        slice_ = clock.part(min(1.0, _SLICES[which] / max(1.0 - spent, _SLICES[which])))
        able = True
        if which == 0:
            recreation.run(cover, slice_, report)
        elif which == 1:
            pool.merge(cover, slice_)
        else:
            able = improve(cover, slice_, seed + round_, report=report, guide=guide)
        gained = before - cover.cost
        if gained > 0:
            pool.add(cover)
            if report is not None:
                report(cover.hidden.copy())
        # Where neighbourhoods are too hard for the time there is, they stay so.
        gains[which] = gained / max(clock.spent - spent, 1e-9) if able or gained > 0 else -1.0
        # What gave up of itself, without a gain, waits for one.
        idle = set() if gained > 0 else idle if slice_.out else idle | {which}
        round_ += 1
