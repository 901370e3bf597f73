"""A measure that is so many times another, as often as the members of one hierarchy or of two say.

Where some members have no such rate, their cells of the measure itself stand in its sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.lattice import Bools, Longs, Space
from app.domain.nearly import Named, adding
from app.domain.overlaps import gathered, leaf_weights

#: Rates up to which a cell is told as a sum over the members of each.
MOST_RATES = 50

#: Members of one rate, and the rate; nan where they have none.
Box = tuple[tuple[int, ...], float]


@dataclass(frozen=True, eq=False)
class Rates:
    """Measure ``made`` is nearly ``rate · base`` in each record (numbers of the measures).

    Attributes
    ----------
    columns
        Of the coordinates: ``1 + h`` for hierarchy ``h``; one or two.
    base, made
    rate : float64[size] or float64[size, size]
        By leaf; nan where there are no records, or where they have no rate.
    there : bool of the same shape
        Where there are records.
    room, leaf
        As of `Told`.
    """

    columns: tuple[int, ...]
    base: int
    made: int
    rate: Floats
    there: Bools
    room: Floats
    leaf: None = None

    def named(self, space: Space, coords: IntArray) -> Named:
        """Each cell of the measure that is made beside cells of its base, as the sum over the members of
        each rate; and its base as the sum of these."""
        bare = coords.copy()
        bare[:, list(self.columns)] = 0
        line = space.pack(bare, without=0)[0]
        mine = adding(space, coords)
        base, made = mine & (coords[:, 0] == self.base), mine & (coords[:, 0] == self.made)
        rows = np.flatnonzero(made & np.isin(line, line[base]))
        names, which = np.unique(coords[rows][:, list(self.columns)], axis=0, return_inverse=True)
        boxes = [self._boxes(space, tuple(map(int, name))) for name in names]
        told = [boxes[number] for number in which.reshape(-1).tolist()]
        parts = [self._sums(coords[row], found) for row, found in zip(rows.tolist(), told, strict=True)]
        listed = [some for sums in parts for some in sums]
        sizes = np.array([len(coef) for _, coef, _ in listed], dtype=np.int64)
        none = np.zeros((0, space.columns), dtype=np.int32)
        missed = np.array([number for number, (*_, exact) in enumerate(listed) if not exact], dtype=np.int64)
        place = np.array([listed[number][0][0] for number in missed], dtype=np.int32)
        place = place.reshape(-1, space.columns)
        place[:, 0] = 0
        return Named(
            np.repeat(np.arange(len(listed)), sizes),
            np.concatenate([none, *(cells for cells, *_ in listed)]),
            np.concatenate([np.zeros(0), *(coef for _, coef, _ in listed)]),
            place,
            missed,
            np.ones(len(missed)),
        )

    def _sums(self, cell: IntArray, boxes: list[Box]) -> list[tuple[IntArray, Floats, bool]]:
        """The sums of a cell: which cells, how often each counts, whether no record misses them."""
        rates = np.array([rate for _, rate in boxes])
        if np.isnan(rates).all():
            return []
        parts = np.tile(cell, (len(boxes), 1))
        parts[:, list(self.columns)] = [members for members, _ in boxes]
        lone = np.isnan(rates)
        made = parts.copy()
        made[:, 0] = np.where(lone, self.made, self.base)
        used = rates != 0
        sums = [
            (
                np.concatenate([cell[None], made[used]]),
                np.concatenate([[-1.0], np.where(lone, 1.0, rates)[used]]),
                False,
            )
        ]
        if len(boxes) > 1:
            whole = np.concatenate([cell[None], parts])
            whole[:, 0] = self.base
            sums.append((whole, np.concatenate([[-1.0], np.ones(len(boxes))]), True))
        return sums

    def _boxes(self, space: Space, members: tuple[int, ...]) -> list[Box]:
        """The members or groups of each rate within members; none where there are too many."""
        weights = [
            leaf_weights(space, column, member) for column, member in zip(self.columns, members, strict=True)
        ]
        inside = self.there.reshape(len(self.there), -1)
        rate = np.where(np.isnan(self.rate), np.inf, self.rate).reshape(inside.shape)
        for axis, weight in enumerate(weights):
            if weight is None:
                return []
            inside = inside & np.expand_dims(weight != 0, 1 - axis)
        rate = np.where(inside, rate, np.nan)
        rows = np.flatnonzero(inside.any(axis=1))
        kinds: dict[bytes, list[int]] = {}
        for row in rows.tolist():
            values = np.unique(rate[row][inside[row]])
            key = rate[row] if len(values) > 1 else values
            kinds.setdefault(key.tobytes(), []).append(row)
        boxes: list[Box] = []
        for alike in kinds.values():
            first = members[0] if len(alike) == len(rows) else self._group(space, 0, np.array(alike))
            reached = inside[alike].any(axis=0)
            values = np.unique(rate[alike][inside[alike]])
            for value in values.tolist():
                found = value if np.isfinite(value) else np.nan
                if len(members) == 1:
                    boxes.append(((first,), found))
                    continue
                leaves = np.flatnonzero(reached & (rate[alike] == value).any(axis=0))
                second = members[1] if len(values) == 1 else self._group(space, 1, leaves)
                boxes.append(((first, second), found))
            if len(boxes) > MOST_RATES:
                return []
        return boxes

    def _group(self, space: Space, axis: int, leaves: Longs) -> int:
        tree = space.trees[self.columns[axis] - 1]
        weights = np.zeros(tree.size)
        weights[leaves] = 1.0
        known = np.zeros(tree.size, dtype=np.bool_)
        known[np.nonzero(self.there)[axis]] = True
        return space.number(self.columns[axis], gathered(tree, weights, known), "", is_formula=False)
