"""build: sole contributors of hidden cells, who know their own values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.domain.crawled import CubeCells
from app.domain.lattice import Bools, Longs
from solver import Insider

Floats = NDArray[np.float64]


def find_insiders(
    cells: CubeCells,
    rows: Longs,
    relations: sparse.csr_array,
    holder: Longs,
    value: Floats,
    least: Floats,
    lpl: Floats,
    upl: Floats,
    spl: Floats,
) -> tuple[Insider, ...]:
    """One insider for each contributor that is alone in a cell of the component.

    It knows all such cells; its targets are the protected cells that share a relation with one of them.
    A target that contains known cells can't look smaller to it than these are, so its lower level stops
    there.

    Parameters
    ----------
    rows : int64[k]
        The component's cells; ``relations`` is over them, the other arrays are over the whole table.
    """
    alone = holder[rows]
    known = np.flatnonzero(alone >= 0)
    protected = np.maximum(np.maximum(lpl[rows], upl[rows]), spl[rows]) > 0
    if not len(known) or not protected.any():
        return ()
    near = _neighbours(relations, known, protected)
    order = np.argsort(alone[known], kind="stable")
    edges = np.flatnonzero(np.diff(alone[known][order])) + 1
    within = _Within(cells, rows)
    insiders = []
    for group in np.split(order, edges):
        mine = known[group]
        targets = np.setdiff1d(np.unique(np.concatenate([near[place] for place in group])), mine)
        if not len(targets):
            continue
        counted = mine[within.apart(mine, value[rows[mine]])]
        own = value[rows[counted]] - np.maximum(least[rows[counted]], 0)
        floor = np.maximum(least[rows[targets]], 0) + own @ within(counted, targets)
        low = lpl[rows[targets]]
        bounded = np.isfinite(least[rows[targets]])
        low = np.where(bounded, np.clip(np.minimum(low, value[rows[targets]] - floor), 0, None), low)
        insiders.append(
            Insider(
                name=f"the only contributor of {cells.keys(rows[mine[:1]])[0]}",
                known=mine,
                targets=targets,
                lpl=low,
                upl=upl[rows[targets]],
                spl=spl[rows[targets]],
            )
        )
    return tuple(insiders)


def _neighbours(relations: sparse.csr_array, known: Longs, protected: Bools) -> list[Longs]:
    """For each known cell, the protected cells of its relations."""
    by_cell = relations.tocsc()
    result = []
    for cell in known.tolist():
        mine = by_cell.indices[by_cell.indptr[cell] : by_cell.indptr[cell + 1]]
        parts = [relations.indices[relations.indptr[r] : relations.indptr[r + 1]] for r in mine]
        cells = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
        result.append(cells[protected[cells]].astype(np.int64))
    return result


class _Within:
    """Which cells of a component lie inside which."""

    def __init__(self, cells: CubeCells, rows: Longs) -> None:
        self._coords = cells.coords[rows]
        self._space = cells.space
        self._used = [np.unique(self._coords[:, column]) for column in range(self._space.columns)]
        covers = [self._leaves(column) for column in range(1, self._space.columns)]
        same = np.eye(len(self._used[0]), dtype=np.bool_)
        self._inside: list[Bools] = [same, *(np.asarray(mine @ (1 - mine).T == 0) for mine in covers)]
        self._meets: list[Bools] = [same, *(np.asarray(mine @ mine.T > 0) for mine in covers)]

    def __call__(self, inner: Longs, outer: Longs) -> Bools:
        """bool[len(inner), len(outer)]: whether the one cell is the other or a part of it."""
        return self._all(self._inside, inner, outer)

    def apart(self, cells: Longs, value: Floats) -> Longs:
        """Places of cells that don't overlap, small ones first, for whom the rest are made of them."""
        inside, meets = self(cells, cells), self._all(self._meets, cells, cells)
        innermost = np.flatnonzero((inside & ~inside.T).sum(axis=0) == 0)
        chosen: list[int] = []
        for place in innermost[np.argsort(-value[innermost], kind="stable")].tolist():
            if not meets[place, chosen].any():
                chosen.append(place)
        return np.array(chosen, dtype=np.int64)

    def _leaves(self, column: int) -> NDArray[np.float32]:
        """float32[members used, size]: 1 at each leaf below."""
        tree = self._space.trees[column - 1]
        covers = np.zeros((len(self._used[column]), tree.size), dtype=np.float32)
        for place, number in enumerate(self._used[column].tolist()):
            own = number < tree.size
            for member, _ in ((number, 1.0),) if own else self._space.extra(column, number).terms or ():
                covers[place, member : tree.last[member] + 1] = 1
        covers[:, tree.last != np.arange(tree.size)] = 0
        return covers

    def _all(self, tables: list[Bools], left: Longs, right: Longs) -> Bools:
        result = np.ones((len(left), len(right)), dtype=np.bool_)
        for column, table in enumerate(tables):
            a = np.searchsorted(self._used[column], self._coords[left, column])
            b = np.searchsorted(self._used[column], self._coords[right, column])
            result &= table[np.ix_(a, b)]
        return result
