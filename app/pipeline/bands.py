"""crawl: levels whose members divide a measure by size (`app.domain.bands`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import gammaln

from app.domain.bands import Band, widened
from app.domain.cube import Cube, Hierarchy, IntArray, Level
from app.domain.ends import ends_between, numbers_in
from app.domain.equation import Floats
from app.domain.errors import UserError
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs, Tree, lifted
from app.domain.least import unit_of
from app.pipeline.twins import Twin

#: How unlikely it must be that values fall apart by chance, as the logarithm of its inverse.
SURE = 20.0
#: Share of the records that must be in bands; the others may be in one member, of those not stated.
MOST = 0.5
#: Records by which it is seen soon that values don't lie apart.
SAMPLE = 20_000
#: Members of a level up to which one may be left out.
MOST_MEMBERS = 200
#: Ways to sum a contributor's records over time that are tried.
MOST_KEYS = 8
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class _Units:
    """Whose values are looked at: records, or what a contributor's records come to.

    ``member`` (int64[k]) is the leaf of the banded hierarchy, ``value`` (float64[k]) what each
    brings; ``spread`` and ``within`` as in `Band`.
    """

    member: Longs
    value: Floats
    spread: tuple[int, ...] = ()
    within: tuple[tuple[int, int], ...] = ()


#: Cells (int32[n, 1+H]) and their values (float64[n]), nan where they have no facts.
Told = tuple[IntArray, Floats]


def find_bands(
    cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = (), told: Told | None = None
) -> tuple[Band, ...]:
    """The bands that the cube's definition names, and those that the facts show.

    A level is one if the values in its members lie one after the other. In few records that may be chance,
    which nobody knows of: then the labels have to say it, with a number between each two. Where the engine
    keeps the facts, labels have to say it of the averages of the cells that are ``told``, as readers see.

    Raises
    ------
    UserError
        If facts are outside the bands that a level declares.
    """
    found: list[Band] = []
    who = None
    if facts is not None and facts.who is not None:
        who = np.unique(facts.who, return_inverse=True)[1].reshape(-1).astype(np.float64)
    for h, hierarchy in enumerate(cube.hierarchies):
        declared = {level.bands.measure for level in hierarchy.levels if level.bands is not None}
        for summed, measure in enumerate(cube.measures):
            if hierarchy.parent_child or measure.aggregator != "sum":
                continue
            if facts is None:
                bands = _said(cube, h, summed)
                if not bands and told is not None:
                    bands = list(_labelled(cube, h, summed, *told))
            else:
                bands = list(_Search(cube, facts, who, h, summed).bands())
                if measure.name in declared and not bands:
                    raise _broken(cube, hierarchy, measure.name)
            found.extend(bands)
    return (
        *found,
        *(_finer(cube, band, twin) for band in found for twin in twins if twin.coarse == band.column),
    )


def _broken(cube: Cube, hierarchy: Hierarchy, measure: str) -> UserError:
    level = next(item.name for item in hierarchy.levels if item.bands and item.bands.measure == measure)
    return UserError(
        f"Level {level} of cube {cube.name} doesn't divide {measure} by its cuts: some record, or what some "
        "respondent has together, is outside its band. Correct the cuts, or leave bands out."
    )


class _Search:
    """The bands of one hierarchy and one measure."""

    def __init__(self, cube: Cube, facts: FactRows, who: Floats | None, h: int, summed: int) -> None:
        self._cube, self._facts, self._h, self._summed = cube, facts, h, summed
        self._who = who
        self._tree = Tree.of(cube.hierarchies[h].parent, cube.hierarchies[h].last_descendant)
        self._amount = np.asarray(facts.amounts[summed], dtype=np.float64)

    def bands(self) -> Iterator[Band]:
        counts = self._numbers("count")
        by_record = [band for count in counts for band in self._of(count, self._records(count))]
        yield from by_record
        people: list[Band] = []
        for distinct in self._numbers("distinct-count"):
            for units in self._contributors(np.asarray(self._facts.amounts[distinct], dtype=np.float64)):
                people.extend(self._of(distinct, units))
        yield from people
        if by_record or not counts or not self._cube.measures[self._summed].nonnegative:
            return
        if not people and self._who is not None:
            for units in self._contributors(self._who):
                people.extend(self._of(counts[0], units))
        # Whoever is counted several times has a band all the same, and no more than its upper end.
        nothing = np.full(self._tree.size, -np.inf)
        for band in people:
            for count in counts:
                yield replace(band, counted=count, lower=nothing, within=())

    def _numbers(self, aggregator: str) -> list[int]:
        return [n for n, measure in enumerate(self._cube.measures) if measure.aggregator == aggregator]

    def _records(self, counted: int) -> _Units | None:
        number = np.asarray(self._facts.amounts[counted], dtype=np.float64)
        there = number > 0
        if not there.any() or np.any(self._amount[~there]):
            return None
        return _Units(self._leaf(self._h)[there], self._amount[there] / number[there])

    def _leaf(self, h: int) -> Longs:
        return self._facts.leaf[h].astype(np.int64)

    def _contributors(self, who: Floats) -> Iterator[_Units]:
        """What each contributor's records come to, be it in all, or in each year, or in each month."""
        there = ~np.isnan(who)
        if not there.any() or np.any(self._amount[~there]):
            return
        keys = [
            [(h, depth) for depth in range(int(tree.depth.max()) + 1 if tree.time else 1)]
            for h, tree in enumerate(self._cube.hierarchies)
            if h != self._h
        ]
        step = max(len(who) // SAMPLE, 1)
        some = there & (who % step == 0)
        for chosen in list(product(*keys))[:MOST_KEYS]:
            if not some.any() or self._may_be(self._summed_up(who, some, chosen)):
                yield self._summed_up(who, there, chosen)

    def _summed_up(self, who: Floats, rows: Bools, chosen: Sequence[tuple[int, int]]) -> _Units:
        """What contributors (float64[n]) bring in some rows (bool[n]), within members at some depths."""
        columns = [who[rows].astype(np.int64), self._leaf(self._h)[rows]]
        within = []
        for h, depth in chosen:
            hierarchy = self._cube.hierarchies[h]
            if depth or not hierarchy.has_all:
                columns.append(lifted(hierarchy.parent, hierarchy.depth, depth)[self._leaf(h)[rows]])
                within.append((1 + h, depth))
        order, start = _groups(columns)
        value = np.add.reduceat(self._amount[rows][order], start)
        spread = []
        for h, _ in chosen:
            leaf = self._leaf(h)[rows][order]
            if np.any(np.minimum.reduceat(leaf, start) != np.maximum.reduceat(leaf, start)):
                spread.append(1 + h)
        return _Units(columns[1][order][start], value, tuple(spread), tuple(within))

    def _may_be(self, units: _Units) -> bool:
        """Whether some values leave it open that all lie apart in the members of some level."""
        hierarchy = self._cube.hierarchies[self._h]
        measure = self._cube.measures[self._summed].name
        return any(
            (level.bands is not None and level.bands.measure == measure)
            or _ranges(
                lifted(hierarchy.parent, hierarchy.depth, depth)[units.member], units.value, hierarchy.size
            )
            is not None
            for depth, level in enumerate(hierarchy.levels)
            if depth or not hierarchy.has_all
        )

    def _of(self, counted: int, units: _Units | None) -> list[Band]:
        """The band of some units, if any level of the hierarchy is one."""
        if units is None:
            return []
        hierarchy, measure = self._cube.hierarchies[self._h], self._cube.measures[self._summed]
        size = self._tree.size
        low, high = np.full(size, -np.inf), np.full(size, np.inf)
        told = False
        for depth, level in enumerate(hierarchy.levels):
            if depth == 0 and hierarchy.has_all:
                continue
            member = lifted(hierarchy.parent, hierarchy.depth, depth)[units.member]
            declared = level.bands is not None and level.bands.measure == measure.name
            ends = (
                _declared(hierarchy, level, depth, member, units.value)
                if declared
                else _divided(hierarchy, member, units.value, measure.nonnegative)
            )
            if ends is None and declared:
                return []
            if ends is not None:
                told = True
                low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        if not told:
            return []
        filled = np.zeros(size, dtype=np.bool_)
        filled[units.member] = True
        low, high = widened(self._tree, low, high, filled)
        return [
            Band(
                1 + self._h,
                counted,
                self._summed,
                low,
                high,
                filled,
                units.spread,
                units.within,
                measure.nonnegative,
            )
        ]


def _groups(columns: Sequence[Longs]) -> tuple[Longs, Longs]:
    """The order of rows by some columns, and where each group of equal rows begins in it."""
    order = np.lexsort(columns[::-1]).astype(np.int64)
    changes = np.zeros(len(order), dtype=np.bool_)
    changes[:1] = True
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    return order, np.flatnonzero(changes)


def _divided(
    hierarchy: Hierarchy, member: Longs, value: Floats, nonnegative: bool, by_labels: bool = False
) -> tuple[Floats, Floats] | None:
    """Ends of the members of a level (float64[size] each) in which values (float64[k]) lie apart, as it can't
    be chance or (``by_labels``: only) as the labels say."""
    size = hierarchy.size
    step = max(len(value) // SAMPLE, 1)
    if step > 1 and _ranges(member[::step], value[::step], size) is None:
        return None
    found = _ranges(member, value, size)
    if found is None or len(found[0]) < 2:
        return None
    kept, least, most, count = found
    labels = [_label(hierarchy, number) for number in kept.tolist()]
    pairs = list(zip(kept[:-1].tolist(), kept[1:].tolist(), strict=True))
    said = all(
        any(most[a] <= number <= least[b] for number in labels[k] | labels[k + 1])
        for k, (a, b) in enumerate(pairs)
    )
    if not said and (by_labels or not _is_sure(count[kept])):
        return None
    unit = unit_of(np.abs(value))
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    for k, (a, b) in enumerate(pairs):
        high[a], low[b] = ends_between(float(most[a]), float(least[b]), labels[k], labels[k + 1], unit)
    first, last = int(kept[0]), int(kept[-1])
    below = [number for number in labels[0] if number <= least[first]]
    low[first] = max(below, default=-np.inf)
    if nonnegative:
        low[first] = max(low[first], 0.0)
    high[last] = min((number for number in labels[-1] if number >= most[last]), default=np.inf)
    return low, high


def _ranges(member: Longs, value: Floats, size: int) -> tuple[Longs, Floats, Floats, Longs] | None:
    """The members whose values lie apart, the least and the largest in each member, and how many; None where
    they overlap."""
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, member, value)
    np.maximum.at(most, member, value)
    count = np.bincount(member, minlength=size)
    members = np.flatnonzero(count)
    kept = _apart(members, least, most, count)
    return None if len(members) and not len(kept) else (kept, least, most, count)


def _label(hierarchy: Hierarchy, member: int) -> frozenset[float]:
    texts = {hierarchy.caption(member, language) for language in hierarchy.member_captions}
    return frozenset().union(*map(numbers_in, texts))


def _apart(members: Longs, least: Floats, most: Floats, count: Longs) -> Longs:
    """Members whose values lie one after the other, in that order; none where most of the values don't.

    One that lies across others is left out first: those of whom nothing is known are of every size.
    """
    kept = members[np.lexsort((most[members], least[members]))]
    if 0 < len(kept) <= MOST_MEMBERS:
        meets = ((least[kept][:, None] <= most[kept]) & (least[kept] <= most[kept][:, None])).sum(axis=1)
        worst = int(np.lexsort((count[kept], -meets))[0])
        if meets[worst] > 1 and count[kept].sum() - count[kept[worst]] >= MOST * count[kept].sum():
            kept = np.delete(kept, worst)
    return kept if np.all(most[kept][:-1] < least[kept][1:]) else kept[:0]


def _is_sure(count: Longs) -> bool:
    """Whether records would hardly ever lie apart like that, had members nothing to do with values."""
    ways = gammaln(count.sum() + 1) - gammaln(count + 1).sum() - gammaln(len(count) + 1)
    return bool(ways >= SURE)


def _cut_ends(hierarchy: Hierarchy, level: Level, depth: int) -> tuple[Longs, Floats, Floats]:
    """The members of a level with declared cuts, and their ends."""
    assert level.bands is not None
    members = np.flatnonzero(
        (hierarchy.depth == depth) & ~np.isin(np.arange(hierarchy.size), hierarchy.unlisted)
    )
    members = members[[hierarchy.keys[number] != "#null" for number in members.tolist()]]
    cuts = np.array(level.bands.cuts)
    if len(cuts) == len(members) - 1:
        cuts = np.concatenate([[-np.inf], cuts, [np.inf]])
    if len(cuts) != len(members) + 1:
        raise UserError(
            f"Level {level.name} has {len(members)} members, which {len(level.bands.cuts)} cuts don't "
            f"divide. Give the {len(members) - 1} numbers between them, or with both ends {len(members) + 1}."
        )
    return members, cuts[:-1], cuts[1:]


def _declared(
    hierarchy: Hierarchy, level: Level, depth: int, member: Longs, value: Floats
) -> tuple[Floats, Floats] | None:
    """Ends as a level's cuts say, None if a value is outside them."""
    members, lower, upper = _cut_ends(hierarchy, level, depth)
    low, high = np.full(hierarchy.size, -np.inf), np.full(hierarchy.size, np.inf)
    low[members], high[members] = lower, upper
    room = ROUNDING * np.abs(value)
    if np.any(value < low[member] - room) or np.any(value > high[member] + room):
        return None
    return low, high


def _said(cube: Cube, h: int, summed: int) -> list[Band]:
    """The bands that a level declares where the engine doesn't give its facts: of whatever counts."""
    hierarchy, measure = cube.hierarchies[h], cube.measures[summed]
    found = []
    for depth, level in enumerate(hierarchy.levels):
        if level.bands is None or level.bands.measure != measure.name:
            continue
        members, lower, upper = _cut_ends(hierarchy, level, depth)
        low, high = np.full(hierarchy.size, -np.inf), np.full(hierarchy.size, np.inf)
        low[members], high[members] = lower, upper
        if measure.nonnegative:
            low[members] = np.maximum(low[members], 0.0)
        filled = np.ones(hierarchy.size, dtype=np.bool_)
        low, high = widened(Tree.of(hierarchy.parent, hierarchy.last_descendant), low, high, filled)
        found += [
            Band(1 + h, counted, summed, low, high, filled, nonnegative=measure.nonnegative)
            for counted, other in enumerate(cube.measures)
            if other.is_frequency
        ]
    return found


def _labelled(cube: Cube, h: int, summed: int, coords: IntArray, values: Floats) -> Iterator[Band]:
    """Levels whose labels have numbers between the averages of their members' cells."""
    hierarchy, measure = cube.hierarchies[h], cube.measures[summed]
    sizes = np.array([len(cube.measures), *(tree.size for tree in cube.hierarchies)])
    own = (coords < sizes).all(axis=1)
    place = np.unique(coords[own, 1:], axis=0, return_inverse=True)[1].reshape(-1)
    for counted, other in enumerate(cube.measures):
        if not other.is_frequency:
            continue
        rows = [np.flatnonzero(own)[coords[own, 0] == item] for item in (counted, summed)]
        at = [place[coords[own, 0] == item] for item in (counted, summed)]
        _, first, second = np.intersect1d(at[0], at[1], return_indices=True)
        count, total = rows[0][first], rows[1][second]
        there = (values[count] > 0) & ~np.isnan(values[total])
        member, value = (
            coords[count[there], 1 + h].astype(np.int64),
            values[total[there]] / values[count[there]],
        )
        low, high = np.full(hierarchy.size, -np.inf), np.full(hierarchy.size, np.inf)
        filled = np.zeros(hierarchy.size, dtype=np.bool_)
        for depth in range(int(hierarchy.has_all), len(hierarchy.levels)):
            mine = hierarchy.depth[member] == depth
            ends = _divided(hierarchy, member[mine], value[mine], measure.nonnegative, by_labels=True)
            if ends is not None:
                low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
                for number in np.unique(member[mine]).tolist():
                    filled[number : hierarchy.last_descendant[number] + 1] = True
        if filled.any():
            low, high = widened(Tree.of(hierarchy.parent, hierarchy.last_descendant), low, high, filled)
            yield Band(1 + h, counted, summed, low, high, filled, nonnegative=measure.nonnegative)


def _finer(cube: Cube, band: Band, twin: Twin) -> Band:
    """The band of a hierarchy that a finer one decides, told of the finer one's members."""
    hierarchy = cube.hierarchies[twin.fine - 1]
    known = twin.leaf >= 0
    low, high = np.full(hierarchy.size, -np.inf), np.full(hierarchy.size, np.inf)
    filled: Bools = known & band.filled[np.where(known, twin.leaf, 0)]
    low[known], high[known] = band.lower[twin.leaf[known]], band.upper[twin.leaf[known]]
    low, high = widened(Tree.of(hierarchy.parent, hierarchy.last_descendant), low, high, filled)
    return replace(band, column=twin.fine, lower=low, upper=high, filled=filled)
