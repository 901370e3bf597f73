"""suppress: maxima and minima that are told because no other part of a whole can attain them.

A region's maximum is that of one of its towns. Where the maxima of all but one are shown and lower, it is
that one's, whether or not any sheet has its cell. What is told so (`app.domain.maxima`) is judged like a
cell, and cells that are hidden keep the levels that they were promised; where that fails, maxima are hidden
that tell it, the cheapest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from app.cube.port import Group
from app.domain.cell_key import cell_keys
from app.domain.crawled import CubeCells
from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.errors import UserError
from app.domain.lattice import Bools, Longs, Space, ranges
from app.domain.maxima import Leaves, Told, columns_of, intervals, leaves_of, set_hashes, tell, tellers
from app.pipeline.cell_table import as_groups
from app.pipeline.unions import UnionVerdicts

#: Ways out of one exposure that are tried.
MOST_WAYS = 16
#: Cells that a message names.
MOST_NAMED = 5
#: Sums miss their maxima by this share, being added in doubles.
ROUNDING = 1e-9


class ExtremeJudge(Protocol):
    """Whoever knows the facts' places, the rules, and who contributes to what."""

    def protects(self, cube: int, measure: int) -> bool:
        """Whether a measure has rules, or is hidden with another one."""
        ...

    def together(self, cube: int, columns: tuple[int, ...]) -> IntArray | None:
        """Combinations of leaves of some hierarchies that have facts (int32[f, len(columns)]).

        None where that can't be found out.
        """
        ...

    def judge(self, cube: int, coords: IntArray, groups: Sequence[Group]) -> UnionVerdicts:
        """The rules on groups of members, as of `UnionJudge`."""
        ...


@dataclass(frozen=True, eq=False)
class Promise:
    """What is promised of a cube's cells.

    Attributes
    ----------
    sensitive, must_show, known : bool[n]
    lpl, upl, spl : float64[n]
    """

    sensitive: Bools
    must_show: Bools
    known: Bools
    lpl: Floats
    upl: Floats
    spl: Floats


@dataclass(frozen=True)
class Attained:
    """Rows that are hidden because the maxima or minima in the rows of ``by`` told what ``told`` names."""

    cube: int
    rows: tuple[int, ...]
    told: str
    by: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Exposure:
    """A set of leaves that is told too well, and by which of a family's cells.

    ``target`` is the cell whose levels are missed, -1 where the set itself is sensitive; ``high`` how high
    its maximum has to be possible.
    """

    leaves: Longs
    by: Longs
    target: int = -1
    high: float = -np.inf


