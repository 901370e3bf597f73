"""crawl: measures that add up to one another in every record (`app.domain.identity`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from app.domain.cube import Cube, IntArray
from app.domain.equation import Entries, Floats
from app.domain.identity import Identity, identity_sums
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
    """Where a distinct count is the count: where each value stands in one record, as firms do in a year."""
    kinds = [measure.aggregator for measure in cube.measures]
    pairs = [
        ((count, 1.0), (distinct, -1.0))
        for count in np.flatnonzero(np.array(kinds) == "count").tolist()
        for distinct in np.flatnonzero(np.array(kinds) == "distinct-count").tolist()
    ]
    spread = [1 + h for h, tree in enumerate(cube.hierarchies) if tree.has_all and not tree.time]

    def proposals(cells: IntArray, rows: Longs) -> list[Entries]:
        found = []
        for pair in pairs:
            mine = rows[np.isin(cells[rows, 0], [measure for measure, _ in pair])]
            roof = cells[mine].copy()
            roof[:, spread] = 0
            roofs, place = np.unique(roof, axis=0, return_inverse=True)
            sides = []
            for measure, _ in pair:
                roofs[:, 0] = measure
                sides.append(np.nan_to_num(values(roofs)))
            alike = np.abs(sides[0] - sides[1]) <= NOTHING * np.abs(sides[0])
            found += identity_sums(space, [pair], cells, mine[alike[place.reshape(-1)]])
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
