"""crawl: measures that add up to one another in the records of some members, or in few records.

What is sold at home and abroad is the turnover, but not of banks, which have other income; and it is in a
survey of twenty firms, in which only sums and differences are told from chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.identity import Identity
from app.domain.known import FactRows
from app.domain.lattice import Bools
from app.domain.nearly import Tendency
from app.pipeline.given import SURE, Parts, alone, holding, parts_by_level
from app.pipeline.nearly import ENOUGH, NOTHING, SHARE, unit_of_most, weights_of
from app.pipeline.twins import Twin

#: Measures up to which every sum of two parts is tried, and of three parts.
MOST_MEASURES = 40
MOST_OF_FOUR = 10
#: What one record says against chance at most, as a logarithm: amounts are often round.
MOST_WORTH = 5.0
#: Records by which sums are left out soon.
SAMPLE = 5_000


def find_sums(cube: Cube, facts: FactRows | None, twins: Sequence[Twin] = ()) -> tuple[Tendency, ...]:
    """Sums and differences that are another measure in the records of some members.

    Those that hold in all records are left to `find_identities` and `find_nearly`, but for those in records
    too few for them.
    """
    adding = [number for number, measure in enumerate(cube.measures) if measure.additive]
    if facts is None or not facts.size:
        return ()
    amounts = {number: np.nan_to_num(facts.amounts[number]).astype(np.float64) for number in adding}
    adding = [number for number in adding if amounts[number].any()]
    weight = weights_of(cube, amounts, facts.size)
    sums = _Sums(
        np.stack([amounts[number] / weight for number in adding], axis=1) if adding else np.zeros((0, 0)),
        [0.0 if cube.measures[number].is_frequency else unit_of_most(amounts[number]) for number in adding],
    )
    few = facts.size < len(adding) + ENOUGH
    levels = list(parts_by_level(cube, facts, {twin.coarse for twin in twins}))
    nothing = np.zeros(facts.size, dtype=np.bool_)
    found = []
    for terms in sums.candidates():
        named = tuple((adding[place], factor) for place, factor in terms)
        if sums.is_everywhere(terms):
            told = sums.told(terms, alone(facts), nothing) if few else None
            if told is not None:
                found.append(Tendency(named, told[1] * weight))
            continue
        for of_one in levels if len(terms) > 2 else ():
            said, room = nothing, np.zeros(facts.size)
            for parts in of_one:
                told = sums.told(terms, parts, said)
                if told is not None:
                    said, room = said | told[0], room + told[1]
            if said.any():
                (column,) = of_one[0].columns
                leaves = facts.leaf[column - 1]
                inside = np.ones(cube.hierarchies[column - 1].size, dtype=np.bool_)
                inside[leaves] = False
                inside[leaves[said]] = True
                found.append(Tendency(named, room * weight, column, inside))
    return tuple(found)


class _Sums:
    """Sums of measures, by places among the columns of ``values`` (float64[records, measures])."""

    def __init__(self, values: Floats, units: Sequence[float]) -> None:
        self._values = values
        self._units = np.array(units)
        largest = np.abs(values).max(axis=0, initial=0.0)
        # What isn't rounded is told apart as far as its digits go; counts are whole.
        whole = np.all(values == np.round(values), axis=0)
        self._finest = np.where(self._units > 0, self._units, np.where(whole, 1.0, NOTHING * largest))

    def candidates(self) -> Iterator[Identity]:
        """Sums that hold in records enough to be no chance, those of few measures first."""
        k = self._values.shape[1]
        sample = self._values[:: max(len(self._values) // SAMPLE, 1)]
        for size, most in ((2, MOST_MEASURES), (3, MOST_MEASURES), (4, MOST_OF_FOUR)):
            signs = [(1.0, *rest) for rest in product((1.0, -1.0), repeat=size - 1) if -1.0 in rest]
            for places in combinations(range(k), size) if k <= most else ():
                columns = sample[:, places]
                told = columns.all(axis=1)
                for factors in signs if told.any() else ():
                    terms = tuple(zip(places, factors, strict=True))
                    off, _, _ = self._off(terms, columns, rounded=True)
                    if self._worth(terms, columns[told & ~off], rounded=False).sum() >= SURE:
                        yield terms

    def is_everywhere(self, terms: Identity) -> bool:
        off, some, _ = self._off(terms, self._values[:, [place for place, _ in terms]], rounded=True)
        return bool(off.sum() <= max(1.0, SHARE * some.sum()))

    def told(self, terms: Identity, parts: Parts, said: Bools) -> tuple[Bools, Floats] | None:
        """The records of the parts in which it holds (bool[n]), and by how much each may miss it.

        Those for which it was ``said`` (bool[n]) are left out.
        """
        columns = self._values[:, [place for place, _ in terms]]
        best: tuple[int, Bools, Floats] | None = None
        for rounded in (False, True):
            off, some, left = self._off(terms, columns, rounded)
            worth = np.where(columns.all(axis=1) & ~off, self._worth(terms, columns, rounded), 0.0)
            filled, wrong, against = (
                np.bincount(parts.of, weights=np.where(said, 0.0, each), minlength=parts.count)
                for each in (some, off, worth)
            )
            kept = holding(filled, wrong, against)
            if kept is None:
                continue
            inside = kept[parts.of] & ~said
            n = int((inside & some).sum())
            if best is None or n > best[0]:
                most = float(left[inside & ~off].max(initial=0.0))
                room = np.where(off, left, np.where(some, most, 0.0))
                best = n, inside, np.where(inside, room, 0.0)
        return None if best is None else best[1:]

    def _off(self, terms: Identity, columns: Floats, rounded: bool) -> tuple[Bools, Bools, Floats]:
        """Records that miss the sum, those that have any of it, and by how much each misses."""
        parts = columns * np.array([factor for _, factor in terms])
        size = np.abs(parts).sum(axis=1)
        left = np.abs(parts.sum(axis=1))
        left = np.where(left > NOTHING * size, left, 0.0)
        return left > (self._width(terms) if rounded else 0.0), size > 0, left

    def _worth(self, terms: Identity, columns: Floats, rounded: bool) -> Floats:
        """How unlikely it is that each record agrees by chance, as the logarithm of its inverse."""
        places = [place for place, _ in terms]
        finest = float(self._finest[places].max()) + 2 * (self._width(terms) if rounded else 0.0)
        smallest = np.abs(columns).min(axis=1, initial=np.inf)
        worth: Floats = np.minimum(np.log(np.maximum(smallest / finest, 1.0)), MOST_WORTH)
        return worth

    def _width(self, terms: Identity) -> float:
        return float(self._units[[place for place, _ in terms]].sum() / 2)
