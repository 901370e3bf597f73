"""build: what hiding a cell costs, by its measure's weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from app.domain.crawled import CubeCells
from app.domain.lattice import Bools, row_of
from app.domain.primary import CubePrimaries
from app.domain.publication import Confidentiality

Floats = NDArray[np.float64]


def weigh(
    confidentiality: Confidentiality, cells: CubeCells, verdicts: CubePrimaries, matrix: sparse.csr_array
) -> Floats:
    """Information lost by hiding a cell (float64[n]): its own, and that of the ratios that fall with it.

    ``matrix`` holds the relations over the cells, which stand first in its columns.
    """
    value = np.abs(np.nan_to_num(cells.values))
    kinds = {item.measure: item.weight for item in confidentiality.measures if item.cube == cells.cube.name}
    near = relations_away(matrix, verdicts.sensitive) if "distance" in kinds.values() else value
    other = verdicts.weights if verdicts.weights is not None else np.full(len(cells), np.nan)
    weight = value.copy()
    for number, measure in enumerate(cells.cube.measures):
        mine = cells.coords[:, 0] == number
        match kinds.get(measure.name, "value"):
            case "unit":
                weight[mine] = 1.0
            case "log":
                weight[mine] = np.log1p(value[mine])
            case "distance":
                weight[mine] = near[mine]
            case "measure":
                # Where a formula stands in a cell's place, no facts say what the other measure would be.
                weight[mine] = np.where(np.isnan(other[mine]), value[mine], other[mine])
    return _with_ratios(cells, weight)


def relations_away(matrix: sparse.csr_array, sensitive: Bools) -> Floats:
    """How many relations each cell is away from the nearest sensitive one (float64[n], at least 1).

    Cells near what they protect are hidden rather than others, as by the distance function of τ-ARGUS; here
    near are those that stand in a relation with it, whichever hierarchy or formula that comes from.
    """
    m, n = matrix.shape
    relation = row_of(matrix.indptr)
    graph = sparse.coo_array((np.ones(len(relation)), (relation, matrix.indices + m)), shape=(m + n, m + n))
    origins = np.flatnonzero(sensitive) + m
    if not len(origins):
        return np.ones(len(sensitive))
    steps = csgraph.dijkstra(graph.tocsr(), directed=False, indices=origins, unweighted=True, min_only=True)
    away = steps[m : m + len(sensitive)] / 2
    farthest = away.max(initial=0.0, where=np.isfinite(away))
    found: Floats = np.clip(np.where(np.isfinite(away), away, farthest + 1), 1.0, None)
    return found


def _with_ratios(cells: CubeCells, weight: Floats) -> Floats:
    """Weights with those of the ratios that fall with each cell; what no sheet shows itself costs nothing."""
    derived = cells.derived
    total: Floats = np.where(np.arange(len(cells)) < cells.n_published, weight, 0.0)
    counts = np.diff(derived.indptr)
    some = counts > 0
    if some.any():
        ratio = np.minimum.reduceat(weight[derived.indices], derived.indptr[:-1][some])
        np.add.at(total, derived.indices, np.repeat(ratio, counts[some]))
    return total
