"""Levels of a hierarchy as the member above each member."""

from __future__ import annotations

from collections.abc import Iterator

from app.domain.cube import Hierarchy
from app.domain.lattice import Longs, lifted


def levels_of(hierarchy: Hierarchy) -> Iterator[Longs]:
    """The member above each member at each depth below the All, or itself where it stands higher, from the
    coarsest (int64[size] each)."""
    for depth in range(int(hierarchy.has_all), len(hierarchy.levels)):
        yield lifted(hierarchy.parent, hierarchy.depth, depth)
