"""Members that divide a summed measure by size: income bands, size classes of firms.

Who is in the band from 60,000 to 150,000 € has an income of that size: the income of so many taxpayers of a
band lies between so many times its ends. Readers see the ends on the labels, so that a number of contributors
bounds their sum, and a sum their number, in every cell of the band. Each is a relation with a slack, as in
`app.domain.bounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.bounds import Bounds
from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.lattice import Bools, Longs, Space, Tree

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Band:
    """What the members of one hierarchy say about a measure's values.

    Attributes
    ----------
    column
        Of the coordinates: ``1 + h`` for hierarchy ``h``.
    counted, summed
        Numbers of the measures: in a cell of member m, ``lower[m] · counted ≤ summed ≤ upper[m] · counted``.
    lower, upper : float64[size]
        By member; infinite where it says nothing.
    spread
        Columns over which the records lie that one contributor's value is summed over. The lower ends hold
        only for cells that take all of them in, the upper ones also for parts, where nothing is negative.
    within
        Columns with the depth from which on a contributor has one value: in cells above it, who is counted
        once may bring several, and only the lower ends hold, where nothing is negative.
    nonnegative
        Whether the sums are never negative, as readers know.
    filled : bool[size]
        Members with records.
    """

    column: int
    counted: int
    summed: int
    lower: Floats
    upper: Floats
    filled: Bools
    spread: tuple[int, ...] = ()
    within: tuple[tuple[int, int], ...] = ()
    nonnegative: bool = True

    def __post_init__(self) -> None:
        if not len(self.lower) == len(self.upper) == len(self.filled) or np.any(self.lower > self.upper):
            raise ValueError("the ends of bands are out of order")


def widened(tree: Tree, lower: Floats, upper: Floats, some: Bools) -> tuple[Floats, Floats]:
    """Ends of every member from those of members of one level (float64[size] each).

    Whoever is in a member is in those above it; a member is as wide as all that it is made of, of which only
    those with ``some`` records count.
    """
    low, high = lower.copy(), upper.copy()
    for member in range(tree.size):
        above = tree.parent[member]
        if above >= 0:
            low[member], high[member] = max(low[member], low[above]), min(high[member], high[above])
    filled = some.copy()
    for member in range(tree.size - 1, -1, -1):
        children = tree.children[tree.child_start[member] : tree.child_start[member + 1]]
        filled[member] |= bool(filled[children].any())
        children = children[filled[children]]
        if len(children):
            low[member] = max(low[member], low[children].min())
            high[member] = min(high[member], high[children].max())
    return low, high


def bounds_by_bands(space: Space, coords: IntArray, values: Floats, bands: Sequence[Band]) -> Bounds:
    """Bounds between the numbers of contributors and the sums of cells of bands.

    Parameters
    ----------
    coords : int32[n, columns]
    values : float64[n]
        nan where a cell has no facts.

    Where a number and a sum are both cells of the same place, they bound each other. A sum that stands alone
    is bounded by the numbers of the bands that it consists of, and a number by such sums. What some cell
    breaks isn't told of it: whoever believed it would be wrong.
    """
    found = _Relations(values)
    usable = space.has_contributors(coords) & ~np.isnan(values)
    (place,) = space.pack(coords, without=0)
    for band in bands:
        low, high = _ends(space, band)
        below, above = _holds(space, band, coords)
        rows = {item: np.flatnonzero(usable & (coords[:, 0] == item)) for item in (band.counted, band.summed)}
        counts, sums = rows[band.counted], rows[band.summed]
        _, at_count, at_sum = np.intersect1d(place[counts], place[sums], return_indices=True)
        count, total = counts[at_count], sums[at_sum]
        member = coords[total, band.column]
        least = np.where(below[total], low[member], -np.inf)
        most = np.where(above[total], high[member], np.inf)
        told = np.isfinite(least) & (least != 0)
        found.add(
            np.stack([count, total], axis=1)[told], np.stack([least, np.full(len(least), -1.0)], 1)[told]
        )
        told = np.isfinite(most)
        found.add(np.stack([total, count], axis=1)[told], *_per_contributor(most[told]))
        met = np.zeros(len(coords), dtype=np.bool_)
        met[count] = met[total] = True
        for wholes, parts, divide in ((sums, counts, False), (counts, sums, True)):
            for whole, made_of, full in _consisting(space, band, coords, wholes, parts, met):
                ends = [low[coords[made_of, band.column]], high[coords[made_of, band.column]]]
                ends[0] = np.where(below[made_of], ends[0], -np.inf)
                ends[1] = np.where(above[made_of], ends[1], np.inf)
                found.join(whole, made_of, full, ends[0], ends[1], divide, band.nonnegative)
    return found.bounds()


def _per_contributor(most: Floats) -> tuple[Floats, ...]:
    """Coefficients of ``summed ≤ most · counted``, in contributors where that is a number of them."""
    positive = most > 0
    scale = np.where(positive, most, 1.0)
    return (np.stack([1 / scale, -np.where(positive, 1.0, most)], axis=1),)


def _ends(space: Space, band: Band) -> tuple[Floats, Floats]:
    """The ends of own members, and behind them of the extra ones: a group is as wide as all its members."""
    low, high = [band.lower], [band.upper]
    for extra in space.extras[band.column]:
        members = np.array([member for member, _ in extra.terms or ()], dtype=np.int64)
        members = members[band.filled[members]]
        told = extra.is_group and len(members) > 0
        low.append(np.array([band.lower[members].min() if told else -np.inf]))
        high.append(np.array([band.upper[members].max() if told else np.inf]))
    return np.concatenate(low), np.concatenate(high)


def _holds(space: Space, band: Band, coords: IntArray) -> tuple[Bools, Bools]:
    """bool[n] each: cells in which the lower and the upper ends hold."""
    whole = np.ones(len(coords), dtype=np.bool_)
    single = np.ones(len(coords), dtype=np.bool_)
    for column in band.spread:
        whole &= _own_depths(space, column, coords) == 0
    for column, depth in band.within:
        single &= _own_depths(space, column, coords) >= depth
    return whole & (single | band.nonnegative), single & (whole | band.nonnegative)


def _own_depths(space: Space, column: int, coords: IntArray) -> Longs:
    """How far below the top each cell's member stands (int64[n]), -1 for what is no own member."""
    tree = space.trees[column - 1]
    depth = np.zeros(tree.size, dtype=np.int64)
    for member in range(tree.size):
        if tree.parent[member] >= 0:
            depth[member] = depth[tree.parent[member]] + 1
    here = coords[:, column]
    own = here < tree.size
    return np.where(own, depth[np.where(own, here, 0)], -1)


