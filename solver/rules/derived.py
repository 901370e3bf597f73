"""Means, medians, ratios and percentages of hidden cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from solver.errors import InputError
from solver.rules.profiles import Bools


def hide_derived(hidden: ArrayLike, indptr: ArrayLike, operands: ArrayLike) -> Bools:
    """Which derived numbers must be hidden, because an operand is.

    A mean with three of its four decimals and a median can leave a single possible data set, so a number
    computed from a hidden cell is as revealing as the cell.

    Parameters
    ----------
    hidden
        bool[n], hidden cells.
    indptr, operands
        i8[m+1] and i8[nnz]: derived number j is computed from cells ``operands[indptr[j]:indptr[j+1]]``,
        for a mean both the total and the count, for a median the count of the cell.

    Returns
    -------
    bool[m]

    Raises
    ------
    InputError
        If an operand is not a cell, or a derived number has none.
    """
    cells = np.asarray(hidden, dtype=np.bool_)
    starts = np.asarray(indptr, dtype=np.int64)
    parts = np.asarray(operands, dtype=np.int64)
    sizes = np.diff(starts)
    if starts.size == 0 or starts[0] != 0 or starts[-1] != len(parts) or (sizes < 1).any():
        raise InputError(
            "a derived number has no operand.", remedy="List the cells that it is computed from."
        )
    if ((parts < 0) | (parts >= len(cells))).any():
        raise InputError(f"an operand is not one of the {len(cells)} cells.")
    touched = np.concatenate(([0], np.cumsum(cells[parts])))
    result: Bools = np.diff(touched[starts]) > 0
    return result
