"""A safe pattern as soon as possible: boxes around all cells at once, linear programs for what is left."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from solver.attack import Region
from solver.clock import Clock, OutOfTimeError, Strict
from solver.columns import with_company
from solver.heuristics.boxes import Boxes
from solver.heuristics.lp import LARGE, protect_lp
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

# Part of the columns, lightest first, among which boxes are looked for: more and more of them, so many times
# each. What is hidden among light ones is free for later boxes, and few totals are needed in the end.
_TIERS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.83, 0.9, 0.94, 0.97, 0.985, 0.992, 0.996, 0.998, 1.0)
_EACH, _VARIED = 2, 0.3
# So many times more steps fit into a time than one of them tells.
_QUICKER = 2.5
# Part of the seconds left that these may take, and seconds more where some are left; where none are, so many
# cells are moved by boxes of so many corners: three dimensions.
_TIME, _LATER, _CELLS, _CORNERS = 0.7, 0.15, 2_500, 8.0
# How much prices vary by chance, and how far rounds of boxes go by room instead: the first by prices alone.
_ROUNDS = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 1.0), (0.3, 1.0), (1.0, 0.9), (1.0, 0.8), (1.0, 0.7))
# The first round that goes by room alone. It is the next one where a round meets less than a part of the
# needs, and the first of all where less than a part of all boxes would have room in their corners.
_ROOMY, _MET, _FIT = 3, 1 / 3, 0.3
# Steps for boxes within what is hidden anyway.
_WITHIN = 20
# So few needs are met by linear programs, where these are small, and in so many seconds: where much is hidden
# and free, they may take a hundred times as long as elsewhere.
_FEW, _SLOW = 16, 0.25
# Where there are few columns and boxes took no longer than so many seconds, programs look for something
# cheaper until both took so many. Boxes of light columns for what these leave have so many more, and so few
# cells are tried by programs once more.
_QUICK, _PROGRAMS, _LAST, _SOME = 0.25, 0.4, 0.1, 40
# Part of the columns, lightest first, that move in a program of all cells at once.
_LIGHTEST = 0.5
# Part of the needs that such a program has to meet to be worth another one.
_WORTH = 1 / 3


def finish_in_haste(cover: Cover, clock: Clock) -> None:
    """Meet the unmet needs of a cover: soon when the clock has seconds left, at any cost when it has none.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    began, both, other = Clock(_QUICK), Clock(_PROGRAMS), cover.copy()
    _by_boxes(cover, clock)
    if cover.problem.n <= LARGE and not began.out:
        left = max(both.seconds_left or 0.0, (clock.seconds_left or 0.0) / 2)
        _by_programs(other, cover, Clock(left))
        if other.cost < cover.cost:
            cover.take(other)


def _by_boxes(cover: Cover, clock: Clock) -> None:
    """Boxes, and a program for each of the few needs that these leave; more boxes where programs are slow."""
    protect_boxes(cover, clock)
    if cover.problem.n <= LARGE and cover.unmet.any():
        try:
            protect_lp(cover, Strict(Clock(max(_SLOW, clock.seconds_left or 0.0))), slopes=0)
        except OutOfTimeError:
            _by_rounds(cover, Boxes(cover.problem), np.random.default_rng(0), 0)
    if cover.unmet.any():
        protect_lp(cover, Clock(work=0.0), slopes=0)


def _by_programs(cover: Cover, boxed: Cover, clock: Clock) -> None:
    """Programs of all cells at once, then one for each need. What time doesn't suffice for moves in boxes of
    light columns, and what these can't move as in the cover that boxes made, or it would never end.
    """
    _sweep(cover, clock)
    with suppress(OutOfTimeError):
        protect_lp(cover, Strict(clock), slopes=0)
        return
    _by_tiers(cover, Boxes(cover.problem), _LAST, np.random.default_rng(0))
    if 0 < cover.unmet.sum() <= _SOME:
        # What boxes do for these is dear.
        with suppress(OutOfTimeError):
            protect_lp(cover, Strict(Clock(_SLOW)), slopes=0)
    cover.borrow(boxed)


def protect_boxes(cover: Cover, clock: Clock) -> None:
    """Meet unmet needs of a cover by boxes: nearly all of them, where cells have room for their levels."""
    boxes = Boxes(cover.problem)
    generator = np.random.default_rng(0)
    _stay_within(cover, boxes, generator)
    left = clock.seconds_left or 0.0
    _by_tiers(cover, boxes, _TIME * left + min(left, _LATER), generator)
    _by_rounds(cover, boxes, generator, _FEW if cover.problem.n <= LARGE else 0)


def _by_rounds(cover: Cover, boxes: Boxes, generator: np.random.Generator, few: int) -> None:
    """Boxes by prices, then ever more by room, until few cells are left."""
    part = _unmet(cover)
    number = 0 if _fits(cover.problem, part[1]) else _ROOMY
    while number < len(_ROUNDS) and len(part[0]) > few:
        before = int(cover.unmet.sum())
        noise, roomy = _ROUNDS[number]
        prices = np.where(cover.hidden, 0.0, cover.problem.weight)
        _move(cover, boxes, part, prices, generator, noise, roomy)
        met = before - int(cover.unmet.sum())
        number = _ROOMY if number < _ROOMY and met < _MET * before else number + 1
        part = _unmet(cover)


