"""Reduce an instance to small independent problems in deviations z = y − value.

What a reader can find out depends only on M z = 0 and −lo·x ≤ z ≤ hi·x. Columns that cannot move
are dropped, cells tied by a two-cell relation become one, bounds are tightened by the activity of
the relations, and what is left is split into connected components. Each component is scaled so
that its levels are near one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.columns import evened, heft, keep_entries, keep_rows, linked, without_repeats
from solver.entries import row_of
from solver.errors import InfeasibleError
from solver.instance import BoolArray, FloatArray, Instance, IntArray, Status
from solver.units import units_of

# No circuit of a table's relations amplifies a movement by nearly this much (times the ratio of
# largest to smallest coefficient), so more room than this many levels is as good as unlimited, and
# the arithmetic stays in double precision.
ROOM = 1e4
_PASSES = 3
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Targets:
    """What must stay possible for whom; one entry per (attacker, cell).

    Attributes
    ----------
    attacker, cell : int64[t]
        Attacker 0 is the outsider.
    lower, upper, sliding : float64[t]
        Protection levels.
    """

    attacker: IntArray
    cell: IntArray
    lower: FloatArray
    upper: FloatArray
    sliding: FloatArray

    def __len__(self) -> int:
        return len(self.cell)

    @cached_property
    def highest(self) -> FloatArray:
        """The highest level of each target (float64[t])."""
        return np.maximum(np.maximum(self.lower, self.upper), self.sliding)


@dataclass(frozen=True, eq=False)
class Problem:
    """One connected component, reduced and scaled.

    Attributes
    ----------
    matrix : csr (m × n)
        Relations on deviations.
    weight : float64[n]
        Cost of hiding; 0 for forced columns.
    forced : bool[n]
        Hidden in every pattern.
    lo, hi : float64[n]
        Room below and above the true value, ≥ 0, limited to many levels (:data:`ROOM`).
    known
        Per attacker the columns it knows; ``known[0]`` is the outsider's, empty.
    targets
        What to protect.
    scale
        Original units per unit here.
    cells, column : int64[k]
        Original cells and the column each belongs to.
    """

    matrix: sparse.csr_array
    weight: FloatArray
    forced: BoolArray
    lo: FloatArray
    hi: FloatArray
    known: tuple[IntArray, ...]
    targets: Targets
    scale: float
    cells: IntArray
    column: IntArray

    @property
    def n(self) -> int:
        """Number of columns."""
        return len(self.weight)

    @property
    def m(self) -> int:
        """Number of relations."""
        return int(self.matrix.shape[0])

    @cached_property
    def transposed(self) -> sparse.csr_array:
        """The relations by column (n × m)."""
        return sparse.csr_array(self.matrix.T)

    @cached_property
    def heft(self) -> FloatArray:
        """What moving each column by one moves in its relations (float64[n])."""
        return heft(self.matrix)

    @cached_property
    def _by_column(self) -> tuple[IntArray, IntArray]:
        """Numbers of the cells, sorted by column, and where each column begins."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.column, minlength=self.n))])
        return np.argsort(self.column, kind="stable"), starts

    def members(self, columns: IntArray) -> tuple[IntArray, IntArray]:
        """Every cell of some columns (int64[k]): which of these it belongs to, and its place in `cells`."""
        order, starts = self._by_column
        count = starts[columns + 1] - starts[columns]
        before = np.cumsum(count) - count
        entry = np.repeat(np.arange(len(columns)), count)
        return entry, order[np.arange(len(entry)) + (starts[columns] - before)[entry]]

    def cost(self, hidden: BoolArray) -> float:
        """Weight of the hidden columns (forced ones cost nothing)."""
        return float(self.weight[hidden & ~self.forced].sum())

    def local(self, hidden: BoolArray) -> BoolArray:
        """A pattern of the instance as columns: hidden if any free member is."""
        result = self.forced.copy()
        result[self.column[hidden[self.cells]]] = True
        return result


