"""crawl: measures that are so many times another, by the member of one hierarchy or of two
(`app.domain.rates`).

A tax is the turnover times a rate that hangs on the activity, and on the year; the number of banks is that of
the firms whose activity is banking, and none of the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs
from app.domain.rates import Rates
from app.pipeline.given import Parts, crossed, holding, parts_by_level
from app.pipeline.nearly import DIGITS, NOTHING, SHARE, unit_of_most, weights_of
from app.pipeline.together import MOST
from app.pipeline.twins import Twin


def find_rates(cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = ()) -> tuple[Rates, ...]:
    """Measures that are nearly so many times another in each record of a member, not as many in all.

    Of the levels of a hierarchy the coarsest is told that says it; what a hierarchy says that another one
    decides is told of that one. Two hierarchies are asked for what none says alone.
    """
    if facts is None or not facts.size:
        return ()
    amounts = {
        number: np.nan_to_num(facts.amounts[number]).astype(np.float64)
        for number, measure in enumerate(cube.measures)
        if measure.additive
    }
    weight = weights_of(cube, amounts, facts.size)
    values = {number: column / weight for number, column in amounts.items() if column.any()}
    units = {
        number: 0.0 if cube.measures[number].is_frequency else unit_of_most(column)
        for number, column in values.items()
    }
    # What is so in all records is an identity, or nearly one.
    pairs = [
        _Pair(base, made, values[base], values[made], units[base], units[made])
        for base, made in permutations(values, 2)
    ]
    pairs = [pair for pair in pairs if not pair.is_everywhere()]
    found: list[Rates] = []
    said: dict[frozenset[int], Bools] = defaultdict(lambda: np.zeros(facts.size, dtype=np.bool_))
    levels = list(parts_by_level(cube, facts, {twin.coarse for twin in twins}))
    for of_one in levels:
        mine: dict[frozenset[int], Bools] = defaultdict(lambda: np.zeros(facts.size, dtype=np.bool_))
        for pair in pairs:
            # What it says in part at several levels is told as one.
            told = [item for parts in of_one if (item := pair.told(parts, mine[pair.both])) is not None]
            if told:
                found.append(_rates(pair, of_one[0].columns, told, facts, weight))
        for both, records in mine.items():
            said[both] |= records
    for parts in crossed(cube, levels):
        if math.prod(len(member) for member in parts.member) <= MOST:
            found.extend(
                _rates(pair, parts.columns, [item], facts, weight)
                for pair in pairs
                if (item := pair.told(parts, said[pair.both])) is not None
            )
    return tuple(found)


def _rates(
    pair: _Pair,
    columns: tuple[int, ...],
    told: Sequence[tuple[Floats, Floats]],
    facts: FactRows,
    weight: Floats,
) -> Rates:
    rate, room = told[0]
    for more, further in told[1:]:
        rate, room = np.where(np.isnan(rate), more, rate), room + further
    there = np.zeros(rate.shape, dtype=np.bool_)
    there[tuple(facts.leaf[column - 1] for column in columns)] = True
    return Rates(columns, pair.base, pair.made, np.where(there, rate, np.nan), there, room * weight)


class _Pair:
    """Two measures, of which the second may be so many times the first."""

    def __init__(
        self, base: int, made: int, one: Floats, other: Floats, unit_base: float, unit_made: float
    ) -> None:
        self.base, self.made, self.both = base, made, frozenset((base, made))
        self._base, self._made = one, other
        self._units = unit_base, unit_made

    def is_everywhere(self) -> bool:
        """Whether it is as many times the other in nearly all records."""
        alone = np.zeros(len(self._base), dtype=np.int64)
        rate, width = _guessed(alone, 1, self._base, self._made, *self._units)
        left = np.abs(self._made - rate[0] * self._base)
        within = NOTHING * (np.abs(self._made) + np.abs(rate[0] * self._base))
        most = max(1.0, SHARE * float((self._made != 0).sum()))
        for room in (np.zeros(1), width):
            off = left > room[0] + within
            if off.sum() <= most:
                return _large(alone, self._made, room, off)
        return False

    def told(self, parts: Parts, said: Bools) -> tuple[Floats, Floats] | None:
        """The rates by leaf and by how much each record may miss them, as far as parts have any.

        Records of which something was ``said`` (bool[records]) aren't asked again; those told now are marked.
        """
        sample = parts.sample[~said[parts.sample]]
        some = np.flatnonzero(~said)
        if len(sample) < len(some) and self._judged(parts, sample) is None:
            return None
        found = self._judged(parts, some)
        if found is None:
            return None
        rate, missed, kept = found
        here, one, other = parts.of[some], self._base[some], self._made[some]
        inside = kept[here]
        if not (one[inside] * other[inside]).any():
            return None
        said[some[inside]] = True
        room = np.zeros(len(said))
        room[some[inside]] = missed[inside]
        told = np.full(parts.count, np.nan)
        told[here[inside]] = rate[here[inside]]
        return parts.by_leaf(told), room

    def _judged(self, parts: Parts, some: Longs) -> tuple[Floats, Floats, Bools] | None:
        return _judged(parts.of[some], parts.count, self._base[some], self._made[some], self._units)


def _judged(
    part: Longs, count: int, base: Floats, made: Floats, units: tuple[float, float]
) -> tuple[Floats, Floats, Bools] | None:
    """The rate of each part, by how much each record may miss it, and in which parts there is one."""
    if not len(part):
        return None
    rate, width = _guessed(part, count, base, made, *units)
    left = np.abs(made - rate[part] * base)
    within = NOTHING * (np.abs(made) + np.abs(rate[part] * base))
    filled = (base != 0) | (made != 0)
    best: tuple[int, Floats, Bools, Bools] | None = None
    for room in (np.zeros(count), width):
        off = left > room[part] + within
        kept = _kept(part, count, rate, base, made, filled, off)
        if kept is None or not _large(part, made, room, off | ~kept[part]):
            continue
        n = int(kept[part].sum())
        if best is None or n > best[0]:
            best = n, room, off, kept
    if best is None:
        return None
    _, room, off, kept = best
    known = np.zeros(count)
    np.maximum.at(known, part[~off], np.where(left > within, left, 0.0)[~off])
    return rate, np.where(off, left, np.where(filled, known[part], 0.0)), kept


def _kept(
    part: Longs, count: int, rate: Floats, base: Floats, made: Floats, filled: Bools, off: Bools
) -> Bools | None:
    """The parts that have a rate, if records free to be of any rate would hardly agree as they do."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(off, made / base, rate[part])[filled]
    shares = np.bincount(np.unique(each, return_inverse=True)[1].reshape(-1)) / max(len(each), 1)
    agree = filled & ~off & (base != 0)
    some = np.bincount(part[made != 0], minlength=count)
    wrong = np.bincount(part[off], minlength=count)
    if wrong.sum() > max(1.0, SHARE * some.sum()):
        # Nothing of something says little where there is mostly nothing.
        agree &= made != 0
    spare = np.maximum(np.bincount(part[agree], minlength=count) - 1, 0)
    worth = spare * -math.log(float((shares**2).sum()) if len(each) else 1.0)
    return holding(some, wrong, worth)