def _by_tiers(cover: Cover, boxes: Boxes, seconds: float, generator: np.random.Generator) -> None:
    """Boxes of light columns for what these can meet, then of heavier ones, in as many steps as fit."""
    weight = cover.problem.weight
    paid = np.sort(weight[~cover.problem.forced])
    tiers = np.repeat(_TIERS, _EACH).tolist()
    clock = Clock(seconds) if seconds else None
    at, left = 0, seconds
    # Without seconds, so many cells are moved in all.
    cells = _CELLS * min(_CORNERS / _corners(cover.problem), 1.0)
    while at < len(tiers) and len(paid):
        part = _unmet(cover)
        steps = cells / max(len(part[0]), 1)
        if len(part[0]) <= _FEW or (steps < 2 if clock is None else left <= 0):
            return
        most = paid[min(int(tiers[at] * len(paid)), len(paid) - 1)]
        prices = np.where(weight > most, np.inf, weight)
        prices[cover.hidden] = 0.0
        _move(cover, boxes, part, prices, generator, _VARIED)
        cells -= len(part[0])
        if clock is not None:
            began, left = left, clock.seconds_left or 0.0
            steps = _QUICKER * left / max(began - left, 1e-9)
        # The steps that there is time for are spread over all tiers; each is quicker than the last.
        at += max(1, int(np.ceil((len(tiers) - at - 1) / max(steps, 1e-9))))


def _move(
    cover: Cover,
    boxes: Boxes,
    part: tuple[IntArray, FloatArray, IntArray],
    prices: FloatArray,
    generator: np.random.Generator,
    noise: float,
    roomy: float = 0.0,
) -> None:
    """Add a box of each cell where one is found."""
    cells, levels, attackers = part
    found = boxes.find(cells, levels, prices, generator, attackers=attackers, noise=noise, roomy=roomy)
    cover.add_all(found.indptr, found.columns, found.amounts)


def _corners(problem: Problem) -> float:
    """How many corners a box usually has."""
    return float(2.0 ** np.median(np.diff(problem.transposed.indptr)))


def _fits(problem: Problem, levels: FloatArray) -> bool:
    """Are there boxes of cheap columns that have the room in all corners?"""
    if not len(levels):
        return True
    roomy = np.minimum(problem.lo, problem.hi) >= np.median(levels)
    return bool(roomy.mean() ** _corners(problem) >= _FIT)


def _unmet(cover: Cover) -> tuple[IntArray, FloatArray, IntArray]:
    """The cells to be moved for each attacker, by how much (one movement, turned round, serves both sides),
    highest level first.
    """
    needs = cover.needs
    unmet = np.flatnonzero(cover.unmet)
    keys = needs.attacker[unmet] * cover.problem.n + needs.cell[unmet]
    found, entry = np.unique(keys, return_inverse=True)
    levels = np.zeros(len(found))
    np.maximum.at(levels, entry, needs.level[unmet])
    order = np.lexsort((found, -levels))
    return found[order] % cover.problem.n, levels[order], found[order] // cover.problem.n


def _some(
    part: tuple[IntArray, FloatArray, IntArray], chosen: IntArray | BoolArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Some entries of three arrays."""
    return part[0][chosen], part[1][chosen], part[2][chosen]


def _stay_within(cover: Cover, boxes: Boxes, generator: np.random.Generator) -> None:
    """Meet what boxes of hidden columns can meet: it costs nothing."""
    able = with_company(cover.problem.matrix, cover.hidden)
    part = _unmet(cover)
    part = _some(part, able[part[0]])
    if len(part[0]):
        prices = np.where(able, 0.0, np.inf)
        found = boxes.find(part[0], part[1], prices, generator, attackers=part[2], noise=1.0, most=_WITHIN)
        cover.add_all(found.indptr, found.columns, found.amounts)


def _sweep(cover: Cover, clock: Clock) -> None:
    """Move the cells of all unmet needs together, in as many programs as pay, among the lightest columns.

    There is as much room up as down: a movement turned round meets the needs of the other side. Every other
    cell is to move down: totals needn't move by what all of them move.
    """
    problem, needs = cover.problem, cover.needs
    free = np.flatnonzero(~cover.hidden)
    lightest = free[np.argsort(problem.weight[free], kind="stable")]
    room = np.minimum(problem.lo, problem.hi) * cover.hidden
    some = lightest[: int(np.ceil(_LIGHTEST * len(lightest)))]
    room[some] = np.minimum(problem.lo, problem.hi)[some]
    region = Region(problem, room, room, clock)
    while True:
        unmet = np.flatnonzero(cover.unmet & (needs.attacker == 0))
        if len(unmet) <= _FEW:
            return
        level = np.zeros(problem.n)
        np.maximum.at(level, needs.cell[unmet], needs.level[unmet])
        cells = np.flatnonzero(level)
        try:
            move = region.sweep(cells, np.where(np.arange(len(cells)) % 2, 1.0, -1.0) * level[cells])
        except OutOfTimeError:
            return
        if move is None:
            return
        moving = np.flatnonzero(move)
        cover.add(moving, move[moving])
        if (cover.unmet & (needs.attacker == 0)).sum() > (1 - _WORTH) * len(unmet):
            return
