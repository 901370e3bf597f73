"""Show again every secondary that is not needed, heaviest first (Kelly, Golden, Assad 1992 §4).

Moves already known answer most questions, and where a cell leaves another without company in a relation, and
that one others, what gets stuck so needs no program either. Only what is left then asks the linear program,
which looks for the movement that leans least on heavy secondaries.
One pass leaves a minimal pattern: what could not be shown while more was hidden can't be later.
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock, OutOfTimeError
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.heuristics.surroundings import Surroundings
from solver.instance import FloatArray, IntArray

# Beyond so many hidden columns each question is asked near its cell.
_LARGE = 4000


def clean_up(
    cover: Cover,
    clock: Clock,
    candidates: IntArray | None = None,
    around: Surroundings | None = None,
    blockers: dict[int, int] | None = None,
) -> None:
    """Show the redundant secondaries of a cover; one that does not meet its needs stays as it is.

    `candidates` narrows the secondaries looked at (int64[k], in the order to try); `around` are the
    surroundings of the problem, where the caller has them already. `blockers` keeps, from call to call, which
    need kept a column hidden: asked first, it mostly does so again.
    """
    blockers = {} if blockers is None else blockers
    everything = candidates is None
    if candidates is None:
        candidates = cover.secondaries
    if cover.minimal or cover.unmet.any():
        return
    company = _Company(cover)
    elsewhere = _Near(cover, around) if cover.hidden.sum() > _LARGE else _Anywhere(cover)
    for column in candidates.tolist():
        one = np.array([column])
        lost = cover.would_lose(one)
        if len(lost):
            if clock.out:
                return
            if company.strands(column, cover.needs.cell[lost]):
                continue
            blocker = _blocker(elsewhere, cover, lost, one, clock, blockers.get(column, -1))
            if blocker >= 0:
                blockers[column] = blocker
                continue
        cover.show(one)
        company.show(column)
    cover.minimal = everything and not clock.out


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


class _Anywhere:
    """Movements of all hidden columns, one linear program for all questions."""

    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        self._mover: Mover | None = None
        self._shut = np.zeros(cover.problem.n, dtype=np.bool_)

    def moves(self, need: int, without: IntArray, clock: Clock) -> tuple[Mover, FloatArray] | None:
        """A movement that meets a need and spares a column."""
        cover = self._cover
        if self._mover is None:
            self._mover = Mover(cover.problem, cover.needs, np.flatnonzero(cover.hidden))
            self._mover.set_unit_prices(np.where(cover.hidden, cover.problem.weight, 0.0))
            self._shut[~cover.hidden] = True
        wanted = ~cover.hidden
        wanted[without] = True
        self._mover.close(np.flatnonzero(wanted & ~self._shut))
        self._mover.open(np.flatnonzero(self._shut & ~wanted))
        self._shut = wanted
        found = self._mover.move(need, clock)
        return None if found is None else (self._mover, found)


class _Near:
    """Movements of the hidden columns near a cell: a large pattern keeps what only far ones could spare."""

    def __init__(self, cover: Cover, around: Surroundings | None) -> None:
        self._cover = cover
        self._around = around or Surroundings(cover.problem)

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
    elsewhere: _Anywhere | _Near, cover: Cover, lost: IntArray, column: IntArray, clock: Clock, first: int
) -> int:
    """The need that nothing meets without a column, or -1 if the cover has found other movements for all.

    `first` is the need to begin with.
    """
    remaining = lost[np.lexsort((-cover.needs.level[lost], lost != first))]
    while len(remaining):
        need = int(remaining[0])
        try:
            found = elsewhere.moves(need, column, clock)
        except OutOfTimeError:
            return need
        if found is None:
            return need
        mover, amounts = found
        cover.add(mover.columns, amounts)
        still = cover.would_lose(column)
        if need in still:
            # Its movement does not count as one that spares the column.
            return need
        remaining = remaining[1:][np.isin(remaining[1:], still)]
    return -1
