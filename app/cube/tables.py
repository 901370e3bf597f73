"""Tables of contributor profiles, and the ways in which they are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.cube.facts import Facts
from app.domain.cellset import FloatArray

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Entities:
    """What single contributors bring, a row for each cell that they are in.

    Attributes
    ----------
    contributor : int64[n]
    weight : float64[n] or None
    amounts : float64[n] by measure
        Contribution of one weighted unit.
    asked : bool[n] or None
    """

    contributor: Ints
    weight: FloatArray | None
    amounts: tuple[FloatArray, ...]
    asked: NDArray[np.bool_] | None

    @property
    def size(self) -> int:
        return len(self.contributor)


def sorted_groups(key: Ints) -> tuple[Rows, Ints]:
    """Order by a key, and where each group of equals starts in it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    changes = np.ones(len(order), dtype=bool)
    changes[1:] = ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(changes)


def merge(facts: Facts, cells: Ints, rows: Rows) -> tuple[Ints, Rows, Entities]:
    """One entity for each contributor of each cell: the cell, a fact row of it, and its rows' sum.

    Weighted sums are divided by the contributor's least weight, so that with one weight throughout each
    unit counts as often as the weight says.
    """
    width = int(cells.max(initial=0)) + 1
    order, starts = sorted_groups(facts.contributor[rows] * width + cells)
    rows = rows[order]
    weight = None if facts.weight is None else np.minimum.reduceat(facts.weight[rows], starts)
    amounts: list[FloatArray] = []
    for column in facts.measures:
        if not column.limbs.shape[1]:
            amounts.append(np.zeros(len(starts)))
            continue
        total = column.scale.to_float(np.add.reduceat(column.limbs[rows], starts, axis=0))
        amounts.append(total if weight is None else total / weight)
    asked = None if facts.asked is None else np.logical_or.reduceat(facts.asked[rows], starts)
    first = rows[starts]
    return cells[order][starts], first, Entities(facts.contributor[first], weight, tuple(amounts), asked)


@dataclass(eq=False)
class Table:
    """Profiles of the settled contributors by cell key; sizes and widths are float64[n, pieces]."""

    key: Ints
    count: Ints
    weighted: FloatArray
    holder: Ints
    sizes: dict[int, FloatArray]
    widths: dict[int, FloatArray]
    mass: dict[int, FloatArray]
    requested: dict[int, FloatArray]


def totals(cells: Ints, amounts: FloatArray, n: int) -> FloatArray:
    return np.bincount(cells, amounts, n).astype(np.float64)


def empty_table(key: Ints, measures: set[int], pieces: int) -> Table:
    n = len(key)
    return Table(
        key,
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.full(n, -1, dtype=np.int64),
        {m: np.zeros((n, pieces)) for m in measures},
        {m: np.zeros((n, pieces)) for m in measures},
        {m: np.zeros(n) for m in measures},
        {m: np.zeros(n) for m in measures},
    )


def put(total: Table, rows: Rows, table: Table) -> None:
    total.count[rows] = table.count
    total.weighted[rows] = table.weighted
    total.holder[rows] = table.holder
    for measure in total.sizes:
        total.sizes[measure][rows] = table.sizes[measure]
        total.widths[measure][rows] = table.widths[measure]
        total.mass[measure][rows] = table.mass[measure]
        total.requested[measure][rows] = table.requested[measure]