def _consisting(
    space: Space, band: Band, coords: IntArray, wholes: Longs, parts: Longs, met: Bools
) -> Iterator[tuple[int, Longs, bool]]:
    """Cells of one measure and those of the other that they consist of, the smallest there are.

    Yields the whole, its parts, and whether they are all of it. Where all parts have cells of both measures,
    their own bounds and the sums tell as much.
    """
    line = space.pack(_without_measure(coords), without=band.column)[0]
    leaves = _leaf_sets(space, band)
    size = [leaf.bit_count() for leaf in leaves]
    several = np.array(size)[coords[:, band.column]] > 1
    # Where all parts have cells of both measures, nothing is added.
    wholes = wholes[several[wholes] & np.isin(line[wholes], line[parts[~met[parts]]])]
    by_line: dict[int, list[int]] = {}
    for part in parts[np.isin(line[parts], line[wholes])].tolist():
        by_line.setdefault(int(line[part]), []).append(part)
    for whole in wholes.tolist():
        mine = leaves[coords[whole, band.column]]
        rest, chosen = mine, []
        for part in sorted(by_line.get(int(line[whole]), ()), key=lambda row: size[coords[row, band.column]]):
            inside = leaves[coords[part, band.column]]
            if inside and inside | rest == rest and inside != mine:
                rest &= ~inside
                chosen.append(part)
        if chosen and not met[chosen].all():
            yield whole, np.array(chosen, dtype=np.int64), not rest


def _without_measure(coords: IntArray) -> IntArray:
    found = coords.copy()
    found[:, 0] = 0
    return found


def _leaf_sets(space: Space, band: Band) -> list[int]:
    """The leaves with records of each coordinate of the column, as bits."""
    tree = space.trees[band.column - 1]
    found = [0] * tree.size
    for member in range(tree.size - 1, -1, -1):
        if tree.last[member] == member and band.filled[member]:
            found[member] = 1 << member
        if tree.parent[member] >= 0:
            found[tree.parent[member]] |= found[member]
    for extra in space.extras[band.column]:
        mine = 0
        for member, _ in (extra.terms or ()) if extra.is_group else ():
            mine |= found[member]
        found.append(mine)
    return found


class _Relations:
    """Inequalities as they are found, each ``Σ coefficient · cell ≤ 0`` with its slack."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._cells: list[Longs] = []
        self._coefs: list[Floats] = []
        self._slacks: list[Floats] = []

    def add(self, cells: Longs, coefs: Floats) -> None:
        """Take in ``Σ coefs · cells ≤ 0`` (int64[k, terms], float64[k, terms]) where it holds."""
        terms = coefs * self._values[cells]
        gap = -terms.sum(axis=1)
        holds = gap >= -ROUNDING * (1 + np.abs(terms).sum(axis=1))
        self._cells.extend(cells[holds])
        self._coefs.extend(coefs[holds])
        self._slacks.append(np.maximum(gap[holds], 0.0))

    def join(
        self, whole: int, parts: Longs, full: bool, low: Floats, high: Floats, divide: bool, positive: bool
    ) -> None:
        """A whole of one measure and its parts of the other, of which each has these ends.

        ``divide``: the whole counts, and the parts are sums. ``full``: there are no other parts. Where sums
        are ``positive``, what isn't told of adds something to the whole all the same.
        """
        if divide:
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = (
                    np.where(high > 0, 1 / high, -np.inf),
                    np.where(low > 0, 1 / low, np.inf),
                )
        least, most = np.isfinite(low) & (low != 0), np.isfinite(high)
        if least.any() and (positive or (full and np.isfinite(low).all())):
            self._one(np.append(parts[least], whole), np.append(low[least], -1.0))
        if full and most.all():
            self._one(np.append(whole, parts), np.append(1.0, -high))

    def _one(self, cells: Longs, coefs: Floats) -> None:
        self.add(cells[None, :], coefs[None, :])

    def bounds(self) -> Bounds:
        """All of them, each once."""
        n = len(self._values)
        slack = np.concatenate([np.zeros(0), *self._slacks])
        keys = [
            row.tobytes() + factors.tobytes() for row, factors in zip(self._cells, self._coefs, strict=True)
        ]
        kept = sorted({key: place for place, key in reversed(list(enumerate(keys)))}.values())
        sizes = np.array([len(self._cells[place]) + 1 for place in kept], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        last = np.zeros(int(ends[-1]), dtype=np.bool_)
        last[ends[1:] - 1] = True
        indices, coefs = np.zeros(len(last), dtype=np.int64), np.ones(len(last))
        indices[last] = n + np.arange(len(kept))
        if kept:
            indices[~last] = np.concatenate([self._cells[place] for place in kept])
            coefs[~last] = np.concatenate([self._coefs[place] for place in kept])
        return Bounds(Equations(ends, indices, coefs, np.zeros(len(kept))), slack[kept])
