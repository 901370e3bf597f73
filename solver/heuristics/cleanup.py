"""Show again every secondary that is not needed, heaviest first (Kelly, Golden, Assad 1992 §4).

Moves already known answer most questions, and where a cell leaves another without company in a relation, and
that one others, what gets stuck so needs no program either. Only what is left then asks the linear program,
which looks for the movement that leans least on heavy secondaries.
One pass leaves a minimal pattern: what could not be shown while more was hidden can't be later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.joint import Joint
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.heuristics.peel import WIDE, peel
from solver.heuristics.reflect import Reflections, add_moves
from solver.heuristics.surroundings import Surroundings
from solver.instance import FloatArray, IntArray

# Beyond so many hidden columns each question is asked near its cell.
_LARGE = 4000
# After so many questions, one by one is too slow if it would take so many times what is left of the limit.
_SAMPLE, _PATIENCE = 30, 8.0
# Of wide patterns, where each question takes long: so many questions, and so many times.
_WIDE_SAMPLE, _WIDE_PATIENCE = 10, 3.0
# The program of all questions is made anew once this part of its columns is shown, or sure to stay hidden.
_CHANGED = 0.1


def clean_up(
    cover: Cover,
    clock: Clock,
    candidates: IntArray | None = None,
    around: Surroundings | None = None,
    blockers: Blockers | None = None,
) -> None:
    """Show the redundant secondaries of a cover; one that does not meet its needs stays as it is.

    `candidates` narrows the secondaries looked at (int64[k], in the order to try); `around` are the
    surroundings of the problem, where the caller has them already. `blockers` are kept from call to call.
    """
    blockers = Blockers(cover) if blockers is None else blockers
    if cover.minimal or cover.unmet.any():
        return
    if candidates is not None:
        _show_needless(cover, clock, candidates, around, blockers)
        return
    try:
        pace = _Pace(clock, int(cover.hidden.sum()))
        _show_needless(cover, clock, cover.secondaries, around, blockers, pace)
    except _TooSlowError:
        peel(cover, clock)
        _show_needless(cover, clock, cover.secondaries, around, blockers)
    cover.minimal = not clock.out


def _show_needless(
    cover: Cover,
    clock: Clock,
    candidates: IntArray,
    around: Surroundings | None,
    blockers: Blockers,
    pace: _Pace | None = None,
) -> None:
    """Show the candidates that are redundant, in their order.

    Raises
    ------
    _TooSlowError
        At this pace it would take most of the time there is.
    """
    company = _Company(cover)
    elsewhere = _Near(cover, around) if cover.hidden.sum() > _LARGE else _Anywhere(cover)
    for position, column in enumerate(candidates.tolist()):
        one = np.array([column])
        lost = cover.would_lose(one)
        if len(lost):
            if clock.out:
                return
            if company.strands(column, cover.needs.cell[lost]):
                continue
            if pace is not None:
                pace.left = (len(candidates) - position) / (position + 1)
            blocker = _blocker(elsewhere, cover, blockers.first(column, lost), one, clock, pace)
            if blocker >= 0:
                blockers.note(column, blocker)
                elsewhere.keep(column)
                continue
        cover.show(one)
        company.show(column)


class Blockers:
    """The needs that kept columns hidden: asked first, the last one mostly does so again."""

    def __init__(self, cover: Cover) -> None:
        self._level = cover.needs.level
        self._last: dict[int, int] = {}
        self._often = np.zeros(len(cover.needs), dtype=np.int64)

    def first(self, column: int, needs: IntArray) -> IntArray:
        """These needs (int64[k]) in the order to ask."""
        last = needs != self._last.get(column, -1)
        return needs[np.lexsort((-self._level[needs], -self._often[needs], last))]

    def note(self, column: int, need: int) -> None:
        """A need keeps a column hidden."""
        self._last[column] = need
        self._often[need] += 1


class _TooSlowError(Exception):
    """Questions one by one take too long."""


class _Pace:
    """Stops clean-up where it would take more than a part of the limit at the pace so far.

    Attributes
    ----------
    left
        Candidates left, for each one so far.
    """

    def __init__(self, clock: Clock, hidden: int) -> None:
        self._clock, self._before, self._asked, self.left = clock, clock.spent, 0, 0.0
        wide = hidden > WIDE
        self._sample = _WIDE_SAMPLE if wide else _SAMPLE
        self._patience = _WIDE_PATIENCE if wide else _PATIENCE

    def step(self) -> None:
        """A question was answered.

        Raises
        ------
        _TooSlowError
            Too slowly.
        """
        self._asked += 1
        spent = self._clock.spent
        if self._asked >= self._sample and (spent - self._before) * self.left > self._patience * (1 - spent):
            raise _TooSlowError


class _Company:
    """How many hidden columns each relation has."""

    def __init__(self, cover: Cover) -> None:
        self._hidden = cover.hidden
        self._rows, self._columns = cover.problem.matrix, cover.problem.transposed
        self._count = np.bincount(
            self._columns[np.flatnonzero(cover.hidden)].indices, minlength=cover.problem.m
        )

    def show(self, column: int) -> None:
        """A column is shown."""
        self._count[self._relations(column)] -= 1

    def strands(self, column: int, cells: IntArray) -> bool:
        """Can one of these cells (int64[k]) surely not move once a column is shown?"""
        wanted = set(cells.tolist())
        stuck, waiting = {column}, [column]
        count: dict[int, int] = {}
        while waiting:
            for relation in self._relations(waiting.pop()).tolist():
                left = count[relation] = count.get(relation, int(self._count[relation])) - 1
                if left != 1:
                    continue
                members = self._rows.indices[self._rows.indptr[relation] : self._rows.indptr[relation + 1]]
                alone = [c for c in members[self._hidden[members]].tolist() if c not in stuck]
                if not wanted.isdisjoint(alone):
                    return True
                stuck.update(alone)
                waiting += alone
        return False

    def _relations(self, column: int) -> IntArray:
        columns = self._columns
        return np.asarray(columns.indices[columns.indptr[column] : columns.indptr[column + 1]])


@dataclass(frozen=True, eq=False)
class _AtOnce:
    """Movements (float64[r, k]) of the columns of a joint that meet needs (int64[r]), and the needs that none
    was found for, the least likely to be met first.
    """

    joint: Joint
    needs: IntArray
    moves: FloatArray
    missed: IntArray

    def meet(self, cover: Cover, column: IntArray) -> None:
        """Have a cover meet what it would lose without a column."""
        wanted = np.isin(self.needs, cover.would_lose(column))
        add_moves(cover, self.joint, self.moves[wanted])


class _Anywhere:
    """Movements of all hidden columns: one program for many questions, where what stays hidden is free."""

    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        self._mover: Mover | None = None
        self._reflections: Reflections | None = None
        self._shut = np.zeros(cover.problem.n, dtype=np.bool_)
        self._kept = cover.problem.forced.copy()
        self._size = self._sure = 0

    def keep(self, column: int) -> None:
        """A column is needed: what can't be shown while more is hidden can't be later."""
        self._kept[column] = True

    def moves(self, need: int, without: IntArray, clock: Clock) -> tuple[Mover, FloatArray] | None:
        """A movement that meets a need and spares a column."""
        mover = self._sparing(without)
        found = mover.move(need, clock)
        return None if found is None else (mover, found)

    def moves_at_once(self, needs: IntArray, without: IntArray, clock: Clock) -> _AtOnce | None:
        """Movements that meet some needs (int64[k]) and spare a column, for as many as are soon found."""
        joint, hidden = self._current().joint, self._cover.hidden
        if not Reflections.pay(len(joint), len(needs)) or joint.joined[joint.position[without[0]]] < 0:
            return None
        if self._reflections is None:
            self._reflections = Reflections(joint, self._cover.needs)
        self._reflections.drop(~hidden)
        moves, beyond = self._reflections.move(needs, clock, int(without[0]))
        met = beyond == 0
        missed = needs[~met][np.argsort(-beyond[~met], kind="stable")]
        return _AtOnce(joint, needs[met], moves[met], missed)

    def _sparing(self, without: IntArray) -> Mover:
        """The program, in which only what is hidden moves, and not a column."""
        mover = self._current()
        wanted = ~self._cover.hidden
        wanted[without] = True
        mover.close(np.flatnonzero(wanted & ~self._shut))
        mover.open(np.flatnonzero(self._shut & ~wanted))
        self._shut = wanted
        return mover

    def _current(self) -> Mover:
        """The program, made anew where much has changed."""
        hidden, weight = self._cover.hidden, self._cover.problem.weight
        size, sure = int(hidden.sum()), int(self._kept.sum())
        changed = max(self._size - size, sure - self._sure)
        if self._mover is None or changed > _CHANGED * self._size:
            self._size, self._sure = size, sure
            self._mover = Mover(self._cover.problem, self._cover.needs, np.flatnonzero(hidden))
            self._mover.set_unit_prices(np.where(hidden & ~self._kept, weight, 0.0))
            self._shut, self._reflections = ~hidden, None
        return self._mover


class _Near:
    """Movements of the hidden columns near a cell: a large pattern keeps what only far ones could spare."""

    def __init__(self, cover: Cover, around: Surroundings | None) -> None:
        self._cover = cover
        self._around = around or Surroundings(cover.problem)

    def keep(self, column: int) -> None:
        """A column is needed; each question has a program of its own."""

    def moves_at_once(self, needs: IntArray, without: IntArray, clock: Clock) -> _AtOnce | None:
        """None: they are found one by one."""
        return None

    def moves(self, need: int, without: IntArray, clock: Clock) -> tuple[Mover, FloatArray] | None:
        """A movement that meets a need and spares a column."""
        cover = self._cover
        problem, hidden = cover.problem, cover.hidden.copy()
        hidden[without] = False
        columns = self._around.nearest(cover.needs, need, np.where(hidden, problem.weight, 0.0), ~hidden)
        mover = Mover(problem, cover.needs, columns)
        mover.set_unit_prices(np.where(hidden, problem.weight, 0.0))
        found = mover.move(need, clock)
        return None if found is None else (mover, found)


def _blocker(
    elsewhere: _Anywhere | _Near,
    cover: Cover,
    lost: IntArray,
    column: IntArray,
    clock: Clock,
    pace: _Pace | None,
) -> int:
    """The need that nothing meets without a column, or -1 if the cover has found other movements for all of
    those that it would lose (int64[k], in the order to ask).
    """
    remaining, asked = lost, 0
    others: _AtOnce | None = None
    while True:
        if not len(remaining):
            if others is None:
                return -1
            others.meet(cover, column)
            remaining, others = cover.would_lose(column), None
            continue
        need = int(remaining[0])
        try:
            # Most columns are kept by what kept them last. What that spares, many may need.
            if asked == 1:
                others = elsewhere.moves_at_once(remaining, column, clock)
                remaining, asked = remaining if others is None else others.missed, 2
                continue
            found = elsewhere.moves(need, column, clock)
        except OutOfTimeError:
            return need
        if found is None:
            return need
        asked += 1
        mover, amounts = found
        cover.add(mover.columns, amounts)
        still = cover.would_lose(column)
        if need in still:
            # Its movement does not count as one that spares the column.
            return need
        remaining = remaining[1:][np.isin(remaining[1:], still)]
        if pace is not None:
            pace.step()
