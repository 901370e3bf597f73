"""crawl: measures that are what another was at another member, as in the year before (`app.domain.lag`).

Of each measure at each member of a level it is asked whether it is another one at another member: in nearly
every respondent who has both, or in most places, also where facts name no respondents. Constant figures say
nothing of it: evidence is only what the other measure has changed in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from app.domain.cube import Cube, IntArray
from app.domain.equation import Floats
from app.domain.known import FactRows, row_hashes
from app.domain.lag import Lag
from app.domain.lattice import Bools, Longs
from app.pipeline.brought import Hashes
from app.pipeline.levels import levels_of
from app.pipeline.nearly import DIGITS, NOTHING, unit_of_most, weights_of
from app.pipeline.twins import Twin

#: Members of a level up to which any may be told by any.
MOST_MEMBERS = 120
#: Respondents or places by which it is seen soon that a measure isn't another.
FEW = 64
#: Records that are looked at first, where they are of so many respondents or places.
SAMPLE, MANY = 50_000, 1_000
#: Share of them that must agree then, and in the end: of respondents, and of places.
SOON, RESPONDENTS, PLACES = 0.4, 0.95, 0.5
#: Fewest that agree, and how unlikely chance must be, as the logarithm of its inverse.
LEAST, SURE = 5, 20.0
#: How many times what rounding may come to an amount must be to say something.
LARGE = 10.0


#: How many others each amount is compared with to see how many agree by chance.
SHIFTS = 8


@dataclass(frozen=True)
class _Pair:
    """That a measure at a member is ``rate`` times another at the member ``source``, where each record may
    miss by half a ``unit``."""

    member: int
    source: int
    rate: float
    unit: float
    sure: float


class _Table:
    """Amounts by member of a level and by key (a respondent or a place)."""

    def __init__(self, member: Longs, key: Hashes, amounts: Mapping[int, Floats]) -> None:
        self.members, row = np.unique(member, return_inverse=True)
        _, self.first, number = np.unique(key, return_index=True, return_inverse=True)
        self._row, self._key = row.reshape(-1), (key := number.reshape(-1).astype(np.int64))
        self._order = np.argsort(self._row, kind="stable")
        self._ends = np.searchsorted(self._row[self._order], np.arange(len(self.members) + 1))
        self._amounts = amounts
        self.keys = len(self.first)
        met = np.bincount(np.unique(key * len(self.members) + self._row) // len(self.members))
        often = np.flatnonzero(met > 1)
        some = np.random.default_rng(0).permutation(often)[:FEW]
        place = np.full(self.keys, -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        self._few = place[key]
        self.n_few = len(some)

    def at(self, row: int, measure: int | None) -> Floats:
        """What each key has at a member of a measure, or how many records (float64[keys])."""
        rows = self._order[self._ends[row] : self._ends[row + 1]]
        weights = None if measure is None else self._amounts[measure][rows]
        return np.bincount(self._key[rows], weights=weights, minlength=self.keys).astype(np.float64)

    def few(self, measure: int | None) -> Floats:
        """What a few keys have of a measure at each member, or how many records (float64[members, few])."""
        rows = np.flatnonzero(self._few >= 0)
        place = self._row[rows] * self.n_few + self._few[rows]
        size = len(self.members) * self.n_few
        weights = None if measure is None else self._amounts[measure][rows]
        found = np.bincount(place, weights=weights, minlength=size).astype(np.float64)
        return found.reshape(len(self.members), self.n_few)


def find_lags(cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = ()) -> tuple[Lag, ...]:
    """What measures say of others at other members, by the finest level that says it."""
    if facts is None or not facts.size:
        return ()
    amounts = {
        number: np.nan_to_num(facts.amounts[number]).astype(np.float64)
        for number, measure in enumerate(cube.measures)
        if measure.additive and np.any(facts.amounts[number])
    }
    if len(amounts) < 2:
        return ()
    weight, step = weights_of(cube, amounts, facts.size), max(facts.size // SAMPLE, 1)
    units = {
        number: 0.0 if cube.measures[number].is_frequency else unit_of_most((column / weight)[::step])
        for number, column in amounts.items()
    }
    coarse = {twin.coarse for twin in twins}
    found: list[Lag] = []
    for h, hierarchy in enumerate(cube.hierarchies):
        leaf = facts.leaf[h].astype(np.int64)
        aside = tuple(
            1 + place
            for place, other in enumerate(cube.hierarchies)
            if place != h and (1 + place in coarse or other.dimension == hierarchy.dimension)
        )
        if (
            1 + h in coarse
            or np.isin(leaf, hierarchy.parent).any()
            or not all(cube.hierarchies[column - 1].has_all for column in aside)
        ):
            continue
        others = [column for column in range(1, 1 + len(cube.hierarchies)) if column not in (1 + h, *aside)]
        place = row_hashes([np.zeros(facts.size), *(facts.leaf[column - 1] for column in others)])
        asked = [(place, PLACES)] if facts.who is None else [(place, PLACES), (facts.who, RESPONDENTS)]
        samples = [(key, _sample(key), share) for key, share in asked]
        told: dict[tuple[int, int], dict[int, _Pair]] = {}
        for level in reversed(list(levels_of(hierarchy))):
            member = level[leaf]
            if not 1 < np.count_nonzero(np.bincount(member)) <= MOST_MEMBERS:
                continue
            tables = [
                (_Table(member[rows], key[rows], {m: a[rows] for m, a in amounts.items()}), share)
                for key, rows, share in samples
            ]
            finer = set(told)
            for made, base in permutations(amounts, 2):
                if (made, base) in told or (base, made) in finer:
                    continue
                pairs: dict[int, _Pair] = {}
                back = told.get((base, made), {})
                for table, share in tables:
                    for pair in _pairs(table, (made, base), (units[made], units[base]), share):
                        best = pairs.get(pair.member)
                        mirrored = pair.source in back and back[pair.source].source == pair.member
                        if not mirrored and (best is None or pair.sure > best.sure):
                            pairs[pair.member] = pair
                if pairs:
                    told[made, base] = pairs
                    level_of = np.full(hierarchy.size, -1, dtype=np.int64)
                    level_of[leaf] = member
                    table = _Table(member, place, amounts)
                    found.append(_lag((1 + h, made, base), aside, level_of, table, pairs, facts.leaf))
    return tuple(found)


def _sample(key: Hashes) -> Bools:
    """Which records are looked at: all of some keys, where there are enough of them."""
    rows: Bools = key % np.uint64(max(len(key) // SAMPLE, 1)) == 0
    return rows if len(np.unique(key[rows])) >= MANY else np.ones(len(key), dtype=np.bool_)


def _pairs(
    table: _Table, measures: tuple[int, int], units: tuple[float, float], share: float
) -> Iterator[_Pair]:
    """Members at which the first measure is the second at another member."""
    made, base = table.few(measures[0]), table.few(measures[1])
    there = table.few(None)
    if table.n_few < LEAST:
        return
    for row in range(len(made)):
        met = (there[row] > 0) & (there > 0) & (base != base[row]) & (base != 0) & (made[row] != 0)
        met[row] = False
        n = met.sum(axis=1)
        ratio = np.full(met.shape, np.inf)
        np.divide(made[row], base, out=ratio, where=met)
        ordered = np.sort(ratio, axis=1)
        rate = ordered[np.arange(len(n)), np.maximum(n - 1, 0) // 2][:, None]
        rate = np.where(np.isfinite(rate), rate, 0.0)
        width = (units[0] * there[row] + np.abs(rate) * units[1] * there) / 2
        near = met & (np.abs(made[row] - rate * base) <= 2 * width + NOTHING * np.abs(made[row]))
        for source in np.flatnonzero(near.sum(axis=1) >= np.maximum(SOON * n, 3)).tolist():
            pair = _told(table, row, source, measures, units, share)
            if pair is not None:
                yield pair


def _told(
    table: _Table,
    row: int,
    source: int,
    measures: tuple[int, int],
    units: tuple[float, float],
    share: float,
) -> _Pair | None:
    """How a measure at one row is another at a second one, if it is."""
    made, base, before = table.at(row, measures[0]), table.at(source, measures[1]), table.at(row, measures[1])
    here, there = table.at(row, None), table.at(source, None)
    met = (here > 0) & (there > 0) & (before != base) & ((made != 0) | (base != 0))
    both = met & (made != 0) & (base != 0)
    if both.sum() < LEAST:
        return None
    middle = float(np.median(made[both] / base[both]))
    width = units[0] * here + np.abs(middle) * units[1] * there
    for room in (np.zeros(len(made)), width / 2):
        large = met & ((made == 0) | (np.abs(made) > LARGE * room))
        agreeing = {
            rate: int((large & (np.abs(made - rate * base) <= room + NOTHING * np.abs(made))).sum())
            for rate in (float(f"{middle:.{digits}e}") for digits in range(DIGITS + 3))
        }
        # The first of the best has the fewest digits.
        rate = max(agreeing, key=lambda some: agreeing[some])
        most = agreeing[rate]
        chance = _by_chance(made[met], rate * base[met], room[met])
        n = int(met.sum())
        above = (most / n - chance) / (1 - chance) if chance < 1 else 0.0
        sure = -most * math.log(max(chance, 1 / (SHIFTS * n)))
        if most >= LEAST and above >= share and sure >= SURE:
            unit = max(units[0], abs(rate) * units[1]) if room.any() else 0.0
            return _Pair(int(table.members[row]), int(table.members[source]), rate, unit, sure)
    return None


def _by_chance(made: Floats, base: Floats, room: Floats) -> float:
    """The share of amounts that agree with those of others."""
    order = np.random.default_rng(0).permutation(len(made))
    made, base, room = made[order], base[order], room[order]
    steps = range(1, min(SHIFTS, len(made) - 1) + 1)
    met = [np.abs(made - np.roll(base, step)) <= room + NOTHING * np.abs(made) for step in steps]
    return float(np.mean(met))


def _lag(
    columns: tuple[int, int, int],
    aside: tuple[int, ...],
    level: Longs,
    table: _Table,
    pairs: Mapping[int, _Pair],
    leaves: Sequence[IntArray],
) -> Lag:
    """The relation of a hierarchy's column and two measures, with what each place misses it by.

    The keys of ``table`` are places of the facts (``leaves``).
    """
    column, made, base = columns
    source = np.full(len(level), -1, dtype=np.int64)
    rate = np.zeros(len(level))
    members, places, rooms = [], [], []
    for member, pair in pairs.items():
        source[member], rate[member] = pair.source, pair.rate
        row, there = np.searchsorted(table.members, [member, pair.source]).tolist()
        one, other = table.at(row, made), pair.rate * table.at(there, base)
        missed = np.abs(one - other)
        missed[missed <= NOTHING * (np.abs(one) + np.abs(other))] = 0
        if pair.unit:
            # Readers know that amounts are rounded, and how many there are.
            missed = np.maximum(missed, pair.unit * (table.at(row, None) + table.at(there, None)) / 2)
        off = np.flatnonzero(missed)
        members.append(np.full(len(off), member, dtype=np.int32))
        places.append(off)
        rooms.append(missed[off])
    record = table.first[np.concatenate(places)]
    leaf = [np.asarray(of_facts[record], dtype=np.int32) for of_facts in leaves]
    for other_column in aside:
        leaf[other_column - 1] = np.zeros(len(record), dtype=np.int32)
    leaf[column - 1] = np.concatenate(members)
    return Lag(column, made, base, aside, level, source, rate, tuple(leaf), np.concatenate(rooms))
