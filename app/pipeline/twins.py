"""crawl: hierarchies that divide the same things in two ways.

Ages by five and by ten years, places by region and by coast: where each leaf of one hierarchy lies in one
leaf of another, a reader adds the one up to the other. Every member of the coarser hierarchy is then a set
of leaves of the finer one, and a cell at it is recorded as the cell of that set. Where neither decides the
other, they overlap (`app.domain.overlaps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from app.domain.cube import Cube, IntArray
from app.domain.lattice import Longs, Space
from app.domain.overlaps import Overlap, gathered, leaf_weights
from app.pipeline.together import Together

#: Pairs of members up to which hierarchies of one dimension may cut across each other.
MOST_PAIRS = 4_000_000
#: The same for hierarchies of different dimensions, and facts that chance doesn't leave out.
MOST_APART = 2_500
MANY = 40.0


@dataclass(frozen=True, eq=False)
class Twin:
    """Columns of a finer and a coarser hierarchy, and the coarser leaf of each finer leaf (-1: none)."""

    fine: int
    coarse: int
    leaf: Longs


def find_twins(together: Together, cube: Cube, space: Space) -> tuple[Twin, ...]:
    """Pairs of hierarchies of which the first decides the second; each is coarser in one pair at most."""
    twins: list[Twin] = []
    taken: set[int] = set()
    for coarse in range(1, space.columns):
        for fine in range(1, space.columns):
            a, b = cube.hierarchies[fine - 1], cube.hierarchies[coarse - 1]
            if fine == coarse or fine in taken or not (a.has_all and b.has_all):
                continue
            met = together((min(fine, coarse), max(fine, coarse)))
            if met is None:
                continue
            leaf = decided(space, fine, met[0] if fine < coarse else met[0][:, ::-1])
            if leaf is not None:
                twins.append(Twin(fine, coarse, leaf))
                taken.add(coarse)
                break
    return tuple(twins)


def recorded(space: Space, twins: tuple[Twin, ...], coords: IntArray) -> IntArray:
    """Coordinates with the members of coarser hierarchies replaced by sets of finer leaves."""
    coords = coords.copy()
    for twin in twins:
        rows = np.flatnonzero(coords[:, twin.coarse] != 0)
        pairs, place = np.unique(coords[rows][:, [twin.fine, twin.coarse]], axis=0, return_inverse=True)
        numbers = [_number(space, twin, int(fine), int(coarse)) for fine, coarse in pairs]
        for which, number in enumerate(numbers):
            if number is not None:
                mine = rows[place.reshape(-1) == which]
                coords[mine, twin.fine] = number
                coords[mine, twin.coarse] = 0
    return coords


def find_overlaps(
    together: Together, cube: Cube, space: Space, twins: tuple[Twin, ...]
) -> tuple[Overlap, ...]:
    """Pairs of hierarchies that both stay in cells' coordinates and divide the same things: those of one
    dimension, and small ones whose leaves keep apart though they would have met by chance."""
    coarse = {twin.coarse for twin in twins}
    kept = [column for column in range(1, space.columns) if column not in coarse]
    overlaps = []
    for first, second in combinations(kept, 2):
        a, b = cube.hierarchies[first - 1], cube.hierarchies[second - 1]
        akin = a.dimension == b.dimension
        if a.size * b.size > (MOST_PAIRS if akin else MOST_APART):
            continue
        met = together((first, second))
        if met is not None and (akin or _keep_apart(*met)):
            meets = np.zeros((a.size, b.size), dtype=np.bool_)
            meets[met[0][:, 0], met[0][:, 1]] = True
            overlaps.append(Overlap(first, second, meets))
    return tuple(overlaps)


def _keep_apart(pairs: IntArray, facts: Longs) -> bool:
    """Whether two leaves with no fact together would share many if one said nothing of the other."""
    _, one = np.unique(pairs[:, 0], return_inverse=True)
    _, other = np.unique(pairs[:, 1], return_inverse=True)
    met = np.zeros((int(one.max(initial=-1)) + 1, int(other.max(initial=-1)) + 1))
    met[one.reshape(-1), other.reshape(-1)] = facts
    chance = np.outer(met.sum(axis=1), met.sum(axis=0)) / max(met.sum(), 1.0)
    return bool((chance[met == 0] >= MANY).any())


def decided(space: Space, fine: int, pairs: IntArray) -> Longs | None:
    """The other leaf of each leaf of the hierarchy of column ``fine`` (int64[size], -1: none).

    ``pairs`` (int32[k, 2]) have facts together. None if some leaf has several, or if there is but one.
    """
    one, other = pairs[:, 0], pairs[:, 1]
    if len(np.unique(one)) < len(one) or len(np.unique(other)) < 2:
        return None
    leaf = np.full(space.trees[fine - 1].size, -1, dtype=np.int64)
    leaf[one] = other
    return leaf


def _number(space: Space, twin: Twin, fine: int, coarse: int) -> int | None:
    """The finer member that stands for both; None where a formula is no sum over members."""
    inside = leaf_weights(space, twin.coarse, coarse)
    mine = leaf_weights(space, twin.fine, fine)
    if inside is None or mine is None:
        return None
    known = twin.leaf >= 0
    weights = np.zeros(len(twin.leaf))
    weights[known] = mine[known] * inside[twin.leaf[known]]
    if not weights.any():
        return None
    terms = gathered(space.trees[twin.fine - 1], weights, known)
    return space.number(twin.fine, terms, "")
