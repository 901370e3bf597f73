"""What earlier releases showed stays known: how it enters the cell table and the problems of the next one.

Of every release that readers may remember, the cells, relations and pattern are kept. A cell that nobody's
correction touched since has one value in both releases, so that what one of them shows is known in the
other. A cell that was touched has two, and their difference is a cell as well: a *change*, whose
contributors are those who came, went or were corrected. The rules are applied to changes as to all cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.cube.changes import Changes
from app.cube.port import Profiles
from app.domain.completeness import joined, missing_relations
from app.domain.crawled import Crawl, CubeCells
from app.domain.equation import Equations, Floats
from app.domain.known import Behind, FactRows, ShownCells
from app.domain.lattice import Bools, Longs, Space
from app.domain.least import least_known
from app.domain.primary import DIFFERENCE, PrimaryResult
from app.domain.publication import Forgetting
from app.domain.translation import translated
from app.pipeline.cell_table import as_groups

#: How far two doubles of the same sum may differ.
SAME = 1e-9

#: The facts of an earlier release of a cube by fingerprint, None when they aren't there.
Snapshots = Callable[[str, str], FactRows | None]


@dataclass(frozen=True, eq=False)
class Past:
    """What readers may remember: cells of earlier releases by cube, oldest first, and the facts of then.

    ``order`` are the releases' ids, oldest first; ``forgotten`` what its authors decided needn't be known;
    ``rules`` digests of the rules of then, by release.
    """

    shown: Mapping[str, tuple[ShownCells, ...]]
    snapshot: Snapshots
    order: tuple[str, ...] = ()
    forgotten: tuple[Forgetting, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)


NO_PAST = Past({}, lambda cube, fingerprint: None)


@dataclass(frozen=True)
class Begin:
    """A pattern to begin with: keys of the cells that it ``hidden``, and of those the ones that it hides in
    cubes whose facts and rules are the same still (``standing``).
    """

    hidden: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()


def pattern_before(past: Past, crawl: Crawl, rules: str) -> Begin:
    """What the next release does best to hide: in each cube, what the last one with today's facts under
    today's rules (a digest) hid, else the last one.
    """
    facts = {cells.cube.name: cells.fingerprint for cells in crawl.cubes}
    hidden: set[str] = set()
    standing: set[str] = set()
    for name, everything in past.shown.items():
        same = [
            shown
            for shown in everything
            if shown.cells.fingerprint == facts.get(name) and past.rules.get(shown.release_id) == rules
        ]
        keys = _hidden_keys((same or everything)[-1])
        hidden.update(keys)
        if same:
            standing.update(keys)
    return Begin(frozenset(hidden), frozenset(standing))


def _hidden_keys(shown: ShownCells) -> Sequence[str]:
    return shown.cells.keys(np.flatnonzero(shown.hidden))


def telltale(past: Past, crawl: Crawl, primaries: PrimaryResult) -> int:
    """How many published cells the last release showed and this one hides because few changed in them.

    What changed there can't be worked out, but that they are hidden now tells where it is.
    """
    before = {key for everything in past.shown.values() for key in _hidden_keys(everything[-1])}
    count = 0
    for cells, verdicts in zip(crawl.cubes, primaries.cubes, strict=True):
        differs = verdicts.reasons.get(DIFFERENCE)
        if differs is not None:
            keys = cells.keys(np.flatnonzero(differs[: cells.n_published]))
            count += sum(key not in before for key in keys)
    return count


@dataclass(frozen=True, eq=False)
class Levels:
    """Which changes are sensitive (bool[k]), and how uncertain they must stay (float64[k])."""

    sensitive: Bools
    level: Floats


#: The rules on changes: measure number and profiles of the changes of some of its cells.
JudgeChanges = Callable[[int, Profiles], Levels]


@dataclass(frozen=True, eq=False)
class LookedBack:
    """What the past says about the rows of a cube's table.

    Attributes
    ----------
    known : bool[n]
        Readers know the value: an earlier release showed it, and nobody in it changed.
    differs : bool[n]
        Showing it would tell a sensitive change, because an earlier release showed it too.
    level : float64[n]
        How uncertain it must stay for that reason.
    since : mapping of row to release id
        The release that a differing row differs from.
    behind : Behind
    """

    known: Bools
    differs: Bools
    level: Floats
    since: Mapping[int, str]
    behind: Behind


def look_back(
    cells: CubeCells,
    past: Sequence[ShownCells],
    facts: FactRows | None,
    snapshots: Snapshots,
    judge: JudgeChanges,
    top: int,
) -> LookedBack:
    """Compare the cells of a table with those of earlier releases, oldest first.

    ``top`` is how many of the largest contributions to a change the rules want to see, and how many
    contributors they count.
    """
    return _Look(cells, past, facts, snapshots, judge, top).result()


class _Look:
    """States are numbered from the oldest release; the last one is the table's own."""

    def __init__(
        self,
        cells: CubeCells,
        past: Sequence[ShownCells],
        facts: FactRows | None,
        snapshots: Snapshots,
        judge: JudgeChanges,
        top: int,
    ) -> None:
        self._cells, self._past, self._judge, self._top = cells, past, judge, top
        self._facts, self._snapshots = facts, snapshots
        self._now = len(past)
        n = len(cells)
        self._row = [_rows_in(cells, shown.cells) for shown in past]
        self._value = np.full((self._now + 1, n), np.nan)
        self._there = np.zeros((self._now + 1, n), dtype=np.bool_)
        self._known = np.zeros((self._now + 1, n), dtype=np.bool_)
        for state, (shown, row) in enumerate(zip(past, self._row, strict=True)):
            met = np.flatnonzero(row >= 0)
            self._value[state, row[met]] = np.nan_to_num(shown.cells.values[met])
            self._there[state, row[met]] = True
            self._known[state, row[met]] = (shown.known | _known_zeros(shown))[met]
        self._value[self._now] = np.nan_to_num(cells.values)
        self._there[self._now] = True
        # Which state's cell each state's cell is the same as: the latest one since which nobody changed.
        self._same = np.tile(np.arange(self._now + 1)[:, None], (1, n))
        self._differs: list[tuple[int, int, Longs, Floats]] = []

    def result(self) -> LookedBack:
        for state in reversed(range(self._now)):
            for later in range(self._now, state, -1):
                self._compare(state, later)
        for state in range(self._now):
            rows = np.flatnonzero(self._known[state])
            self._known[self._same[state, rows], rows] = True
        n = len(self._cells)
        known = self._known[self._now].copy()
        differs, level = np.zeros(n, dtype=np.bool_), np.zeros(n)
        since: dict[int, str] = {}
        for state, later, rows, levels in self._differs:
            if later == self._now:
                told = self._is_known(state, rows) & ~known[rows]
                mine = rows[told]
                differs[mine] = True
                level[mine] = np.maximum(level[mine], levels[told])
                since.update(dict.fromkeys(mine.tolist(), self._past[state].release_id))
        return LookedBack(known, differs, level, since, self._behind())

    # ------------------------------------------------------------------ who changed

    def _compare(self, state: int, later: int) -> None:
        rows = np.flatnonzero(
            self._there[state] & self._there[later] & self._cells.has_contributors & ~self._cells.is_derived
        )
        if not len(rows):
            return
        moved = self._value[later, rows] - self._value[state, rows]
        size = np.abs(self._value[later, rows]) + np.abs(self._value[state, rows])
        moved[np.abs(moved) <= SAME * size] = 0.0
        before, after = self._facts_of(state), self._facts_of(later)
        measures = self._cells.coords[rows, 0]
        mass, sensitive, level = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows))
        same_data = self._fingerprint(state) == self._fingerprint(later)
        changes = None
        if not same_data and before is not None and after is not None:
            changes = Changes(self._cells.cube, before, after)
        for measure in np.unique(measures).tolist():
            mine = np.flatnonzero(measures == measure)
            found = self._profiles(changes, rows[mine], moved[mine], measure)
            judged = self._judge(measure, found)
            mass[mine], sensitive[mine], level[mine] = found.mass, judged.sensitive, judged.level
        if changes is not None:
            changes.close()
        still = rows[mass == 0]
        still = still[self._same[state, still] == state]
        self._same[state, still] = self._same[later, still]
        hit = sensitive & (mass > 0)
        if hit.any():
            self._differs.append((state, later, rows[hit], level[hit]))

    def _profiles(self, changes: Changes | None, rows: Longs, moved: Floats, measure: int) -> Profiles:
        """Profiles of changes; where the facts don't tell, whatever moved is taken for one contributor's."""
        n = len(rows)
        size = np.abs(moved)
        top = np.zeros((n, self._top))
        top[:, 0] = size
        alone = (size > 0).astype(np.int64)
        nobody = np.full(n, -1, dtype=np.int64)
        guess = Profiles(moved, alone, alone.astype(np.float64), top, nobody, np.zeros(n), size)
        if changes is None:
            return guess
        coords, groups = as_groups(self._cells.space, self._cells.coords[rows])
        found = changes.measure(coords, groups, self._top)
        if not self._cells.cube.measures[measure].additive:
            return found
        # Members that moved elsewhere in their hierarchy change cells without any fact changing.
        told = np.abs(found.value - moved) <= 1e-6 * (1.0 + found.mass + np.abs(self._value[self._now, rows]))
        return Profiles(
            *(
                np.where(told if np.ndim(a) == 1 else told[:, None], a, b)
                for a, b in (
                    (found.value, guess.value),
                    (found.count, guess.count),
                    (found.weighted_count, guess.weighted_count),
                    (found.top, guess.top),
                    (found.holder, guess.holder),
                    (found.requested, guess.requested),
                    (found.mass, guess.mass),
                )
            )
        )

    def _fingerprint(self, state: int) -> str:
        return self._cells.fingerprint if state == self._now else self._past[state].cells.fingerprint

    def _facts_of(self, state: int) -> FactRows | None:
        if state == self._now:
            return self._facts
        return self._snapshots(self._cells.cube.name, self._fingerprint(state))

    # ------------------------------------------------------------------ cells and relations of the past

    def _is_known(self, state: int, rows: Longs) -> Bools:
        result: Bools = self._known[self._same[state, rows], rows]
        return result

    def _behind(self) -> Behind:
        n = len(self._cells)
        gathered = _Gathered(n)
        place: dict[int, Longs] = {}
        for state in reversed(range(self._now)):
            place[state] = self._places(gathered, place, state, self._past[state], self._row[state])
        for state, later, rows, levels in self._differs:
            self._changes(gathered, place, state, later, rows, levels)
        return gathered.result()

    def _places(
        self, gathered: _Gathered, place: Mapping[int, Longs], state: int, shown: ShownCells, row: Longs
    ) -> Longs:
        """Where each table row's value of a state is: a row of the table, a cell behind it, or -1 (known).

        Adds the relations that the table's own don't imply.
        """
        cells = shown.cells
        n = len(self._cells)
        value = np.nan_to_num(cells.values)
        # Whether zeros were hidden then isn't kept; who thinks that they weren't knows no less.
        lower = least_known(cells, hide_zeros=False)
        met = np.flatnonzero(row >= 0)
        same = self._same[state, row[met]]
        where = np.full(len(cells), -2, dtype=np.int64)
        where[met[same == self._now]] = row[met[same == self._now]]
        for later in range(state + 1, self._now):
            shared = met[same == later]
            where[shared] = place[later][row[shared]]
        elsewhere = met[same != self._now]
        where[elsewhere[self._is_known(state, row[elsewhere])]] = -1
        alone = row < 0
        where[alone & (shown.known | _known_zeros(shown))] = -1
        equations = joined(cells.equations, missing_relations(cells.space, cells.coords, cells.equations))
        owner = equations.relation
        wanted = np.zeros(len(equations), dtype=np.bool_)
        wanted[owner[(where[equations.indices] < 0) | (where[equations.indices] >= n)]] = True
        used = np.zeros(len(cells), dtype=np.bool_)
        used[equations.indices[wanted[owner]]] = True
        fresh = np.flatnonzero((where == -2) & (used | ~alone))
        names = cells.keys(fresh)
        where[fresh] = n + gathered.add(
            value[fresh],
            lower[fresh],
            np.where(shown.hidden[fresh], shown.lpl[fresh], 0.0),
            np.where(shown.hidden[fresh], shown.upl[fresh], 0.0),
            np.where(shown.hidden[fresh], shown.spl[fresh], 0.0),
            [f"in release {shown.release_id}: {name}" for name in names],
        )
        kept = np.flatnonzero(wanted)
        inside = wanted[owner]
        number = np.cumsum(wanted) - 1
        gathered.relate(
            number[owner[inside]],
            where[equations.indices[inside]],
            equations.coefs[inside],
            value[equations.indices[inside]],
            equations.rhs[kept],
        )
        result = np.full(n, -2, dtype=np.int64)
        result[row[met]] = where[met]
        return result

    def _changes(
        self,
        gathered: _Gathered,
        place: Mapping[int, Longs],
        state: int,
        later: int,
        rows: Longs,
        levels: Floats,
    ) -> None:
        """Sensitive changes that readers may bound, as cells: change + earlier − later = 0."""
        before = place[state][rows]
        after = rows if later == self._now else place[later][rows]
        open_ = ~(self._is_known(state, rows) & (self._is_known(later, rows) | (later == self._now)))
        open_ &= (before != -2) & (after != -2)
        rows, before, after, levels = rows[open_], before[open_], after[open_], levels[open_]
        if not len(rows):
            return
        old, new = self._value[state, rows], self._value[later, rows]
        release = self._past[state].release_id
        change = len(self._cells) + gathered.add(
            new - old,
            np.full(len(rows), -np.inf),
            levels,
            levels,
            np.zeros(len(rows)),
            [f"change {later} since release {release}: {name}" for name in self._cells.keys(rows)],
        )
        k = len(rows)
        gathered.relate(
            np.tile(np.arange(k), 3),
            np.concatenate([change, before, after]),
            np.concatenate([np.ones(2 * k), -np.ones(k)]),
            np.concatenate([new - old, old, new]),
            np.zeros(k),
        )


