"""A measure that is what another was at another member: the turnover of the year before, next year's plan.

Whoever sees last year's table has a measure of this year's, but for respondents who came, went or moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.lattice import Longs, Space
from app.domain.nearly import Named, adding, reaching
from app.domain.overlaps import gathered, leaf_weights


@dataclass(frozen=True, eq=False)
class Lag:
    """What one measure is at a member, nearly, as another measure at another member of the hierarchy.

    Attributes
    ----------
    column
        Of the coordinates.
    made, base
        Numbers of the measures.
    aside : tuple of int
        Columns of hierarchies that divide the same dimension; it is told at their totals only.
    level : int64[size]
        The member of the level above each leaf; -1 where there are no records.
    source : int64[size]
        The member of the level at which ``base`` is what ``made`` is here; -1 where there is none.
    rate : float64[size]
        How many times it is that.
    leaf, room
        Places within members of the level, and by how much each misses.
    """

    column: int
    made: int
    base: int
    aside: tuple[int, ...]
    level: Longs
    source: Longs
    rate: Floats
    leaf: tuple[IntArray, ...]
    room: Floats

    def named(self, space: Space, coords: IntArray) -> Named:
        """Each cell of the measure that is made, less the base's that it is."""
        mine = adding(space, coords) & ~coords[:, list(self.aside)].any(axis=1)
        line = coords.copy()
        line[:, [0, self.column]] = 0
        rows = np.flatnonzero(mine & (coords[:, 0] == self.made))
        rows = rows[reaching(space, line[rows], line[mine & (coords[:, 0] == self.base)])]
        members, which = np.unique(coords[rows, self.column], return_inverse=True)
        parts = [self._parts(space, int(member)) for member in members]
        found = [(row, parts[number]) for row, number in zip(rows.tolist(), which.tolist(), strict=True)]
        told = [(row, part) for row, part in found if part is not None]
        rows = np.array([row for row, _ in told], dtype=np.int64)
        first, each = coords[rows], np.arange(len(rows))
        second = first.copy()
        second[:, 0] = self.base
        second[:, self.column] = [number for _, (number, _, _) in told]
        owner = np.repeat(each, np.array([len(inside) for _, (_, _, inside) in told], dtype=np.int64))
        places = first[owner]
        places[:, 0] = 0
        places[:, self.column] = [member for _, (_, _, inside) in told for member in inside]
        rates = np.array([rate for _, (_, rate, _) in told], dtype=np.float64)
        return Named(
            np.tile(each, 2),
            np.concatenate([first, second]),
            np.concatenate([np.ones(len(rows)), -rates]),
            places,
            owner,
            np.ones(len(owner)),
        )

    def _parts(self, space: Space, member: int) -> tuple[int, float, list[int]] | None:
        """The number of the members that one is told by, how many times, and its members of the level; None
        where it isn't made of such, or not of as many times."""
        weights = leaf_weights(space, self.column, member)
        if weights is None:
            return None
        known = self.level >= 0
        taken = known & (weights != 0)
        inside = np.unique(self.level[taken])
        if np.any(weights[taken] != 1) or np.isin(self.level, inside).sum() > taken.sum():
            return None
        sources = self.source[inside]
        rates = np.unique(self.rate[inside])
        if len(rates) != 1 or np.any(sources < 0) or len(np.unique(sources)) < len(sources):
            return None
        tree = space.trees[self.column - 1]
        terms = gathered(tree, np.isin(self.level, sources).astype(np.float64), known)
        return space.number(self.column, terms, "", is_formula=False), float(rates[0]), inside.tolist()
