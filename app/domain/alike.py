"""Hierarchies of which one nearly says the other: towns and postal codes, with few records astray.

What lies in a postal code is what lies in its towns but for those records. Readers are taken to know how much
that is at most; where none is astray, the one is the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.lattice import Bools, Longs, Space
from app.domain.nearly import Named, adding, reaching
from app.domain.overlaps import gathered, leaf_weights


@dataclass(frozen=True, eq=False)
class Alike:
    """One measure in two divisions.

    Attributes
    ----------
    measure
        Its number.
    column, other
        Of the coordinates: the hierarchy whose leaves lie in classes, and that whose members they make.
    classes : int64[size]
        The class that nearly all records of each leaf of the first lie in; -1 where there are none.
    other_classes : int64[size]
        The class of each leaf of the second.
    room : float64[records]
        What records of another class than their first leaf's bring; 0 for all others.
    """

    measure: int
    column: int
    other: int
    classes: Longs
    other_classes: Longs
    room: Floats
    leaf: None = None

    def named(self, space: Space, coords: IntArray) -> Named:
        """Each cell at a member of the second hierarchy less the same at the leaves of the first."""
        mine = adding(space, coords) & (coords[:, 0] == self.measure)
        both = [self.column, self.other]
        line = coords.copy()
        line[:, both] = 0
        there = mine & (coords[:, self.column] != 0) & (coords[:, self.other] == 0)
        rows = np.flatnonzero(mine & (coords[:, self.other] != 0))
        rows = rows[reaching(space, line[rows], line[there])]
        pairs, which = np.unique(coords[rows][:, both], axis=0, return_inverse=True)
        number = np.array([self._within(space, int(a), int(b)) for a, b in pairs], dtype=np.int64)
        number = number[which.reshape(-1)] if len(rows) else number
        rows, number = rows[number >= 0], number[number >= 0]
        first = coords[rows]
        second = first.copy()
        second[:, self.column] = number
        crossed = second.copy()
        second[:, self.other] = 0
        places = np.concatenate([first, second, crossed])
        places[:, 0] = 0
        each = np.arange(len(rows))
        return Named(
            np.tile(each, 2),
            np.concatenate([first, second]),
            np.repeat([1.0, -1.0], len(rows)),
            places,
            np.tile(each, 3),
            # Who is on both sides is astray on neither.
            np.repeat([1.0, 1.0, -2.0], len(rows)),
        )

    def _within(self, space: Space, member: int, other: int) -> int:
        """The leaves of the first hierarchy, within a member of it, that make a member of the second.

        -1 where they are all or none, or where it isn't made of classes."""
        inside, wanted = leaf_weights(space, self.column, member), leaf_weights(space, self.other, other)
        if inside is None or wanted is None:
            return -1
        there = self.other_classes >= 0
        taken: Bools = there & (wanted != 0)
        met = np.unique(self.other_classes[taken])
        if np.any(wanted[taken] != 1) or np.isin(self.other_classes, met).sum() > taken.sum():
            return -1
        known = self.classes >= 0
        weights = np.where(known & np.isin(self.classes, met), inside, 0.0)
        if not weights.any() or np.all(weights[known] == 1) or weights.max() > 1:
            return -1
        tree = space.trees[self.column - 1]
        return space.number(self.column, gathered(tree, weights, known), "", is_formula=False)
