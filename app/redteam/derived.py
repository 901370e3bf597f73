"""Figures that a site works out for its readers: shares of a total, changes between periods, indices.

One that takes a hidden cell is hidden, or else it gives that cell away, as closely as it is printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from app.redteam.report import PageLeak
from app.redteam.structure import PublicHierarchy, Structure
from app.redteam.tables import TableRow

SHARE, CHANGE, GROWTH, INDEX = "share-", "change", "growth", "index"


def derived_leaks(
    show: str, made: Sequence[TableRow], listed: Sequence[TableRow], structure: Structure
) -> Iterator[PageLeak]:
    """Hidden cells (indices into ``listed``) that a table of derived figures tells.

    Parameters
    ----------
    show : str
        What the figures are shown as, in the words of addresses.
    made, listed : sequences of TableRow
        The download as derived, and as published.
    structure : Structure
    """
    place = {_key(row.members): number for number, row in enumerate(listed)}
    based = _Bases(show, listed, structure)
    for row in made:
        own = place.get(_key(row.members))
        base = place.get(_key(based.of(row.members)))
        if row.value is None or own is None:
            continue
        half = 0.5 * 10.0**-row.digits
        span = sorted((row.value - half, row.value + half))
        hidden = own if listed[own].hidden else base
        if hidden is None or not listed[hidden].hidden:
            continue
        other = listed[base].value if hidden == own and base is not None else listed[own].value
        yield PageLeak(hidden, "worked out", *_told(show, span, other, hidden == own))


def _told(show: str, span: Sequence[float], other: float | None, is_own: bool) -> tuple[float, float]:
    """Where the hidden operand of a figure lies, from the other one."""
    if other is None:
        return -math.inf, math.inf
    if show == CHANGE:
        ends = [other + end if is_own else other - end for end in span]
    else:
        factors = [end / 100 + (1 if show == GROWTH else 0) for end in span]
        if not is_own and factors[0] <= 0 <= factors[1]:
            return -math.inf, math.inf
        ends = [other * factor if is_own else other / factor for factor in factors]
    return min(ends), max(ends)


class _Bases:
    """What each figure of a table is set against."""

    def __init__(self, show: str, listed: Sequence[TableRow], structure: Structure) -> None:
        self._show = show
        names = list(listed[0].members) if listed else []
        trees = {tree.name: tree for tree in structure.hierarchies}
        present = {name: list(dict.fromkeys(row.members[name] for row in listed)) for name in names}
        self._hierarchy, self._tree = "", None
        if show.startswith(SHARE):
            number = int(show.removeprefix(SHARE))
            self._hierarchy = names[number] if number < len(names) else ""
        else:
            timed = [name for name in names if name in trees and trees[name].time and len(present[name]) > 1]
            self._hierarchy = next(iter(timed), "")
        self._tree = trees.get(self._hierarchy)
        self._present = present.get(self._hierarchy, [])

    def of(self, members: Mapping[str, str]) -> dict[str, str]:
        """The members of the cell that the figure at ``members`` is set against; empty for none."""
        base = self._base(members.get(self._hierarchy, ""), self._tree) if self._tree is not None else None
        return {} if base is None else {**members, self._hierarchy: base}

    def _base(self, name: str, tree: PublicHierarchy) -> str | None:
        if self._show.startswith(SHARE):
            tops = [one for one in self._present if self._is_top(one, tree)]
            return tops[0] if len(tops) == 1 else None
        if name not in tree.members:
            return None
        if self._show == INDEX:
            level = tree.levels[tree.members[name].level]
            return next((one for one in level if one in self._present), None)
        return tree.previous(name)

    def _is_top(self, name: str, tree: PublicHierarchy) -> bool:
        """Whether the table has nothing above a member of the hierarchy."""
        member = tree.members.get(name)
        while member is not None and member.parent is not None and member.parent not in self._present:
            member = tree.members.get(member.parent)
        return member is not None and member.parent is None


def _key(members: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(members.items())
