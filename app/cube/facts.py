"""Facts as arrays: leaf member in each hierarchy, exact measures, contributor, weight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.cube.numbers import FixedPoint
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, Hierarchy, IntArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasureColumn:
    """What a measure takes from each fact row.

    Attributes
    ----------
    scale, limbs : FixedPoint, int64[n, limbs]
        Value times weight; 0 where there is none.
    present : bool[n] or None
        Rows that have a value; None when all have.
    raw : float64[n] or None
        The unweighted value, for minima, maxima, medians; codes of the values for a distinct count.
    """

    scale: FixedPoint
    limbs: Ints
    present: NDArray[np.bool_] | None
    raw: FloatArray | None

    def take(self, rows: NDArray[np.intp]) -> MeasureColumn:
        return MeasureColumn(
            self.scale,
            self.limbs[rows],
            None if self.present is None else self.present[rows],
            None if self.raw is None else self.raw[rows],
        )


@dataclass(frozen=True, eq=False)
class Facts:
    """All fact rows of a cube.

    ``leaf`` are int32[n] by hierarchy, ``contributor`` int64[n] numbered from 0, ``weight`` float64[n]
    (None: all 1), ``asked`` bool[n] (None: nobody asked for confidentiality), ``who`` uint64 by contributor:
    a hash of its name (None: rows have no names).
    """

    leaf: tuple[IntArray, ...]
    measures: tuple[MeasureColumn, ...]
    contributor: Ints
    weight: FloatArray | None
    asked: NDArray[np.bool_] | None
    who: NDArray[np.uint64] | None = None

    @property
    def size(self) -> int:
        return len(self.contributor)

    def take(self, rows: NDArray[np.intp]) -> Facts:
        """Some of the rows, in the order given."""
        return Facts(
            tuple(column[rows] for column in self.leaf),
            tuple(column.take(rows) for column in self.measures),
            self.contributor[rows],
            None if self.weight is None else self.weight[rows],
            None if self.asked is None else self.asked[rows],
        )


class Ancestors:
    """For each hierarchy and level: the ancestor of every member at that level, or -1.

    Level -1 stands for no grouping at all: what the All member holds. ``uneven`` are hierarchies in which
    facts stand at members that have others beneath them.
    """

    def __init__(self, cube: Cube, uneven: Collection[int] = ()) -> None:
        self.hierarchies = cube.hierarchies
        self._uneven = frozenset(uneven)
        self._maps: dict[tuple[int, int], IntArray] = {}
        self.level_of = tuple(self._levels(hierarchy) for hierarchy in cube.hierarchies)

    @staticmethod
    def _levels(hierarchy: Hierarchy) -> IntArray:
        levels = hierarchy.depth.astype(np.int32)
        if hierarchy.has_all:
            levels = levels.copy()
            levels[0] = -1
        return levels

    def at(self, hierarchy: int, level: int) -> IntArray:
        """int32[size]: ancestor (or self) of each member at a level, -1 where there is none."""
        found = self._maps.get((hierarchy, level))
        if found is None:
            tree = self.hierarchies[hierarchy]
            found = np.full(tree.size, -1, dtype=np.int32)
            for member in range(tree.size):
                if tree.depth[member] == level:
                    found[member] = member
                elif tree.depth[member] > level and tree.parent[member] >= 0:
                    found[member] = found[tree.parent[member]]
            self._maps[hierarchy, level] = found
        return found

    def complete(self, hierarchy: int, level: int) -> bool:
        """Whether every leaf has an ancestor at the level, so that coarser levels can be added up from it."""
        if level < 0:
            return True
        if hierarchy in self._uneven:
            return False
        tree = self.hierarchies[hierarchy]
        is_leaf = np.ones(tree.size, dtype=bool)
        is_leaf[tree.parent[tree.parent >= 0]] = False
        return bool(np.all(self.at(hierarchy, level)[is_leaf] >= 0))
