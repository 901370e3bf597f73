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

from app.cube.port import CubeServer
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Bools, Longs, Space, Tree
from app.domain.overlaps import Overlap, gathered, leaf_weights

#: Pairs of leaves up to which two hierarchies are compared.
MOST_PAIRS = 4_000_000


@dataclass(frozen=True, eq=False)
class Twin:
    """Columns of a finer and a coarser hierarchy, and the coarser leaf of each finer leaf (-1: none)."""

    fine: int
    coarse: int
    leaf: Longs


def find_twins(server: CubeServer, cube: Cube, space: Space) -> tuple[Twin, ...]:
    """Pairs of hierarchies of which the first decides the second; each is coarser in one pair at most."""
    twins: list[Twin] = []
    taken: set[int] = set()
    met: dict[tuple[int, int], Bools | None] = {}
    for coarse in range(1, space.columns):
        for fine in range(1, space.columns):
            a, b = cube.hierarchies[fine - 1], cube.hierarchies[coarse - 1]
            if fine == coarse or fine in taken or not (a.has_all and b.has_all):
                continue
            pair = min(fine, coarse), max(fine, coarse)
            if pair not in met:
                met[pair] = _filled(server, cube, space, *pair)
            filled = met[pair]
            if filled is None:
                continue
            leaf = _decided(space, fine, coarse, filled if fine < coarse else filled.T)
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
    server: CubeServer, cube: Cube, space: Space, twins: tuple[Twin, ...]
) -> tuple[Overlap, ...]:
    """Pairs of hierarchies of one dimension that both stay in cells' coordinates."""
    coarse = {twin.coarse for twin in twins}
    kept = [column for column in range(1, space.columns) if column not in coarse]
    overlaps = []
    for first, second in combinations(kept, 2):
        a, b = cube.hierarchies[first - 1], cube.hierarchies[second - 1]
        if a.dimension == b.dimension:
            filled = _filled(server, cube, space, first, second)
            if filled is not None:
                rows, columns = _leaves(space.trees[first - 1]), _leaves(space.trees[second - 1])
                meets = np.zeros((a.size, b.size), dtype=np.bool_)
                meets[np.ix_(rows, columns)] = filled
                overlaps.append(Overlap(first, second, meets))
    return tuple(overlaps)


def _decided(space: Space, fine: int, coarse: int, filled: Bools) -> Longs | None:
    """The coarser leaf of each member of the finer hierarchy that is a leaf; None if some has several, or
    if there is but one."""
    if (filled.sum(axis=1) > 1).any() or filled.any(axis=0).sum() < 2:
        return None
    fine_leaves, coarse_leaves = _leaves(space.trees[fine - 1]), _leaves(space.trees[coarse - 1])
    leaf = np.full(space.trees[fine - 1].size, -1, dtype=np.int64)
    some = filled.any(axis=1)
    leaf[fine_leaves[some]] = coarse_leaves[filled[some].argmax(axis=1)]
    return leaf


def _filled(server: CubeServer, cube: Cube, space: Space, one: int, other: int) -> Bools | None:
    """Which leaves of two hierarchies have facts together (bool[leaves, leaves]); None if too many."""
    rows, columns = _leaves(space.trees[one - 1]), _leaves(space.trees[other - 1])
    if len(rows) * len(columns) > MOST_PAIRS:
        return None
    start = [0, *(hierarchy.default_member for hierarchy in cube.hierarchies)]
    counts = [number for number, measure in enumerate(cube.measures) if measure.aggregator == "count"]
    start[0] = counts[0] if counts else 0
    tops = [
        column
        for column in range(1, space.columns)
        if column not in (one, other) and not cube.hierarchies[column - 1].has_all
    ]
    filled = np.zeros((len(rows), len(columns)), dtype=np.bool_)
    for top in _tops(cube, tops):
        coords = np.tile(np.array(start, dtype=np.int32), (filled.size, 1))
        for column, member in top:
            coords[:, column] = member
        coords[:, one] = np.repeat(rows, len(columns))
        coords[:, other] = np.tile(columns, len(rows))
        filled |= ~np.isnan(server.values(coords)).reshape(filled.shape)
    return filled


def _tops(cube: Cube, columns: list[int]) -> list[list[tuple[int, int]]]:
    """Every choice of top members in hierarchies without an All: facts lie below one of each."""
    choices: list[list[tuple[int, int]]] = [[]]
    for column in columns:
        tops = np.flatnonzero(cube.hierarchies[column - 1].parent < 0).tolist()
        choices = [[*choice, (column, top)] for choice in choices for top in tops]
    return choices


def _leaves(tree: Tree) -> Longs:
    return np.flatnonzero(tree.last == np.arange(tree.size))


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
