"""crawl: which leaves of several hierarchies have facts together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from app.cube.port import CubeServer
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Longs, Tree

#: Combinations of leaves up to which an engine that doesn't give its facts is asked for them.
MOST = 4_000_000
#: Facts that are looked at before all are.
_SAMPLES = (2_000, 50_000)


class Together:
    """Answers from the facts where the engine gives them, else from its cells."""

    def __init__(self, server: CubeServer, cube: Cube) -> None:
        self._server = server
        self._cube = cube
        self._met: dict[tuple[int, ...], tuple[IntArray, Longs] | None] = {}

    def __call__(self, columns: tuple[int, ...]) -> tuple[IntArray, Longs] | None:
        """Combinations of leaves of the hierarchies of some columns that have facts.

        Returns
        -------
        int32[k, len(columns)] and int64[k]
            Ascending, and how many facts each has at least; None where that can't be found out.
        """
        if columns not in self._met:
            found = self._rows_of_facts
            self._met[columns] = self._asked(columns) if found is None else _counted(found, columns)
        return self._met[columns]

    @cached_property
    def _rows_of_facts(self) -> tuple[IntArray, ...] | None:
        facts = self._server.facts()
        return None if facts is None else facts.leaf

    def may_decide(self, columns: tuple[int, ...]) -> bool:
        """Whether some facts leave it open that the last column hangs on those before it; soon told."""
        leaf = self._rows_of_facts
        if leaf is None:
            return True
        for n in _SAMPLES:
            some = tuple(column[:n] for column in leaf)
            if len(_counted(some, columns)[0]) > len(_counted(some, columns[:-1])[0]):
                return False
        return True

    def _asked(self, columns: tuple[int, ...]) -> tuple[IntArray, Longs] | None:
        cube = self._cube
        leaves = [_leaves(cube, column) for column in columns]
        n = int(np.prod([len(found) for found in leaves], dtype=np.float64))
        if n > MOST:
            return None
        start = [0, *(hierarchy.default_member for hierarchy in cube.hierarchies)]
        counts = [number for number, measure in enumerate(cube.measures) if measure.aggregator == "count"]
        start[0] = counts[0] if counts else 0
        grid = np.stack([part.reshape(-1) for part in np.meshgrid(*leaves, indexing="ij")], axis=1)
        others = [
            column
            for column, hierarchy in enumerate(cube.hierarchies, 1)
            if column not in columns and not hierarchy.has_all
        ]
        found = np.zeros(n)
        filled = np.zeros(n, dtype=np.bool_)
        for top in _tops(cube, others):
            coords = np.tile(np.array(start, dtype=np.int32), (n, 1))
            coords[:, list(columns)] = grid
            for column, member in top.items():
                coords[:, column] = member
            values = self._server.values(coords)
            filled |= ~np.isnan(values)
            found += np.nan_to_num(values)
        counted = found if counts else filled
        return grid[filled].astype(np.int32), np.maximum(counted[filled], 1).astype(np.int64)


def _counted(leaf: tuple[IntArray, ...], columns: tuple[int, ...]) -> tuple[IntArray, Longs]:
    listed = [leaf[column - 1] for column in columns]
    sizes = [int(column.max(initial=0)) + 1 for column in listed]
    if math.prod(sizes) <= MOST:
        count = np.bincount(np.ravel_multi_index(tuple(listed), tuple(sizes)), minlength=1)
        key = np.flatnonzero(count)
        return np.stack(np.unravel_index(key, sizes), axis=1).astype(np.int32), count[key].astype(np.int64)
    key = np.zeros(len(listed[0]), dtype=np.int64)
    for column, size in zip(listed, sizes, strict=True):
        _, key = np.unique(key, return_inverse=True)
        key = key * size + column
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return np.stack([column[first] for column in listed], axis=1), counts.astype(np.int64)


def _tops(cube: Cube, columns: list[int]) -> list[Mapping[int, int]]:
    """Every choice of top members in hierarchies without an All: facts lie below one of each."""
    choices: list[Mapping[int, int]] = [{}]
    for column in columns:
        tops = np.flatnonzero(cube.hierarchies[column - 1].parent < 0).tolist()
        choices = [{**choice, column: top} for choice in choices for top in tops]
    return choices


def _leaves(cube: Cube, column: int) -> Longs:
    hierarchy = cube.hierarchies[column - 1]
    tree = Tree.of(hierarchy.parent, hierarchy.last_descendant)
    return np.flatnonzero(tree.last == np.arange(tree.size))
