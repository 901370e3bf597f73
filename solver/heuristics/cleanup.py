"""Show again every secondary that is not needed, heaviest first (Kelly, Golden, Assad 1992 §4).

Moves already known answer most questions; only needs whose every known move uses the cell ask the
linear program, which then looks for the movement that leans least on heavy secondaries.
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
    cover: Cover, clock: Clock, candidates: IntArray | None = None, around: Surroundings | None = None
) -> None:
    """Show the redundant secondaries of a cover; one that does not meet its needs stays as it is.

    `candidates` narrows the secondaries looked at (int64[k], in the order to try); `around` are the
    surroundings of the problem, where the caller has them already.
    """
    if candidates is None:
        candidates = cover.secondaries
    if not len(candidates) or cover.unmet.any():
        return
    elsewhere = _Near(cover, around) if cover.hidden.sum() > _LARGE else _Anywhere(cover)
    for column in candidates.tolist():
        one = np.array([column])
        lost = cover.would_lose(one)
        if len(lost):
            if clock.out:
                return
            if not _meet_otherwise(elsewhere, cover, lost, one, clock):
                continue
        cover.show(one)


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


def _meet_otherwise(
    elsewhere: _Anywhere | _Near, cover: Cover, lost: IntArray, column: IntArray, clock: Clock
) -> bool:
    remaining = lost[np.argsort(-cover.needs.level[lost], kind="stable")]
    while len(remaining):
        try:
            found = elsewhere.moves(int(remaining[0]), column, clock)
        except OutOfTimeError:
            return False
        if found is None:
            return False
        mover, amounts = found
        cover.add(mover.columns, amounts)
        still = cover.would_lose(column)
        remaining = remaining[1:][np.isin(remaining[1:], still)]
    return True
