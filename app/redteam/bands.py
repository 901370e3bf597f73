"""Captions that say how large: whoever is in "12,000 to 21,000 €" has an income of that size.

A reader takes the members of a level for bands of a summed measure when their captions are ranges that lie
one after the other, and the average of every cell that is shown lies in its own. Then so many contributors
times the ends of a band bound their sum, in hidden cells too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from app.redteam.knowledge import Knowledge
from app.redteam.structure import Coordinates, PublicHierarchy

Range = tuple[float, float]

_NUMBER = re.compile(r"\d+(?:[.,'’\s]\d{3})*(?:[.,]\d+)?")
_AT_MOST = re.compile(
    r"[<≤]|\b(?:under|below|up to|less than|fewer than|at most"
    r"|menos|hasta|inferior|como máximo|menys|fins|com a màxim)\b"
)
_AT_LEAST = re.compile(
    r"[>≥+]|\b(?:over|above|more|at least|upwards?|from"
    r"|más|desde|superior|a partir|como mínimo|més|des de|com a mínim)\b"
)
#: Shown cells, in so many members, that have to agree.
ENOUGH_CELLS, ENOUGH_MEMBERS = 3, 2
ROUNDING = 1e-9


def range_of(caption: str) -> Range | None:
    """What a caption says of sizes, in English, Spanish or Catalan; None if it doesn't."""
    text = caption.lower()
    numbers = [_number(found.group()) for found in _NUMBER.finditer(text)]
    if len(numbers) == 2 and numbers[0] < numbers[1]:
        return numbers[0], numbers[1]
    if len(numbers) != 1:
        return None
    if _AT_MOST.search(text):
        return -math.inf, numbers[0]
    if _AT_LEAST.search(text):
        return numbers[0], math.inf
    return None


def _number(text: str) -> float:
    whole = re.sub(r"[.,'’\s](?=\d{3}(?!\d))", "", text)
    return float(whole.replace(",", "."))


@dataclass(frozen=True)
class PublicBand:
    """Members of the hierarchy in ``column`` with the range of ``summed`` that each of ``counted`` brings."""

    column: int
    counted: str
    summed: str
    ranges: Mapping[str, Range]

    def of(self, name: str) -> Range | None:
        """The range of a member, or of a remainder of several."""
        found = [self.ranges.get(part) for part in name.split(" + ")]
        told = [item for item in found if item is not None]
        if len(told) < len(found):
            return None
        return min(low for low, _ in told), max(high for _, high in told)


def bands_of(knowledge: Knowledge) -> Iterator[PublicBand]:
    """Every level and pair of measures of which captions and shown cells say so."""
    structure = knowledge.structure
    counts = [name for name, measure in structure.measures.items() if measure.frequency]
    sums = [name for name, m in structure.measures.items() if m.additive and not m.frequency]
    shown = {
        identity: min(sight.shown, key=lambda seen: seen[1])[0]
        for identity, sight in knowledge.sights.items()
        if sight.shown
    }
    for column, hierarchy in enumerate(structure.hierarchies, 1):
        for level in hierarchy.levels.values():
            ranges = _ranges(hierarchy, level)
            for counted in counts if ranges else ():
                for summed in sums:
                    if _agree(shown, column, counted, summed, ranges):
                        yield PublicBand(column, counted, summed, _with_totals(hierarchy, ranges))


def _ranges(hierarchy: PublicHierarchy, level: Iterable[str]) -> dict[str, Range]:
    """The ranges of a level's members, empty where they aren't disjoint ranges; one may say nothing."""
    found: dict[str, Range] = {}
    silent = 0
    for name in level:
        said = {range_of(caption) for caption in hierarchy.members[name].captions} - {None}
        told = [item for item in said if item is not None]
        if told:
            found[name] = (min(low for low, _ in told), max(high for _, high in told))
        else:
            silent += 1
    in_order = sorted(found.values())
    apart = all(a[1] <= b[0] for a, b in pairwise(in_order))
    return found if len(found) > 1 and silent <= 1 and apart else {}


def _agree(
    shown: Mapping[Coordinates, float],
    column: int,
    counted: str,
    summed: str,
    ranges: Mapping[str, Range],
) -> bool:
    """Whether every sum that is shown lies between so many times the ends, and there are enough of them."""
    cells = 0
    members: set[str] = set()
    for identity, total in shown.items():
        number = shown.get((counted, *identity[1:])) if identity[0] == summed else None
        if not number or identity[column] not in ranges:
            continue
        low, high = ranges[identity[column]]
        room = ROUNDING * abs(total)
        if total < low * number - room or total > high * number + room:
            return False
        cells += 1
        members.add(identity[column])
    return cells >= ENOUGH_CELLS and len(members) >= ENOUGH_MEMBERS


def _with_totals(hierarchy: PublicHierarchy, ranges: Mapping[str, Range]) -> dict[str, Range]:
    """The ranges of members above, which are as wide as all that they are made of, and of those beneath."""
    found = dict(ranges)
    for name, member in hierarchy.members.items():
        if name not in found and member.parent in found and member.parent is not None:
            found[name] = found[member.parent]
    for name in reversed(list(hierarchy.members)):
        children = hierarchy.children.get(name, ())
        if children and name not in found and all(child in found for child in children):
            found[name] = (min(found[c][0] for c in children), max(found[c][1] for c in children))
    return found


def missing_cells(bands: Iterable[PublicBand], present: Iterable[Coordinates]) -> set[Coordinates]:
    """Cells that nobody shows and that bands bound: where a number is known by bands and the sum only in all,
    or the other way round."""
    found: set[Coordinates] = set()
    for band in bands:
        lines: dict[Coordinates, dict[str, set[str]]] = {}
        for identity in present:
            if identity[0] in (band.counted, band.summed):
                rest = (*identity[1 : band.column], *identity[band.column + 1 :])
                lines.setdefault(rest, {}).setdefault(identity[0], set()).add(identity[band.column])
        for rest, measures in lines.items():
            if len(measures) == 2:
                for member in set().union(*measures.values()) & band.ranges.keys():
                    place = (*rest[: band.column - 1], member, *rest[band.column - 1 :])
                    found |= {(band.counted, *place), (band.summed, *place)}
    return found
