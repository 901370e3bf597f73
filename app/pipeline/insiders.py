"""build: sole contributors of hidden cells, who know their own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from app.domain.crawled import CubeCells
from app.domain.lattice import Bools, Longs, row_of
from solver import Insider

Floats = NDArray[np.float64]

#: Cells of one contributor that are told apart, and random directions beyond them.
MOST_KNOWN = 200
SPARE = 6
#: Movements this small are none.
STILL = 1e-6
REPEATED = 1e-9


@dataclass(frozen=True, eq=False)
class Levels:
    """Of the cells of a component (float64[k] each, or more where cells of earlier releases stand behind
    them): value, the least it can be whatever is hidden, and protection levels."""

    value: Floats
    least: Floats
    lpl: Floats
    upl: Floats
    spl: Floats

    @property
    def protected(self) -> Bools:
        """bool[k]: cells with a level."""
        return np.maximum(np.maximum(self.lpl, self.upl), self.spl) > 0


def find_insiders(
    cells: CubeCells,
    rows: Longs,
    relations: sparse.csr_array,
    holder: Longs,
    levels: Levels,
    learned: Mapping[int, Longs] | None = None,
    unions: Sequence[Longs] = (),
) -> tuple[Insider, ...]:
    """One insider for each contributor that is alone in a cell of the component.

    It knows all such cells; its targets are the protected cells that share a relation with one of them, and
    those that it would work out along several relations under some pattern.
    A target that contains known cells can't look smaller to it than these are, so its lower level stops
    there.

    Parameters
    ----------
    rows : int64[k]
        The component's cells in the table; ``relations``, ``holder`` and ``levels`` are over them.
    holder : int64[k]
        Sole contributor of each cell, -1 where there is none.
    learned
        Further targets by contributor, as of `learn`; also cells of earlier releases, which only ``levels``
        knows.
    unions
        Cells of each sum of hidden cells, which only ``levels`` knows and has at its end. One of them is a
        target of those who know a part of it.
    """
    learned = learned or {}
    behind = len(levels.value) - len(unions)
    sums: dict[int, list[int]] = {}
    for place, parts in enumerate(unions):
        for who in np.unique(holder[parts]).tolist():
            sums.setdefault(who, []).append(behind + place)
    known = np.flatnonzero(holder >= 0)
    protected = levels.protected
    if not len(known) or not protected.any():
        return ()
    near = _neighbours(relations, known, protected)
    order = np.argsort(holder[known], kind="stable")
    edges = np.flatnonzero(np.diff(holder[known][order])) + 1
    within = _Within(cells, rows)
    insiders = []
    # By the first cell of each: how contributors are numbered depends on the order of the facts.
    for group in sorted(np.split(order, edges), key=lambda places: int(places[0])):
        mine = known[group]
        far = learned.get(int(holder[mine[0]]), mine)
        far = np.concatenate([far, np.array(sums.get(int(holder[mine[0]]), ()), dtype=np.int64)])
        targets = np.setdiff1d(np.unique(np.concatenate([far, *(near[place] for place in group)])), mine)
        if not len(targets):
            continue
        counted = mine[within.apart(mine, levels.value[mine])]
        own = levels.value[counted] - np.maximum(levels.least[counted], 0)
        inside = np.zeros((len(counted), len(targets)), dtype=np.bool_)
        here = np.flatnonzero(targets < len(rows))
        inside[:, here] = within(counted, targets[here])
        for place in np.flatnonzero(targets >= behind).tolist():
            inside[:, place] = within(counted, unions[targets[place] - behind]).any(axis=1)
        floor = np.maximum(levels.least[targets], 0) + own @ inside
        low = levels.lpl[targets]
        bounded = np.isfinite(levels.least[targets])
        low = np.where(bounded, np.clip(np.minimum(low, levels.value[targets] - floor), 0, None), low)
        insiders.append(
            Insider(
                name=f"the only contributor of {cells.keys(rows[mine[:1]])[0]}",
                known=mine,
                targets=targets,
                lpl=low,
                upl=levels.upl[targets],
                spl=levels.spl[targets],
            )
        )
    return tuple(insiders)


def learn(relations: sparse.csr_array, holder: Longs, hidden: Bools, protected: Bools) -> Mapping[int, Longs]:
    """Protected cells that follow from what is shown and the cells of one sole contributor, by contributor.

    The hidden cells may move together in every direction that leaves all relations true. A cell follows from
    others if its movements in random such directions are a combination of theirs.

    Parameters
    ----------
    relations
        Over the n cells of a problem, of which the first have a ``holder``.
    hidden, protected : bool[n]
        The pattern, and the cells with protection levels.
    """
    alone = np.flatnonzero((holder >= 0) & hidden[: len(holder)])
    if not len(alone):
        return {}
    groups = np.split(*_runs(alone, holder[alone]))
    # A slack that stands in one relation alone takes up any movement: that relation binds nobody.
    slack = hidden & ~protected & (np.arange(len(hidden)) >= len(holder))
    slack &= np.bincount(relations.indices, minlength=len(hidden)) == 1
    free = np.unique(row_of(relations.indptr)[slack[relations.indices]])
    relations = relations[np.setdiff1d(np.arange(relations.shape[0]), free)]
    hidden = hidden & ~slack
    cells = np.flatnonzero(hidden)
    moves = np.zeros((len(hidden), min(max(map(len, groups)), MOST_KNOWN) + SPARE))
    moves[cells] = _directions(sparse.csr_array(relations[:, cells]), moves.shape[1])
    size = np.linalg.norm(moves, axis=1)
    aims = np.flatnonzero(protected & (size > STILL))
    found: dict[int, Longs] = {}
    for mine in groups:
        base, scale, _ = np.linalg.svd(moves[mine].T, full_matrices=False)
        base = base[:, scale > STILL]
        left = np.linalg.norm(moves[aims] - (moves[aims] @ base) @ base.T, axis=1)
        told = np.setdiff1d(aims[left <= STILL * size[aims]], mine)
        if len(told):
            found[int(holder[mine[0]])] = told
    return found


def _runs(cells: Longs, who: Longs) -> tuple[Longs, Longs]:
    """Cells in the order of their contributors, and where the next contributor's begin."""
    order = np.argsort(who, kind="stable")
    return cells[order], np.flatnonzero(np.diff(who[order])) + 1


def _directions(relations: sparse.csr_array, k: int) -> Floats:
    """``k`` random movements of the columns that leave every relation true: float64[n, k]."""
    relations = relations[np.flatnonzero(np.diff(relations.indptr))]
    m, n = relations.shape
    # The projection onto the null space; the small diagonal lets relations repeat each other.
    system = sparse.block_array(
        [[sparse.eye_array(n), relations.T], [relations, -REPEATED * sparse.eye_array(m)]], format="csc"
    )
    factors = splu(system, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    moves = np.random.default_rng(0).standard_normal((n, k))
    for _ in range(2):
        moves = factors.solve(np.concatenate([moves, np.zeros((m, k))]))[:n]
    return np.asarray(moves, dtype=np.float64)


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
