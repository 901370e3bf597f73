"""Building tables: all cells with their totals, from units or from cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from solver.discreet import Discreet
from solver.hierarchy import Hierarchy
from solver.rules import Profiles, profiles_of
from solver.rules.profiles import Kind
from solver.table import Floats, Ints, Relations, decimal_places, group_keys

RADIX_LIMIT = 2**62


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Discreet):
    """All n cells of a table, in the order of their codes.

    Attributes
    ----------
    position
        i8[n, d], the position of each code in its hierarchy.
    profiles
        What the rules need to know.
    owner
        i8[n], which contributor is the only one of the cell; -1 where there are none or several.
    source
        i8[n], the row of the input that the cell is; -1 if it was built.
    decimals
        Exact decimals of the values.
    """

    position: Ints
    profiles: Profiles
    owner: Ints
    source: Ints
    decimals: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.position)


def _key(position: Ints, hierarchies: Sequence[Hierarchy]) -> Ints:
    size = 1
    for hierarchy in hierarchies:
        size *= hierarchy.n
    if size >= RADIX_LIMIT:
        return group_keys([position[:, d] for d in range(position.shape[1])])
    key = np.zeros(len(position), dtype=np.int64)
    for d, hierarchy in enumerate(hierarchies):
        key = key * hierarchy.n + position[:, d]
    return key


def _joined(parts: Sequence[Profiles], order: Ints) -> Profiles:
    return Profiles(
        value=np.concatenate([p.value for p in parts])[order],
        count=np.concatenate([p.count for p in parts])[order],
        top=np.concatenate([p.top for p in parts])[order],
        kind=parts[0].kind,
        weighted_count=np.concatenate([p.weighted_count for p in parts])[order],
        mass=np.concatenate([p.mass for p in parts])[order],
        request=np.concatenate([p.request for p in parts])[order],
        negative_values=parts[0].negative_values,
    )


def tabulate_units(
    position: Ints,
    hierarchies: Sequence[Hierarchy],
    value: Floats,
    *,
    depth: int,
    weight: Floats | None = None,
    holding: Ints | None = None,
    request: NDArray[np.str_] | None = None,
    kind: Kind = "magnitude",
    negative_values: bool = False,
) -> Cells:
    """Add units up to every cell, on every level of every dimension, to which a unit belongs.

    Parameters
    ----------
    position
        i8[u, d], the position of each unit's codes, which must be leaves.
    depth
        How many of the largest contributions to keep.
    holding
        i8[u], the owner of each unit, numbered from 0; without it each unit is its own.
    """
    owner_of = np.arange(len(position)) if holding is None else holding
    levels = [[h.ancestor(j) for j in range(int(h.depth.max(initial=0)) + 1)] for h in hierarchies]
    parts: list[Profiles] = []
    places: list[Ints] = []
    owners: list[Ints] = []
    for combination in itertools.product(*levels):
        at = np.column_stack([table[position[:, d]] for d, table in enumerate(combination)])
        units = np.flatnonzero((at >= 0).all(axis=1))
        if not len(units):
            continue
        at = at[units]
        _, first, cell = np.unique(_key(at, hierarchies), return_index=True, return_inverse=True)
        profiles = profiles_of(
            cell,
            value[units],
            cells=len(first),
            depth=depth,
            weight=None if weight is None else weight[units],
            holding=None if holding is None else holding[units],
            request=None if request is None else request[units],
            kind=kind,
            negative_values=negative_values,
        )
        parts.append(profiles)
        places.append(at[first])
        owners.append(np.where(profiles.count == 1, owner_of[units][first], -1))
    if not parts:
        empty = profiles_of([], [], cells=0, depth=depth, kind=kind)
        none = np.zeros(0, dtype=np.int64)
        return Cells(np.zeros((0, len(hierarchies)), dtype=np.int64), empty, none, none, ())
    place = np.concatenate(places)
    order = np.lexsort(place.T[::-1])
    profiles = _joined(parts, order)
    decimals = tuple(repr(x).removesuffix(".0") for x in profiles.value.tolist())
    return Cells(
        place[order],
        profiles,
        np.concatenate(owners)[order],
        np.full(len(order), -1, dtype=np.int64),
        decimals,
    )


def _merge_tops(group: Ints, top: Floats, groups: int) -> Floats:
    """The k largest of the rows of each group."""
    k = top.shape[1]
    flat, owner = top.ravel(), np.repeat(group, k)
    order = np.lexsort((-flat, owner))
    flat, owner = flat[order], owner[order]
    first = np.searchsorted(owner, np.arange(groups))
    rank = np.arange(len(flat)) - first[owner]
    merged = np.zeros((groups, k))
    keep = rank < k
    merged[owner[keep], rank[keep]] = flat[keep]
    return merged


@dataclass
class _Growing:
    position: Ints
    value: NDArray[np.longdouble]
    count: Ints
    top: Floats

    def add_missing(self, d: int, level: int, hierarchies: Sequence[Hierarchy]) -> None:
        """Build the cells one level above ``level`` of dimension d that aren't there."""
        hierarchy = hierarchies[d]
        part = np.flatnonzero(hierarchy.depth[self.position[:, d]] == level)
        above = self.position[part].copy()
        above[:, d] = hierarchy.parent[above[:, d]]
        key = _key(np.concatenate((self.position, above)), hierarchies)
        there, wanted = key[: len(self.position)], key[len(self.position) :]
        new = ~np.isin(wanted, there)
        if not new.any():
            return
        part, above = part[new], above[new]
        _, first, group = np.unique(wanted[new], return_index=True, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(first)))
        value = np.add.reduceat(self.value[part][order], starts)
        count = np.add.reduceat(self.count[part][order], starts)
        self.top = np.concatenate((self.top, _merge_tops(group, self.top[part], len(first))))
        self.position = np.concatenate((self.position, above[first]))
        self.value = np.concatenate((self.value, value))
        self.count = np.concatenate((self.count, count))


