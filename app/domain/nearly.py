"""Relations between cells that hold but for so much: home and abroad are the turnover, up to rounding.

Each record may miss by a rounding unit, and a few by more: by a typing error. A cell misses by no more than
all its records together. Readers are taken to know by how much that is at most. Each relation becomes two
inequalities with slacks, as in `app.domain.bounds`; one that no record of the cell may miss is an equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.domain.bounds import Bounds
from app.domain.completeness import joined
from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.identity import Identity
from app.domain.lattice import Bools, Longs, Space, Tree, lifted, unique_rows
from app.domain.overlaps import within

ROUNDING = 1e-9
#: Share of the sizes of all its cells by which a relation is missed at most to be known: who can say what a
#: place's few exceptions come to, where it has little else, knows them already.
TELLING = 0.25


@dataclass(frozen=True, eq=False)
class Named:
    """Sums of cells that are nearly zero.

    ``relation`` (int64[k]) numbers the relation of each cell of ``coords`` (int32[k, columns]) with its
    ``coef`` (float64[k]); cells without facts are none. ``place`` (int32[p, columns]) is where the records
    are that may miss the relation ``missed`` (int64[p]), ``times`` (float64[p]) what each may miss by.
    """

    relation: Longs
    coords: IntArray
    coef: Floats
    place: IntArray
    missed: Longs
    times: Floats

    @property
    def size(self) -> int:
        return int(max(self.relation.max(initial=-1), self.missed.max(initial=-1))) + 1


class Told(Protocol):
    """What is nearly so in all records, of which relations between cells are made.

    ``room`` (float64[records]) is how far each record is known to miss it at most, times its weight; ``leaf``
    (int32[records] by hierarchy) is where the records are, None where they are the facts.
    """

    @property
    def room(self) -> Floats: ...

    @property
    def leaf(self) -> tuple[IntArray, ...] | None: ...

    def named(self, space: Space, coords: IntArray) -> Named:
        """The relations that tie some of the cells (int32[n, columns])."""


@dataclass(frozen=True, eq=False)
class Tendency:
    """Measures whose sum with these coefficients is nearly zero in every record, or in those of some members.

    Attributes
    ----------
    terms, room, leaf
    column
        Of the hierarchy whose members tell where it holds; 0 where it holds everywhere.
    inside : bool[size], optional
        The leaves of that hierarchy where it holds, or where there are no records.
    """

    terms: Identity
    room: Floats
    column: int = 0
    inside: Bools | None = None
    leaf: None = None

    def named(self, space: Space, coords: IntArray) -> Named:
        """The sums at the places at which two of the measures are among the cells (int32[n, columns])."""
        measures = [measure for measure, _ in self.terms]
        mine = adding(space, coords) & np.isin(coords[:, 0], measures)
        mine &= within(space, coords, self.column, self.inside)
        found = coords[mine].copy()
        found[:, 0] = 0
        places, place = unique_rows(space, found)
        places = places[np.bincount(place, minlength=len(places)) > 1]
        cells = np.repeat(places, len(measures), axis=0)
        cells[:, 0] = np.tile(measures, len(places))
        factors = np.tile([factor for _, factor in self.terms], len(places))
        each = np.arange(len(places))
        return Named(np.repeat(each, len(measures)), cells, factors, places, each, np.ones(len(places)))


def adding(space: Space, coords: IntArray) -> Bools:
    """Rows of measures that add up, at places that have contributors (bool[n])."""
    return space.adds_up(coords) & space.has_contributors(coords)


def reaching(space: Space, lines: IntArray, there: IntArray) -> Bools:
    """Which lines (int32[k, columns], bool[k]) are among others or above some: what is told of them says
    something of cells that are ``there``."""
    if not len(there):
        return np.zeros(len(lines), dtype=np.bool_)
    above = unique_rows(space, there)[0]
    for column in range(1, space.columns):
        tree = space.trees[column - 1]
        root = 0 if (tree.parent < 0).sum() == 1 else -1
        parent = np.full(int(space.sizes[column]), root, dtype=np.int32)
        parent[: tree.size] = tree.parent
        added = above
        while True:
            added = added.copy()
            added[:, column] = parent[added[:, column]]
            added = unique_rows(space, added[added[:, column] >= 0])[0]
            if not len(added):
                break
            above = unique_rows(space, np.concatenate([above, added]))[0]
    known, asked = space.pack(above, lines)
    found: Bools = np.isin(asked, known)
    return found


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
        room = np.maximum(some.room, np.abs(gap))
        open_ = room > ROUNDING * size
        exact = _chosen(some.equations, (size > 0) & ~open_)
        inside = open_ & (room <= TELLING * size)
        kept = np.flatnonzero(inside)
        inner = _chosen(some.equations, inside)
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


def nearly_at(space: Space, named: Named, room: Floats, leaf: Sequence[IntArray], coords: IntArray) -> Nearly:
    """Sums over the cells of a table (int32[n, columns]); those that it doesn't have are empty.

    ``leaf`` (int32[records] by hierarchy) is where the records are that may miss by ``room``.
    """
    order = np.argsort(named.relation, kind="stable")
    table, wanted = space.pack(coords, named.coords[order])
    by_key = np.argsort(table)
    at = np.minimum(np.searchsorted(table[by_key], wanted), len(table) - 1)
    row = by_key[at]
    there = table[row] == wanted
    m = named.size
    sizes = np.bincount(named.relation[order][there], minlength=m)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    equations = Equations(ends, row[there], named.coef[order][there], np.zeros(m))
    missed = named.times * sums_at(space, leaf, room, named.place)
    total = np.bincount(named.missed, weights=missed, minlength=m).astype(np.float64)
    size = np.bincount(named.missed, weights=np.abs(missed), minlength=m)
    # What is taken off again leaves nothing but the doubles' last digits.
    return Nearly(equations, np.where(total > ROUNDING * size, total, 0.0))


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
        above = records.copy()
        for h, tree in enumerate(space.trees):
            above[:, 1 + h] = lifted(tree.parent, depths[h], int(wanted[h]))[records[:, 1 + h]]
        known, asked = space.pack(above, places[mine], without=0)
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
