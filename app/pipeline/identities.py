"""crawl: measures that add up to one another in every record (`app.domain.identity`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
from scipy import linalg

from app.domain.cube import Cube, IntArray
from app.domain.equation import Entries, Floats
from app.domain.identity import Identity, pair_sums
from app.domain.known import FactRows
from app.domain.lattice import Longs, Space

#: Relations that some rows of the cells are in.
CountsAlike = Callable[[IntArray, Longs], list[Entries]]

#: Records beyond the number of measures that make chance out of the question.
ENOUGH = 20
#: Records by which identities are looked for; all are asked whether they hold.
SAMPLE = 20_000
NOTHING = 1e-9
NEAR = 1e-6


def find_identities(cube: Cube, facts: FactRows | None) -> tuple[Identity, ...]:
    """Sums and differences of measures that are another measure in every record, be it in other units.

    That a sum is always so many times the count, as where everybody pays the same, is one of them.
    """
    if facts is None:
        return ()
    adding = [number for number, measure in enumerate(cube.measures) if measure.additive]
    amounts = {number: np.asarray(facts.amounts[number], dtype=np.float64) for number in adding}
    adding = [number for number in adding if np.any(amounts[number])]
    if len(adding) < 2 or facts.size < len(adding) + ENOUGH:
        return ()
    step = max(facts.size // SAMPLE, 1)
    sample = np.stack([amounts[number][::step] for number in adding], axis=1)
    size = np.linalg.norm(sample, axis=0)
    if not size.all():
        return ()
    triangle, pivot = linalg.qr(sample / size, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > NOTHING * diagonal[0]).sum())
    factors = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    found = []
    for place in range(len(adding) - rank):
        cell = int(pivot[rank + place])
        coefs = factors[:, place] * size[cell] / size[pivot[:rank]]
        used = np.abs(factors[:, place]) > NEAR
        terms = [(adding[int(p)], float(c)) for p, c in zip(pivot[:rank][used], coefs[used], strict=True)]
        identity = _told((*terms, (adding[cell], -1.0)))
        if _holds(identity, amounts):
            found.append(identity)
    return tuple(found)


def counts_alike(cube: Cube, space: Space, values: Callable[[IntArray], Floats]) -> CountsAlike:
    """Where counts are one another, be it so many times.

    Records and what is distinct, where each value stands in one record, as firms do in a year, or in four;
    two distinct counts, where each value of one goes with one of the other, as a firm and its tax number.
    """
    kinds = np.array([measure.aggregator for measure in cube.measures])
    distinct = np.flatnonzero(kinds == "distinct-count").tolist()
    pairs = [*product(np.flatnonzero(kinds == "count").tolist(), distinct), *combinations(distinct, 2)]
    spread = [1 + h for h, tree in enumerate(cube.hierarchies) if tree.has_all and not tree.time]

    def times(coords: IntArray, pair: tuple[int, int]) -> tuple[Floats, Floats]:
        sides = []
        for measure in pair:
            at = coords.copy()
            at[:, 0] = measure
            sides.append(np.nan_to_num(values(at)))
        return sides[0], sides[1]

    differ: dict[tuple[int, int], set[bytes]] = {pair: set() for pair in pairs}

    def proposals(cells: IntArray, rows: Longs) -> list[Entries]:
        found = []
        for pair in pairs:
            met = rows[np.isin(cells[rows, 0], pair)]
            roof = cells[met].copy()
            roof[:, [0, *spread]] = 0
            roofs, place = np.unique(roof, axis=0, return_inverse=True)
            place = place.reshape(-1)
            first, second = times(roofs, pair)
            there = (first > 0) & (second > 0)
            factor = np.where(there, first, 1.0) / np.where(there, second, 1.0)
            larger = np.maximum(factor, 1 / factor)
            alike = there & (np.abs(larger - np.round(larger)) <= NOTHING * larger)
            # As many records as values are so in every part; anything else has to be seen.
            unsure = np.flatnonzero((alike & ~((factor == 1) & (kinds[pair[0]] == "count")))[place])
            one, other = times(cells[met[unsure]], pair)
            wrong = np.abs(one - factor[place[unsure]] * other) > NOTHING * one
            names = list(map(bytes, roofs))
            # Each row comes once; what one tells of its roof holds for those that come later.
            differ[pair].update(names[number] for number in np.unique(place[unsure[wrong]]).tolist())
            alike &= [name not in differ[pair] for name in names]
            new = alike[place]
            found += pair_sums(space, pair, cells, met[new], factor[place[new]])
        return found

    return proposals


def _told(terms: Identity) -> Identity:
    """An identity, its coefficients whole where they are all but whole."""
    least = min(abs(factor) for _, factor in terms)
    scaled = tuple((measure, factor / least) for measure, factor in terms)
    whole = tuple((measure, float(np.round(factor))) for measure, factor in scaled)
    if all(abs(a - b) <= NEAR for (_, a), (_, b) in zip(scaled, whole, strict=True)):
        scaled = whole
    return tuple(sorted(scaled))


def _holds(identity: Identity, amounts: dict[int, Floats]) -> bool:
    parts = [factor * amounts[measure] for measure, factor in identity]
    left, size = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
    return bool((np.abs(left) <= NOTHING * size).all())