class _Family:
    """The maxima (or minima, with their signs turned) of one measure, and sums of its column."""

    def __init__(
        self,
        number: int,
        cells: CubeCells,
        promise: Promise,
        judge: ExtremeJudge,
        leaves: Leaves,
        rows: Longs,
        measure: int,
    ) -> None:
        self.number, self.cells, self.promise, self.judge = number, cells, promise, judge
        self.leaves, self.rows, self.measure = leaves, rows, measure
        self.inside = leaves.inside
        least = cells.cube.measures[measure].aggregator == "min"
        self.attained: Bools = cells.coords[rows, 0] == measure
        value = cells.values[rows]
        self.value = -value if least else np.where(self.attained, value, value * (1 + ROUNDING))
        lpl, upl = (promise.upl, promise.lpl) if least else (promise.lpl, promise.upl)
        self.lpl, self.upl, self.spl = lpl[rows].copy(), upl[rows].copy(), promise.spl[rows].copy()
        self.fixed = promise.known[rows] | ((value == 0) & ~promise.sensitive[rows])
        self.kept = self.fixed | promise.must_show[rows] | ~self.attained
        self._by_leaf = sparse.csc_array(self.inside)
        self._size = np.diff(self.inside.indptr)
        self._hash = set_hashes(self.inside)
        self._verdicts: dict[int, bool] = {}
        self._named: dict[int, str] = {}
        if judge.protects(number, measure):
            mine = np.flatnonzero(self.attained)
            for key, hit in zip(
                self._hash[mine].tolist(), promise.sensitive[rows[mine]].tolist(), strict=True
            ):
                self._verdicts[key] = self._verdicts.get(key, False) or hit
        self._lower_levels()

    def _lower_levels(self) -> None:
        """What readers know whatever is hidden can't be promised."""
        targets = np.flatnonzero(np.maximum(np.maximum(self.lpl, self.upl), self.spl) > 0)
        told = tell(self.inside, self.value, self.fixed, self.attained)
        lower, upper = self._bounds(told, self.fixed, targets)
        down = np.maximum(self.value[targets] - lower, 0.0)
        up = np.maximum(upper - self.value[targets], 0.0)
        self.lpl[targets] = np.minimum(self.lpl[targets], down)
        bounded = self.attained[targets]
        self.upl[targets[bounded]] = np.minimum(self.upl[targets], up)[bounded]
        self.spl[targets[bounded]] = np.minimum(self.spl[targets], down + up)[bounded]
        size = np.diff(told.candidates.indptr)
        for key in set_hashes(told.candidates)[size > 0].tolist():
            self._verdicts[key] = False

    # ------------------------------------------------------------------ what is told

    def exposures(self, hidden: Bools) -> list[_Exposure]:
        """What a pattern over the table tells too well."""
        shown = self._shown(hidden)
        told = tell(self.inside, self.value, shown, self.attained)
        return [*self._missed(told, shown), *self._told_sets(told)]

    def _shown(self, hidden: Bools) -> Bools:
        shown: Bools = (~hidden[self.rows] & (self.rows < self.cells.n_given)) | self.fixed
        return shown

    def _told_sets(self, told: Told) -> Iterator[_Exposure]:
        """Sensitive sets of leaves whose maximum is told exactly."""
        if not self.judge.protects(self.number, self.measure):
            return
        size = np.diff(told.candidates.indptr)
        part = np.flatnonzero((size > 0) & (size < self._size) & (self.value != 0))
        _, first, which = np.unique(set_hashes(told.candidates)[part], return_index=True, return_inverse=True)
        sets = [_set(told.candidates, int(row)) for row in part[first]]
        for place, hit in enumerate(self._sensitive(sets)):
            if hit:
                yield _Exposure(sets[place], part[which.reshape(-1) == place])

    def _missed(self, told: Told, shown: Bools) -> Iterator[_Exposure]:
        """Hidden cells that are known more closely than was promised."""
        level = np.maximum(np.maximum(self.lpl, self.upl), self.spl)
        targets = np.flatnonzero((level > 0) & ~shown)
        if not len(targets):
            return
        lower, upper = self._bounds(told, shown, targets)
        value = self.value[targets]
        slip = ROUNDING * np.abs(value)
        wanted = np.where(self.upl[targets] > 0, value + self.upl[targets], -np.inf)
        wanted = np.maximum(wanted, np.where(self.spl[targets] > 0, lower + self.spl[targets], -np.inf))
        bounded = self.attained[targets] & (upper < wanted - slip)
        for place in np.flatnonzero(bounded).tolist():
            leaves = _set(self.inside, int(targets[place]))
            above = self._over(leaves, shown & self.attained, float(wanted[place]))
            yield _Exposure(leaves, np.unique(above[1]), int(targets[place]), float(wanted[place]))
        owner, cell = tellers(told, self.inside, targets)
        for place in np.flatnonzero(lower > value - self.lpl[targets] + slip).tolist():
            by = cell[owner == place]
            by = by[self.value[by] > value[place] - self.lpl[targets[place]] + slip[place]]
            yield _Exposure(_set(self.inside, int(targets[place])), by, int(targets[place]))

    def _over(self, leaves: Longs, shown: Bools, limit: float) -> tuple[Longs, Longs]:
        """Which shown cells keep leaves below a limit: pairs (position in ``leaves``, cell)."""
        start, end = self._by_leaf.indptr[leaves].astype(np.int64), self._by_leaf.indptr[leaves + 1]
        counts = end.astype(np.int64) - start
        cell = self._by_leaf.indices[ranges(start, counts)].astype(np.int64)
        owner = np.repeat(np.arange(len(leaves)), counts)
        low = shown[cell] & (self.value[cell] < limit)
        return owner[low], cell[low]

    def _bounds(self, told: Told, shown: Bools, targets: Longs) -> tuple[Floats, Floats]:
        """As `intervals`; what sums leave to a maximum above it is the linear relations' to tell."""
        lower, _ = intervals(told, self.inside, self.value, targets)
        _, upper = intervals(
            tell(self.inside, self.value, shown & self.attained, self.attained),
            self.inside,
            self.value,
            targets,
        )
        return lower, upper

    def _sensitive(self, sets: Sequence[Longs]) -> list[bool]:
        """The rules on sets of leaves. One that is no product of members is as sensitive as all its parts."""
        columns = self.inside.shape[1]
        keys = [int(key) for key in set_hashes(_rows_of(sets, columns))]
        fresh = {key: leaves for key, leaves in zip(keys, sets, strict=True) if key not in self._verdicts}
        if fresh:
            space = _space(self.cells)
            boxes = {key: self.leaves.boxes(leaves) for key, leaves in fresh.items()}
            owner = np.repeat(np.arange(len(fresh)), [len(found) for found in boxes.values()])
            coords = self.leaves.coords(
                space, self.measure, [box for found in boxes.values() for box in found]
            )
            verdict = self.judge.judge(self.number, *as_groups(space, coords))
            calm = np.bincount(owner, weights=~verdict.sensitive, minlength=len(fresh)) > 0
            for key, fine in zip(fresh, calm.tolist(), strict=True):
                self._verdicts[key] = not fine
        return [self._verdicts[key] for key in keys]

    def name(self, exposure: _Exposure) -> str:
        """What is told, as cells are named."""
        if exposure.target >= 0:
            return self.cells.keys(self.rows[exposure.target : exposure.target + 1])[0]
        key = int(set_hashes(_rows_of([exposure.leaves], self.inside.shape[1]))[0])
        same = np.flatnonzero(self.attained & (self._hash == key))
        if len(same):
            return self.cells.keys(self.rows[same[:1]])[0]
        space = _space(self.cells)
        coords = self.leaves.coords(space, self.measure, self.leaves.boxes(exposure.leaves))
        return " + ".join(cell_keys(self.cells.cube, space, coords))

    # ------------------------------------------------------------------ what is done about it

    def way_out(self, exposure: _Exposure, hidden: Bools, cost: Floats) -> Longs | None:
        """The cheapest cells of the family whose hiding helps: no cells where nothing does, None where what
        was hidden meanwhile may do already.
        """
        shown = self._shown(hidden)
        if not shown[exposure.by].all():
            return None
        if exposure.high > -np.inf:
            shown = shown & self.attained
            ways = self._ways(*self._over(exposure.leaves, shown, exposure.high), cost)
            return ways[0] if ways else np.zeros(0, dtype=np.int64)
        tightest = int(exposure.by[np.lexsort((exposure.by, self._size[exposure.by]))[0]])
        whole = _set(self.inside, tightest)
        owner, above = self._over(whole, shown, float(self.value[tightest]))
        tries = self._ways(owner, above, cost)[:MOST_WAYS]
        left = [np.bincount(owner[~np.isin(above, way)], minlength=len(whole)) == 0 for way in tries]
        candidates = whole[np.bincount(owner, minlength=len(whole)) == 0]
        grown = [whole[mark] for mark in left]
        if exposure.target >= 0:
            if not np.isin(candidates, exposure.leaves).all():
                return None
            good = [not np.isin(leaves, exposure.leaves).all() for leaves in grown]
        else:
            if not np.array_equal(candidates, exposure.leaves):
                return None
            good = [not hit for hit in self._sensitive(grown)]
        ways = [way for way, fine in zip(tries, good, strict=True) if fine]
        if not self.kept[exposure.by].any():
            ways.append(exposure.by)
        # Where none is enough by itself, the cheapest of them is a step towards it.
        return min(ways or tries, key=lambda way: self._price(way, cost), default=np.zeros(0, dtype=np.int64))

    def _price(self, way: Longs, cost: Floats) -> tuple[float, int, int, list[int]]:
        leaves = int(self._size[way].sum())
        return float(cost[self.rows[way]].sum()), len(way), leaves, way.tolist()

    def _ways(self, owner: Longs, cell: Longs, cost: Floats) -> list[Longs]:
        """Of pairs as of `_over`, what keeps each leaf low and may be hidden; the cheapest first."""
        if not len(owner):
            return []
        order = np.lexsort((cell, owner))
        _, start = np.unique(owner[order], return_index=True)
        found = {tuple(part.tolist()) for part in np.split(cell[order], start[1:])}
        ways = [np.array(way, dtype=np.int64) for way in found if not self.kept[list(way)].any()]
        return sorted(ways, key=lambda way: self._price(way, cost))