def tabulate_cells(
    position: Ints,
    hierarchies: Sequence[Hierarchy],
    value: Floats,
    decimals: Sequence[str],
    count: Ints,
    top: Floats,
    *,
    kind: Kind = "magnitude",
    negative_values: bool = False,
) -> Cells:
    """Complete a table of cells with the totals that it doesn't have.

    A total that is there is kept as it is; whether it adds up is another question. Largest contributions of
    a built total are the largest of its parts', as no contributor is in two of them.
    """
    grown = _Growing(position, value.astype(np.longdouble), count, top)
    for d, hierarchy in enumerate(hierarchies):
        for level in range(int(hierarchy.depth.max(initial=0)), 0, -1):
            grown.add_missing(d, level, hierarchies)
    digits = decimal_places(decimals)
    built = grown.value[len(value) :].astype(np.float64)
    if digits is None:
        texts = [*decimals, *(repr(x) for x in built.tolist())]
    else:
        built = np.round(built, digits)
        texts = [*decimals, *(f"{x:.{digits}f}" for x in built.tolist())]
    order = np.lexsort(grown.position.T[::-1])
    source = np.where(order < len(value), order, -1)
    profiles = Profiles(
        value=np.concatenate((value, built))[order],
        count=grown.count[order],
        top=grown.top[order],
        kind=kind,
        negative_values=negative_values,
    )
    owner = np.full(len(order), -1, dtype=np.int64)
    return Cells(grown.position[order], profiles, owner, source, tuple(texts[i] for i in order.tolist()))


def owners_by_counts(count: Ints, relations: Relations) -> Ints:
    """Who is the only contributor of a cell, as far as counts tell: a total and its part that both have one
    contributor have the same.

    Returns
    -------
    i8[n], a number for each contributor, -1 where the count isn't 1.
    """
    n = len(count)
    matrix = relations.matrix.tocoo()
    total = relations.total[matrix.row]
    same = (count[matrix.col] == 1) & (count[total] == 1)
    graph = sparse.csr_array((np.ones(same.sum()), (matrix.col[same], total[same])), shape=(n, n))
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    return np.where(count == 1, component, -1)


def recompute_totals(
    value: Floats,
    decimals: Sequence[str],
    position: Ints,
    hierarchies: Sequence[Hierarchy],
    relations: Relations,
) -> Floats:
    """Every total replaced by the sum of its parts, from the leaves up, one dimension after the other."""
    digits = decimal_places(decimals)
    result = value.astype(np.longdouble)
    for d, hierarchy in enumerate(hierarchies):
        level = hierarchy.depth[position[relations.total, d]]
        for depth in range(int(hierarchy.depth.max(initial=0)), -1, -1):
            rows = np.flatnonzero((relations.dim == d) & (level == depth))
            part = relations.matrix[rows].tocoo()
            inner = part.data > 0
            sums = np.zeros(len(rows), dtype=np.longdouble)
            np.add.at(sums, part.row[inner], result[part.col[inner]])
            result[relations.total[rows]] = sums
    final = result.astype(np.float64)
    return final if digits is None else np.round(final, digits)
