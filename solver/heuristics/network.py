"""Two-dimensional tables with at most one hierarchy as networks.

Relations are nodes, cells are arcs between the two relations that they lie in: a cell that grows by
one carries one unit from one node to the other (Castro 2005 §3). A cell inside a hierarchy lies in
three relations; the row relations of intermediate rows follow from the others and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from solver.entries import row_of
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs tail → head, one per column; flow along the arc raises the cell.

    Attributes
    ----------
    tail, head : int64[n]
        Nodes; node ``nodes - 1`` is the ground, where cells of a single relation end.
    nodes
        How many.
    hi, lo : float64[n]
        Capacity forwards and backwards.
    """

    tail: IntArray
    head: IntArray
    nodes: int
    hi: FloatArray
    lo: FloatArray


# Asked for again and again: a fortieth of a second each on 5,000 cells, twice that on 25,000.
_FOUND = WeakKeyDictionary[Problem, Network | None]()


def find_network(problem: Problem) -> Network | None:
    """The network of a problem, or None if its relations are none."""
    if problem not in _FOUND:
        _FOUND[problem] = _network(problem)
    return _FOUND[problem]


def _network(problem: Problem) -> Network | None:
    matrix = problem.matrix
    if len(matrix.data) and not np.isin(matrix.data, (-1.0, 1.0)).all():
        return None
    rows = _without_redundant(matrix)
    if rows is None:
        return None
    kept = sparse.csr_array(matrix[rows])
    sign = _orient(kept)
    if sign is None:
        return None
    entry_row = row_of(kept.indptr)
    amount = kept.data * sign[entry_row]
    ground = len(rows)
    head = np.full(problem.n, ground, dtype=np.int64)
    tail = np.full(problem.n, ground, dtype=np.int64)
    head[kept.indices[amount > 0]] = entry_row[amount > 0]
    tail[kept.indices[amount < 0]] = entry_row[amount < 0]
    return Network(tail, head, ground + 1, problem.hi, problem.lo)


def _without_redundant(matrix: sparse.csr_array) -> IntArray | None:
    """Rows that leave every column at most two entries, if the others follow from them."""
    m, n = matrix.shape
    keep: BoolArray = np.ones(m, dtype=np.bool_)
    entry_row = row_of(matrix.indptr)
    if (np.bincount(matrix.indices, minlength=n) > 2).sum() > n / 2:
        # Three dimensions: only the fewer subtotals of a hierarchy can have a row too many.
        return None
    while True:
        count = np.bincount(matrix.indices[keep[entry_row]], minlength=n)
        crowded = (count > 2)[matrix.indices] & keep[entry_row]
        if not crowded.any():
            break
        many = np.bincount(entry_row, crowded, m)
        share = many / np.maximum(np.diff(matrix.indptr), 1)
        # An intermediate row is crowded throughout, and longer than the column relations above it.
        keep[int(np.lexsort((many, np.where(keep, share, -1.0)))[-1])] = False
    dropped = np.flatnonzero(~keep)
    kept = np.flatnonzero(keep)
    if not len(dropped):
        return kept
    # One random combination of the dropped rows lies in the span of the others only if all do.
    combination = matrix[dropped].T @ np.random.default_rng(0).standard_normal(len(dropped))
    found = linalg.lsqr(matrix[kept].T, combination, atol=1e-12, btol=1e-12, iter_lim=4 * m)
    missed = float(np.abs(matrix[kept].T @ found[0] - combination).max())
    return kept if missed < 1e-6 else None


def _orient(matrix: sparse.csr_array) -> FloatArray | None:
    """Signs of the rows that give every column one +1 and one -1, or None."""
    m = matrix.shape[0]
    columns = sparse.csc_array(matrix)
    pairs = np.flatnonzero(np.diff(columns.indptr) == 2)
    first, second = columns.indptr[pairs], columns.indptr[pairs] + 1
    left, right = columns.indices[first], columns.indices[second]
    differ = columns.data[first] == columns.data[second]
    # Two copies of every row, one per sign: a contradiction joins the copies of a row.
    ends = np.concatenate([left, left + m])
    heads = np.concatenate([np.where(differ, right + m, right), np.where(differ, right, right + m)])
    graph = sparse.csr_array((np.ones(len(ends)), (ends, heads)), shape=(2 * m, 2 * m))
    _, label = csgraph.connected_components(graph, directed=False)
    if (label[:m] == label[m:]).any():
        return None
    return np.where(label[:m] < label[m:], 1.0, -1.0)
