"""crawl: what holds in the records of some members alone, which rates, sums and slices are searched by.

Of a tax the rate hangs on the activity, but in one activity everybody has another one; home and abroad are
the turnover of all but banks. So each member of a level is judged by itself, and those in which something
holds are told. Small members are believed once the level as a whole can't be chance: that some of so many
members agree has to be unlikely however they were chosen.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from app.domain.cube import Cube, IntArray
from app.domain.equation import Floats
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs
from app.pipeline.levels import levels_of

Numbers = Longs | Floats

#: Share of the records that may be exceptions.
SHARE = 0.01
#: Records of a member from which one exception leaves it what it is.
MANY = 20
#: How unlikely it must be that records agree by chance, as the logarithm of its inverse.
SURE = 20.0
#: Records by which it is seen soon that nothing holds: in all, of each member, and out of how many.
SAMPLE = 2_000
OF_EACH = 8
LOOKED_AT = 50_000
#: Members of two levels crossed up to which they are looked at.
MOST_CROSSED = 2_500


@dataclass(frozen=True, eq=False)
class Parts:
    """The records by the members of a level, or of two levels crossed.

    Attributes
    ----------
    columns
        Of the coordinates: ``1 + h`` for hierarchy ``h``.
    member : int64[size] by column
        The member of the level that each member is below; itself where it stands higher.
    of : int64[records]
        The part of each record.
    at : int64[parts] by column
        The member of each part.
    """

    columns: tuple[int, ...]
    member: tuple[Longs, ...]
    of: Longs
    at: tuple[Longs, ...]

    @property
    def count(self) -> int:
        return len(self.at[0])

    def by_leaf(self, values: Floats) -> Floats:
        """What is known of each part, by leaf (float64[size, …]); nan where there are no records."""
        found = np.full(tuple(len(member) for member in self.member), np.nan)
        found[self.at] = values
        return found[np.ix_(*self.member)]

    @cached_property
    def sample(self) -> Longs:
        """A few records of each part, for a first look."""
        n = len(self.of)
        some = np.arange(0, n, max(n // LOOKED_AT, 1))
        order = some[np.argsort(self.of[some], kind="stable")]
        starts = np.searchsorted(self.of[order], np.arange(self.count))
        rank = np.arange(len(order)) - starts[self.of[order]]
        return np.sort(order[rank < max(OF_EACH, SAMPLE // self.count)])


def parts_by_level(cube: Cube, facts: FactRows, but: Container[int] = ()) -> Iterator[list[Parts]]:
    """The levels of each hierarchy, the coarsest first; those of the columns ``but`` are left out."""
    for h, hierarchy in enumerate(cube.hierarchies):
        leaf = facts.leaf[h].astype(np.int64)
        if 1 + h not in but and not np.isin(leaf, hierarchy.parent).any():
            yield [_parts((1 + h,), (member,), (leaf,)) for member in levels_of(hierarchy)]


def alone(facts: FactRows) -> Parts:
    """All records as one part."""
    none = np.zeros(facts.size, dtype=np.int64)
    return Parts((), (), none, (none[:1],))


def crossed(cube: Cube, levels: list[list[Parts]]) -> Iterator[Parts]:
    """Two levels of different hierarchies, as far as they have few members; those of time come first."""
    timely = [item for item in levels if item and cube.hierarchies[item[0].columns[0] - 1].time]
    others = [item for item in levels if item not in timely]
    ordered = [*timely, *others]
    for number, first in enumerate(ordered):
        for second in ordered[number + 1 :]:
            for one in first:
                for other in second:
                    small = one.count * other.count <= MOST_CROSSED
                    if small and min(one.count, other.count) > 1:
                        key, of = _numbered(one.of * other.count + other.of)
                        yield Parts(
                            (*other.columns, *one.columns),
                            (*other.member, *one.member),
                            of,
                            (other.at[0][key % other.count], one.at[0][key // other.count]),
                        )


def holding(filled: Numbers, wrong: Numbers, worth: Numbers) -> Bools | None:
    """The parts in which something holds (bool[parts]); None where there are none, or where it may be chance.

    Parameters
    ----------
    filled, wrong : int64[parts] or float64[parts]
        Records that tell something, and those of them that don't agree.
    worth : float64[parts]
        How unlikely it is that the others agree by chance, as the logarithm of its inverse.
    """
    there = (filled > 0) | (wrong > 0)
    kept = there.copy()
    if wrong.sum() > max(1.0, SHARE * filled.sum()):
        kept &= wrong <= np.where(filled >= MANY, np.maximum(1.0, SHARE * filled), 0.0)
    n, k = int(there.sum()), int(kept.sum())
    choices = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return kept | ~there if k and worth[kept].sum() - choices >= SURE else None


def _parts(columns: tuple[int, ...], member: tuple[Longs, ...], leaf: tuple[IntArray | Longs, ...]) -> Parts:
    at, of = _numbered(member[0][leaf[0]])
    return Parts(columns, member, of, (at,))


def _numbered(keys: Longs) -> tuple[Longs, Longs]:
    """As np.unique with its inverse, for small keys."""
    there = np.bincount(keys) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]
