"""Hierarchies that divide the same things and cut across each other: one cell has several names.

Where nobody under 15 is of age, those under 15 of all legal ages are the minors under 15. A reader who sees
children by one division and minors by another subtracts them, so each cell is tied to its *tightest* name:
the same facts, at no member that they don't reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray
from app.domain.lattice import Bools, Space, Tree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Overlap:
    """Columns of two hierarchies; ``meets`` (bool[size, size]) marks pairs of leaves with facts together.

    Where there is a ``column``, that is said of cells whose member of it has no leaves but those ``inside``
    (bool[size]).
    """

    first: int
    second: int
    meets: Bools
    column: int = 0
    inside: Bools | None = None


def tightened(space: Space, overlaps: Sequence[Overlap], coords: IntArray) -> IntArray:
    """The tightest name of each cell of own members and groups (int32[n, columns])."""
    coords = coords.copy()
    for overlap in overlaps:
        columns = [overlap.first, overlap.second]
        rows = np.flatnonzero(within(space, coords, overlap.column, overlap.inside))
        pairs, place = np.unique(coords[rows][:, columns], axis=0, return_inverse=True)
        tight = [_tight(space, overlap, int(one), int(other)) for one, other in pairs]
        coords[rows[:, None], columns] = np.array(tight, dtype=np.int32).reshape(-1, 2)[place.reshape(-1)]
    return coords


def _tight(space: Space, overlap: Overlap, one: int, other: int) -> tuple[int, int]:
    rows, columns = leaf_weights(space, overlap.first, one), leaf_weights(space, overlap.second, other)
    if rows is None or columns is None:
        return one, other
    both = overlap.meets & (rows != 0)[:, None] & (columns != 0)
    if not both.any():
        return one, other
    return (
        _narrowed(space, overlap.first, one, rows, both, overlap.meets),
        _narrowed(space, overlap.second, other, columns, both.T, overlap.meets.T),
    )


def _narrowed(space: Space, column: int, number: int, weights: Floats, both: Bools, meets: Bools) -> int:
    reached, known = np.logical_or.reduce(both, axis=1), np.logical_or.reduce(meets, axis=1)
    if (reached == ((weights != 0) & known)).all():
        return number
    terms = gathered(space.trees[column - 1], reached.astype(np.float64), known)
    return space.number(column, terms, "", is_formula=False)


def leaf_weights(space: Space, column: int, number: int) -> Floats | None:
    """How often each leaf of a hierarchy counts in a member (float64[size]); None if it is no sum of them."""
    tree = space.trees[column - 1]
    terms = ((number, 1.0),) if number < tree.size else space.extra(column, number).terms
    if terms is None:
        return None
    weights = np.zeros(tree.size)
    for member, factor in terms:
        weights[member : tree.last[member] + 1] += factor
    weights[tree.last != np.arange(tree.size)] = 0
    return weights


def within(space: Space, coords: IntArray, column: int, inside: Bools | None) -> Bools:
    """The cells (bool[n]) whose member of a column has no leaves but those ``inside`` (bool[size])."""
    if inside is None:
        return np.ones(len(coords), dtype=np.bool_)
    members, place = np.unique(coords[:, column], return_inverse=True)
    weights = [leaf_weights(space, column, int(member)) for member in members]
    told = [weight is not None and not (weight != 0)[~inside].any() for weight in weights]
    return np.array(told, dtype=np.bool_)[place.reshape(-1)]


def gathered(tree: Tree, weights: Floats, known: Bools) -> list[tuple[int, float]]:
    """Leaves by weight as terms, whole branches of one weight as their top; leaves not ``known`` are none."""
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