def _known_zeros(shown: ShownCells) -> Bools:
    """Empty cells, and zeros that aren't confidential: everybody knows them."""
    return np.asarray((np.nan_to_num(shown.cells.values) == 0) & ~shown.hidden, dtype=np.bool_)


def _rows_in(cells: CubeCells, other: CubeCells) -> Longs:
    """For each row of another table the row of this one that is the same cell, or -1."""
    space = Space.of(cells.cube)
    for extra in cells.extras:
        space.number(extra.column, extra.terms, extra.key, extra.is_formula)
    everything = np.arange(len(other))
    coords, has = translated(space, cells.cube, other, everything)
    table, wanted = space.pack(cells.coords, coords)
    order = np.argsort(table, kind="stable")
    if not len(order):
        return np.full(len(other), -1, dtype=np.int64)
    found = order[np.minimum(np.searchsorted(table[order], wanted), len(order) - 1)]
    return np.where(has & (table[found] == wanted), found, -1)


class _Gathered:
    """Cells and relations as they are found."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._columns: list[list[Floats]] = [[], [], [], [], []]
        self._names: list[str] = []
        self._relation: list[Longs] = []
        self._cell: list[Longs] = []
        self._coef: list[Floats] = []
        self._rhs: list[Floats] = []
        self._relations = 0

    def add(
        self, value: Floats, lower: Floats, lpl: Floats, upl: Floats, spl: Floats, names: Sequence[str]
    ) -> Longs:
        """Take cells in; their numbers among the added ones."""
        start = len(self._names)
        for column, values in zip(self._columns, (value, lower, lpl, upl, spl), strict=True):
            column.append(values)
        self._names.extend(names)
        return np.arange(start, start + len(names))

    def relate(self, relation: Longs, cell: Longs, coef: Floats, value: Floats, rhs: Floats) -> None:
        """Take relations in; entries of known cells (-1) go to the right-hand side."""
        known = cell < 0
        rhs = rhs - np.bincount(relation[known], weights=(coef * value)[known], minlength=len(rhs))
        self._relation.append(self._relations + relation[~known])
        self._cell.append(cell[~known])
        self._coef.append(coef[~known])
        self._rhs.append(rhs)
        self._relations += len(rhs)

    def result(self) -> Behind:
        none: Floats = np.zeros(0)
        relation = np.concatenate([np.zeros(0, dtype=np.int64), *self._relation])
        order = np.argsort(relation, kind="stable")
        counts = np.bincount(relation, minlength=self._relations)
        value, lower, lpl, upl, spl = (np.concatenate([none, *column]) for column in self._columns)
        return Behind(
            value,
            lower,
            lpl,
            upl,
            spl,
            tuple(self._names),
            Equations(
                np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                np.concatenate([np.zeros(0, dtype=np.int64), *self._cell])[order],
                np.concatenate([none, *self._coef])[order],
                np.concatenate([none, *self._rhs]),
            ),
        )


#: Nothing was shown before.
def nothing_earlier(n: int) -> LookedBack:
    """What the past says of a table of n rows when there is none."""
    return LookedBack(
        np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_), np.zeros(n), {}, _Gathered(n).result()
    )
