"""crawl: measures that are so many times another, by the member of a hierarchy (`app.domain.nearly.Rates`).

A tax is the turnover times a rate that hangs on the activity; the number of banks is that of the firms whose
activity is banking, and none of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs
from app.domain.nearly import Rates
from app.pipeline.levels import levels_of
from app.pipeline.nearly import DIGITS, NOTHING, SHARE, unit_of_most, weights_of
from app.pipeline.twins import Twin

#: How unlikely it must be that records agree by chance, as the logarithm of its inverse.
SURE = 20.0
#: Records by which it is seen soon that there are no rates.
SAMPLE = 2_000


def find_rates(cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = ()) -> tuple[Rates, ...]:
    """Measures that are nearly so many times another in each record of a member, not as many in all.

    Of the levels of a hierarchy the coarsest is told that says it; what a hierarchy says that another one
    decides is told of that one.
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
    found: list[Rates] = []
    coarse = {twin.coarse for twin in twins}
    alone = np.zeros(facts.size, dtype=np.int64)
    # What is so in all records is an identity, or nearly one.
    pairs = [
        (base, made)
        for base, made in permutations(values, 2)
        if _rates(alone, values[base], values[made], units[base], units[made], sure=False) is None
    ]
    for h, hierarchy in enumerate(cube.hierarchies):
        leaf = facts.leaf[h].astype(np.int64)
        if 1 + h in coarse or np.isin(leaf, hierarchy.parent).any():
            continue
        for base, made in pairs:
            if any((item.column, item.base, item.made) == (1 + h, made, base) for item in found):
                continue
            for member in levels_of(hierarchy):
                told = _rates(member[leaf], values[base], values[made], units[base], units[made])
                if told is None:
                    continue
                rate = np.full(hierarchy.size, np.nan)
                there = np.zeros(hierarchy.size, dtype=np.bool_)
                there[leaf] = True
                rate[there] = told[0][member[there]]
                found.append(Rates(1 + h, base, made, rate, told[1] * weight))
                break
    return tuple(found)


def _rates(
    member: Longs, base: Floats, made: Floats, unit_base: float, unit_made: float, sure: bool = True
) -> tuple[Floats, Floats] | None:
    """The rate of each member (float64[largest + 1]) and by how much each record may miss it (float64[n]);
    None where there are none, where it may be rounding, or (``sure``) chance."""
    step = max(len(base) // SAMPLE, 1)
    for some in (slice(None, None, step), slice(None)) if step > 1 else (slice(None),):
        here, one, other = member[some], base[some], made[some]
        rate, width = _guessed(here, one, other, unit_base, unit_made)
        left = np.abs(other - rate[here] * one)
        within = NOTHING * (np.abs(other) + np.abs(rate[here] * one))
        filled = (one != 0) | (other != 0)
        most = max(1.0, SHARE * float((other != 0).sum()))
        for room in (np.zeros(len(width)), width):
            off = left > room[here] + within
            if off.sum() <= most:
                break
        else:
            return None
    if not _large(here, other, room, off) or (sure and not _is_sure(here, rate, one, filled & ~off)):
        return None
    known = np.zeros(len(rate))
    np.maximum.at(known, here[~off], np.where(left > within, left, 0.0)[~off])
    return rate, np.where(off, left, np.where(filled, known[here], 0.0))


def _is_sure(member: Longs, rate: Floats, base: Floats, some: Bools) -> bool:
    """Whether some records, free to be of any of the rates, would hardly agree within the members."""
    shares = np.bincount(np.unique(rate[member[some]], return_inverse=True)[1].reshape(-1)) / some.sum()
    spare = int((some & (base != 0)).sum()) - len(np.unique(member[some]))
    return spare * -math.log(float((shares**2).sum())) >= SURE


def _large(member: Longs, made: Floats, room: Floats, off: Bools) -> bool:
    """Whether what rounding may come to is little beside most of what is made."""
    told = (made != 0) & ~off
    return bool(told.any()) and bool(np.median(np.abs(made[told]) - 10 * room[member[told]]) > 0)


def _guessed(
    member: Longs, base: Floats, made: Floats, unit_base: float, unit_made: float
) -> tuple[Floats, Floats]:
    """The rate of each member that most of its records say, with as few digits as there can be, and by how
    much rounding makes a record miss it (float64[largest + 1] each)."""
    size = int(member.max()) + 1
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
