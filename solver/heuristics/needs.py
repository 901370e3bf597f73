"""What must stay possible, and movements that prove it.

A *need* is one side of one target: some attacker must find it possible that the cell is higher (or
lower) by a level. A *move* is a movement z with M z = 0 that keeps within the room of the hidden
cells. Any multiple of it that keeps within the room is a move too, in both directions, so one move
can meet many needs (the γ⁺ and γ⁻ of Castro 2005 §4.6, for any relations). As long as no cell of a
move is shown again, the needs it meets need no further attacker problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solver.attack import Movement, Region
from solver.clock import Clock
from solver.entries import ranges
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem

# Relative shortfall that still counts as meeting a need; the attackers' own is ten times looser.
_SLACK = 1e-7
# Of a movement, the part by which it may leave its room: so much may be rounding.
_ROUNDING = 1e-6
# Movement below this (relative to a level, or absolute for levels above one) is rounding.
_STILL = 1e-8
# Moves that use what is shown are forgotten once there are so many, and they are the most.
_MANY = 64


@dataclass(frozen=True, eq=False)
class Needs:
    """The needs of a problem.

    Attributes
    ----------
    cell : int64[r]
        Column that must be able to move.
    side : float64[r]
        1 upwards, -1 downwards.
    level : float64[r]
        By how much, > 0.
    attacker : int64[r]
        Index into ``problem.known``.
    """

    cell: IntArray
    side: FloatArray
    level: FloatArray
    attacker: IntArray

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def by_level(self) -> IntArray:
        """Need numbers, highest level first (Kelly, Golden, Assad 1992 §4)."""
        return np.lexsort((self.side, self.cell, -self.level)).astype(np.int64)


def gather_needs(problem: Problem, clock: Clock) -> Needs:
    """One need per target and side; a sliding level widens the side that has room for it.

    The width that upper and lower level leave open goes to the side with more room, and to the
    other where that ends.

    Raises
    ------
    FrozenTargetError
        A sliding level is wider than anything allows.
    OutOfTimeError
        The clock's seconds are over.
    """
    targets = problem.targets
    upper, lower = targets.upper.copy(), targets.lower.copy()
    missing = np.maximum(targets.sliding - upper - lower, 0.0)
    hi, lo = _rooms(problem, np.flatnonzero(missing > 0), clock)
    first_up = hi >= lo
    for up in (True, False, True):
        mine = missing > 0
        mine &= first_up if up else ~first_up
        level, room = (upper, hi) if up else (lower, lo)
        step = np.where(mine, np.minimum(missing, np.maximum(room - level, 0.0)), 0.0)
        level += step
        missing -= step
        first_up = np.where(mine, not up, first_up)
    lacking = np.flatnonzero(missing > 1e-6 * targets.sliding)
    if len(lacking):
        raise FrozenTargetError(problem.cells[np.isin(problem.column, targets.cell[lacking])])
    level = np.concatenate([upper, lower])
    count = len(targets)
    keep = np.flatnonzero(level > 0)
    side = np.repeat([1.0, -1.0], count)
    return Needs(np.tile(targets.cell, 2)[keep], side[keep], level[keep], np.tile(targets.attacker, 2)[keep])


def _rooms(problem: Problem, wide: IntArray, clock: Clock) -> tuple[FloatArray, FloatArray]:
    """Room of each target; of those whose width is to be split, what the relations leave of it."""
    targets = problem.targets
    hi, lo = problem.hi[targets.cell], problem.lo[targets.cell]
    if len(wide):
        region = Region(problem, problem.lo, problem.hi, clock)
        for k in wide.tolist():
            region.use(int(targets.attacker[k]))
            hi[k] = min(hi[k], region.push(int(targets.cell[k]), 1).value)
            lo[k] = min(lo[k], region.push(int(targets.cell[k]), -1).value)
    return hi, lo


class Pairs:
    """Numbers, each with what it belongs to, in the order they come: searched whole, which takes less time
    than an index that is kept while moves come and go.
    """

    def __init__(self) -> None:
        self._pairs: IntArray = np.empty((2, 0), dtype=np.int64)
        self._size = 0

    def copy(self) -> Pairs:
        """An independent copy."""
        twin = Pairs()
        twin._pairs, twin._size = self._pairs[:, : self._size].copy(), self._size
        return twin

    def add(self, numbers: list[IntArray], first: int) -> None:
        """Add the numbers of several owners, which are counted from the first one."""
        each = np.concatenate(numbers)
        owner = np.repeat(np.arange(first, first + len(numbers)), [len(some) for some in numbers])
        size = self._size + len(each)
        if size > self._pairs.shape[1]:
            more = np.empty((2, 2 * size), dtype=np.int64)
            more[:, : self._size] = self._pairs[:, : self._size]
            self._pairs = more
        self._pairs[:, self._size : size] = each, owner
        self._size = size

    def of(self, numbers: IntArray) -> IntArray:
        """Whom any of some numbers belong to, as often as they do."""
        each, owner = self._pairs[:, : self._size]
        found = each == numbers[0] if len(numbers) == 1 else np.isin(each, numbers)
        return np.asarray(owner[found], dtype=np.int64)

    def count(self, owners: BoolArray, size: int) -> IntArray:
        """How often each number below a size belongs to one of some owners (bool[o])."""
        each, owner = self._pairs[:, : self._size]
        return np.asarray(np.bincount(each[owners[owner]], minlength=size), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Move:
    columns: IntArray
    amounts: FloatArray
    free: IntArray
    met: IntArray


class Cover:
    """A pattern under construction, with the moves known to be open in it.

    Parameters
    ----------
    problem, needs
        The component and what it must keep possible.
    hidden : bool[n], optional
        The pattern to begin with; default, the forced columns.

    Attributes
    ----------
    minimal
        Is every secondary known to be needed? Showing others never makes one needless.
    bound
        What no safe pattern costs less than, as far as whoever made it knows.
    """

    def __init__(self, problem: Problem, needs: Needs, hidden: BoolArray | None = None) -> None:
        self.problem, self.needs = problem, needs
        self.hidden: BoolArray = problem.forced.copy() if hidden is None else problem.forced | hidden
        self.minimal, self.bound = False, 0.0
        self._moves: list[_Move] = []
        self._count = np.zeros(len(needs), dtype=np.int64)
        # What moves use and meet; of those so far, which ones use nothing that is shown.
        self._uses, self._meets, self._alive = Pairs(), Pairs(), np.ones(0, dtype=np.bool_)
        self._insiders = [
            (k, cells) for k, cells in enumerate(problem.known) if len(cells) and k in needs.attacker
        ]

    @property
    def cost(self) -> float:
        """Weight of the secondaries."""
        return self.problem.cost(self.hidden)

    @property
    def secondaries(self) -> IntArray:
        """Hidden columns that need not be, heaviest first."""
        found = np.flatnonzero(self.hidden & ~self.problem.forced)
        return found[np.lexsort((found, -self.problem.weight[found]))]

    @property
    def unmet(self) -> BoolArray:
        """Needs that no known move meets."""
        return np.asarray(self._count == 0)

    def copy(self) -> Cover:
        """An independent copy (the moves are shared, they never change)."""
        twin = Cover(self.problem, self.needs, self.hidden)
        twin.minimal, twin.bound = self.minimal, self.bound
        twin._moves = list(self._moves)
        twin._count = self._count.copy()
        twin._uses, twin._meets, twin._alive = self._uses.copy(), self._meets.copy(), self._alive.copy()
        return twin

    def without(self, columns: IntArray) -> Cover:
        """Another cover, which shows these columns, with the moves that spare them."""
        twin = Cover(self.problem, self.needs, self.hidden)
        twin.hidden[columns] = False
        twin.bound = self.bound
        twin._moves = [move for move in self._moves if len(move.met) and twin.hidden[move.columns].all()]
        for move in twin._moves:
            twin._count[move.met] += 1
        return twin

    def take(self, other: Cover) -> None:
        """Become another cover of the same problem."""
        self.hidden, self.minimal, self._moves = other.hidden, other.minimal, other._moves
        self._count, self._uses, self._meets, self._alive = (
            other._count,
            other._uses,
            other._meets,
            other._alive,
        )
        self.bound = max(self.bound, other.bound)

    def borrow(self, other: Cover) -> None:
        """Meet unmet needs by the moves of another cover of the same problem, each by the cheapest one."""
        needs, weight, able = self.needs, self.problem.weight, dict[int, list[_Move]]()
        for move in other._moves:
            for need in move.met[self._count[move.met] == 0].tolist():
                able.setdefault(need, []).append(move)
        for need in needs.by_level.tolist():
            if self._count[need] == 0 and need in able:
                costs = [float(weight[m.free[~self.hidden[m.free]]].sum()) for m in able[need]]
                move = able[need][int(np.argmin(costs))]
                self.add(move.columns, move.amounts)

    def add(self, columns: IntArray, amounts: FloatArray) -> None:
        """Hide what a move moves, and note the needs that it meets."""
        self.add_all(np.array([0, len(columns)]), columns, amounts)

    def add_all(self, indptr: IntArray, columns: IntArray, amounts: FloatArray) -> None:
        """As :meth:`add`, for many moves one after the other: move k has the entries from `indptr[k]` on
        (int64[moves + 1]).
        """
        problem, needs = self.problem, self.needs
        size, begin = np.abs(amounts), indptr[:-1][np.diff(indptr) > 0]
        if not len(begin):
            return
        largest = np.maximum.reduceat(size, begin)
        least = np.repeat(_STILL * np.minimum(largest, 1.0), np.diff(begin, append=len(columns)))
        touched = [
            np.logical_or.reduceat((size * problem.heft[columns] > least) & np.isin(columns, known), begin)
            for _, known in self._insiders
        ]
        moving = size > least
        # What moves at all moves somewhere by its largest amount: no movement is left without columns.
        begin, theirs = begin[largest > 0], [those[largest > 0] for those in touched]
        if not len(begin):
            return
        begin = (np.cumsum(moving) - moving)[begin]
        columns, amounts, size = columns[moving], amounts[moving], size[moving]
        hi, lo = problem.hi[columns], problem.lo[columns]
        forth = np.minimum.reduceat(np.where(amounts > 0, hi, lo) / size, begin)
        back = np.minimum.reduceat(np.where(amounts > 0, lo, hi) / size, begin)
        # The room of a cell may be missed by the rounding of the movement alone; what goes farther counts as
        # far as there is room.
        forth = np.where(forth >= 1 - _ROUNDING, np.maximum(forth, 1.0), forth)
        order, starts = self._needs_by_column
        each = starts[columns + 1] - starts[columns]
        asked = np.flatnonzero(each)
        each = each[asked]
        need, entry = order[ranges(starts[columns[asked]], each)], np.repeat(asked, each)
        mover = np.searchsorted(begin, entry, side="right") - 1
        reach = amounts[entry] * needs.side[need]
        reach = np.where(reach > 0, reach * forth[mover], -reach * back[mover])
        met = reach >= needs.level[need] * (1 - _SLACK)
        for (attacker, _), those in zip(self._insiders, theirs, strict=True):
            met &= ~(those[mover] & (needs.attacker[need] == attacker))
        need, mover = need[met], mover[met]
        self._count += np.bincount(need, minlength=len(needs))
        self.minimal = self.minimal and bool(self.hidden[columns].all())
        self.hidden[columns] = True
        unforced, ends = ~problem.forced[columns], [*begin[1:].tolist(), len(columns)]
        answers = np.searchsorted(mover, np.arange(len(begin) + 1)).tolist()
        for k, (at, end) in enumerate(zip(begin.tolist(), ends, strict=True)):
            some = columns[at:end]
            answered = np.sort(need[answers[k] : answers[k + 1]])
            self._moves.append(_Move(some, amounts[at:end], some[unforced[at:end]], answered))

    @cached_property
    def _needs_by_column(self) -> tuple[IntArray, IntArray]:
        """Numbers of the needs, sorted by column, and where each column begins."""
        count = np.bincount(self.needs.cell, minlength=self.problem.n)
        return np.argsort(self.needs.cell, kind="stable"), np.concatenate([[0], np.cumsum(count)])

    def meet_as(self, other: Cover) -> None:
        """Meet what is unmet by the moves of another cover of the same problem, its last ones first."""
        for move in reversed(other._moves):
            if (self._count[move.met] == 0).any() and other.hidden[move.columns].all():
                self.add(move.columns, move.amounts)

    def movements(self) -> list[Movement]:
        """The known moves that the pattern leaves open and that meet a need."""
        return [
            (move.columns, move.amounts)
            for move in self._moves
            if len(move.met) and self.hidden[move.columns].all()
        ]

    def would_lose(self, columns: IntArray) -> IntArray:
        """Needs that no known move meets once these columns are shown."""
        lost = self._met_by(self._using(columns))
        return np.flatnonzero((self._count > 0) & (self._count == lost))

    def support(self, columns: IntArray) -> IntArray:
        """Columns of the moves that use any of these columns, sorted."""
        used = [self._moves[number].columns for number in self._using(columns).tolist()]
        return np.unique(np.concatenate([columns, *used]))

    def show(self, columns: IntArray) -> None:
        """Show columns again, and forget the moves that used them."""
        using = self._using(columns)
        self._count -= self._met_by(using)
        self._alive[using] = False
        self.hidden[columns] = False
        if len(self._moves) > _MANY and 2 * int(self._alive.sum()) < len(self._moves):
            self._moves = [self._moves[number] for number in np.flatnonzero(self._alive).tolist()]
            self._uses, self._meets, self._alive = Pairs(), Pairs(), np.ones(0, dtype=np.bool_)

    def _using(self, columns: IntArray) -> IntArray:
        """Numbers of the moves that use any of these columns, and nothing that is shown."""
        known = len(self._alive)
        if known < len(self._moves):
            new = self._moves[known:]
            self._uses.add([move.free for move in new], known)
            self._meets.add([move.met for move in new], known)
            self._alive = np.concatenate([self._alive, np.ones(len(new), dtype=np.bool_)])
        found = self._uses.of(columns)
        found = found[self._alive[found]]
        return found if len(columns) == 1 else np.unique(found)

    def _met_by(self, moves: IntArray) -> IntArray:
        """How many of these moves meet each need."""
        chosen = np.zeros(len(self._alive), dtype=np.bool_)
        chosen[moves] = True
        return self._meets.count(chosen, len(self.needs))
