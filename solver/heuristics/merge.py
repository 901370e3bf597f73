"""Merge patterns: search exactly among the columns that a cheap pattern hides and those that others hide.

Good patterns have much in common, and where they differ each is better in one part of the table than in
another: a search of their union alone is small, its relaxation is close, and it puts the better parts
together (tour merging, Cook and Seymour 2003; kernel search, Angelelli, Mansini, Speranza 2010).
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock
from solver.heuristics.improve import search_free
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, FloatArray

# How many patterns are kept, and how much dearer than the cheapest one may be.
_KEPT, _DEARER = 80, 1.15
# So many must have been met before mergers pay: where each takes long, meeting more is worth more.
_ENOUGH = 70
# Free columns of a merger, as a multiple of the secondaries: at first, at least, at most; and the change of
# that after one that was searched to the end, or was not.
_SIZE, _LEAST, _MOST = 1.5, 1.1, 8.0
_GROWTH, _SHRINKAGE = 1.25, 0.85
# What the relaxation's share of a column counts against its share in the patterns, and what chance does.
_GUIDED, _CHANCE = 0.5, 0.1
_LITTLE = 0.05


# Beyond so many columns a search of the lightest pays before all else; this part of the columns, at least and
# at most so many; and its part of the limit, and effort for each table and for each column.
MANY = 5_000
_LIGHTEST, _FEWEST, _MANIEST = 1 / 8, 3_000, 30_000
_PART, _EFFORT, _EACH = 0.4, 2.0, 1 / 5_000


def merge_lightest(cover: Cover, clock: Clock) -> None:
    """Make a cover the cheapest pattern found of the columns that it hides and the lightest ones, in place.

    A large table has light cells in plenty, of which the cheapest movement of one cell after the other uses
    too many: what cells have in common shows in the relaxation alone, and few columns are enough for that.
    """
    problem = cover.problem
    count = int(np.clip(_LIGHTEST * problem.n, _FEWEST, _MANIEST))
    free: BoolArray = cover.hidden.copy()
    free[np.argsort(problem.weight, kind="stable")[:count]] = True
    free &= ~problem.forced
    limit = clock.part(_PART).at_most(_EFFORT + _EACH * problem.n)
    search_free(cover, free, free | cover.hidden, limit)


class Pool:
    """Safe patterns met on the way, the cheapest of them.

    Parameters
    ----------
    seed
        Of the choice of columns.
    guide : float64[n], optional
        How much a relaxation hides of each column.
    """

    def __init__(self, seed: int, guide: FloatArray | None = None) -> None:
        self._generator = np.random.default_rng(seed)
        self._guide = guide
        self._patterns: dict[bytes, tuple[float, BoolArray]] = {}
        self._size, self._solved = _SIZE, False

    def add(self, cover: Cover) -> None:
        """Keep the pattern of a cover that meets every need."""
        self._patterns.setdefault(cover.hidden.tobytes(), (cover.cost, cover.hidden.copy()))
        if len(self._patterns) > 2 * _KEPT:
            cheapest = sorted(self._patterns.items(), key=lambda item: item[1][0])
            self._patterns = dict(cheapest[:_KEPT])

    @property
    def enough(self) -> bool:
        """Are there patterns enough to merge?"""
        return len(self._patterns) >= _ENOUGH

    def merge(self, cover: Cover, clock: Clock) -> bool:
        """Make a cover the cheapest pattern of the columns that it and others hide, in place; True if that
        was searched to the end.
        """
        free = self._choose(cover)
        solved = search_free(cover, free, free | cover.hidden, clock)
        self._size = min(self._size * _GROWTH, _MOST) if solved else max(self._size * _SHRINKAGE, _LEAST)
        self._solved = solved
        return solved

    def _choose(self, cover: Cover) -> BoolArray:
        """The secondaries, and as many columns as may be that other patterns or the relaxation hide."""
        forced = cover.problem.forced
        free: BoolArray = cover.hidden & ~forced
        patterns = [hidden for cost, hidden in self._patterns.values() if cost <= _DEARER * cover.cost]
        score = np.zeros(len(free))
        if patterns:
            score += np.mean(patterns, axis=0)
        if self._guide is not None:
            score += np.where(self._guide > _LITTLE, _GUIDED * self._guide, 0.0)
        # Columns that nothing speaks for come in once what is spoken for was searched to the end.
        barred = (score == 0) & (not self._solved)
        score += self._generator.uniform(0.0, _CHANCE, len(free))
        score[free | forced | barred] = -1.0
        more = min(int((self._size - 1.0) * free.sum()) + 1, int((score >= 0).sum()))
        if more > 0:
            free[np.argpartition(-score, more - 1)[:more]] = True
        return free & ~forced