def gather(table: Table, rows: Rows, cells: Ints, key: Ints, measures: set[int]) -> Table:
    """Rows of a table added up into cells; the contributors of different rows are different."""
    n = len(key)
    holder = np.full(n, -1, dtype=np.int64)
    occupied = table.count[rows] > 0
    holder[cells[occupied]] = table.holder[rows[occupied]]
    count = np.zeros(n, dtype=np.int64)
    np.add.at(count, cells, table.count[rows])
    result = Table(key, count, totals(cells, table.weighted[rows], n), holder, {}, {}, {}, {})
    once = len(cells) == 0 or int(np.bincount(cells).max()) == 1
    for measure in measures:
        result.mass[measure] = totals(cells, table.mass[measure][rows], n)
        result.requested[measure] = np.zeros(n)
        np.maximum.at(result.requested[measure], cells, table.requested[measure][rows])
        size, width = table.sizes[measure][rows], table.widths[measure][rows]
        if once:
            result.sizes[measure] = np.zeros((n, size.shape[1]))
            result.widths[measure] = np.zeros((n, size.shape[1]))
            result.sizes[measure][cells], result.widths[measure][cells] = size, width
        else:
            result.sizes[measure], result.widths[measure] = pick(size, width, cells, n)
    return result


def pick(size: FloatArray, width: FloatArray, cells: Ints, n: int) -> tuple[FloatArray, FloatArray]:
    """The tallest pieces of each cell among those of its rows."""
    pieces = size.shape[1]
    flat = np.repeat(cells, pieces)
    real = width.ravel() > 0
    flat, sizes, widths = flat[real], size.ravel()[real], width.ravel()[real]
    order = np.lexsort((-sizes, flat))
    flat = flat[order]
    rank = np.arange(len(flat)) - np.searchsorted(flat, flat)
    kept = rank < pieces
    best_size, best_width = np.zeros((n, pieces)), np.zeros((n, pieces))
    best_size[flat[kept], rank[kept]] = sizes[order][kept]
    best_width[flat[kept], rank[kept]] = widths[order][kept]
    return best_size, best_width


def union(tables: Sequence[Table], n: int, measures: set[int]) -> Table:
    """Several tables over the same cells, with different contributors, as one."""
    result = empty_table(np.arange(n), measures, next(iter(tables[0].sizes.values())).shape[1])
    for table in tables:
        occupied = table.count > 0
        result.holder[occupied] = table.holder[occupied]
        result.count += table.count
        result.weighted += table.weighted
        for measure in measures:
            result.mass[measure] += table.mass[measure]
            np.maximum(result.requested[measure], table.requested[measure], out=result.requested[measure])
            size = np.concatenate([result.sizes[measure], table.sizes[measure]], axis=1)
            width = np.concatenate([result.widths[measure], table.widths[measure]], axis=1)
            pieces = result.sizes[measure].shape[1]
            size, width = tallest(size, width)
            result.sizes[measure], result.widths[measure] = size[:, :pieces], width[:, :pieces]
    return result


def tallest(size: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    # Pieces that aren't there have no width and go last, behind those of size zero.
    order = np.argsort(np.where(width > 0, -size, 1.0), axis=1, kind="stable")
    return np.take_along_axis(size, order, axis=1), np.take_along_axis(width, order, axis=1)


def steps(size: FloatArray, width: FloatArray, top: int) -> FloatArray:
    """Integral of the descending step function of pieces over each unit, float64[n, top]."""
    end = np.cumsum(width, axis=1)
    start = end - width
    result = np.zeros((len(size), top))
    for j in range(top):
        overlap = np.clip(np.minimum(end, j + 1) - np.maximum(start, j), 0, None)
        result[:, j] = (size * overlap).sum(axis=1)
    return result


def counting_sort(cells: Ints, n: int) -> Rows:
    """Stable order by cell number below ``n``, in linear time: what turns sparse columns into rows."""
    size = len(cells)
    columns = sparse.csc_array(
        (np.ones(size, dtype=np.int8), cells.astype(np.int32), np.arange(size + 1, dtype=np.int32)),
        shape=(n, size),
    )
    order: Rows = columns.tocsr().indices
    return order


def no_entities(facts: Facts) -> tuple[Ints, Rows, Entities]:
    none = np.zeros(0)
    weight, asked = (
        None if facts.weight is None else none,
        None if facts.asked is None else none.astype(bool),
    )
    nobody = Entities(facts.contributor[:0], weight, tuple(none for _ in facts.measures), asked)
    return none.astype(np.int64), none.astype(np.intp), nobody
