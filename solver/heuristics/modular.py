"""Protect a hierarchical table module by module, top-down (de Wolf 2002, HiTaS).

Relations are ranked by how deep their total lies below the grand total; those of one depth that
share parts make a module. Each is protected on its own, what an earlier module hid being a primary
of the later ones, and a module that hides a cell of an earlier one sends the work back there. The
original stops here and leaves cells exposed, because modules together tell more than each alone, and
hides more than needed, because what one module does anew another has done already: afterwards the whole
is protected by the cheapest movements, to which what the modules hid costs less.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.clock import Clock
from solver.entries import row_of
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.mover import Mover
from solver.heuristics.needs import Cover, Needs
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import FrozenTargetError, Problem, Targets

_RETURNS = 3
# A secondary of another module must be movable by this part of its room.
_SECONDARY = 0.1
# What a column that a module hid costs when the whole is protected, as a part of its weight.
_SUGGESTED = 0.5


def protect_modular(cover: Cover, clock: Clock) -> None:
    """Hide module by module, then meet the needs of the whole, mostly by what is hidden.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    problem = cover.problem
    modules = _modules(problem)
    level = np.zeros(problem.n)
    np.maximum.at(level, cover.needs.cell, cover.needs.level)
    waiting = list(range(len(modules)))
    visits = np.zeros(len(modules), dtype=np.int64)
    hidden = cover.hidden.copy()
    home: list[set[int]] = [set(np.unique(problem.matrix[rows].indices).tolist()) for rows in modules]
    while waiting and not clock.out:
        number = waiting.pop(0)
        visits[number] += 1
        new = _protect(problem, modules[number], hidden, level, clock)
        hidden[new] = True
        touched = set(new.tolist())
        back = [k for k in range(number) if touched & home[k] and visits[k] < _RETURNS and k not in waiting]
        waiting = sorted(waiting + back)
    meet_within(cover, clock)
    protect_lp(cover, clock, np.where(hidden, _SUGGESTED, 1.0) * problem.weight)


def _modules(problem: Problem) -> list[IntArray]:
    """Rows of each module, top-down."""
    matrix = problem.matrix
    rows = row_of(matrix.indptr)
    positive = np.bincount(rows, matrix.data > 0, problem.m)
    minority = np.where(positive * 2 > np.diff(matrix.indptr), -1.0, 1.0)
    total = np.sign(matrix.data) == minority[rows]
    depth = _depth(problem, rows, total)
    part = ~total
    pairs = sparse.csr_array(
        (np.ones(int(part.sum())), (rows[part], matrix.indices[part])), shape=matrix.shape
    )
    modules = []
    for d in np.unique(depth).tolist():
        mine = np.flatnonzero(depth == d)
        some = pairs[mine]
        _, label = csgraph.connected_components(some @ some.T, directed=False)
        modules += [mine[label == k] for k in range(int(label.max()) + 1)]
    return modules


def _depth(problem: Problem, rows: IntArray, total: BoolArray) -> IntArray:
    """Depth of each relation: the longest way from its total up to one that is no part."""
    cells = problem.matrix.indices
    depth = np.zeros(problem.n, dtype=np.int64)
    for _ in range(64):
        above = np.zeros(problem.m, dtype=np.int64)
        np.maximum.at(above, rows[total], depth[cells[total]])
        deeper = depth.copy()
        np.maximum.at(deeper, cells[~total], above[rows[~total]] + 1)
        if (deeper == depth).all():
            break
        depth = deeper
    above = np.zeros(problem.m, dtype=np.int64)
    np.maximum.at(above, rows[total], depth[cells[total]])
    return above


def _protect(
    problem: Problem, rows: IntArray, hidden: BoolArray, level: FloatArray, clock: Clock
) -> IntArray:
    """Columns that a module hides to protect what is hidden in it."""
    matrix = sparse.csr_array(problem.matrix[rows])
    cells = np.unique(matrix.indices).astype(np.int64)
    forced = hidden[cells]
    room = np.minimum(problem.hi[cells], problem.lo[cells])
    wanted = np.where(level[cells] > 0, level[cells], _SECONDARY * room)
    wanted = np.where(forced, np.minimum(wanted, room), 0.0)
    targets = np.flatnonzero(wanted > 0)
    none = np.zeros(len(targets))
    module = Problem(
        matrix=sparse.csr_array(matrix[:, cells]),
        weight=np.where(forced, 0.0, problem.weight[cells]),
        forced=forced,
        lo=problem.lo[cells],
        hi=problem.hi[cells],
        known=(np.empty(0, dtype=np.int64),),
        targets=Targets(np.zeros(len(targets), dtype=np.int64), targets, none, wanted[targets], none),
        scale=problem.scale,
        cells=cells,
        column=np.arange(len(cells)),
    )
    needs = Needs(targets, np.ones(len(targets)), wanted[targets], np.zeros(len(targets), dtype=np.int64))
    part = Cover(module, needs)
    try:
        protect_lp(part, clock)
    except FrozenTargetError:
        # Alone, the module offers no way; the check of the whole decides.
        return _everything_met(part, clock)
    return cells[part.hidden & ~forced]


def _everything_met(part: Cover, clock: Clock) -> IntArray:
    """What the needs that a module can meet hide, one by one."""
    mover = Mover(part.problem, part.needs)
    for need in np.flatnonzero(part.unmet).tolist():
        mover.set_prices(np.where(part.hidden, 0.0, part.problem.weight), float(part.needs.level[need]))
        move = mover.move(need, clock)
        if move is not None:
            part.add(mover.columns, move)
    return part.problem.cells[part.hidden & ~part.problem.forced]
