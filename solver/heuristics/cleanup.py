"""Show again every secondary that is not needed, heaviest first (Kelly, Golden, Assad 1992 §4).

Moves already known answer most questions; only needs whose every known move uses the cell ask the
linear program, which then looks for the movement that leans least on heavy secondaries.
One pass leaves a minimal pattern: what could not be shown while more was hidden can't be later.
"""

from __future__ import annotations

import numpy as np

from solver.heuristics.clock import Clock
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover
from solver.instance import IntArray


def clean_up(cover: Cover, clock: Clock, candidates: IntArray | None = None) -> None:
    """Show the redundant secondaries of a cover; one that does not meet its needs stays as it is.

    `candidates` narrows the secondaries looked at (int64[k], in the order to try).
    """
    problem, needs = cover.problem, cover.needs
    if candidates is None:
        candidates = cover.secondaries
    if not len(candidates) or cover.unmet.any():
        return
    mover: Mover | None = None
    for column in candidates.tolist():
        one = np.array([column])
        lost = cover.would_lose(one)
        if len(lost):
            if clock.out:
                return
            if mover is None:
                mover = Mover(problem, needs, np.flatnonzero(cover.hidden))
                mover.set_unit_prices(np.where(cover.hidden, problem.weight, 0.0))
            mover.close(one)
            if not _meet_otherwise(mover, cover, lost, one, clock):
                mover.open(one)
                continue
        elif mover is not None:
            mover.close(one)
        cover.show(one)


def _meet_otherwise(mover: Mover, cover: Cover, lost: IntArray, column: IntArray, clock: Clock) -> bool:
    remaining = lost[np.argsort(-cover.needs.level[lost], kind="stable")]
    while len(remaining):
        found = mover.move(int(remaining[0]))
        clock.charge(mover.size)
        if found is None:
            return False
        cover.add(mover.columns, found)
        still = cover.would_lose(column)
        remaining = remaining[1:][np.isin(remaining[1:], still)]
    return True
