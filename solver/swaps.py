"""Columns that others can stand in for: what each of their inequalities needs alone is no dearer together."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solver.entries import row_of
from solver.instance import FloatArray, IntArray

_FULL = 1.0 - 1e-9


def worthwhile(rows: sparse.csr_array, rhs: FloatArray, weight: FloatArray) -> IntArray:
    """Columns (sorted) of which some cheapest 0/1 solution of rows·x ≥ rhs can be made.

    A column is left out if those that each meet one of its inequalities alone cost no more together: they can
    take its place.

    Parameters
    ----------
    rows : float64[k, n]
        Coefficients.
    rhs : float64[k]
        What each row must come to, above 0 or with a coefficient below 0.
    weight : float64[n]
        Costs, 0 or more.
    """
    count, n = rows.shape
    row, column = row_of(rows.indptr), rows.indices.astype(np.int64)
    # What takes back from one inequality can't stand in for others, and a row that is taken back from has
    # nothing that meets it alone.
    harmful, taken = np.zeros(n, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    harmful[column[rows.data < 0]] = True
    taken[row[rows.data < 0]] = True
    alone = np.flatnonzero((rows.data >= _FULL * rhs[row]) & ~taken[row] & ~harmful[column])
    order = alone[np.lexsort((column[alone], weight[column[alone]], row[alone]))]
    met, first = np.unique(row[order], return_index=True)
    champion = np.full(count, -1, dtype=np.int64)
    champion[met] = column[order[first]]
    gives = rows.data > 0
    row, column = row[gives], column[gives]
    # The champions of a column's rows, each once; a row without one makes them too dear.
    pair = np.unique(np.where(champion[row] < 0, 0, champion[row]) + column * n)
    price = np.bincount(pair // n, weight[pair % n], n).astype(np.float64)
    price[column[champion[row] < 0]] = np.inf
    keep = np.zeros(n, dtype=np.bool_)
    keep[column] = weight[column] < price[column]
    keep[champion[met]] = True
    return np.flatnonzero(keep)
