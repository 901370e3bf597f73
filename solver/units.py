"""Units for cells of different kinds: persons and euros in one problem, tied by coefficients of many digits.

A program in which a column of persons stands beside one of euros loses the small movements beside the large
ones. Relations with coefficients of one size say which cells are of one kind; the others say how many units
of the one kind are one of the other.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from solver.entries import row_of
from solver.instance import FloatArray

#: Coefficients of a relation that differ by less are of one size.
_ALIKE = 8.0
#: Below such a spread in every relation, cells keep their units.
_APART = 1024.0


def units_of(matrix: sparse.csr_array) -> FloatArray | None:
    """A unit for each column (float64[n], powers of two) that brings the coefficients of each relation to one
    size; None where they are near enough as they are.

    References
    ----------
    A. R. Curtis and J. K. Reid, On the automatic scaling of matrices for Gaussian elimination,
    J. Inst. Maths Applics 10 (1972), 118-124.
    """
    m, n = matrix.shape
    size = np.abs(matrix.data)
    row = row_of(matrix.indptr)
    largest, smallest = np.zeros(m), np.full(m, np.inf)
    np.maximum.at(largest, row, size)
    np.minimum.at(smallest, row, size)
    if not np.any(largest > _APART * smallest):
        return None
    alike = (largest <= _ALIKE * smallest)[row]
    links = sparse.csr_array(
        (np.ones(int(alike.sum())), (matrix.indices[alike], n + row[alike])), shape=(n + m, n + m)
    )
    _, label = csgraph.connected_components(links, directed=False)
    _, kind = np.unique(label[:n], return_inverse=True)
    kind = kind.reshape(-1)
    kinds = int(kind.max()) + 1
    apart = ~alike
    entries = int(apart.sum())
    place = np.arange(entries)
    # log|a| + log unit of the column + log factor of the row = 0, as nearly as can be.
    system = sparse.csr_array(
        (
            np.ones(2 * entries),
            (np.tile(place, 2), np.concatenate([kind[matrix.indices[apart]], kinds + row[apart]])),
        ),
        shape=(entries, kinds + m),
    )
    logs = linalg.lsmr(system, -np.log2(size[apart]), atol=1e-3, btol=1e-3)[0][:kinds]
    units: FloatArray = 2.0 ** np.round(logs[kind])
    return units
