"""Who changed between two states of the facts: contributor profiles of the difference.

The rows that both states have cancel out; what is left is a cube of its own, whose contributors are those
that came, went or were corrected. A cell that none of them changes has no profile there. Rows whose
contributors were given other names in between are known again by what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.cuboids import Cuboids
from app.cube.duckdb import DuckDBEngine
from app.cube.facts import Ancestors, Facts, MeasureColumn
from app.cube.numbers import encode
from app.cube.port import Group, Profiles
from app.cube.profiles import Profiler
from app.domain.cube import Cube, Hierarchy, IntArray
from app.domain.equation import Floats
from app.domain.known import FactRows, row_hashes

Rows = NDArray[np.intp]

#: Which part of the contributors or rows must speak for new names of the same respondents, and how many rows
#: that can't be alike by chance.
MOST = 0.5
ENOUGH = 20


class Changes:
    """The difference between an earlier state of the facts and a later one.

    Parameters
    ----------
    cube : Cube
        Whose members the cells asked for are numbered by.
    before, after : FactRows
    """

    def __init__(self, cube: Cube, before: FactRows, after: FactRows) -> None:
        self._cube = replace(
            cube, measures=tuple(replace(measure, aggregator="sum") for measure in cube.measures)
        )
        self._open: list[DuckDBEngine] = []
        old, new = _numbered(cube, before), _numbered(cube, after)
        # Rows of members that are gone stand at the nearest member above.
        uneven = [
            h
            for h, tree in enumerate(cube.hierarchies)
            if any((tree.last_descendant[part.leaf[h]] > part.leaf[h]).any() for part in (old, new))
        ]
        self._ancestors = Ancestors(cube, uneven)
        self._named = before.who is not None and after.who is not None
        came, went = _left_over(old, new, self._named)
        if self._named:
            came, went, renumbered = _without_renamed(old, new, came, went)
            self._named = not renumbered
        if self._named:
            joined = _Part.join(new.take(came), old.take(went), -1.0)
            self._parts = [[joined.of(measure, True) for measure in range(len(cube.measures))]]
        else:
            # Who came and who went can't be told to be the same contributor: as few are counted as may be.
            self._parts = [
                [part.of(measure, False) for measure in range(len(cube.measures))]
                for part in (new.take(came), old.take(went))
            ]
        self._profilers: dict[tuple[int, int], Profiler] = {}

    def close(self) -> None:
        for engine in self._open:
            engine.close()

    def measure(self, coords: IntArray, groups: Sequence[Group], top: int) -> Profiles:
        """Profiles of the changes of cells of one measure; see `CubeServer.measure`.

        ``count`` are the contributors that differ, ``value`` is later less earlier.
        """
        found = [self._profile(side, coords, groups, top) for side in range(len(self._parts))]
        if len(found) == 1:
            return found[0]
        came, went = found
        return Profiles(
            came.value - went.value,
            np.maximum(came.count, went.count),
            np.maximum(came.weighted_count, went.weighted_count),
            -np.sort(-np.concatenate([np.abs(came.top), np.abs(went.top)], axis=1), axis=1)[:, :top],
            np.full(len(coords), -1, dtype=np.int64),
            np.maximum(came.requested, went.requested),
            came.mass + went.mass,
        )

    def _profile(self, side: int, coords: IntArray, groups: Sequence[Group], top: int) -> Profiles:
        measure, n = int(coords[0, 0]), len(coords)
        part = self._parts[side][measure]
        if not part.size:
            return Profiles(
                np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros((n, top)),
                np.full(n, -1, dtype=np.int64), np.zeros(n), np.zeros(n),
            )  # fmt: skip
        if (side, measure) not in self._profilers:
            self._profilers[side, measure] = self._profiler(part)
        return self._profilers[side, measure].measure(coords, groups, top)

    def _profiler(self, part: _Part) -> Profiler:
        columns = tuple(MeasureColumn(*encode(amounts), None, None) for amounts in part.amounts)
        facts = Facts(part.leaf, columns, part.contributor, None, None)
        engine = DuckDBEngine()
        self._open.append(engine)
        engine.keep_facts(self._cube, facts, self._ancestors)
        scales = [column.scale for column in columns]
        return Profiler(self._cube, facts, Cuboids(self._cube, scales, facts.size, self._ancestors, engine))


class _Part:
    """Some rows: leaf members, amounts by measure, and whose they are."""

    def __init__(
        self, leaf: tuple[IntArray, ...], amounts: tuple[Floats, ...], contributor: NDArray[np.int64]
    ) -> None:
        self.leaf = leaf
        self.amounts = amounts
        self.contributor = contributor

    @property
    def size(self) -> int:
        return len(self.contributor)

    def take(self, rows: Rows) -> _Part:
        return _Part(
            tuple(column[rows] for column in self.leaf),
            tuple(column[rows] for column in self.amounts),
            self.contributor[rows],
        )

    @classmethod
    def join(cls, one: _Part, other: _Part, factor: float) -> _Part:
        return cls(
            tuple(np.concatenate(pair) for pair in zip(one.leaf, other.leaf, strict=True)),
            tuple(np.concatenate([a, factor * b]) for a, b in zip(one.amounts, other.amounts, strict=True)),
            np.concatenate([one.contributor, other.contributor]),
        )

    def of(self, measure: int, together: bool) -> _Part:
        """The rows that matter for one measure; ``together``: net amounts of a contributor in one leaf."""
        part = self
        if together and self.size:
            key = row_hashes([*self.leaf, self.contributor])
            _, first, row = np.unique(key, return_index=True, return_inverse=True)
            net: Floats = np.bincount(row.reshape(-1), self.amounts[measure], len(first)).astype(np.float64)
            # What is left of equal amounts is rounding.
            size = np.bincount(row.reshape(-1), weights=np.abs(self.amounts[measure]), minlength=len(first))
            net[np.abs(net) <= 1e-12 * size] = 0.0
            part = self.take(first)
            nothing: Floats = np.zeros(len(first))
            part.amounts = (*[nothing] * measure, net, *[nothing] * (len(self.amounts) - measure - 1))
        kept = part.take(np.flatnonzero(part.amounts[measure] != 0))
        kept.contributor = np.unique(kept.contributor, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return kept


def _numbered(cube: Cube, rows: FactRows) -> _Part:
    """The rows by the members and measures of another cube, as far as it has them."""
    leaf: list[IntArray] = []
    lost = np.zeros(rows.size, dtype=np.bool_)
    theirs = {tree.unique_name: place for place, tree in enumerate(rows.cube.hierarchies)}
    for tree in cube.hierarchies:
        place = theirs.get(tree.unique_name)
        if place is None:
            leaf.append(np.zeros(rows.size, dtype=np.int32))
            lost |= not tree.has_all
            continue
        member = _members(rows.cube.hierarchies[place], tree)[rows.leaf[place]]
        lost |= member < 0
        leaf.append(np.maximum(member, 0).astype(np.int32))
    names = {measure.unique_name: place for place, measure in enumerate(rows.cube.measures)}
    nothing: Floats = np.zeros(rows.size)
    places = [names.get(measure.unique_name) for measure in cube.measures]
    amounts = tuple(nothing if place is None else np.nan_to_num(rows.amounts[place]) for place in places)
    who = np.arange(rows.size, dtype=np.int64) if rows.who is None else rows.who.view(np.int64)
    return _Part(tuple(leaf), amounts, who).take(np.flatnonzero(~lost))


def _members(old: Hierarchy, new: Hierarchy) -> IntArray:
    """For each member of a hierarchy its number in another, or its nearest ancestor's, or -1."""
    found = np.full(old.size, -1, dtype=np.int32)
    for member, name in enumerate(old.unique_names):
        number = new.index_of.get(name)
        if number is not None:
            found[member] = number
        elif old.parent[member] >= 0:
            found[member] = found[old.parent[member]]
        elif new.has_all:
            found[member] = 0
    return found