class Extremes:
    """All maxima and minima of one cube's table."""

    def __init__(self, number: int, cells: CubeCells, promise: Promise, judge: ExtremeJudge) -> None:
        self._number, self._cells, self._promise = number, cells, promise
        self._families = list(_families(number, cells, promise, judge))

    def __len__(self) -> int:
        """How many measures are looked at."""
        return len(self._families)

    def levels(self) -> tuple[Floats, Floats, Floats]:
        """Levels of the table's cells (float64[n] each: lpl, upl, spl), no higher than what readers know in
        any case allows.
        """
        lpl, upl, spl = (
            column.copy() for column in (self._promise.lpl, self._promise.upl, self._promise.spl)
        )
        for family in self._families:
            least = self._cells.cube.measures[family.measure].aggregator == "min"
            down, up = (upl, lpl) if least else (lpl, upl)
            down[family.rows] = np.minimum(down[family.rows], family.lpl)
            up[family.rows] = np.minimum(up[family.rows], family.upl)
            spl[family.rows] = np.minimum(spl[family.rows], family.spl)
        return lpl, upl, spl

    def told(self, hidden: Bools) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What a pattern tells too well, and the cells that tell it."""
        for family in self._families:
            for exposure in family.exposures(hidden):
                yield family.name(exposure), self._cells.keys(family.rows[exposure.by[:MOST_NAMED]])

    def close(self, hidden: Bools, cost: Floats) -> list[Attained]:
        """Hide maxima and minima until nothing is told too well; in place.

        Raises
        ------
        UserError
            If what must be shown tells it.
        """
        found: list[Attained] = []
        while True:
            before = int(hidden.sum())
            for family in self._families:
                for exposure in family.exposures(hidden):
                    way = family.way_out(exposure, hidden, cost)
                    if way is None:
                        continue
                    told = family.name(exposure)
                    if not len(way):
                        raise self._in_the_way(family, exposure, told)
                    hidden[family.rows[way]] = True
                    rows, by = family.rows[way].tolist(), family.rows[exposure.by].tolist()
                    found.append(Attained(self._number, tuple(rows), told, tuple(by)))
            if int(hidden.sum()) == before:
                return found

    def _in_the_way(self, family: _Family, exposure: _Exposure, told: str) -> UserError:
        names = ", ".join(self._cells.keys(family.rows[exposure.by[:MOST_NAMED]]))
        return UserError(
            f"Cell {told} can't be protected against outsider while these must be shown: {names}. "
            "Take decisions to show back, or leave cells out of the sheets."
        )


def _families(number: int, cells: CubeCells, promise: Promise, judge: ExtremeJudge) -> Iterator[_Family]:
    measures = cells.cube.measures
    fit = cells.has_contributors & ~cells.is_derived & ~np.isnan(cells.values)
    for place, measure in enumerate(measures):
        if measure.aggregator not in ("max", "min"):
            continue
        mine = fit & (cells.coords[:, 0] == place)
        sums = np.zeros(len(cells), dtype=np.bool_)
        if measure.aggregator == "max" and measure.column:
            for other, total in enumerate(measures):
                if total.aggregator == "sum" and total.column == measure.column and total.nonnegative:
                    sums |= fit & (cells.coords[:, 0] == other)
        if not mine.any() or not _matters(promise, mine, sums, judge.protects(number, place)):
            continue
        rows = np.flatnonzero(mine | sums)
        coords = cells.coords[rows]
        columns = columns_of(cells.space, coords, [item.has_all for item in cells.cube.hierarchies])
        facts = judge.together(number, columns) if columns else np.zeros((1, 0), dtype=np.int32)
        if facts is not None:
            leaves = leaves_of(cells.space, coords, columns, facts)
            yield _Family(number, cells, promise, judge, leaves, rows, place)


def _matters(promise: Promise, mine: Bools, sums: Bools, protected: bool) -> bool:
    return protected or bool((promise.sensitive & (mine | sums)).any())


def _space(cells: CubeCells) -> Space:
    """The table's columns, to take further groups in."""
    space = Space.of(cells.cube)
    for extra in cells.extras:
        space.number(extra.column, extra.terms, extra.key, extra.is_formula)
    return space


def _set(sets: sparse.csr_array, row: int) -> Longs:
    found: Longs = np.sort(sets.indices[sets.indptr[row] : sets.indptr[row + 1]]).astype(np.int64)
    return found


def _rows_of(sets: Sequence[Longs], columns: int) -> sparse.csr_array:
    indptr = np.concatenate([[0], np.cumsum([len(leaves) for leaves in sets])]).astype(np.int64)
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *sets])
    return sparse.csr_array(
        (np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(len(sets), columns)
    )
