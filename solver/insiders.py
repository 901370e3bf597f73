"""Contributors as attackers: whoever is the only one in a hidden cell knows its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.hierarchy import Hierarchy
from solver.instance import BoolArray, Insider
from solver.table import Floats, Ints, Relations

Scope = Literal["relations", "all", "none"]
"""Whom a single contributor must not find out about: primaries that share a relation with a cell that it
knows, all primaries, or nobody."""


class _Within:
    """Which cells lie inside which, by their codes."""

    def __init__(self, position: Ints, hierarchies: Sequence[Hierarchy]) -> None:
        self.position = position
        self.depth = [h.depth for h in hierarchies]
        self.ancestors = [
            np.column_stack([h.ancestor(level) for level in range(int(h.depth.max(initial=0)) + 1)])
            for h in hierarchies
        ]

    def __call__(self, inner: Ints, outer: Ints) -> NDArray[np.bool_]:
        """bool[len(inner), len(outer)]: whether the one cell is the other or a part of it."""
        result = np.ones((len(inner), len(outer)), dtype=np.bool_)
        for d, (depth, ancestors) in enumerate(zip(self.depth, self.ancestors, strict=True)):
            low, high = self.position[inner, d], self.position[outer, d]
            result &= ancestors[low][:, depth[high]] == high
        return result


def single_contributors(
    owner: Ints,
    hidden: BoolArray,
    relations: Relations,
    levels: tuple[Floats, Floats, Floats],
    value: Floats,
    least: Floats,
    position: Ints,
    hierarchies: Sequence[Hierarchy],
    names: Sequence[str],
    *,
    scope: Scope = "relations",
) -> tuple[Insider, ...]:
    """One insider for each contributor that is alone in some cell that is hidden in every pattern.

    It knows all such cells. Its targets are the other hidden cells with a protection level, within the scope.
    A target that contains known cells can't seem smaller to it than these are and the least that the rest can
    be, so there the lower level stops.

    Parameters
    ----------
    owner
        i8[n], the only contributor of each cell, -1 where there isn't one.
    hidden
        bool[n], cells hidden in every pattern.
    levels
        lpl, upl, spl of the n cells.
    least
        f8[n], what each cell is at least whatever is hidden; -inf where values may be negative.
    """
    lpl, upl, spl = levels
    known = np.flatnonzero(hidden & (owner >= 0))
    protected = hidden & (np.maximum(np.maximum(lpl, upl), spl) > 0)
    if scope == "none" or not len(known) or not protected.any():
        return ()
    within = _Within(position, hierarchies)
    by_column = relations.matrix.tocsc()
    order = np.argsort(owner[known], kind="stable")
    groups = np.split(known[order], np.flatnonzero(np.diff(owner[known][order])) + 1)
    insiders = []
    for cells in groups:
        near = np.flatnonzero(protected)
        if scope == "relations":
            spans = [by_column.indices[by_column.indptr[c] : by_column.indptr[c + 1]] for c in cells.tolist()]
            near = np.unique(relations.matrix[np.unique(np.concatenate(spans))].indices)
            near = near[protected[near]]
        targets = np.setdiff1d(near, cells).astype(np.int64)
        if not len(targets):
            continue
        low = lpl[targets]
        bounded = np.isfinite(least[targets])
        if bounded.any():
            # Of nested known cells the innermost ones are disjoint and hold all of it.
            innermost = cells[within(cells, cells).sum(axis=0) == 1]
            own = (value[innermost] - least[innermost]) @ within(innermost, targets)
            room = np.maximum(value[targets] - least[targets] - own, 0)
            low = np.where(bounded, np.minimum(low, room), low)
        name = f"contributor of {names[cells[0]]}"
        insiders.append(Insider(name, cells, targets, low, upl[targets], spl[targets]))
    return tuple(insiders)
