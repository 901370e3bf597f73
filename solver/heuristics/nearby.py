"""The columns near a cell: where a cheap movement of it is likely to stay.

Columns and relations are the nodes of a graph; passing through a column costs its price. The
cheapest paths from a cell rank the columns. A movement is no path, so this only chooses where the
linear program may look; too small a choice shows as no movement, and is doubled.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.entries import row_of
from solver.instance import FloatArray, IntArray
from solver.presolve import Problem

# Added to every column passed: among free ones, the near come first.
_STEP = 0.02
# A column of little room carries little of the level, as if it were so many times longer.
_NARROW = 1e3
_MARGIN = 1.3
_FAR = 1e9


class Nearby:
    """Distances of columns by price."""

    def __init__(self, problem: Problem) -> None:
        matrix = problem.matrix
        n, m = problem.n, problem.m
        rows = row_of(matrix.indptr)
        cells = matrix.indices.astype(np.int64)
        ends = np.concatenate([cells, n + rows])
        heads = np.concatenate([n + rows, cells])
        number = np.arange(1, len(ends) + 1, dtype=np.float64)
        self._graph = sparse.csr_array((number, (ends, heads)), shape=(n + m, n + m))
        into = self._graph.indices < n
        self._into = np.flatnonzero(into)
        self._cell = self._graph.indices[into]
        self._graph.data[:] = 1e-9
        self._n = n
        least = np.minimum(problem.hi, problem.lo)
        self._room = np.where(least > 0, least, np.maximum(problem.hi, problem.lo))
        self._limit = np.inf

    def columns(self, cell: int, level: float, prices: FloatArray, most: int, closed: IntArray) -> IntArray:
        """The `most` nearest columns of a cell, itself included, without the closed ones, sorted."""
        narrow = np.minimum(level / np.maximum(np.minimum(self._room, level), 1e-300), _NARROW)
        near, _ = self._within(cell, prices, narrow, most, closed)
        return np.sort(near)

    def ranking(self, cell: int, prices: FloatArray, most: int | None = None) -> IntArray:
        """All columns connected with a cell, or so many, nearest first."""
        wide, shut = np.ones(self._n), np.empty(0, dtype=np.int64)
        near, distance = self._within(cell, prices, wide, self._n if most is None else most, shut)
        return near[np.lexsort((near, distance))]

    def _within(
        self, cell: int, prices: FloatArray, narrow: FloatArray, most: int, closed: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """The nearest columns and their distances. The last search tells how far this one has to look."""
        limit = self._limit if most < self._n else np.inf
        while True:
            distance = self._distance(cell, prices, narrow, closed, limit)
            distance[closed] = np.inf
            distance[cell] = -1.0
            near = np.flatnonzero(np.isfinite(distance))
            if len(near) >= most or limit == np.inf:
                break
            limit = limit * 2 if limit < _FAR else np.inf
        if len(near) > most:
            near = near[np.argpartition(distance[near], most)[:most]]
            self._limit = _MARGIN * float(distance[near].max())
        return near, distance[near]

    def _distance(
        self, cell: int, prices: FloatArray, narrow: FloatArray, closed: IntArray, limit: float
    ) -> FloatArray:
        paid = prices[prices > 0]
        usual = float(np.median(paid)) if len(paid) else 1.0
        through = (prices / usual + _STEP) * narrow
        through[closed] = 1e12
        self._graph.data[self._into] = through[self._cell]
        return np.asarray(csgraph.dijkstra(self._graph, indices=cell, limit=limit)[: self._n])
