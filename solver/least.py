"""What every reader knows at least of a cell that isn't shown.

Where all zeros are shown, what is hidden is none: a count is one or more, and an amount in whole numbers is
one unit or more. Three hidden parts of a shown total of 3 are 1 each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solver.entries import row_of
from solver.rules import Profiles
from solver.table import Floats, decimal_places

#: Decimals in which amounts may be counted.
MOST_DECIMALS = 6


def least_known(
    profiles: Profiles, shown: NDArray[np.bool_], decimals: tuple[str, ...], hide_zeros: bool
) -> Floats:
    """What readers know that each cell is at least, of cells that can't be negative: float64[n].

    Parameters
    ----------
    shown : bool[n]
        Cells that every pattern shows.
    decimals
        The values as they are written; readers see in what unit they are counted.
    hide_zeros
        Whether zeros with contributors may be hidden, so that a hidden amount may be one. A count is none
        where there are any, and where there are none is always shown.
    """
    zero = profiles.value == 0
    counts = profiles.kind == "frequency"
    if np.any(zero & ~shown) or (hide_zeros and not counts):
        return np.minimum(profiles.value, 0.0)
    digits = 0 if counts else decimal_places(decimals)
    unit = 0.0 if digits is None or digits > MOST_DECIMALS else 10.0**-digits
    return np.minimum(profiles.value, unit)


def least_values(matrix: sparse.csr_array, lower: Floats, rhs: Floats) -> Floats:
    """The least that each cell can be though everything were hidden.

    A total is at least the sum of the least of its parts, and a part that is the only one is the total; no
    protection can make them look smaller.
    """
    least = lower.copy()
    total = matrix.data == -1
    relation = row_of(matrix.indptr)
    totals = np.bincount(relation[total], minlength=matrix.shape[0])
    negative = np.bincount(relation[matrix.data < 0], minlength=matrix.shape[0])
    sums = (totals == 1) & (negative == 1) & (rhs == 0)
    entry = total & sums[relation]
    parent = np.full(matrix.shape[0], -1, dtype=np.int64)
    parent[relation[entry]] = matrix.indices[entry]
    parts = sums[relation] & ~total
    rows, columns, factors = relation[parts], matrix.indices[parts], matrix.data[parts]
    chosen = parent >= 0
    count = np.bincount(rows, minlength=matrix.shape[0])
    only = (count[rows] == 1) & (factors == 1)
    while True:
        floor = np.bincount(rows, weights=factors * least[columns], minlength=matrix.shape[0])
        grown = least.copy()
        np.maximum.at(grown, parent[chosen], floor[chosen])
        np.maximum.at(grown, columns[only], least[parent[rows[only]]])
        if np.array_equal(grown, least):
            return least
        least = grown
