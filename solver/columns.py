"""Parts of a sparse matrix, as plain arrays.

Small programs are made by the hundred; SciPy's own indexing checks and converts for longer than it copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.entries import ranges, row_of
from solver.instance import BoolArray, FloatArray, IntArray

# Rounding of coefficients.
_ALIKE = 1e-12
#: Rows with a coefficient within this factor of 1 are left as they are.
_EVEN = 2.0**10


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a matrix that have entries in some of its columns.

    Attributes
    ----------
    rows : int64[r]
        Their numbers.
    indptr, indices, coefs
        Their entries in compressed rows; columns are counted as they were chosen.
    """

    rows: IntArray
    indptr: IntArray
    indices: IntArray
    coefs: FloatArray


def take_columns(matrix: sparse.csr_array, columns: IntArray) -> Part:
    """The part of a matrix (m × n) in some columns (int64[k], each once), without rows empty there."""
    indptr, indices, coefs = in_columns(matrix, columns)
    rows = np.flatnonzero(indptr[1:] > indptr[:-1])
    return Part(rows, np.concatenate([[0], indptr[rows + 1]]), indices, coefs)


def in_columns(matrix: sparse.csr_array, columns: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """All rows of a matrix (m × n) in some columns (int64[k], each once), counted as they are chosen, in
    compressed rows.
    """
    position = np.full(matrix.shape[1], -1, dtype=np.int64)
    position[columns] = np.arange(len(columns))
    at = position[matrix.indices]
    kept = at >= 0
    return _counted(kept)[matrix.indptr], at[kept], matrix.data[kept]


def keep_entries(matrix: sparse.csr_array, kept: BoolArray) -> sparse.csr_array:
    """A matrix without those of its entries that aren't kept (bool[entries]); itself if all are."""
    if kept.all():
        return matrix
    ends = _counted(kept)[matrix.indptr]
    return sparse.csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)


def keep_rows(matrix: sparse.csr_array, kept: BoolArray) -> sparse.csr_array:
    """Some rows of a matrix (bool[m]), in their order; itself if all are kept."""
    if kept.all():
        return matrix
    sizes = np.diff(matrix.indptr)
    entries = np.repeat(kept, sizes)
    ends = np.concatenate([[0], np.cumsum(sizes[kept])])
    shape = (len(ends) - 1, matrix.shape[1])
    return sparse.csr_array((matrix.data[entries], matrix.indices[entries], ends), shape=shape)


def evened(matrix: sparse.csr_array) -> tuple[sparse.csr_array, FloatArray]:
    """Rows of small coefficients alone, or of large ones alone, brought to a common size, and the factor of
    each row.

    A relation says the same in any multiple, but a program drops coefficients below 1e-9 and takes none from
    1e15 on: a row of small ones alone would hold nothing, and what it gives away would be called safe. Rows
    with coefficients of either kind stay as they are: where the large one is of a cell that can't move, it
    would make the others small. Factors are powers of two, so that nothing is rounded; an even matrix comes
    back as it is.
    """
    size = np.abs(matrix.data)
    if size.min(initial=1.0) >= 1 / _EVEN and size.max(initial=1.0) <= _EVEN:
        return matrix, np.ones(matrix.shape[0])
    row = row_of(matrix.indptr)
    largest, smallest = np.zeros(matrix.shape[0]), np.full(matrix.shape[0], np.inf)
    np.maximum.at(largest, row, size)
    np.minimum.at(smallest, row[size > 0], size[size > 0])
    unit = np.where(smallest > _EVEN, smallest, largest)
    odd = (largest > 0) & ((largest < 1 / _EVEN) | (smallest > _EVEN))
    factor = np.ones(matrix.shape[0])
    if not odd.any():
        return matrix, factor
    factor[odd] = 2.0 ** -np.floor(np.log2(unit[odd]))
    data = matrix.data * factor[row]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape), factor


def without_repeats(matrix: sparse.csr_array) -> sparse.csr_array:
    """A matrix whose rows (each with an entry) are all different, even up to a factor; the first of each kind
    stays. In tables of several hierarchies a third of the relations may say again what others do, once zeros
    are left out. Up to rounding: a search may go by such a matrix, an audit not.
    """
    if matrix.shape[0] < 2:
        return matrix
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    sizes = np.diff(matrix.indptr)
    row, columns = row_of(matrix.indptr), matrix.indices
    coefs = matrix.data / matrix.data[matrix.indptr[:-1]][row]
    # Different rows hardly ever have the same key, and those that do are compared.
    generator = np.random.default_rng(0)
    marks, slopes = generator.random(matrix.shape[1]), generator.random(matrix.shape[1])
    key = np.bincount(row, marks[columns] + slopes[columns] * coefs, matrix.shape[0])
    order = np.argsort(key, kind="stable")
    gap = np.diff(key[order]) > _ALIKE * sizes[order[1:]]
    kind = np.empty(len(order), dtype=np.int64)
    kind[order] = np.concatenate([[0], np.cumsum(gap)])
    _, first = np.unique(kind, return_index=True)
    model = first[kind]
    again = np.flatnonzero((model != np.arange(len(model))) & (sizes == sizes[model]))
    if not len(again):
        return matrix
    mine = ranges(matrix.indptr[again], sizes[again])
    theirs = ranges(matrix.indptr[model[again]], sizes[again])
    most = np.maximum(np.abs(coefs[mine]), np.abs(coefs[theirs]))
    differs = (columns[mine] != columns[theirs]) | (np.abs(coefs[mine] - coefs[theirs]) > _ALIKE * most)
    kept = np.ones(matrix.shape[0], dtype=np.bool_)
    kept[again] = np.bincount(np.repeat(np.arange(len(again)), sizes[again]), differs, len(again)) > 0
    return keep_rows(matrix, kept)


def with_company(matrix: sparse.csr_array, chosen: BoolArray) -> BoolArray:
    """Those of some columns (bool[n]) of a matrix that may move with the others: none of them is, or becomes,
    alone in a row.
    """
    columns, rows = matrix.indices, row_of(matrix.indptr)
    able = chosen.copy()
    while True:
        here = able[columns]
        alone = here & (np.bincount(rows, here, matrix.shape[0]) == 1)[rows]
        if not alone.any():
            return able
        able[columns[alone]] = False


def linked(indptr: IntArray, indices: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Which connected component each row and each of n columns of a matrix in compressed rows belongs to."""
    m = len(indptr) - 1
    # A node for each row, which leads to its columns, and one for each column.
    ends = np.concatenate([indptr, np.full(n, indptr[-1])])
    graph = sparse.csr_array((np.ones(len(indices)), indices + m, ends), shape=(m + n, m + n))
    _, label = csgraph.connected_components(graph, directed=False)
    return label[:m], label[m:]


def heft(matrix: sparse.csr_array) -> FloatArray:
    """What moving each column (float64[n]) by one moves in some relation at most, and at least one: so many
    times its rounding counts.
    """
    most = np.ones(matrix.shape[1])
    np.maximum.at(most, matrix.indices, np.abs(matrix.data))
    return most


def _counted(kept: BoolArray) -> IntArray:
    """How many are kept before each place, and in all."""
    return np.concatenate([[0], np.cumsum(kept)])
