"""Maxima and minima that are told because no other part of a whole can attain them.

The largest of a shown whole is that of one of its parts. Parts are the combinations of leaves of the
hierarchies, those left out that a document says are empty; each is at most the least that is shown of a cell
that it lies in. Where all parts that may attain a shown maximum lie in a hidden cell, this is at least as
large; and a hidden cell is at most the largest that its parts can be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.redteam.knowledge import Knowledge, Sight
from app.redteam.structure import Coordinates, PublicHierarchy

#: Combinations of leaves up to which a measure is looked at.
MOST_PARTS = 2_000_000


def told_extremes(knowledge: Knowledge) -> tuple[Mapping[Coordinates, tuple[float, float]], tuple[str, ...]]:
    """The interval of each hidden maximum and minimum, and notes on measures that are too large to look at.

    Notes
    -----
    Of two numbers in the same digits, the one that is printed smaller is smaller without rounding too.
    """
    found: dict[Coordinates, tuple[float, float]] = {}
    notes: list[str] = []
    for name, measure in knowledge.structure.measures.items():
        if measure.aggregator not in ("max", "min"):
            continue
        cells = {
            identity: sight
            for identity, sight in knowledge.sights.items()
            if identity[0] == name and not any(member.startswith("=") for member in identity[1:])
        }
        if not any(_is_hidden(sight) for sight in cells.values()):
            continue
        parts = _Parts(knowledge, cells)
        if parts.count > MOST_PARTS:
            notes.append(f"{knowledge.structure.cube}: {name} has too many places to see who attains it")
        else:
            found.update(_intervals(parts, cells, 1.0 if measure.aggregator == "max" else -1.0))
    return found, tuple(notes)


def _is_hidden(sight: Sight) -> bool:
    return bool(sight.hidden) and not sight.shown


def _intervals(
    parts: _Parts, cells: Mapping[Coordinates, Sight], sign: float
) -> Mapping[Coordinates, tuple[float, float]]:
    seen = {
        identity: sign * min(sight.shown, key=lambda shown: shown[1])[0]
        for identity, sight in cells.items()
        if sight.shown
    }
    there = np.ones(parts.count, dtype=np.bool_)
    for identity, sight in cells.items():
        if sight.empty and not sight.hidden and not sight.shown:
            there[parts.of(identity)] = False
    ceiling = np.full(parts.count, np.inf)
    for identity, most in seen.items():
        mine = parts.of(identity)
        ceiling[mine] = np.minimum(ceiling[mine], most)
    inside = {identity: parts.of(identity) for identity, sight in cells.items() if _is_hidden(sight)}
    holders: dict[int, set[Coordinates]] = defaultdict(set)
    for identity, mine in inside.items():
        for part in mine.tolist():
            holders[part].add(identity)
    least = dict.fromkeys(inside, -np.inf)
    for identity, value in seen.items():
        mine = parts.of(identity)
        mine = mine[there[mine] & (ceiling[mine] >= value)]
        told = set.intersection(*(holders[part] for part in mine.tolist())) if len(mine) else set()
        for hidden in told:
            least[hidden] = max(least[hidden], value)
    found = {}
    for identity, mine in inside.items():
        mine = mine[there[mine]]
        most = float(ceiling[mine].max()) if len(mine) else np.inf
        found[identity] = (least[identity], most) if sign > 0 else (-most, -least[identity])
    return found


class _Parts:
    """Combinations of leaves, numbered, in the hierarchies in which some cell isn't the whole."""

    def __init__(self, knowledge: Knowledge, cells: Mapping[Coordinates, Sight]) -> None:
        self._columns: list[int] = []
        self._leaves: list[Mapping[str, NDArray[np.int64]]] = []
        sizes: list[int] = []
        for column, hierarchy in enumerate(knowledge.structure.hierarchies, 1):
            names = {identity[column] for identity in cells}
            if names == {hierarchy.all_member}:
                continue
            leaves = [name for name in hierarchy.members if name not in hierarchy.children]
            number = {name: place for place, name in enumerate(leaves)}
            self._columns.append(column)
            self._leaves.append({name: _leaves_of(hierarchy, number, name) for name in names})
            sizes.append(len(leaves))
        self._sizes = tuple(sizes)
        self.count = int(np.prod(np.array(sizes, dtype=np.float64)))

    def of(self, identity: Coordinates) -> NDArray[np.int64]:
        """The parts of a cell."""
        chosen = [
            leaves[identity[column]] for column, leaves in zip(self._columns, self._leaves, strict=True)
        ]
        if not chosen:
            return np.zeros(1, dtype=np.int64)
        found: NDArray[np.int64] = np.ravel_multi_index(np.ix_(*chosen), self._sizes).reshape(-1)
        return found


def _leaves_of(hierarchy: PublicHierarchy, number: Mapping[str, int], name: str) -> NDArray[np.int64]:
    """Numbers of a member's leaves, or of those of several members (``A + B``)."""
    waiting = [name] if name in hierarchy.members else name.split(" + ")
    found: set[int] = set()
    while waiting:
        member = waiting.pop()
        if member in number:
            found.add(number[member])
        waiting.extend(hierarchy.children.get(member, ()))
    return np.array(sorted(found), dtype=np.int64)
