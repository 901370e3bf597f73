"""crawl: hierarchies of one dimension that divide the same things in two ways.

Ages by five and by ten years, places by region and by coast: where each leaf of one hierarchy lies in one
leaf of another, a reader adds the one up to the other. Every member of the coarser hierarchy is then a set
of leaves of the finer one, and a cell at it is recorded as the cell of that set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Longs, Space, Tree

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
    for coarse in range(1, space.columns):
        for fine in range(1, space.columns):
            a, b = cube.hierarchies[fine - 1], cube.hierarchies[coarse - 1]
            if fine == coarse or fine in taken or a.dimension != b.dimension or not (a.has_all and b.has_all):
                continue
            leaf = _decided(server, cube, space, fine, coarse)
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


def _decided(server: CubeServer, cube: Cube, space: Space, fine: int, coarse: int) -> Longs | None:
    """The coarser leaf of each member of the finer hierarchy that is a leaf; None if some has several."""
    fine_leaves, coarse_leaves = _leaves(space.trees[fine - 1]), _leaves(space.trees[coarse - 1])
    if len(fine_leaves) * len(coarse_leaves) > MOST_PAIRS:
        return None
    start = [0, *(hierarchy.default_member for hierarchy in cube.hierarchies)]
    counts = [number for number, measure in enumerate(cube.measures) if measure.aggregator == "count"]
    start[0] = counts[0] if counts else 0
    tops = [column for column in range(1, space.columns) if not cube.hierarchies[column - 1].has_all]
    filled = np.zeros((len(fine_leaves), len(coarse_leaves)), dtype=np.bool_)
    for top in _tops(cube, tops):
        coords = np.tile(np.array(start, dtype=np.int32), (filled.size, 1))
        for column, member in top:
            coords[:, column] = member
        coords[:, fine] = np.repeat(fine_leaves, len(coarse_leaves))
        coords[:, coarse] = np.tile(coarse_leaves, len(fine_leaves))
        filled |= ~np.isnan(server.values(coords)).reshape(filled.shape)
    if (filled.sum(axis=1) > 1).any():
        return None
    leaf = np.full(space.trees[fine - 1].size, -1, dtype=np.int64)
    some = filled.any(axis=1)
    leaf[fine_leaves[some]] = coarse_leaves[filled[some].argmax(axis=1)]
    return leaf


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
    inside = _weights(space, twin.coarse, coarse)
    mine = _weights(space, twin.fine, fine)
    if inside is None or mine is None:
        return None
    known = twin.leaf >= 0
    weights = np.zeros(len(twin.leaf))
    weights[known] = mine[known] * inside[twin.leaf[known]]
    if not weights.any():
        return None
    terms = _gathered(space.trees[twin.fine - 1], weights, known)
    return space.number(twin.fine, terms, "")


def _weights(space: Space, column: int, number: int) -> NDArray[np.float64] | None:
    """How often each leaf of a hierarchy counts in a member: float64[size]."""
    tree = space.trees[column - 1]
    terms = ((number, 1.0),) if number < tree.size else space.extra(column, number).terms
    if terms is None:
        return None
    weights = np.zeros(tree.size)
    for member, factor in terms:
        weights[member : tree.last[member] + 1] += factor
    weights[tree.last != np.arange(tree.size)] = 0
    return weights


def _gathered(tree: Tree, weights: NDArray[np.float64], known: NDArray[np.bool_]) -> list[tuple[int, float]]:
    """Leaves by weight as terms, whole branches of one weight as their top."""
    terms: list[tuple[int, float]] = []
    member = 0
    while member < tree.size:
        branch = slice(member, int(tree.last[member]) + 1)
        inside = weights[branch][known[branch]]
        if len(inside) and inside[0] != 0 and (inside == inside[0]).all():
            terms.append((member, float(inside[0])))
            member = int(tree.last[member]) + 1
        else:
            member += 1
    return terms
