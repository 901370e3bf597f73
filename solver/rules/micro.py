"""From contributions to cell profiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solver.errors import InputError
from solver.rules.profiles import Floats, Ints, Kind, Profiles


def _merge_holdings(
    cell: Ints, value: Floats, weight: Floats, holding: NDArray[np.int64], request: NDArray[np.str_]
) -> tuple[Ints, Floats, Floats, NDArray[np.str_]]:
    """Add up the units of one holding in one cell; its weight is the mean weight of its units."""
    order = np.lexsort((request, holding, cell))
    cell, holding = cell[order], holding[order]
    first = np.flatnonzero(np.r_[True, (np.diff(cell) != 0) | (np.diff(holding) != 0)])
    units = np.diff(np.r_[first, len(cell)])
    mean = np.add.reduceat(weight[order], first) / units
    total = np.add.reduceat((value * weight)[order], first)
    merged = np.divide(total, mean, out=np.zeros_like(total), where=mean > 0)
    # Sorted by request, an asked-for code comes last: one unit that asks is enough for its holding.
    last = first + units - 1
    return cell[first], merged, mean, request[order][last]


def _integrals(cell: Ints, size: Floats, width: Floats, cells: int, depth: int) -> Floats:
    """Integrate each cell's descending step function over (0, 1), (1, 2), …; entries are sorted."""
    top = np.zeros((cells, depth))
    ends = np.cumsum(width)
    begins = ends - width
    start = np.flatnonzero(np.r_[True, np.diff(cell) != 0])
    offset = np.repeat(begins[start], np.diff(np.r_[start, len(cell)]))
    ends, begins = ends - offset, begins - offset
    for j in range(depth):
        overlap = np.clip(np.minimum(ends, j + 1) - np.maximum(begins, j), 0, 1)
        # Offsets of a running sum leave crumbs; a weight is never that small.
        overlap = np.where(overlap < 1e-9, 0, np.where(overlap > 1 - 1e-9, 1, overlap))
        top[:, j] = np.bincount(cell, weights=overlap * size, minlength=cells)
    return top


def _sums(cell: Ints, amount: Floats, cells: int) -> Floats:
    """Sum by cell in extended precision, so that totals and the sums of their parts round alike."""
    total = np.zeros(cells)
    if len(cell):
        order = np.argsort(cell, kind="stable")
        first = np.flatnonzero(np.r_[True, np.diff(cell[order]) != 0])
        total[cell[order][first]] = np.add.reduceat(amount[order].astype(np.longdouble), first)
    return total


def profiles_of(
    cell: ArrayLike,
    value: ArrayLike,
    *,
    cells: int,
    depth: int,
    weight: ArrayLike | None = None,
    holding: ArrayLike | None = None,
    request: ArrayLike | None = None,
    kind: Kind = "magnitude",
    negative_values: bool = False,
) -> Profiles:
    """Profiles of cells from their contributions.

    Parameters
    ----------
    cell
        i8[u], the cell of each contribution; a unit that counts in several cells is given once for each.
    value
        f8[u], what it contributes, unweighted.
    cells, depth
        Number of cells, and how many of the largest contributions to keep.
    weight
        f8[u], sampling weights above 0. An integer weight repeats the contribution; a fractional one makes
        it that wide (see ``Profiles.top``).
    holding
        [u], the owner of each unit. Units of one holding in one cell are one contributor, which contributes
        their weighted sum divided by the mean of their weights, with that mean as its weight.
    request
        str[u], request code of each unit, empty for none. Among equally large contributors one that asked
        counts as the largest.

    Raises
    ------
    InputError
        If lengths disagree, a cell is out of range, a weight is not above 0, or, unless declared, a
        contribution is negative.
    """
    where = np.asarray(cell, dtype=np.int64)
    amount = np.asarray(value, dtype=np.float64)
    u = len(where)
    scale = np.ones(u) if weight is None else np.asarray(weight, dtype=np.float64)
    codes = np.full(u, "", dtype=np.str_) if request is None else np.asarray(request, dtype=np.str_)
    for name, array in {"value": amount, "weight": scale, "request": codes}.items():
        if array.shape != (u,):
            raise InputError(f"{name} has shape {array.shape} for {u} contributions.")
    if ((where < 0) | (where >= cells)).any():
        raise InputError(f"a contribution belongs to none of the {cells} cells.")
    if not np.isfinite(amount).all():
        raise InputError(
            "a contribution is not a finite number.", cell=str(int(np.argmin(np.isfinite(amount))))
        )
    if not ((scale > 0) & np.isfinite(scale)).all():
        raise InputError(
            "a sampling weight is not above 0.", remedy="Give positive weights or drop the unit."
        )
    if not negative_values and (amount < 0).any():
        raise InputError(
            f"a contribution is negative, the first of them of record {int(np.argmax(amount < 0)) + 1}.",
            remedy="Declare negative values (negative_values=True) if they are meant to be there.",
        )
    total = _sums(where, amount * scale, cells)
    if holding is not None:
        owner = np.unique(np.asarray(holding), return_inverse=True)[1]
        if owner.shape != (u,):
            raise InputError(f"holding has shape {owner.shape} for {u} contributions.")
        if u:
            where, amount, scale, codes = _merge_holdings(where, amount, scale, owner, codes)
    size = np.abs(amount)
    asked = codes != ""
    order = np.lexsort((~asked, -size, where))
    where, size, scale, codes = where[order], size[order], scale[order], codes[order]
    leading = np.full(cells, "", dtype=codes.dtype if codes.dtype.itemsize else "<U1")
    if len(where):
        first = np.flatnonzero(np.r_[True, np.diff(where) != 0])
        leading[where[first]] = codes[first]
    return Profiles(
        value=total,
        count=np.bincount(where, minlength=cells),
        top=_integrals(where, size, scale, cells, depth) if len(where) else np.zeros((cells, depth)),
        kind=kind,
        weighted_count=np.asarray(np.bincount(where, weights=scale, minlength=cells), dtype=np.float64),
        mass=np.asarray(np.bincount(where, weights=size * scale, minlength=cells), dtype=np.float64),
        request=leading,
        negative_values=negative_values,
    )
