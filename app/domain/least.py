"""What every reader knows at least of a cell that isn't shown.

Zeros are shown, and so is that nobody is in a cell. What is hidden is then no zero: a count is one or more,
and an amount in whole numbers is one unit or more. Three hidden parts of a shown remainder of 3 are 1 each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.domain.crawled import CubeCells

#: Decimals in which amounts may be counted.
MOST_DECIMALS = 6
#: Amounts closer than this, beside their size, are one.
SAME = 1e-9


def least_known(cells: CubeCells, hide_zeros: bool) -> NDArray[np.float64]:
    """What readers know that each cell is at least: float64[n], -inf where they know nothing.

    Parameters
    ----------
    cells
    hide_zeros
        Whether zeros that contributors reported are hidden, so that a hidden amount may be one. A count of
        contributors isn't zero where there are any, and where there are none is always shown.
    """
    lower = np.full(len(cells), -np.inf)
    for number, measure in enumerate(cells.cube.measures):
        if not (measure.is_frequency or measure.nonnegative):
            continue
        mine = (cells.coords[:, 0] == number) & cells.has_contributors
        value = np.nan_to_num(cells.values[mine])
        unit = 1.0 if measure.is_frequency else 0.0 if hide_zeros else unit_of(np.abs(value))
        lower[mine] = np.minimum(value, unit)
    return lower


def unit_of(size: NDArray[np.float64]) -> float:
    """The largest power of ten, of at most 1, of which all amounts are multiples; 0 if there is none."""
    for decimals in range(MOST_DECIMALS + 1):
        scaled = size * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= SAME * (1 + scaled)):
            return float(10.0**-decimals)
    return 0.0