def _large(part: Longs, made: Floats, room: Floats, off: Bools) -> bool:
    """Whether what rounding may come to is little beside most of what is made."""
    told = (made != 0) & ~off
    return bool(told.any()) and bool(np.median(np.abs(made[told]) - 10 * room[part[told]]) > 0)


def _guessed(
    member: Longs, size: int, base: Floats, made: Floats, unit_base: float, unit_made: float
) -> tuple[Floats, Floats]:
    """The rate of each part that most of its records say, with as few digits as there can be, and by how
    much rounding makes a record miss it (float64[size] each)."""
    rate, width, half = np.zeros(size), np.zeros(size), np.ones(size)
    there = np.flatnonzero(base != 0)
    ratio = made[there] / base[there]
    order = there[np.lexsort((ratio, member[there]))]
    # The middle of the ratios, of which large amounts count more: they are told to more digits.
    mass = np.cumsum(np.abs(base[order]))
    start = np.searchsorted(member[order], np.arange(size + 1))
    before = np.concatenate([[0.0], mass])[start]
    filled = np.flatnonzero(np.diff(start))
    middle = np.searchsorted(mass, (before[filled] + before[filled + 1]) / 2)
    middle = np.clip(middle, start[filled], start[filled + 1] - 1)
    rate[filled] = made[order[middle]] / base[order[middle]]
    half[filled] = np.abs(base[order[middle]])
    width = (unit_made + np.abs(rate) * unit_base) / 2
    here = member[there]
    left = np.abs(made[there] - rate[here] * base[there])
    near = left <= 2 * width[here] * (1 + np.abs(base[there]) / half[here])
    near |= left <= NOTHING * np.abs(made[there])
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    room = (width[here] + NOTHING * np.abs(made[there])) / np.abs(base[there])
    ratio = made[there] / base[there]
    np.maximum.at(low, here[near], (ratio - room)[near])
    np.minimum.at(high, here[near], (ratio + room)[near])
    told = np.isfinite(low) & (low <= high)
    rate[told] = (low[told] + high[told]) / 2
    centre = rate
    for digits in range(DIGITS, -1, -1):
        short = np.round(centre, digits)
        rate = np.where((short >= low) & (short <= high), short, rate)
    return rate, (unit_made + np.abs(rate) * unit_base) / 2
