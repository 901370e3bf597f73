"""crawl: measures that add up to one another up to rounding, or but for few records (`app.domain.nearly`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import linalg

from app.domain.cube import Cube, IntArray
from app.domain.equation import Closure, Floats
from app.domain.identity import Identity
from app.domain.known import FactRows
from app.domain.lattice import Bools, Space, unique_rows
from app.domain.nearly import Nearly, Tendency, Told, nearly_at

#: Share of the records that may be exceptions; one always may.
SHARE = 0.01
#: Records of a size that can't agree by chance, beyond the number of measures.
ENOUGH = 20
#: How many times what a record may miss by it must be large to be such a record.
LARGE = 10.0
#: Draws of a few records by which relations are looked for: some are without exceptions.
DRAWS = 16
#: Records by which coefficients are made sure.
SAMPLE = 20_000
#: Largest and smallest powers of ten to which amounts may be rounded.
UNITS = range(6, -7, -1)
#: Digits after which a coefficient isn't rounded.
DIGITS = 6
NOTHING = 1e-9

#: Closes cells that are given, and these (int32[k, columns]) with them.
Close = Callable[[IntArray], Closure]


def find_nearly(cube: Cube, facts: FactRows | None) -> tuple[Tendency, ...]:
    """Sums of measures that are another measure but for rounding, or but for few records.

    Those that are exactly so in every record are identities (`app.pipeline.identities`), and left out here.
    """
    if facts is None:
        return ()
    adding = [number for number, measure in enumerate(cube.measures) if measure.additive]
    amounts = {
        number: np.nan_to_num(np.asarray(facts.amounts[number], dtype=np.float64)) for number in adding
    }
    adding = [number for number in adding if np.any(amounts[number])]
    if len(adding) < 2 or facts.size < len(adding) + ENOUGH:
        return ()
    weight = weights_of(cube, amounts, facts.size)
    values = np.stack([amounts[number] / weight for number in adding], axis=1)
    exact = [cube.measures[number].is_frequency for number in adding]
    units = np.array(
        [0.0 if known else unit_of_most(column) for known, column in zip(exact, values.T, strict=True)]
    )
    found: dict[frozenset[int], Tendency] = {}
    for terms in _candidates(values, units):
        key = frozenset(place for place, _ in terms)
        if not any(known <= key for known in found):
            told = _told(_surer(terms, values, units), values, units)
            if told is not None:
                room = told.room * weight
                found[key] = Tendency(tuple((adding[place], factor) for place, factor in told.terms), room)
    return tuple(found.values())


def closed_nearly(
    space: Space,
    told: Sequence[Told],
    facts: FactRows | None,
    occupied: Callable[[IntArray], Bools],
    base: IntArray,
    close: Close,
) -> tuple[Closure, tuple[Nearly, ...]]:
    """The closure of cells, with those by which what is told ties some of them, and what it says of all.

    What it speaks of, and has facts, are cells.
    """
    closure = close(base)
    if facts is None or not told:
        return closure, ()
    while True:
        named = [item.named(space, closure.coords) for item in told]
        wanted = unique_rows(space, np.concatenate([item.coords for item in named]))[0]
        known, asked = space.pack(closure.coords, wanted)
        wanted = wanted[~np.isin(asked, known)]
        wanted = wanted[occupied(wanted)]
        if not len(wanted):
            break
        base = np.concatenate([base, wanted])
        closure = close(base)
    return closure, tuple(
        nearly_at(space, sums, item.room, item.leaf or facts.leaf, closure.coords)
        for sums, item in zip(named, told, strict=True)
    )


def weights_of(cube: Cube, amounts: Mapping[int, Floats], n: int) -> Floats:
    """How often each record counts, as far as a measure that counts records tells."""
    for number, column in amounts.items():
        if cube.measures[number].aggregator == "count" and np.all(column > 0):
            return column
    return np.ones(n)


def unit_of_most(values: Floats) -> float:
    """The largest power of ten of which nearly all amounts are multiples; 0 if there is none."""
    there = np.abs(values[values != 0])
    for power in UNITS:
        scaled = there / 10.0**power
        whole = np.abs(scaled - np.round(scaled)) <= NOTHING * (1 + scaled)
        if (power <= 0 or len(there) >= ENOUGH) and whole.sum() >= (1 - SHARE) * len(there):
            return float(10.0**power)
    return 0.0


def _candidates(values: Floats, units: Floats) -> Iterator[Identity]:
    """Sums that are nearly nothing in few records, by places among the measures."""
    n, k = values.shape
    chance = np.random.default_rng(0)
    filled = [np.flatnonzero(values[:, place]) for place in range(k)]
    # In units, what rounding adds is of one size; what isn't rounded is large in units as small as these.
    scale = np.where(units > 0, units, NOTHING * np.abs(values).max(axis=0))
    for _ in range(DRAWS):
        some = [chance.choice(n, min(n, ENOUGH + 2 * k), replace=False)]
        some += [chance.choice(rows, min(len(rows), 3), replace=False) for rows in filled]
        drawn = values[np.unique(np.concatenate(some))] / scale
        triangle, pivot = linalg.qr(drawn, mode="r", pivoting=True)
        for rank in range(1, min(k, len(drawn))):
            factors = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
            missed = np.linalg.norm(triangle[rank : rank + 1, rank]) / np.sqrt(len(drawn))
            if missed <= (1 + np.abs(factors[:, 0]).sum()) / 2:
                break
        else:
            continue
        for place in range(k - rank):
            cell = int(pivot[rank + place])
            coefs = factors[:, place] * scale[cell] / scale[pivot[:rank]]
            told = sorted((int(p), float(c)) for p, c in zip(pivot[:rank], coefs, strict=True))
            yield _rounded((*told, (cell, -1.0)), values[np.unique(np.concatenate(some))])


def _rounded(terms: Identity, values: Floats) -> Identity:
    """Coefficients with as few digits as they can be told with, the last left as it is.

    ``values`` (float64[n, k]) are records that they were worked out from.
    """
    places = [place for place, _ in terms[:-1]]
    factors = np.array([factor for _, factor in terms[:-1]])
    columns = values[:, places]
    left = columns @ factors - values[:, terms[-1][0]]
    norm = np.linalg.norm(columns, axis=0)
    norm[norm == 0] = 1.0
    spread = np.sqrt(np.diag(np.linalg.pinv((columns / norm).T @ (columns / norm)))) / norm
    unsure = 4 * np.linalg.norm(left) / np.sqrt(max(len(left) - len(factors), 1)) * spread
    unsure += NOTHING * np.abs(factors)
    told = factors
    for digits in range(DIGITS, -1, -1):
        short = np.round(factors, digits)
        told = np.where(np.abs(short - factors) <= unsure, short, told)
    kept = [(place, float(factor)) for place, factor in zip(places, told, strict=True) if factor != 0]
    return (*kept, terms[-1])


def _surer(terms: Identity, values: Floats, units: Floats) -> Identity:
    """The same relation by all records that aren't exceptions."""
    if len(terms) < 2:
        return terms
    sample = values[:: max(len(values) // SAMPLE, 1)]
    left, _, width = _left(terms, sample, units)
    near = sample[left <= 4 * width + NOTHING]
    places, cell = [place for place, _ in terms[:-1]], terms[-1][0]
    if len(near) < len(terms) + ENOUGH:
        return terms
    size = np.linalg.norm(near[:, places], axis=0)
    if not size.all():
        return terms
    factors = np.linalg.lstsq(near[:, places] / size, near[:, cell], rcond=None)[0] / size
    fitted = tuple((place, float(factor)) for place, factor in zip(places, factors, strict=True))
    return _rounded((*fitted, (cell, -1.0)), near)


def _left(terms: Identity, values: Floats, units: Floats) -> tuple[Floats, Floats, float]:
    """How far each record misses (float64[n]), its terms' sizes (float64[n, terms]), what rounding allows."""
    places = [place for place, _ in terms]
    factors = np.array([factor for _, factor in terms])
    parts = values[:, places] * factors
    return np.abs(parts.sum(axis=1)), np.abs(parts), float((np.abs(factors) * units[places]).sum() / 2)


def _told(terms: Identity, values: Floats, units: Floats) -> Tendency | None:
    """The tendency if nearly all records show it and it isn't chance; None also where it is an identity."""
    if len(terms) < 2:
        return None
    left, parts, rounding = _left(terms, values, units)
    within = NOTHING * parts.sum(axis=1)
    if np.all(left <= within):
        return None
    second = np.partition(parts, -2, axis=1)[:, -2]
    for width in (0.0, rounding):
        off = left > width + within
        some = (parts > LARGE * width).any(axis=1)
        sure = (second > LARGE * width) & ~off
        if off.sum() <= max(1.0, SHARE * some.sum()) and sure.sum() >= ENOUGH + len(terms):
            most = float(np.where(left > within, left, 0.0)[~off].max(initial=0.0))
            room = np.where(off, left, np.where(parts.any(axis=1), most, 0.0))
            return Tendency(tuple(sorted(terms)), room)
    return None
