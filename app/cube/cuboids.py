"""Cuboids: the facts summed by one level of each hierarchy, made once and used again.

A coarser cuboid is added up from a finer one that is there already; what can't be is asked of the engine,
all in one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.facts import Ancestors
from app.cube.keys import unique_rows
from app.cube.numbers import FixedPoint
from app.cube.turns import aside
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, IntArray
from app.domain.errors import UserError

Ints = NDArray[np.int64]
#: Level of each hierarchy, -1 where it isn't grouped by.
Levels = tuple[int, ...]

#: Aggregators that can be added up from parts.
_FROM_PARTS = frozenset({"sum", "count", "avg", "min", "max"})
_SMALL = 50_000
_LARGEST_KEY = 2**62
#: Groups of all cuboids that are kept; beyond, the ones not used for longest are forgotten.
_KEPT = 8_000_000


@dataclass(frozen=True, eq=False)
class Sums:
    """Exact sums of a measure as limbs, int64[n, limbs], and how many rows had a value, int64[n]."""

    present: Ints
    limbs: Ints

    def take(self, rows: NDArray[np.intp]) -> Sums:
        return Sums(self.present[rows], self.limbs[rows])


@dataclass(frozen=True, eq=False)
class Ready:
    """Values that are what they are: float64[n], nan where no row had one."""

    values: FloatArray

    def take(self, rows: NDArray[np.intp]) -> Ready:
        return Ready(self.values[rows])


Column = Sums | Ready


@dataclass(eq=False)
class Cuboid:
    """Groups in order of ``key``, with the columns of the measures asked for so far."""

    levels: Levels
    key: Ints
    columns: dict[int, Column] = field(default_factory=dict)


class Scanner(Protocol):
    """The engine's side: sums by several level combinations in one statement."""

    def scan(
        self, wanted: Sequence[Levels], measures: Sequence[int]
    ) -> list[tuple[Mapping[int, IntArray], dict[int, Column]]]:
        """For each level combination: member numbers by grouped hierarchy, and the measures' columns.

        Rows without a member at a level are left out.
        """
        ...


def forget_oldest(made: dict[Any, Any], needed: Collection[Any], most: int) -> None:
    """Drop entries from the front that aren't needed now, until no more rows than ``most`` are left."""
    rows = sum(len(entry.key) for entry in made.values())
    for place in [place for place in made if place not in needed]:
        if rows <= most:
            return
        rows -= len(made.pop(place).key)