def _without_renamed(old: _Part, new: _Part, came: Rows, went: Rows) -> tuple[Rows, Rows, bool]:
    """Rows that came and went without those that did both under a new name, and whether there are such.

    A delivery with new pseudonyms has nobody in common with the one before, and what changed in it would
    hide behind all that seems to have. So rows that say the same cancel out where that is no chance. Whose
    names are new in some rows alone (a holding, some of whose firms were renamed) is known by neither name.
    """
    if not _are_renamed(old, new, came, went):
        return came, went, False
    still, off = _left_over(old.take(went), new.take(came), False)
    return came[still], went[off], True


def _are_renamed(old: _Part, new: _Part, came: Rows, went: Rows) -> bool:
    """Whether rows that came are rows that went, under a new name.

    Of the contributors that only one state knows most have gone while most of their rows are there again, or
    so are many rows that can be told apart; or of all rows many are there again that amounts tell apart.
    """
    strangers = np.flatnonzero(~np.isin(new.contributor[came], old.contributor))
    gone = np.flatnonzero(~np.isin(old.contributor[went], new.contributor))
    again = _met(old.take(went[gone]), new.take(came[strangers]))
    if again.size:
        everybody = len(np.unique(old.contributor))
        if len(np.unique(old.contributor[went[gone]])) >= MOST * everybody:
            return True
        if _told_apart(again, [*again.leaf, *again.amounts]):
            return True
    again = _met(old.take(went), new.take(came))
    return _told_apart(again, again.amounts)


def _met(old: _Part, new: _Part) -> _Part:
    """Rows of the earlier state that the later one has under any name, if they are most of either."""
    _, off = _left_over(old, new, False)
    met = np.delete(np.arange(old.size), off)
    return old.take(met if len(met) >= MOST * min(old.size, new.size) else met[:0])


def _told_apart(rows: _Part, columns: Sequence[NDArray[Any]]) -> bool:
    """Whether there are so many rows of so many kinds that they aren't alike by chance."""
    return rows.size >= ENOUGH and len(np.unique(row_hashes(columns))) >= MOST * rows.size


def _left_over(old: _Part, new: _Part, named: bool) -> tuple[Rows, Rows]:
    """Rows of the later and of the earlier state that the other one lacks, as a difference of multisets."""
    keys = [
        row_hashes([*part.leaf, *part.amounts, *([part.contributor] if named else [])]) for part in (new, old)
    ]
    sides = []
    for mine, other in (keys, keys[::-1]):
        order = np.argsort(mine, kind="stable")
        distinct, starts, counts = np.unique(mine[order], return_index=True, return_counts=True)
        theirs, their_counts = np.unique(other, return_counts=True)
        place = np.minimum(np.searchsorted(theirs, distinct), max(len(theirs) - 1, 0))
        met = np.zeros(len(distinct), dtype=np.int64)
        if len(theirs):
            met = np.where(theirs[place] == distinct, their_counts[place], 0)
        rank = np.arange(len(mine)) - np.repeat(starts, counts)
        sides.append(np.sort(order[rank >= np.repeat(met, counts)]))
    return sides[0], sides[1]
