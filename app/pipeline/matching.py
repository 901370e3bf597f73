"""crawl: which of a cube's measures, hierarchies and members are those of an earlier release.

By what its authors declare, by their definitions, then by the records that stand behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cube import Cube, Hierarchy, IntArray, Measure
from app.domain.known import FactRows, ShownCells, row_hashes
from app.domain.lattice import Bools, Longs, ranges
from app.domain.publication import CubeDefinition, DimensionDefinition, HierarchyDefinition
from app.domain.renaming import Names, same_members, with_parents
from app.pipeline.brought import SHARE, contained, kinds

#: The share of a member's records that makes another one with them a member of another key.
MOST = 0.5
#: Records of a kind that stand at more members than this tell nothing about keys.
SPREAD = 50
#: Behind names of then that mean something else today.
_BEFORE = " (before)"

Columns = list[NDArray[np.int64]]


class Match:
    """An earlier cube and a cube of today.

    Parameters
    ----------
    old
    then
        Gives its facts, if they are known.
    server, definition
        The cube of today.
    """

    def __init__(
        self,
        old: Cube,
        then: Callable[[], FactRows | None],
        server: CubeServer,
        definition: CubeDefinition,
    ) -> None:
        self._old, self._new = old, server.discover()
        self._server, self._definition = server, definition
        self._facts = then
        self._measure = self._measures()
        self._hierarchy = self._hierarchies()
        self._image = {h: self._members(h, g) for h, g in self._hierarchy.items()}
        self._unsure = {h: self._recoded(h, g) for h, g in self._hierarchy.items()}
        for h, g in self._hierarchy.items():
            if (self._image[h] < 0).any():
                self._image[h] = with_parents(old.hierarchies[h], self._new.hierarchies[g], self._image[h])

    @cached_property
    def names(self) -> Names:
        """Today's names of all that was found."""
        measures = {}
        today = self._new.measure_index
        for m, item in enumerate(self._old.measures):
            name = item.unique_name
            if m in self._measure:
                measures[name] = self._new.measures[self._measure[m]].unique_name
            elif name in today:
                measures[name] = name + _BEFORE
        hierarchies, members = {}, {}
        for h, g in self._hierarchy.items():
            old, new = self._old.hierarchies[h], self._new.hierarchies[g]
            hierarchies[old.unique_name] = new.unique_name
            if np.array_equal(self._image[h], np.arange(new.size)) and old.unique_names == new.unique_names:
                continue
            for name, number in zip(old.unique_names, self._image[h].tolist(), strict=True):
                if number >= 0:
                    members[name] = new.unique_names[number]
                elif name in new.index_of:
                    members[name] = name + _BEFORE
        differ = ({a: b for a, b in part.items() if a != b} for part in (measures, hierarchies, members))
        return Names(self._new.name, *differ)

    def lost(self, shown: ShownCells) -> Iterator[str]:
        """Unique names of what the cells of an earlier release stand at, and the cube no longer has."""
        cells = shown.cells
        some = np.nan_to_num(cells.values) != 0
        rows = np.flatnonzero(some & cells.has_contributors & ~cells.is_derived)
        for m in np.unique(cells.coords[rows, 0]).tolist():
            if m not in self._measure:
                yield self._old.measures[m].unique_name
        rows = rows[rows < cells.n_given]
        for h, tree in enumerate(self._old.hierarchies):
            used = np.zeros(tree.size, dtype=np.bool_)
            numbers = np.unique(cells.coords[rows, 1 + h])
            own = numbers < tree.size
            used[numbers[own]] = True
            for number in numbers[~own].tolist():
                used[[member for member, _ in cells.space.extra(1 + h, number).terms or ()]] = True
            if h not in self._hierarchy:
                if used[int(tree.has_all) :].any():
                    yield tree.unique_name
                continue
            image, unsure = self._image[h], self._unsure[h]
            for member in np.flatnonzero(used & (image < 0)).tolist():
                if unsure[member : tree.last_descendant[member] + 1].any():
                    yield tree.unique_names[member]

    def without_total(self) -> Iterator[str]:
        """Hierarchies that are new and have no All, so that no earlier cell is one of today's."""
        found = set(self._hierarchy.values())
        for g, tree in enumerate(self._new.hierarchies):
            if g not in found and not tree.has_all:
                yield tree.unique_name

    # ------------------------------------------------------------------ measures

    @cached_property
    def _then(self) -> FactRows | None:
        rows = self._facts()
        return rows if rows is not None and _shape(rows.cube) == _shape(self._old) else None

    @cached_property
    def _now(self) -> FactRows | None:
        return self._server.facts()

    def _measures(self) -> dict[int, int]:
        old, new = self._old.measures, self._new.measures
        declared = {name: item.name for item in self._definition.measures for name in item.formerly}
        places = {item.name: n for n, item in enumerate(new)}
        found: dict[int, int] = {}
        for m, item in enumerate(old):
            if item.name in declared and declared[item.name] in places:
                found[m] = places[declared[item.name]]
        # One column is summed once in a cube, so that a measure is what it is made of, not what it is called.
        made_of = [[_made_of(item) for item in side] for side in (old, new)]
        for m, what in enumerate(made_of[0]):
            if m not in found and what and made_of[0].count(what) == made_of[1].count(what) == 1:
                n = made_of[1].index(what)
                if n not in found.values():
                    found[m] = n
        names = {item.unique_name for item in old}
        for m, item in enumerate(old):
            if m in found:
                continue
            same = self._new.measure_index.get(item.unique_name)
            free = [
                n
                for n, other in enumerate(new)
                if n not in found.values() and (n == same or other.unique_name not in names)
            ]
            same = same if same in free else None
            alike: list[int] = []
            if same is None or new[same].column != item.column:
                alike = [n for n in free if new[n].aggregator == item.aggregator and self._same_amounts(m, n)]
            choice = alike[0] if len(alike) == 1 and same not in alike else same
            if choice is not None:
                found[m] = choice
        return found

    def _same_amounts(self, m: int, n: int) -> bool:
        if self._then is None or self._now is None:
            return False
        return contained(kinds([_amounts(self._then, m)]), kinds([_amounts(self._now, n)]))

    # ------------------------------------------------------------------ hierarchies and levels

    def _definition_of(self, tree: Hierarchy) -> tuple[DimensionDefinition, HierarchyDefinition] | None:
        for dimension in self._definition.dimensions:
            for item in dimension.hierarchies:
                if (dimension.name, item.name) == (tree.dimension, tree.name):
                    return dimension, item
        return None

    def _hierarchies(self) -> dict[int, int]:
        old, new = self._old.hierarchies, self._new.hierarchies
        found = {
            h: self._new.hierarchy_index[tree.unique_name]
            for h, tree in enumerate(old)
            if tree.unique_name in self._new.hierarchy_index
        }
        for wanted in (self._declared, self._same_leaves):
            for h, tree in enumerate(old):
                free = [g for g in range(len(new)) if g not in found.values()]
                if h in found or not free:
                    continue
                best = [g for g in free if wanted(h, g)]
                if len(best) > 1:
                    score = [(new[g].name == tree.name) + _share(tree, new[g]) for g in best]
                    best = [g for g, points in zip(best, score, strict=True) if points == max(score)]
                if len(best) == 1:
                    found[h] = best[0]
        return found

    def _declared(self, h: int, g: int) -> bool:
        old, new = self._old.hierarchies[h], self._new.hierarchies[g]
        definition = self._definition_of(new)
        if definition is None:
            return False
        dimension, item = definition
        names = {item.name, *item.formerly, *(dimension.formerly if item.name == dimension.name else ())}
        return old.dimension in {dimension.name, *dimension.formerly} and old.name in names

    def _same_leaves(self, h: int, g: int) -> bool:
        """Whether the records stand at the same keys."""
        if self._then is None or self._now is None:
            return False
        old, new = self._old.hierarchies[h], self._new.hierarchies[g]
        mine, theirs = _codes(old.keys, new.keys)
        return self._same_records([mine[self._then.leaf[h]]], [theirs[self._now.leaf[g]]])

    def _same_records(self, then: Columns, now: Columns) -> bool:
        """Whether nearly all records, which bring as much, stand alike; contributors tell them apart, too."""
        assert self._then is not None
        assert self._now is not None
        mine = [*then, *(_amounts(self._then, m) for m in self._measure)]
        theirs = [*now, *(_amounts(self._now, n) for n in self._measure.values())]
        if contained(kinds(mine), kinds(theirs)):
            return True
        if self._then.who is None or self._now.who is None:
            return False
        who = self._then.who.view(np.int64), self._now.who.view(np.int64)
        return contained(kinds([*mine, who[0]]), kinds([*theirs, who[1]]))

    def _levels(self, h: int, g: int) -> dict[str, str]:
        """Today's names of the levels of a hierarchy."""
        old, new = self._old.hierarchies[h], self._new.hierarchies[g]
        here, there = ([level.name for level in tree.levels[int(tree.has_all) :]] for tree in (old, new))
        found = {name: name for name in here if name in there}
        definition = self._definition_of(new)
        for level in definition[1].levels if definition else ():
            for name in level.formerly:
                if name in here and level.name in there:
                    found[name] = level.name
        for name in here:
            free = [other for other in there if other not in here and other not in found.values()]
            if name not in found:
                best = [other for other in free if _same_branches(old, name, new, other)]
                if len(best) == 1:
                    found[name] = best[0]
        return found

    # ------------------------------------------------------------------ members

    def _members(self, h: int, g: int) -> IntArray:
        new = self._new.hierarchies[g]
        definition = self._definition_of(new)
        keys: dict[str, Mapping[str, str]] = {}
        for level in definition[1].levels if definition else ():
            if level.recoded:
                keys[level.name] = level.recoded
        if not keys and self._old.hierarchies[h].unique_names == new.unique_names:
            return np.arange(new.size, dtype=np.int32)
        return same_members(self._old.hierarchies[h], new, self._levels(h, g), keys)

    def _recoded(self, h: int, g: int) -> Bools:
        """Members with records that may be there under other keys (bool[size]); finds those that surely are.

        Members whose records are gone, or stand at members that were there before, are gone themselves.
        """
        old, new = self._old.hierarchies[h], self._new.hierarchies[g]
        image = self._image[h]
        unsure = np.zeros(old.size, dtype=np.bool_)
        fresh = np.ones(new.size, dtype=np.bool_)
        fresh[image[image >= 0]] = False
        if (image >= 0).all() or not fresh.any():
            return unsure
        if self._then is None or self._now is None:
            return np.asarray((image < 0) & (old.last_descendant == np.arange(old.size)))
        mine = np.flatnonzero((image[self._then.leaf[h]] < 0) & self._brings(self._then, self._measure))
        theirs = np.flatnonzero(fresh[self._now.leaf[g]] & self._brings(self._now, self._measure.values()))
        if not len(mine) or not len(theirs):
            return unsure
        then, now = self._records(h, mine, theirs)
        gone, there = self._then.leaf[h][mine].astype(np.int64), self._now.leaf[g][theirs].astype(np.int64)
        sizes = old.size, new.size
        met, chance = _pairs(then, gone, now, there, sizes), 1 - SHARE
        if self._then.who is not None and self._now.who is not None:
            who = self._then.who[mine].view(np.int64), self._now.who[theirs].view(np.int64)
            named = _pairs(
                row_hashes([then.view(np.int64), who[0]]),
                gone,
                row_hashes([now.view(np.int64), who[1]]),
                there,
                sizes,
            )
            # The names tell all, unless they are others now.
            if named.many >= MOST * met.many:
                met, chance = named, 0.0
        records = np.bincount(gone, minlength=old.size)
        for member in np.flatnonzero(met.still > chance * np.maximum(records, 1)).tolist():
            # One that was split, or put together with another, is no member of today's.
            all_there = (met.old == member) & (met.count == met.still[member])
            same = np.flatnonzero(all_there & (met.count == met.came[met.new]))
            if len(same) == 1 and met.still[member] >= MOST * records[member]:
                image[member] = met.new[same[0]]
            else:
                unsure[member] = True
        return unsure

    def _brings(self, rows: FactRows, measures: Iterable[int]) -> Bools:
        mark = np.zeros(rows.size, dtype=np.bool_)
        for number in measures:
            mark |= np.nan_to_num(rows.amounts[number]) != 0
        return mark

    def _records(self, h: int, mine: Longs, theirs: Longs) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Hashes of what records say, but for one hierarchy and those that lack some of the records."""
        assert self._then is not None
        assert self._now is not None
        then: list[NDArray[np.generic]] = [_amounts(self._then, m)[mine] for m in self._measure]
        now: list[NDArray[np.generic]] = [_amounts(self._now, n)[theirs] for n in self._measure.values()]
        for other, place in self._hierarchy.items():
            if other == h:
                continue
            leaf = self._image[other][self._then.leaf[other][mine]]
            if leaf.min() >= 0:
                then.append(leaf.astype(np.int64))
                now.append(self._now.leaf[place][theirs].astype(np.int64))
        return row_hashes(then), row_hashes(now)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """How many records (``count``) of a member of then (``old``) stand at one of today's (``new``).

    ``still`` are those of each member of then that are there today, ``came`` those of each of today's that
    were there then, ``many`` all of them. A record stands wherever its like does, so that pairs may have it
    in common.
    """

    old: Longs
    new: Longs
    count: Longs
    still: Longs
    came: Longs
    many: int


def _pairs(
    then: NDArray[np.uint64], gone: Longs, now: NDArray[np.uint64], there: Longs, sizes: tuple[int, int]
) -> _Pairs:
    mine, theirs = _counted(then, gone), _counted(now, there)
    (had, totals), (has, others) = (np.unique(side, return_counts=True) for side in (then, now))
    _, a, b = np.intersect1d(had, has, assume_unique=True, return_indices=True)
    met_here, met_there = np.zeros(len(had), dtype=np.int64), np.zeros(len(has), dtype=np.int64)
    met_here[a], met_there[b] = others[b], totals[a]
    still = np.bincount(mine[1], np.minimum(mine[2], met_here[np.searchsorted(had, mine[0])]), sizes[0])
    came = np.bincount(theirs[1], np.minimum(theirs[2], met_there[np.searchsorted(has, theirs[0])]), sizes[1])
    order = np.argsort(theirs[0], kind="stable")
    start = np.searchsorted(theirs[0][order], mine[0], "left")
    spread = np.searchsorted(theirs[0][order], mine[0], "right") - start
    clear = np.flatnonzero(spread <= SPREAD)
    owner = np.repeat(clear, spread[clear])
    met = order[ranges(start[clear], spread[clear])]
    pair, row = np.unique(mine[1][owner] * sizes[1] + theirs[1][met], return_inverse=True)
    count = np.bincount(row.reshape(-1), np.minimum(mine[2][owner], theirs[2][met]), len(pair))
    many = int(np.minimum(totals[a], others[b]).sum())
    return _Pairs(
        pair // sizes[1],
        pair % sizes[1],
        count.astype(np.int64),
        still.astype(np.int64),
        came.astype(np.int64),
        many,
    )


def _counted(record: NDArray[np.uint64], member: Longs) -> tuple[NDArray[np.uint64], Longs, Longs]:
    """Each kind of record at each member, and how many there are of it."""
    _, first, count = np.unique(
        row_hashes([record.view(np.int64), member]), return_index=True, return_counts=True
    )
    return record[first], member[first], count.astype(np.int64)


def _amounts(rows: FactRows, measure: int) -> NDArray[np.float64]:
    return np.nan_to_num(rows.amounts[measure])


def _made_of(item: Measure) -> tuple[str, str] | None:
    return (item.aggregator, item.column) if item.column or item.aggregator == "count" else None


def _shape(cube: Cube) -> tuple[object, ...]:
    return (
        tuple(item.unique_name for item in cube.measures),
        tuple(tree.unique_names for tree in cube.hierarchies),
    )


def _codes(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[Longs, Longs]:
    """Numbers of keys, the same for the same."""
    known: dict[str, int] = {}
    return tuple(  # type: ignore[return-value]
        np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64) for keys in (one, other)
    )


def _share(one: Hierarchy, other: Hierarchy) -> float:
    keys = set(one.keys)
    return len(keys & set(other.keys)) / (1 + len(keys))


def _same_branches(old: Hierarchy, level: str, new: Hierarchy, other: str) -> bool:
    """Whether nearly all members of two levels have the same keys, and the same keys beneath them."""
    mine, theirs = _branches(old, level), _branches(new, other)
    return bool(mine) and len(mine & theirs) >= SHARE * len(mine | theirs)


def _branches(tree: Hierarchy, level: str) -> set[tuple[str, str]]:
    depth = next(number for number, item in enumerate(tree.levels) if item.name == level)
    found: set[tuple[str, str]] = set()
    for member in np.flatnonzero(tree.depth == depth).tolist():
        below = np.arange(member, tree.last_descendant[member] + 1)
        leaves = below[tree.last_descendant[below] == below]
        found.update((tree.keys[member], tree.keys[leaf]) for leaf in leaves.tolist())
    return found