class Cuboids:
    """The cache; safe for concurrent readers."""

    def __init__(
        self, cube: Cube, scales: Sequence[FixedPoint], n_facts: int, ancestors: Ancestors, scanner: Scanner
    ) -> None:
        self.cube = cube
        self.scales = scales
        self.n_facts = n_facts
        self.ancestors = ancestors
        self._scanner = scanner
        self._made: dict[Levels, Cuboid] = {}
        #: Of what is being scanned: the measures of each level combination, by the reader who asked.
        self._claims: dict[object, dict[Levels, set[int]]] = {}
        self._scans_done = 0
        self._changed = Condition()
        self._complete: dict[tuple[int, int], bool] = {}
        aggregators = [measure.aggregator for measure in cube.measures]
        self._cheapest = min(range(len(aggregators)), key=lambda m: aggregators[m] not in _FROM_PARTS)

    def clear(self) -> None:
        """Forget what has been made."""
        with self._changed:
            self._made.clear()

    def strides(self, levels: Levels) -> Ints:
        """Packs the members of grouped hierarchies into one key, int64[H]."""
        strides = np.zeros(len(levels), dtype=np.int64)
        stride = 1
        for hierarchy, level in enumerate(levels):
            if level >= 0:
                strides[hierarchy] = stride
                stride *= self.cube.hierarchies[hierarchy].size
        if stride >= _LARGEST_KEY:
            raise UserError("A query groups by more combinations of members than can be numbered.")
        return strides

    def signatures(self, coords: IntArray) -> tuple[list[Levels], NDArray[np.intp]]:
        """Level combinations of cells, and which of them each row of coordinates has."""
        if not len(coords):
            return [], np.zeros(0, dtype=np.intp)
        first_row = coords[0, 1:].tolist()
        varied = (coords[:, 1:] != coords[0, 1:]).any(axis=0).tolist()
        levels = [
            level_of[coords[:, 1 + hierarchy]] + 1 if varied[hierarchy] else level_of[[member]] + 1
            for hierarchy, (member, level_of) in enumerate(
                zip(first_row, self.ancestors.level_of, strict=True)
            )
        ]
        if all(bool((level == level[0]).all()) for level in levels):
            # What most queries ask: one level of each hierarchy.
            return [tuple(int(level[0]) - 1 for level in levels)], np.zeros(len(coords), dtype=np.intp)
        levels = [np.broadcast_to(level, len(coords)) for level in levels]
        sizes = [len(tree.levels) + 1 for tree in self.cube.hierarchies]
        first, inverse = unique_rows(np.stack(levels, axis=1), sizes)
        combinations = [
            tuple(
                int(self.ancestors.level_of[h][coords[row, 1 + h]]) for h in range(len(self.cube.hierarchies))
            )
            for row in first
        ]
        return combinations, inverse

    def values(self, coords: IntArray) -> FloatArray:
        """Values of cells of own measures and members: float64[n], nan where a cell has no facts."""
        result = np.full(len(coords), np.nan)
        if not len(coords):
            return result
        combinations, which = self.signatures(coords)
        asked = np.stack([which, coords[:, 0]], axis=1)
        first, inverse = unique_rows(asked, [len(combinations), len(self.cube.measures)])
        pairs = asked[first].tolist()
        wanted: dict[Levels, set[int]] = {}
        for combination, measure in pairs:
            wanted.setdefault(combinations[combination], set()).add(measure)
        cuboids = self.need(wanted)
        # Numbers of two bytes are sorted without comparing them.
        order = np.argsort(inverse.astype(np.uint16) if len(pairs) < 2**16 else inverse, kind="stable")
        bounds = np.searchsorted(inverse[order], np.arange(len(pairs) + 1))
        for index, (combination, measure) in enumerate(pairs):
            rows = order[bounds[index] : bounds[index + 1]]
            cuboid = cuboids[combinations[combination]]
            keys = self.pack(cuboid.levels, coords[rows])
            result[rows] = self._lookup(cuboid, measure, keys)
        return result

    def _lookup(self, cuboid: Cuboid, measure: int, keys: Ints) -> FloatArray:
        found = np.full(len(keys), np.nan)
        if not len(cuboid.key):
            return found
        place = np.minimum(np.searchsorted(cuboid.key, keys), len(cuboid.key) - 1)
        hit = cuboid.key[place] == keys
        found[hit] = self.column_values(measure, cuboid.columns[measure].take(place[hit]))
        return found

    def column_values(self, measure: int, column: Column) -> FloatArray:
        """Values of a cuboid's groups, nan where no row has one."""
        if isinstance(column, Ready):
            return column.values
        values = self.scales[measure].to_float(column.limbs)
        if self.cube.measures[measure].aggregator == "avg":
            values = values / np.maximum(column.present, 1)
        return np.where(column.present > 0, values, np.nan)

    def need(self, wanted: Mapping[Levels, set[int]]) -> dict[Levels, Cuboid]:
        """Cuboids of level combinations with the measures asked for, from the cache or made now.

        What nobody makes yet is scanned beside what others scan; what another reader scans is awaited.
        """
        while True:
            with self._changed:
                found = self._ready(wanted)
                if found is not None:
                    return found
                scans, rolled_up = self._plan(wanted)
                claim = object()
                if scans:
                    self._claims[claim] = scans
                done = self._scans_done
            if scans:
                self._scan(scans, wanted, claim)
            elif not rolled_up:
                with aside(), self._changed:
                    self._changed.wait_for(lambda done=done: self._scans_done != done)  # type: ignore[misc]

    def _ready(self, wanted: Mapping[Levels, set[int]]) -> dict[Levels, Cuboid] | None:
        """Cuboids that are all there; None when something is missing."""
        if any(measures - self._known(levels) for levels, measures in wanted.items()):
            return None
        for levels in wanted:
            self._made[levels] = self._made.pop(levels)
        return {levels: self._made[levels] for levels in wanted}

    def _plan(self, wanted: Mapping[Levels, set[int]]) -> tuple[dict[Levels, set[int]], bool]:
        """What is to be scanned; adds up what can be from what is there, and says whether anything could.

        Neither means that others scan what is missing, or what it can be added up from.
        """
        scans: dict[Levels, set[int]] = {}
        coming: dict[Levels, set[int]] = {}
        for claimed in self._claims.values():
            for levels, measures in claimed.items():
                coming.setdefault(levels, set()).update(measures)
        rolled_up = False
        for levels in sorted(wanted, key=lambda levels: (-sum(levels), levels)):
            lacking = wanted[levels] - self._known(levels) - coming.get(levels, set())
            if not lacking:
                continue
            source = self._source(levels, lacking, coming)
            if source is None:
                scans[levels] = lacking
                coming.setdefault(levels, set()).update(lacking)
            elif lacking <= self._known(source):
                self._roll_up(self._made[source], levels, lacking)
                rolled_up = True
        return scans, rolled_up

    def _scan(self, scans: Mapping[Levels, set[int]], wanted: Collection[Levels], claim: object) -> None:
        """Ask the engine for what this reader has claimed."""
        order = list(scans)
        made: list[Cuboid] = []
        try:
            with aside():
                scanned = self._scanner.scan(order, sorted(set().union(*scans.values())))
            made.extend(
                self._in_order(levels, members, columns)
                for levels, (members, columns) in zip(order, scanned, strict=True)
            )
        finally:
            with self._changed:
                for cuboid in made:
                    self._made.setdefault(cuboid.levels, cuboid).columns.update(cuboid.columns)
                forget_oldest(self._made, wanted, _KEPT)
                del self._claims[claim]
                self._scans_done += 1
                self._changed.notify_all()

    def _known(self, levels: Levels) -> set[int]:
        cuboid = self._made.get(levels)
        return set(cuboid.columns) if cuboid is not None else set()

    def _source(
        self, levels: Levels, measures: set[int], planned: Mapping[Levels, set[int]]
    ) -> Levels | None:
        """The smallest finer cuboid that these levels can be added up from."""
        if any(self.cube.measures[measure].aggregator not in _FROM_PARTS for measure in measures):
            return None
        best: tuple[float, Levels] | None = None
        candidates = [(key, float(len(made.key)), set(made.columns)) for key, made in self._made.items()]
        candidates += [(key, self._estimate(key), has) for key, has in planned.items()]
        for finer, size, has in candidates:
            if finer == levels or not measures <= has or size > max(_SMALL, self.n_facts / 4):
                continue
            if self.can_roll_up(finer, levels) and (best is None or size < best[0]):
                best = (size, finer)
        return None if best is None else best[1]

    def can_roll_up(self, finer: Levels, levels: Levels) -> bool:
        """Whether groups by the finer levels can be added up to the others."""
        return all(
            fine == coarse or (fine > coarse and self.complete(h, fine))
            for h, (fine, coarse) in enumerate(zip(finer, levels, strict=True))
        )

    def complete(self, hierarchy: int, level: int) -> bool:
        """Whether every fact has a member at the level."""
        key = (hierarchy, level)
        if key not in self._complete:
            self._complete[key] = self.ancestors.complete(hierarchy, level)
        return self._complete[key]

    def _estimate(self, levels: Levels) -> float:
        size = 1.0
        for hierarchy, level in enumerate(levels):
            if level >= 0:
                size *= float(np.count_nonzero(self.cube.hierarchies[hierarchy].depth == level))
        return min(size, float(self.n_facts))

    def _in_order(
        self, levels: Levels, members: Mapping[int, IntArray], columns: Mapping[int, Column]
    ) -> Cuboid:
        strides = self.strides(levels)
        n = next((len(numbers) for numbers in members.values()), 1)
        key = np.zeros(n, dtype=np.int64)
        for hierarchy, numbers in members.items():
            key += numbers * strides[hierarchy]
        order = np.argsort(key)
        return Cuboid(levels, key[order], {m: column.take(order) for m, column in columns.items()})

    def coarser_keys(self, finer: Levels, key: Ints, levels: Levels) -> tuple[Ints, NDArray[np.bool_]]:
        """Keys that groups by finer levels have at coarser ones, and whether they have one at all."""
        fine, coarse = self.strides(finer), self.strides(levels)
        packed = np.zeros(len(key), dtype=np.int64)
        inside = np.ones(len(key), dtype=bool)
        for hierarchy, level in enumerate(levels):
            if level >= 0:
                members = key // fine[hierarchy] % self.cube.hierarchies[hierarchy].size
                above = self.ancestors.at(hierarchy, level)[members]
                inside &= above >= 0
                packed += above * coarse[hierarchy]
        return packed, inside

    def pack(self, levels: Levels, coords: IntArray) -> Ints:
        """Keys of cells of one level combination."""
        return coords[:, 1:].astype(np.int64) @ self.strides(levels)

    def keys(self, levels: Levels) -> Ints:
        """Keys of the cells that have facts, ascending."""
        made = self._made.get(levels)
        if made is None:
            made = self.need({levels: {self._cheapest}})[levels]
        return made.key

    def sums(self, measure: int, parts: IntArray, owner: Ints, n: int) -> FloatArray:
        """Values of ``n`` cells that consist of parts without common facts, nan where there are none."""
        column = self.scales[measure]
        present = np.zeros(n, dtype=np.int64)
        limbs = np.zeros((n, column.limbs), dtype=np.int64)
        combinations, which = self.signatures(parts)
        cuboids = self.need({levels: {measure} for levels in combinations})
        for index, levels in enumerate(combinations):
            mine = np.flatnonzero(which == index)
            cuboid = cuboids[levels]
            sums = cuboid.columns[measure]
            if not isinstance(sums, Sums) or not len(cuboid.key):
                continue
            keys = self.pack(levels, parts[mine])
            place = np.minimum(np.searchsorted(cuboid.key, keys), len(cuboid.key) - 1)
            hit = cuboid.key[place] == keys
            np.add.at(present, owner[mine[hit]], sums.present[place[hit]])
            np.add.at(limbs, owner[mine[hit]], sums.limbs[place[hit]])
        return np.where(present > 0, column.to_float(limbs), np.nan)

    def _roll_up(self, source: Cuboid, levels: Levels, measures: set[int]) -> None:
        key, inside = self.coarser_keys(source.levels, source.key, levels)
        order = np.argsort(key[inside], kind="stable")
        rows = np.flatnonzero(inside)[order]
        groups, starts = np.unique(key[rows], return_index=True)
        cuboid = self._made.setdefault(levels, Cuboid(levels, groups))
        for measure in measures:
            column = source.columns[measure]
            aggregator = self.cube.measures[measure].aggregator
            if not len(groups):
                cuboid.columns[measure] = column.take(rows)
            elif isinstance(column, Ready):
                reduce = np.fmin if aggregator == "min" else np.fmax
                cuboid.columns[measure] = Ready(reduce.reduceat(column.values[rows], starts))
            else:
                cuboid.columns[measure] = Sums(
                    np.add.reduceat(column.present[rows], starts),
                    np.add.reduceat(column.limbs[rows], starts, axis=0),
                )
