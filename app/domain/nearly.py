"""Relations between cells that hold but for so much: home and abroad are the turnover, up to rounding.

Each record may miss by a rounding unit, and a few by more: by a typing error. A cell misses by no more than
all its records together. Readers are taken to know by how much that is at most. Each relation becomes two
inequalities with slacks, as in `app.domain.bounds`; one that no record of the cell may miss is an equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.bounds import Bounds
from app.domain.completeness import joined
from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.identity import Identity
from app.domain.lattice import Bools, Longs, Space, Tree, unique_rows

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Tendency:
    """Measures whose sum with these coefficients is nearly zero in every record.

    ``room`` (float64[records]) is how far each record is known to miss it at most, times its weight.
    """

    terms: Identity
    room: Floats


@dataclass(frozen=True, eq=False)
class Nearly:
    """Relations over the rows of a cell table, and by how much each may miss (float64[m])."""

    equations: Equations
    room: Floats

    def __post_init__(self) -> None:
        if len(self.equations) != len(self.room) or np.any(self.room < 0):
            raise ValueError("relations and what they may miss by differ in length")


def bounds_nearly(values: Floats, nearly: Sequence[Nearly]) -> Bounds:
    """The relations as equations and inequalities.

    Parameters
    ----------
    values : float64[n]
        nan where a cell has no facts.
    """
    value = np.nan_to_num(values)
    n = len(value)
    none = np.zeros(0)
    bounds = Bounds(Equations(np.zeros(1, dtype=np.int64), none.astype(np.int64), none, none), none)
    for some in nearly:
        matrix = some.equations.matrix(n)
        gap = matrix @ value - some.equations.rhs
        size = np.abs(matrix) @ np.abs(value)
        open_ = some.room > ROUNDING * size
        room = np.maximum(some.room, np.abs(gap))
        exact = _chosen(some.equations, (size > 0) & ~open_)
        kept = np.flatnonzero((size > 0) & open_)
        inner = _chosen(some.equations, (size > 0) & open_)
        k = len(kept)
        two = []
        for place, sign in enumerate((1.0, -1.0)):
            ends = inner.indptr[1:]
            two.append(
                Equations(
                    inner.indptr + np.arange(k + 1),
                    np.insert(inner.indices, ends, n + place * k + np.arange(k)),
                    np.insert(sign * inner.coefs, ends, 1.0),
                    sign * inner.rhs + room[kept],
                )
            )
        slack = np.concatenate([room[kept] - gap[kept], room[kept] + gap[kept]])
        bounds = bounds.and_others(Bounds(joined(exact, joined(*two)), slack), n)
    return bounds


def _chosen(equations: Equations, which: Bools) -> Equations:
    inside = which[equations.relation]
    sizes = np.diff(equations.indptr)[which]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Equations(ends, equations.indices[inside], equations.coefs[inside], equations.rhs[which])


def places_met(space: Space, terms: Identity, coords: IntArray) -> IntArray:
    """The places at which two of the measures are cells that add up (int32[k, columns], measure 0)."""
    measures = [measure for measure, _ in terms]
    mine = space.adds_up(coords) & space.has_contributors(coords) & np.isin(coords[:, 0], measures)
    found = coords[mine].copy()
    found[:, 0] = 0
    places, place = unique_rows(space, found)
    return places[np.bincount(place, minlength=len(places)) > 1]


def cells_of(terms: Identity, places: IntArray) -> IntArray:
    """The cells of all measures at places: int32[k · measures, columns], place by place."""
    coords = np.repeat(places, len(terms), axis=0)
    coords[:, 0] = np.tile([measure for measure, _ in terms], len(places))
    return coords


def nearly_at(
    space: Space, tendency: Tendency, leaf: Sequence[IntArray], coords: IntArray, places: IntArray
) -> Nearly:
    """What a tendency says of the cells of a table (int32[n, columns]) at some places.

    Cells that the table doesn't have are empty. ``leaf`` (int32[records] by hierarchy) is where the records
    are.
    """
    table, wanted = space.pack(coords, cells_of(tendency.terms, places))
    order = np.argsort(table)
    at = np.minimum(np.searchsorted(table[order], wanted), max(len(table) - 1, 0))
    row = order[at] if len(table) else at
    there = (table[row] == wanted).reshape(len(places), -1)
    factors = np.tile([factor for _, factor in tendency.terms], (len(places), 1))
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    equations = Equations(
        ends, row[there.reshape(-1)].astype(np.int64), factors[there], np.zeros(len(places))
    )
    return Nearly(equations, sums_at(space, leaf, tendency.room, places))


def sums_at(space: Space, leaf: Sequence[IntArray], amount: Floats, places: IntArray) -> Floats:
    """What the records of each place come to (float64[k]); places are of own members and groups."""
    owner, places = np.arange(len(places)), places.copy()
    k = len(places)
    for column in range(1, space.columns):
        group = places[:, column] >= space.own[column]
        if group.any():
            place, member, _ = space.terms_of(column, places[group, column].astype(np.int64))
            spread = places[group][place]
            spread[:, column] = member
            owner = np.concatenate([owner[~group], owner[group][place]])
            places = np.concatenate([places[~group], spread])
    filled = amount != 0
    records = np.zeros((int(filled.sum()), space.columns), dtype=np.int32)
    for h, leaves in enumerate(leaf):
        records[:, 1 + h] = leaves[filled]
    records, inverse = unique_rows(space, records)
    amount = np.bincount(inverse, weights=amount[filled], minlength=len(records)).astype(np.float64)
    depths = [_depths(tree) for tree in space.trees]
    level = np.stack([depth[places[:, 1 + h]] for h, depth in enumerate(depths)], axis=1)
    found = np.zeros(k)
    for wanted in np.unique(level, axis=0):
        mine = np.flatnonzero((level == wanted).all(axis=1))
        lifted = records.copy()
        for h, tree in enumerate(space.trees):
            lifted[:, 1 + h] = _lifted(tree, depths[h], int(wanted[h]))[records[:, 1 + h]]
        known, asked = space.pack(lifted, places[mine], without=0)
        keys, same = np.unique(known, return_inverse=True)
        if len(keys):
            totals = np.bincount(same.reshape(-1), weights=amount)
            at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            np.add.at(found, owner[mine], np.where(keys[at] == asked, totals[at], 0.0))
    return found


def _depths(tree: Tree) -> Longs:
    depth = np.zeros(tree.size, dtype=np.int64)
    for member in range(tree.size):
        if tree.parent[member] >= 0:
            depth[member] = depth[tree.parent[member]] + 1
    return depth


def _lifted(tree: Tree, depth: Longs, wanted: int) -> Longs:
    """The member above each member at a depth, or itself where it stands higher (int64[size])."""
    found = np.arange(tree.size)
    while (low := depth[found] > wanted).any():
        found[low] = tree.parent[found[low]]
    return found
