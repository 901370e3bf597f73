"""crawl: measures that add up to one another in every record (`app.domain.identity`)."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.identity import Identity
from app.domain.known import FactRows

#: Records beyond the number of measures that make chance out of the question.
ENOUGH = 20
#: Records by which identities are looked for; all are asked whether they hold.
SAMPLE = 20_000
NOTHING = 1e-9
NEAR = 1e-6


def find_identities(cube: Cube, facts: FactRows | None) -> tuple[Identity, ...]:
    """Sums and differences of measures that are another measure in every record, be it in other units.

    That a sum is always so many times the count, as where everybody pays the same, isn't among them.
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
        identity = _told(cube, (*terms, (adding[cell], -1.0)))
        if identity is not None and _holds(identity, amounts):
            found.append(identity)
    return tuple(found)


def _told(cube: Cube, terms: Identity) -> Identity | None:
    """An identity that readers may know of, its coefficients whole where they are all but whole."""
    least = min(abs(factor) for _, factor in terms)
    scaled = tuple((measure, factor / least) for measure, factor in terms)
    whole = tuple((measure, float(np.round(factor))) for measure, factor in scaled)
    if all(abs(a - b) <= NEAR for (_, a), (_, b) in zip(scaled, whole, strict=True)):
        scaled = whole
    sums = all(cube.measures[measure].aggregator == "sum" for measure, _ in scaled)
    plain = all(abs(factor) == 1 for _, factor in scaled)
    return tuple(sorted(scaled)) if plain or sums else None


def _holds(identity: Identity, amounts: dict[int, Floats]) -> bool:
    parts = [factor * amounts[measure] for measure, factor in identity]
    left, size = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
    return bool((np.abs(left) <= NOTHING * size).all())