@dataclass(frozen=True, eq=False)
class Reduction:
    """The problems of an instance, and the way back.

    Attributes
    ----------
    problems
        Components that have something to protect, largest first.
    base : bool[n]
        Hidden in every pattern, with the cells that protection forces.
    ratio : float64[n]
        Movement of each cell over that of its column.
    """

    instance: Instance
    problems: tuple[Problem, ...]
    base: BoolArray
    ratio: FloatArray

    @property
    def base_cost(self) -> float:
        """Weight of the secondaries that every pattern hides."""
        return self.instance.cost(self.base)

    def expand(self, patterns: list[BoolArray]) -> BoolArray:
        """The instance's pattern from one pattern per problem."""
        hidden = self.base.copy()
        for problem, pattern in zip(self.problems, patterns, strict=True):
            hidden[problem.cells] |= pattern[problem.column]
        return hidden

    def expand_moves(self, moves: list[list[tuple[IntArray, FloatArray]]]) -> sparse.csr_array:
        """Movements of all cells (k × n) from movements of the columns of each problem."""
        sizes, cells, amounts = [_NONE], [_NONE], [np.empty(0)]
        for problem, found in zip(self.problems, moves, strict=True):
            if not found:
                continue
            move = np.repeat(np.arange(len(found)), [len(columns) for columns, _ in found])
            column = np.concatenate([columns for columns, _ in found])
            amount = np.concatenate([amounts for _, amounts in found])
            moving = np.abs(amount) > 1e-9
            move, column, amount = move[moving], column[moving], amount[moving]
            entry, member = problem.members(column)
            cells.append(problem.cells[member])
            amounts.append(amount[entry] * self.ratio[cells[-1]] * problem.scale)
            sizes.append(np.bincount(move[entry], minlength=len(found)))
        ends = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        entries = (np.concatenate(amounts), np.concatenate(cells), ends)
        return sparse.csr_array(entries, shape=(len(ends) - 1, self.instance.n))


class FrozenTargetError(InfeasibleError):
    """A cell with levels that no pattern lets move; the caller explains it on the instance."""

    def __init__(self, cells: IntArray) -> None:
        self.cells = cells
        super().__init__(())


def reduce_instance(instance: Instance) -> Reduction:
    """Presolve.

    Raises
    ------
    FrozenTargetError
        A cell to protect cannot move even if everything allowed is hidden.
    """
    attacker, cell, lower, upper, sliding = _gather_targets(instance)
    lo = np.where(instance.may_hide, instance.value - instance.lower_bound, 0.0)
    hi = np.where(instance.may_hide, instance.upper_bound - instance.value, 0.0)
    matrix, root, ratio, lo, hi = merge_cells(evened(instance.matrix)[0], lo, hi)
    matrix = without_repeats(matrix)
    frozen = (lo <= 0) & (hi <= 0)
    known = [np.empty(0, dtype=np.int64)]
    known += [np.unique(root[insider.known]) for insider in instance.insiders]
    stuck = frozen[root[cell]]
    for k, columns in enumerate(known[1:], 1):
        # What moves with a cell the attacker knows, it knows too.
        stuck |= (attacker == k) & np.isin(root[cell], columns)
    if stuck.any():
        raise FrozenTargetError(np.unique(cell[stuck]))
    n = instance.n
    always, free = instance.always_hidden, instance.status == Status.FREE
    targeted = np.zeros(n, dtype=np.bool_)
    targeted[root[cell]] = True
    base = always | (free & targeted[root])
    group_weight = np.bincount(root, np.where(free, instance.weight, 0.0), n).astype(np.float64)
    has_free = np.bincount(root, free, n) > 0
    forced = targeted | ~has_free
    group_weight[forced] = 0.0
    factor = ratio[cell]
    scaled = [level / np.abs(factor) for level in (lower, upper, sliding)]
    swap = factor < 0
    lower, upper = np.where(swap, scaled[1], scaled[0]), np.where(swap, scaled[0], scaled[1])
    merged = _strongest(Targets(attacker, root[cell], lower, upper, scaled[2]))
    problems = _components(matrix, root, group_weight, forced, lo, hi, known, merged)
    return Reduction(instance, problems, base, ratio)


def _gather_targets(instance: Instance) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    own = instance.protected
    parts = [
        (np.zeros(len(own), dtype=np.int64), own, instance.lpl[own], instance.upl[own], instance.spl[own])
    ]
    for k, insider in enumerate(instance.insiders, 1):
        keep = np.maximum(np.maximum(insider.lpl, insider.upl), insider.spl) > 0
        cells = insider.targets[keep]
        who = np.full(len(cells), k, dtype=np.int64)
        parts.append((who, cells, insider.lpl[keep], insider.upl[keep], insider.spl[keep]))
    who, cell, lower, upper, sliding = (np.concatenate(column) for column in zip(*parts, strict=True))
    return who, cell, lower, upper, sliding


