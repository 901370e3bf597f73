"""Distinct counts add up wherever nobody is counted twice: firms by town, when each firm is in one town.

Readers know where that is so, and subtract; the relations of sums hold for such cells, remainders included.
Where somebody is counted in two parts, they don't, and only bounds are left (`app.domain.bounds`).
"""

from __future__ import annotations

import numpy as np

from app.domain.equation import Closure, Equations, Floats
from app.domain.lattice import Bools, Space, ranges

#: Weighted counts are sums of doubles.
SAME = 1e-9


def counted_once(space: Space, closure: Closure, values: Floats) -> Closure:
    """The closure without the relations that double counting breaks, and without cells that only they imply.

    Parameters
    ----------
    values : float64[n]
        Of the closure's cells, nan where one has no facts.
    """
    own = closure.coords[:, 0] < space.own[0]
    counted = np.zeros(len(closure.coords), dtype=np.bool_)
    counted[own] = space.counted[closure.coords[own, 0]]
    if not counted.any():
        return closure
    equations, value = closure.equations, np.nan_to_num(values)
    matrix = equations.matrix(len(value))
    size = np.abs(matrix) @ np.abs(value) + np.abs(equations.rhs)
    broken = np.abs(matrix @ value - equations.rhs) > SAME * size
    relation = equations.relation[counted[equations.indices]]
    broken &= np.bincount(relation, minlength=len(equations)) > 0
    kept = np.flatnonzero(~broken)
    counts = np.diff(equations.indptr)
    picked = ranges(equations.indptr[kept], counts[kept])
    indices = equations.indices[picked]
    used: Bools = ~counted
    used[: closure.n_published] = True
    used[indices] = True
    row = np.cumsum(used) - 1
    return Closure(
        closure.coords[used],
        closure.n_published,
        Equations(
            np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64),
            row[indices].astype(np.int64),
            equations.coefs[picked],
            equations.rhs[kept],
        ),
    )
