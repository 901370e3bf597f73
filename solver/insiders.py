"""Contributors as attackers: whoever is the only one in a hidden cell knows its value."""

from __future__ import annotations

from typing import Literal

import numpy as np

from solver.instance import BoolArray, Insider
from solver.table import Floats, Ints, Relations

Scope = Literal["relations", "all", "none"]
"""Whom a single contributor must not find out about: primaries that share a relation with a cell that it
knows, all primaries, or nobody."""


def single_contributors(
    owner: Ints,
    hidden: BoolArray,
    relations: Relations,
    lpl: Floats,
    upl: Floats,
    spl: Floats,
    names: tuple[str, ...],
    scope: Scope = "relations",
) -> tuple[Insider, ...]:
    """One insider for each contributor that is alone in some cell that is hidden in every pattern.

    It knows all such cells. Its targets are the other hidden cells with a protection level, within the scope.

    Parameters
    ----------
    owner
        i8[n], the only contributor of each cell, -1 where there isn't one.
    hidden
        bool[n], cells hidden in every pattern.
    """
    known = np.flatnonzero(hidden & (owner >= 0))
    protected = hidden & (np.maximum(np.maximum(lpl, upl), spl) > 0)
    if scope == "none" or not len(known) or not protected.any():
        return ()
    by_column = relations.matrix.tocsc()
    order = np.argsort(owner[known], kind="stable")
    groups = np.split(known[order], np.flatnonzero(np.diff(owner[known][order])) + 1)
    insiders = []
    for cells in groups:
        if scope == "all":
            near = np.flatnonzero(protected)
        else:
            spans = [by_column.indices[by_column.indptr[c] : by_column.indptr[c + 1]] for c in cells.tolist()]
            rows = np.unique(np.concatenate(spans))
            near = np.unique(relations.matrix[rows].indices)
            near = near[protected[near]]
        targets = np.setdiff1d(near, cells).astype(np.int64)
        if len(targets):
            name = f"contributor of {names[cells[0]]}"
            insiders.append(Insider(name, cells, targets, lpl[targets], upl[targets], spl[targets]))
    return tuple(insiders)