def _strongest(targets: Targets) -> Targets:
    """One target per (attacker, cell): the highest of each level."""
    if not len(targets):
        return targets
    size = int(targets.cell.max()) + 1
    keys, inverse = np.unique(targets.attacker * size + targets.cell, return_inverse=True)
    levels = []
    for level in (targets.lower, targets.upper, targets.sliding):
        highest = np.zeros(len(keys))
        np.maximum.at(highest, inverse, level)
        levels.append(highest)
    return Targets(keys // size, keys % size, *levels)


def merge_cells(
    matrix: sparse.csr_array, lo: FloatArray, hi: FloatArray
) -> tuple[sparse.csr_array, IntArray, FloatArray, FloatArray, FloatArray]:
    """Freeze, tie and tighten to a fixed point.

    Returns the reduced matrix (m' × n, only root columns that can move are used), per cell its
    root and ratio (z_cell = ratio · z_root), and the room of the roots, in units of their own where
    relations tie cells of very different size.
    """
    n = len(lo)
    root, ratio = np.arange(n), np.ones(n)
    lo, hi = lo.copy(), hi.copy()
    while True:
        lo, hi = _tighten(matrix, lo, hi)
        moving = (lo > 0) | (hi > 0)
        # What can't move may have had the only large coefficient of its relation.
        matrix = evened(keep_entries(matrix, moving[matrix.indices] & (matrix.data != 0)))[0]
        sizes = np.diff(matrix.indptr)
        single = np.flatnonzero(sizes == 1)
        if len(single):
            stuck = matrix.indices[matrix.indptr[single]]
            lo[stuck] = hi[stuck] = 0.0
            matrix = keep_rows(matrix, sizes > 1)
            continue
        pairs = np.flatnonzero(sizes == 2)
        if not len(pairs):
            return _in_units(keep_rows(matrix, sizes > 2), root, ratio, lo, hi)
        start = matrix.indptr[pairs]
        parent, step = _tie(
            n, matrix.indices[start], matrix.indices[start + 1], matrix.data[start], matrix.data[start + 1]
        )
        tied = np.flatnonzero(parent != np.arange(n))
        up, down = hi[tied] / np.abs(step[tied]), lo[tied] / np.abs(step[tied])
        flip = step[tied] < 0
        np.minimum.at(hi, parent[tied], np.where(flip, down, up))
        np.minimum.at(lo, parent[tied], np.where(flip, up, down))
        lo[tied] = hi[tied] = 0.0
        ratio = ratio * step[root]
        root = parent[root]
        amounts = matrix.data * step[matrix.indices]
        ends = matrix.indptr.copy()
        folded = sparse.csr_array((amounts, parent[matrix.indices], ends), shape=matrix.shape)
        folded.sum_duplicates()
        # Equal and opposite terms cancel only up to rounding when ratios are not ±1.
        folded = keep_entries(folded, np.abs(folded.data) >= 1e-12)
        matrix = keep_rows(folded, np.diff(folded.indptr) > 0)


def _in_units(
    matrix: sparse.csr_array, root: IntArray, ratio: FloatArray, lo: FloatArray, hi: FloatArray
) -> tuple[sparse.csr_array, IntArray, FloatArray, FloatArray, FloatArray]:
    units = units_of(matrix)
    if units is None:
        return evened(matrix)[0], root, ratio, lo, hi
    scaled = sparse.csr_array(
        (matrix.data * units[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape
    )
    scaled = evened(scaled)[0]
    return scaled, root, ratio * units[root], lo / units, hi / units


def _tie(
    n: int, left: IntArray, right: IntArray, left_coef: FloatArray, right_coef: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Spanning forest of the ties a·z_left + b·z_right = 0: root and ratio of every cell."""
    edges = sparse.csr_array((np.ones(len(left)), (left, right)), shape=(n, n))
    _, label = csgraph.connected_components(edges, directed=False)
    _, first = np.unique(label, return_index=True)
    rooted = sparse.csr_array(
        (
            np.ones(len(left) + len(first)),
            (np.concatenate([left, np.full(len(first), n)]), np.concatenate([right, first])),
        ),
        shape=(n + 1, n + 1),
    )
    _, before = csgraph.breadth_first_order(rooted, n, directed=False)
    before = before[:n].astype(np.int64)
    parent = np.where(before == n, np.arange(n), before)
    step = np.ones(n)
    # z_right = -(a/b) z_left: whichever end is the child takes its ratio from this tie.
    child_right = parent[right] == left
    step[right[child_right]] = -left_coef[child_right] / right_coef[child_right]
    child_left = (parent[left] == right) & ~child_right
    step[left[child_left]] = -right_coef[child_left] / left_coef[child_left]
    while (parent[parent] != parent).any():
        step = step * step[parent]
        parent = parent[parent]
    return parent, step


def _tighten(matrix: sparse.csr_array, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Room that the relations leave when everything is hidden."""
    rows = row_of(matrix.indptr)
    cols, coefs = matrix.indices, matrix.data
    size = np.abs(coefs)
    for _ in range(_PASSES):
        up = size * np.where(coefs > 0, hi[cols], lo[cols])
        down = size * np.where(coefs > 0, lo[cols], hi[cols])
        limit_up = _others(rows, down, matrix.shape[0]) / size * (1 + 1e-12)
        limit_down = _others(rows, up, matrix.shape[0]) / size * (1 + 1e-12)
        new_hi, new_lo = hi.copy(), lo.copy()
        np.minimum.at(new_hi, cols, np.where(coefs > 0, limit_up, limit_down))
        np.minimum.at(new_lo, cols, np.where(coefs > 0, limit_down, limit_up))
        if (new_hi >= hi).all() and (new_lo >= lo).all():
            break
        hi, lo = new_hi, new_lo
    return lo, hi


def _others(rows: IntArray, amounts: FloatArray, m: int) -> FloatArray:
    """Per entry the sum of the amounts of the other entries of its row, exact about inf and zero."""
    infinite = ~np.isfinite(amounts)
    finite = np.where(infinite, 0.0, amounts)
    total, count = np.bincount(rows, finite, m), np.bincount(rows, infinite, m)
    positive = np.bincount(rows, finite > 0, m)
    others = positive[rows] - (finite > 0) > 0
    # Cancellation must never take room away: neither a part of what the others have, nor all of it.
    rest = np.where(others, np.maximum(total[rows] - finite, 0.0) + 1e-12 * total[rows], 0.0)
    return np.where(count[rows] - infinite > 0, np.inf, rest)


def _components(
    matrix: sparse.csr_array,
    root: IntArray,
    weight: FloatArray,
    forced: BoolArray,
    lo: FloatArray,
    hi: FloatArray,
    known: list[IntArray],
    targets: Targets,
) -> tuple[Problem, ...]:
    n = len(root)
    by_row, label = linked(matrix.indptr, matrix.indices, n)
    order = np.argsort(label, kind="stable")
    wanted = np.unique(label[targets.cell])
    bounds = np.searchsorted(label[order], np.stack([wanted, wanted + 1]))
    problems = []
    for which, begin, end in zip(wanted, bounds[0], bounds[1], strict=True):
        columns = np.sort(order[begin:end])
        problems.append(
            _problem(
                keep_rows(matrix, by_row == which), columns, root, weight, forced, lo, hi, known, targets
            )
        )
    return tuple(sorted(problems, key=lambda p: -p.n))


def _problem(
    rows: sparse.csr_array,
    columns: IntArray,
    root: IntArray,
    weight: FloatArray,
    forced: BoolArray,
    lo: FloatArray,
    hi: FloatArray,
    known: list[IntArray],
    targets: Targets,
) -> Problem:
    position = np.full(len(root), -1, dtype=np.int64)
    position[columns] = np.arange(len(columns))
    mine = np.flatnonzero(position[targets.cell] >= 0)
    levels = np.stack([targets.lower, targets.upper, targets.sliding])[:, mine]
    top, bottom = levels.max(), levels[levels > 0].min()
    # A power of two keeps the scaling exact.
    scale = float(2.0 ** np.floor(np.log2(max(bottom, top * 1e-6))))
    size = np.abs(rows.data)
    room = ROOM * top * (float(size.max() / size.min()) if len(size) else 1.0)
    local_known = [position[cells][position[cells] >= 0] for cells in known]
    who = targets.attacker[mine]
    used = np.unique(np.concatenate([[0], who]))
    cells = np.flatnonzero(position[root] >= 0)
    # No row links columns of two components.
    matrix = sparse.csr_array((rows.data, position[rows.indices], rows.indptr), (rows.shape[0], len(columns)))
    return Problem(
        matrix=matrix,
        weight=weight[columns],
        forced=forced[columns],
        lo=np.minimum(lo[columns], room) / scale,
        hi=np.minimum(hi[columns], room) / scale,
        known=tuple(local_known[k] for k in used),
        targets=Targets(np.searchsorted(used, who), position[targets.cell[mine]], *(levels / scale)),
        scale=scale,
        cells=cells,
        column=position[root[cells]],
    )
