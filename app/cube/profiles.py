"""Contributor profiles of many cells at once, from the facts' arrays.

Most contributors have all their rows in one leaf of the cube. Their counts and largest contributions are
made for a whole level combination in a few passes over presorted rows. Contributors met in several leaves
are gathered cell by cell, and so are groups of members, whose parts may share contributors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.cuboids import Cuboids, Levels, forget_oldest
from app.cube.facts import Ancestors, Facts
from app.cube.keys import unique_rows
from app.cube.parts import expand
from app.cube.port import Group, Profiles
from app.cube.tables import (
    Entities,
    Table,
    counting_sort,
    empty_table,
    gather,
    merge,
    no_entities,
    put,
    sorted_groups,
    steps,
    tallest,
    totals,
    union,
)
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, IntArray
from app.domain.lattice import ranges

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

#: Above this share of rows of wandering contributors it pays to look for a hierarchy that fixes them.
_FEW = 0.02
#: Largest product of members that is looked up in a table rather than searched.
_TABLE = 8_000_000
_CHUNK = 1_000_000
#: However small the weights, no more contributions of a cell are looked at.
_MOST_PIECES = 64
#: Cells of all tables that are kept.
_KEPT = 2_000_000


@dataclass(frozen=True, eq=False)
class _Split:
    """Contributors that stay in one leaf once a hierarchy is fixed (-1: none is), and the others.

    ``leaf`` are the settled ones' members, int32[n] by hierarchy; ``wandering`` the others' fact rows in
    order of contributors, and ``wanderers`` those facts.
    """

    fixed: int
    settled: Entities
    leaf: tuple[IntArray, ...]
    wandering: Rows
    wanderers: Facts


class Profiler:
    """Makes profiles of cells of one cube; what it learns of a level combination is kept."""

    def __init__(self, cube: Cube, facts: Facts, cuboids: Cuboids) -> None:
        self.cube = cube
        self.facts = facts
        self.cuboids = cuboids
        self.ancestors: Ancestors = cuboids.ancestors
        self._splits: list[_Split] | None = None
        self._orders: dict[tuple[int, int], Rows] = {}
        self._made: dict[tuple[int, Levels], Table] = {}
        self._pieces = 0
        self._lock = RLock()

    # Which contributors wander

    def _leaf_number(self) -> Ints:
        number = np.zeros(self.facts.size, dtype=np.int64)
        room = 2**62
        for column, tree in zip(self.facts.leaf, self.cube.hierarchies, strict=True):
            if room // tree.size < 1:
                number = np.unique(number, return_inverse=True)[1].astype(np.int64)
                room = 2**62 // max(1, self.facts.size)
            number = number * tree.size + column
            room //= tree.size
        return number

    def splits(self) -> list[_Split]:
        if self._splits is None:
            leaf = self._leaf_number()
            plain = self._split(-1, leaf)
            found = [plain]
            if len(plain.wandering) > _FEW * self.facts.size:
                # Panels: a contributor is back every year, but once a year.
                trees = self.cube.hierarchies
                candidates = sorted(range(len(trees)), key=lambda h: (not trees[h].time, trees[h].size))
                options: list[_Split] = []
                for h in candidates:
                    options.append(self._split(h, leaf))
                    if len(options[-1].wandering) <= _FEW * self.facts.size:
                        break
                if options:
                    best = min(options, key=lambda split: len(split.wandering))
                    if len(best.wandering) < 0.8 * len(plain.wandering):
                        found.append(best)
            self._splits = found
        return self._splits

    def _split(self, fixed: int, leaf: Ints) -> _Split:
        """Settled: all rows of the contributor (with one leaf of ``fixed``) are in one leaf of the cube."""
        contributor = self.facts.contributor
        who = (
            contributor
            if fixed < 0
            else contributor * self.cube.hierarchies[fixed].size + self.facts.leaf[fixed]
        )
        order, starts = sorted_groups(who)
        low = np.minimum.reduceat(leaf[order], starts)
        high = np.maximum.reduceat(leaf[order], starts)
        lengths = np.diff(np.append(starts, len(order)))
        settled = np.repeat(low == high, lengths)
        rows = np.sort(order[settled])
        groups = np.unique(leaf[rows], return_inverse=True)[1].astype(np.int64)
        _, first, entities = merge(self.facts, groups, rows) if len(rows) else no_entities(self.facts)
        places = tuple(column[first] for column in self.facts.leaf)
        # In order of their contributors, so that sorting them by contributor again costs little.
        wandering = order[~settled]
        return _Split(fixed, entities, places, wandering, self.facts.take(wandering))

    def _split_for(self, levels: Levels, mixed: bool) -> int:
        """The split with fewest wanderers whose fixed hierarchy these levels fix as well.

        ``mixed``: the cells join several members of that hierarchy, so that it isn't fixed after all.
        """
        splits = self.splits()
        if mixed:
            return 0
        best = 0
        for index, split in enumerate(splits[1:], 1):
            level = levels[split.fixed]
            deepest = len(self.cube.hierarchies[split.fixed].levels) - 1
            if level == deepest and self.cuboids.complete(split.fixed, level):
                best = index
        return best

    # Settled contributors, by level combination

    def _tables(
        self, wanted: set[Levels], measures: set[int], pieces: int, mixed: bool
    ) -> dict[Levels, Table]:
        """Tables of level combinations: the finest from the facts, the others from finer ones."""
        if pieces > self._pieces:
            self._made.clear()
            self._pieces = pieces
        for levels in sorted(wanted, key=lambda levels: (-sum(levels), levels)):
            split = self._split_for(levels, mixed)
            key = (split, levels)
            made = self._made.get(key)
            if made is not None and measures <= set(made.sizes):
                continue
            source = self._source(split, levels, measures)
            if source is None:
                self._made[key] = self._scan(split, levels, measures)
            else:
                self._made[key] = self._roll_up(source, levels, measures)
        places = {levels: (self._split_for(levels, mixed), levels) for levels in wanted}
        for place in places.values():
            self._made[place] = self._made.pop(place)
        forget_oldest(self._made, set(places.values()), _KEPT)
        return {levels: self._made[place] for levels, place in places.items()}

    def _source(self, split: int, levels: Levels, measures: set[int]) -> tuple[Levels, Table] | None:
        best: tuple[Levels, Table] | None = None
        for (other, finer), table in self._made.items():
            if other != split or finer == levels or not measures <= set(table.sizes):
                continue
            if len(table.key) > self.facts.size / 8 or not self.cuboids.can_roll_up(finer, levels):
                continue
            if best is None or len(table.key) < len(best[1].key):
                best = (finer, table)
        return best

    def _order(self, split: int, measure: int) -> Rows:
        """Settled rows from the largest contribution to the smallest."""
        found = self._orders.get((split, measure))
        if found is None:
            found = np.argsort(-np.abs(self.splits()[split].settled.amounts[measure]), kind="stable")
            self._orders[split, measure] = found
        return found

    def _scan(self, split: int, levels: Levels, measures: set[int]) -> Table:
        settled = self.splits()[split].settled
        key = self.cuboids.keys(levels)
        number = self._numbers(self.splits()[split].leaf, settled.size, levels, key)
        return self._reduce(settled, number, key, measures, lambda measure: self._order(split, measure))

    def _reduce(
        self,
        entities: Entities,
        number: Ints,
        key: Ints,
        measures: set[int],
        order_of: Callable[[int], Rows],
    ) -> Table:
        """Profiles of cells from the entities in them; ``number`` is each entity's cell, -1 for none.

        ``order_of`` gives the entities that may be among the largest, in descending order.
        """
        n = len(key)
        inside = np.flatnonzero(number >= 0)
        cells = number[inside]
        count = np.bincount(cells, minlength=n).astype(np.int64)
        weight = entities.weight
        weighted = count.astype(np.float64) if weight is None else totals(cells, weight[inside], n)
        holder = np.full(n, -1, dtype=np.int64)
        holder[cells] = entities.contributor[inside]
        table = Table(key, count, weighted, holder, {}, {}, {}, {})
        asked = None if entities.asked is None else inside[entities.asked[inside]]
        for measure in measures:
            amounts = np.abs(entities.amounts[measure])
            size = np.zeros((n, self._pieces))
            width = np.zeros((n, self._pieces))
            if weight is None and len(amounts) and np.ptp(amounts) == 0:
                width[:] = np.arange(self._pieces) < count[:, None]
                size[:] = width * amounts[0]
            else:
                order = order_of(measure)
                ranked = number[order]
                if len(inside) < len(number):
                    order, ranked = order[ranked >= 0], ranked[ranked >= 0]
                by_cell = counting_sort(ranked, n)
                candidates = np.bincount(ranked, minlength=n)
                starts = np.cumsum(candidates) - candidates
                for piece in range(self._pieces):
                    has = np.flatnonzero(candidates > piece)
                    rows = order[by_cell[starts[has] + piece]]
                    size[has, piece] = amounts[rows]
                    width[has, piece] = 1.0 if weight is None else weight[rows]
            mass = amounts[inside] if weight is None else amounts[inside] * weight[inside]
            table.sizes[measure], table.widths[measure] = size, width
            table.mass[measure] = totals(cells, mass, n)
            table.requested[measure] = np.zeros(n)
            if asked is not None:
                np.maximum.at(table.requested[measure], number[asked], amounts[asked])
        return table

    def _roll_up(self, source: tuple[Levels, Table], levels: Levels, measures: set[int]) -> Table:
        finer, table = source
        key = self.cuboids.keys(levels)
        packed, inside = self.cuboids.coarser_keys(finer, table.key, levels)
        rows = np.flatnonzero(inside)
        return gather(table, rows, np.searchsorted(key, packed[rows]), key, measures)

    def _numbers(self, leaf: Sequence[IntArray], size: int, levels: Levels, keys: Ints) -> Ints:
        """Which of the sorted cell keys each of ``size`` rows is in, -1 for none."""
        strides = self.cuboids.strides(levels)
        packed = np.zeros(size, dtype=np.int64)
        outside = np.zeros(size, dtype=bool)
        extent = 1
        for h, level in enumerate(levels):
            if level < 0:
                continue
            extent *= self.cube.hierarchies[h].size
            above = self.ancestors.at(h, level)
            packed += (above * strides[h])[leaf[h]]
            if not self.cuboids.complete(h, level):
                outside |= (above < 0)[leaf[h]]
        if extent <= _TABLE:
            table = np.full(extent, -1, dtype=np.int64)
            table[keys] = np.arange(len(keys))
            packed[outside] = 0
            number = table[packed]
        else:
            place = np.minimum(np.searchsorted(keys, packed), len(keys) - 1)
            number = np.where(keys[place] == packed, place, -1)
        number[outside] = -1
        return number

    # Cells

    def measure(self, coords: IntArray, groups: Sequence[Group], top: int) -> Profiles:
        """See `CubeServer.measure`."""
        weight = self.facts.weight
        least = 1.0 if weight is None else min(1.0, float(weight.min()))
        pieces = min(int(np.ceil(top / least)), _MOST_PIECES)
        group_of = [[g for g in groups if g.column == column] for column in range(coords.shape[1])]
        measures = set(np.unique(coords[:, 0]).tolist())
        first, cell = unique_rows(coords[:, 1:], self._sizes(group_of))
        cells = coords[first]
        with self._lock:
            total = self._profiles(cells, group_of, measures, pieces)
        n = len(coords)
        answer = Profiles(
            np.nan_to_num(self._values(coords, group_of)),
            total.count[cell],
            total.weighted[cell],
            np.zeros((n, top)),
            np.where(total.count == 1, total.holder, -1)[cell],
            np.zeros(n),
            np.zeros(n),
        )
        for measure in measures:
            rows = np.flatnonzero(coords[:, 0] == measure)
            size, width = tallest(total.sizes[measure][cell[rows]], total.widths[measure][cell[rows]])
            answer.top[rows] = steps(size, width, top)
            answer.requested[rows] = total.requested[measure][cell[rows]]
            signed = bool((self.facts.measures[measure].limbs < 0).any())
            answer.mass[rows] = total.mass[measure][cell[rows]] if signed else answer.value[rows]
        return answer

    def _sizes(self, group_of: list[list[Group]]) -> list[int]:
        trees = self.cube.hierarchies
        return [tree.size + len(groups) for tree, groups in zip(trees, group_of[1:], strict=True)]

    def _is_grouped(self, coords: IntArray) -> NDArray[np.bool_]:
        sizes = np.array([tree.size for tree in self.cube.hierarchies])
        return np.asarray((coords[:, 1:] >= sizes).any(axis=1), dtype=np.bool_)

    def _profiles(
        self, cells: IntArray, group_of: list[list[Group]], measures: set[int], pieces: int
    ) -> Table:
        """Profiles of distinct cells; column 0 of the coordinates doesn't matter."""
        n = len(cells)
        total = empty_table(np.arange(n), measures, max(pieces, self._pieces))
        grouped = self._is_grouped(cells)
        plain = np.flatnonzero(~grouped)
        combinations, which = self.cuboids.signatures(cells[plain])
        tables = self._tables(set(combinations), measures, pieces, False)
        for index, levels in enumerate(combinations):
            mine = plain[which == index]
            put(total, mine, self._level(levels, self.cuboids.pack(levels, cells[mine]), tables[levels]))
        joined: NDArray[np.bool_] = np.zeros(n, dtype=bool)
        for split in self.splits()[1:]:
            size = self.cube.hierarchies[split.fixed].size
            joined = np.logical_or(joined, cells[:, 1 + split.fixed] >= size)
        for mixed in (False, True):
            chosen = np.flatnonzero(grouped & (joined == mixed))
            reach = np.cumsum(self._part_counts(cells[chosen], group_of)) // _CHUNK
            for rows in np.split(chosen, np.flatnonzero(np.diff(reach)) + 1):
                if len(rows):
                    put(total, rows, self._joined(cells[rows], group_of, measures, pieces, mixed))
        return total

    def _level(self, levels: Levels, keys: Ints, table: Table) -> Table:
        """Profiles of plain cells of one level combination."""
        n, measures = len(keys), set(table.sizes)
        place = np.minimum(np.searchsorted(table.key, keys), max(len(table.key) - 1, 0))
        hit = np.flatnonzero(table.key[place] == keys) if len(table.key) else np.zeros(0, dtype=np.int64)
        found = gather(table, place[hit], hit.astype(np.int64), np.arange(n), measures)
        wanderers = self.splits()[self._split_for(levels, False)].wanderers
        if not wanderers.size:
            return found
        order = np.argsort(keys, kind="stable")
        number = self._numbers(wanderers.leaf, wanderers.size, levels, keys[order])
        inside = np.flatnonzero(number >= 0)
        met, _, entities = merge(wanderers, order[number[inside]], inside)
        return self._with_wanderers(found, met, entities, measures)

    def _with_wanderers(self, found: Table, met: Ints, entities: Entities, measures: set[int]) -> Table:
        """Adds wandering contributors, of whom only those above the smallest piece kept can matter."""

        def order_of(measure: int) -> Rows:
            size, width = found.sizes[measure], found.widths[measure]
            floor = np.where(width[:, -1] > 0, size.min(axis=1), -1.0)
            amounts = np.abs(entities.amounts[measure])
            candidates = np.flatnonzero(amounts > floor[met])
            return candidates[np.argsort(-amounts[candidates], kind="stable")]

        n = len(found.count)
        table = self._reduce(entities, met, np.arange(n), measures, order_of)
        return union([found, table], n, measures)

    def _part_counts(self, coords: IntArray, group_of: list[list[Group]]) -> Ints:
        counts = np.ones(len(coords), dtype=np.int64)
        for column, groups in enumerate(group_of):
            if groups:
                size = self.cube.hierarchies[column - 1].size
                lengths = np.array([len(group.members) for group in groups])
                grouped = coords[:, column] >= size
                counts[grouped] *= lengths[coords[grouped, column] - size]
        return counts

    def _joined(
        self, cells: IntArray, group_of: list[list[Group]], measures: set[int], pieces: int, mixed: bool
    ) -> Table:
        """Profiles of cells of groups: each is the union of its parts, which share no fact row."""
        n = len(cells)
        parts, owner = expand(self.cube, cells, group_of)
        combinations, which = self.cuboids.signatures(parts)
        tables = self._tables(set(combinations), measures, pieces, mixed)
        pairs: list[tuple[Ints, Rows]] = []
        gathered: list[Table] = []
        for index, levels in enumerate(combinations):
            mine = np.flatnonzero(which == index)
            keys = self.cuboids.pack(levels, parts[mine])
            table = tables[levels]
            place = np.minimum(np.searchsorted(table.key, keys), len(table.key) - 1)
            hit = table.key[place] == keys
            gathered.append(gather(table, place[hit], owner[mine[hit]], np.arange(n), measures))
            wandering = self.splits()[self._split_for(levels, mixed)].wandering
            if len(wandering):
                pairs.append(self._members_met(levels, keys, owner[mine], wandering))
        found = gathered[0] if len(gathered) == 1 else union(gathered, n, measures)
        if not pairs:
            return found
        cells_met = np.concatenate([cells for cells, _ in pairs])
        met, _, entities = merge(self.facts, cells_met, np.concatenate([rows for _, rows in pairs]))
        return self._with_wanderers(found, met, entities, measures)

    def _members_met(self, levels: Levels, keys: Ints, owner: Ints, rows: Rows) -> tuple[Ints, Rows]:
        """Pairs of an owner and a fact row of a wandering contributor in one of its parts."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        lengths = np.diff(np.append(starts, len(keys)))
        number = self._numbers([column[rows] for column in self.facts.leaf], len(rows), levels, distinct)
        inside = np.flatnonzero(number >= 0)
        length = lengths[number[inside]]
        source = np.repeat(inside, length)
        return owner[order][ranges(starts[number[inside]], length)], rows[source]

    def _values(self, coords: IntArray, group_of: list[list[Group]]) -> FloatArray:
        grouped = self._is_grouped(coords)
        values = np.full(len(coords), np.nan)
        values[~grouped] = self.cuboids.values(coords[~grouped])
        for measure in np.unique(coords[grouped, 0]).tolist():
            rows = np.flatnonzero(grouped & (coords[:, 0] == measure))
            reach = np.cumsum(self._part_counts(coords[rows], group_of)) // _CHUNK
            for some in np.split(rows, np.flatnonzero(np.diff(reach)) + 1):
                parts, owner = expand(self.cube, coords[some], group_of)
                if self.cube.measures[measure].additive:
                    values[some] = self.cuboids.sums(measure, parts, owner, len(some))
                else:
                    values[some] = self._recompute(measure, parts, owner, len(some))
        return values

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> FloatArray:
        """Values of a measure that doesn't add up in cells of groups: float64[n], nan where empty."""
        group_of = [[g for g in groups if g.column == column] for column in range(coords.shape[1])]
        parts, owner = expand(self.cube, coords, group_of)
        return self._recompute(measure, parts, owner, len(coords))

    def _recompute(self, measure: int, parts: IntArray, owner: Ints, n: int) -> FloatArray:
        result = np.full(n, np.nan)
        lengths = np.bincount(owner, minlength=n)
        single = lengths[owner] == 1
        result[owner[single]] = self.cuboids.values(parts[single])
        parts, owner = parts[~single], owner[~single]
        if not len(parts):
            return result
        everyone = np.arange(self.facts.size)
        combinations, which = self.cuboids.signatures(parts)
        pairs = [
            self._members_met(levels, self.cuboids.pack(levels, parts[mine]), owner[mine], everyone)
            for index, levels in enumerate(combinations)
            for mine in [np.flatnonzero(which == index)]
        ]
        cells = np.concatenate([cells for cells, _ in pairs])
        rows = np.concatenate([found for _, found in pairs])
        column = self.facts.measures[measure]
        if column.present is not None:
            cells, rows = cells[column.present[rows]], rows[column.present[rows]]
        if not len(cells):
            return result
        order, starts = sorted_groups(cells)
        met = cells[order][starts]
        rows = rows[order]
        aggregator = self.cube.measures[measure].aggregator
        if column.raw is None:
            sums = column.scale.to_float(np.add.reduceat(column.limbs[rows], starts, axis=0))
            result[met] = sums / np.diff(np.append(starts, len(rows)))
            return result
        reduces: dict[str, Callable[[FloatArray], Any]] = {
            "min": np.min,
            "max": np.max,
            "median": np.median,
            "distinct-count": lambda values: len(np.unique(values)),
        }
        for cell, values in zip(met, np.split(column.raw[rows], starts[1:]), strict=True):
            result[cell] = float(reduces[aggregator](values))
        return result
