"""A safe pattern as soon as possible: boxes around all cells at once, linear programs for what is left."""

from __future__ import annotations

import numpy as np

from solver.attack import Region
from solver.clock import Clock, OutOfTimeError, Strict
from solver.entries import row_of
from solver.heuristics.boxes import Boxes, Movements
from solver.heuristics.lp import LARGE, protect_lp
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

# How much prices vary by chance, and how far rounds of boxes go by room instead: the first by prices alone.
_ROUNDS = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 1.0), (0.3, 1.0), (1.0, 0.9), (1.0, 0.8), (1.0, 0.7))
# The first round that goes by room alone. It is the next one where a round meets less than a part of the
# needs, and the first of all where less than a part of all boxes would have room in their corners.
_ROOMY, _MET, _FIT = 3, 1 / 3, 0.3
# Steps for boxes within what is hidden anyway.
_WITHIN = 20
# So few needs are met by linear programs, where these are small.
_FEW = 16
# With time, cells are protected in so many groups, each larger than the one before, as what one hides is free
# for the next; of so many boxes of a cell the cheapest is taken. The first group may have so many cells.
_GROUPS, _TRIES, _FIRST = 8, 4, 8
# Where there are few columns and boxes took no longer than so many seconds, programs have so many to find
# something cheaper.
_QUICK, _PROGRAMS = 0.25, 0.5
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
    began, other = Clock(_QUICK), cover.copy()
    _by_boxes(cover, clock)
    if cover.problem.n <= LARGE and not began.out:
        _by_programs(other, Clock(max(_PROGRAMS, (clock.seconds_left or 0.0) / 2)))
        if other.cost < cover.cost:
            cover.take(other)


def _by_boxes(cover: Cover, clock: Clock) -> None:
    """Boxes, and a program for each of the few needs that these leave."""
    protect_boxes(cover, clock)
    if cover.unmet.any():
        protect_lp(cover, Clock(work=0.0), slopes=0)


def _by_programs(cover: Cover, clock: Clock) -> None:
    """Programs of all cells at once, then one for each need; boxes for what time doesn't suffice for."""
    _sweep(cover, clock)
    try:
        protect_lp(cover, Strict(clock), slopes=0)
    except OutOfTimeError:
        _by_boxes(cover, Clock(0.0))


def protect_boxes(cover: Cover, clock: Clock) -> None:
    """Meet unmet needs of a cover by boxes: nearly all of them, where cells have room for their levels."""
    boxes = Boxes(cover.problem)
    generator = np.random.default_rng(0)
    _stay_within(cover, boxes, generator)
    part = _unmet(cover)
    number = 0 if _fits(cover.problem, part[1]) else _ROOMY
    few = _FEW if cover.problem.n <= LARGE else 0
    while number < len(_ROUNDS) and len(part[0]) > (few if number else 0):
        left = int(cover.unmet.sum())
        hurried = clock.out or number > 0
        for group in _groups(len(part[0]), hurried):
            some = _some(part, group)
            found = _cheapest(cover, boxes, some, 1 if hurried else _TRIES, generator, _ROUNDS[number])
            cover.add_all(found.indptr, found.columns, found.amounts)
        met = left - int(cover.unmet.sum())
        number = _ROOMY if number < _ROOMY and met < _MET * left else number + 1
        part = _unmet(cover)


def _fits(problem: Problem, levels: FloatArray) -> bool:
    """Are there boxes of cheap columns that have the room in all corners?"""
    if not len(levels):
        return True
    corners = 2.0 ** float(np.median(np.diff(problem.transposed.indptr)))
    roomy = np.minimum(problem.lo, problem.hi) >= np.median(levels)
    return bool(roomy.mean() ** corners >= _FIT)


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
    able = _with_company(cover.problem, cover.hidden)
    part = _unmet(cover)
    part = _some(part, able[part[0]])
    if len(part[0]):
        prices = np.where(able, 0.0, np.inf)
        found = boxes.find(part[0], part[1], prices, generator, attackers=part[2], noise=1.0, most=_WITHIN)
        cover.add_all(found.indptr, found.columns, found.amounts)


def _with_company(problem: Problem, hidden: BoolArray) -> BoolArray:
    """Hidden columns that may move: none is, or becomes, alone in a relation."""
    columns, rows = problem.matrix.indices, row_of(problem.matrix.indptr)
    able = hidden.copy()
    while True:
        here = able[columns]
        alone = here & (np.bincount(rows, here, problem.m) == 1)[rows]
        if not alone.any():
            return able
        able[columns[alone]] = False


def _groups(count: int, hurried: bool) -> list[IntArray]:
    if hurried or count <= _FIRST:
        return [np.arange(count)]
    ends = np.unique(np.geomspace(_FIRST, count, _GROUPS).astype(np.int64))
    return np.split(np.arange(count), ends[:-1])


def _cheapest(
    cover: Cover,
    boxes: Boxes,
    part: tuple[IntArray, FloatArray, IntArray],
    tries: int,
    generator: np.random.Generator,
    chance: tuple[float, float],
) -> Movements:
    """A movement of each cell, where there is one: the cheapest of some tries."""
    prices = np.where(cover.hidden, 0.0, cover.problem.weight)
    noise, roomy = chance
    found = boxes.find(
        np.tile(part[0], tries),
        np.tile(part[1], tries),
        prices,
        generator,
        attackers=np.tile(part[2], tries),
        noise=max(noise, 0.3 * float(tries > 1)),
        roomy=roomy,
    )
    if not len(found.of):
        return found
    cost = np.add.reduceat(prices[found.columns], found.indptr[:-1])
    cell = found.of % len(part[0])
    order = np.lexsort((cost, cell))
    return found.take(order[np.unique(cell[order], return_index=True)[1]])


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
