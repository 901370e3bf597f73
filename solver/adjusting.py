"""The search of a controlled tabular adjustment: which way each sensitive cell goes, and how far all cells.

Movements are split into a part up and a part down, and a binary says for each sensitive cell which of the two
it has (Castro 2006; the model is (6) in D. Baena, Protecció de Dades Estadístiques). Linear programs propose
in double precision; what comes back is whole numbers of units that add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.clock import Clock
from solver.columns import take_columns
from solver.conflict import fewest, named
from solver.errors import Conflict, UndecidedError
from solver.grid import Grid, WholeArray
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram, LpResult
from solver.publish import CLOSED
from solver.units import units_of

#: Up to so many units in all, movements are whole numbers of the program itself.
_COUNTABLE = 1e6
#: A movement that no cheapest table exceeds: so often what all sensitive cells move together.
_FARTHEST = 4.0
#: How often directions are changed that leave a cell short, and what a missing step costs beside the dearest.
_TURNS, _DEAR = 30, 1e3
_SHORT = 1e-6
#: Work (about milliseconds), and part of the time, for turning single cells.
_FLIPS, _EARLY = 5e3, 0.3
#: Without a limit of time, the tree ends after so many nodes times columns and rows.
_NODES, _FEWEST = 4_000_000, 100
#: Windows around a movement in which it is made whole.
_WINDOWS = (16, 1024, 65536)


@dataclass(frozen=True, eq=False)
class Found:
    """Movements of all cells.

    Attributes
    ----------
    steps : int[n]
        In units, exact.
    bound
        No other costs less.
    """

    steps: WholeArray
    bound: float


class Program:
    """The mixed-integer program of some requirements (positions of ``grid.must``) and relations.

    Columns: up and down of each moving cell, direction and missing part of each requirement.

    Parameters
    ----------
    tree
        Directions are one or the other; else, the linear relaxation.
    whole
        Movements are whole numbers of units in the program too.
    free
        Movements cost nothing.
    """

    def __init__(
        self,
        grid: Grid,
        asked: IntArray,
        relations: IntArray,
        *,
        tree: bool,
        whole: bool = False,
        free: bool = False,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        self._grid, self._asked = grid, asked
        self.cells = np.flatnonzero(grid.moving)
        k, p = len(self.cells), len(asked)
        place = np.cumsum(grid.moving) - 1
        self._k, self._p = k, p
        ways = [np.where(side == np.inf, 0, side)[asked].astype(np.float64) for side in (grid.down, grid.up)]
        open_ways = [(side < np.inf)[asked].astype(np.bool_) for side in (grid.down, grid.up)]
        self._open = open_ways[0] & open_ways[1]
        matrix = sparse.csr_array(grid.instance.matrix[relations][:, self.cells])
        total = float(np.maximum(*ways).sum())
        self._scale = np.ones(k)
        if not whole:
            # Amounts of the size of the levels, and cells of different kinds each in its own unit.
            both = np.concatenate(ways)
            typical = float(np.median(both[both > 0])) if (both > 0).any() else 1.0
            units = units_of(matrix)
            self._scale *= 2.0 ** np.floor(np.log2(typical))
            self._scale *= 1.0 if units is None else units
        scale, mine = self._scale, place[grid.must[asked]]
        sizes = np.abs(matrix.data)
        spread = float(sizes.max() / sizes.min()) if sizes.size else 1.0
        down, up = (np.abs(side[self.cells]).astype(np.float64) for side in (grid.low, grid.high))
        farthest = max(_FARTHEST * spread * total, 1.0)
        far = [
            np.minimum(side[mine], np.maximum(farthest, way))
            for side, way in zip((down, up), ways, strict=True)
        ]
        down, up, levels = down / scale, up / scale, [way / scale[mine] for way in ways]
        far = [side / scale[mine] for side in far]
        matrix = sparse.csr_array(matrix * scale)
        cost = grid.weight[self.cells] * scale
        self._norm = float(np.median(cost[cost > 0])) if (cost > 0).any() else 1.0
        cost = np.zeros(k) if free else cost / self._norm
        dear = _DEAR * max(float(cost.max(initial=0.0)), 1.0)
        m = matrix.shape[0]
        rows = np.arange(p)
        picks = sparse.csr_array((np.ones(p), (rows, mine)), shape=(p, k))
        nothing = sparse.csr_array((p, k))
        missing = sparse.eye_array(p, format="csr")
        blocks = sparse.csr_array(
            sparse.block_array(
                [
                    [matrix, -matrix, None, None],
                    [picks, nothing, -sparse.diags_array(far[1]), None],
                    [nothing, picks, sparse.diags_array(far[0]), None],
                    [picks, nothing, -sparse.diags_array(levels[1]), missing],
                    [nothing, picks, sparse.diags_array(levels[0]), missing],
                ]
            )
        )
        blocks.eliminate_zeros()
        infinite = np.full(p, np.inf)
        self._bounds = ((~open_ways[0]).astype(np.float64), open_ways[1].astype(np.float64))
        self.direction, self._missing = 2 * k + rows, 2 * k + p + rows
        integral = np.zeros(2 * k + 2 * p, dtype=np.bool_)
        integral[: 2 * k], integral[self.direction] = whole, True
        self._tree = tree
        self._lp = LinearProgram(
            np.concatenate([cost, cost, np.zeros(p), np.full(p, dear)]),
            np.concatenate([np.zeros(2 * k), self._bounds[0], np.zeros(p)]),
            np.concatenate([up, down, self._bounds[1], np.zeros(p)]),
            blocks.indptr,
            blocks.indices,
            blocks.data,
            np.concatenate([np.zeros(m), -infinite, -infinite, np.zeros(p), levels[0]]),
            np.concatenate([np.zeros(m), np.zeros(p), far[0], infinite, infinite]),
            integral=integral if tree else None,
            presolve=tree,
            with_duals=False,
            threads=threads,
            seed=seed,
        )

    @property
    def size(self) -> int:
        """Columns and rows."""
        return self._lp.columns + self._lp.rows

    def solve(self, *, seconds: float | None = None, nodes: int | None = None) -> LpResult:
        """Solve as it stands; to the last digit if it is a mixed-integer program."""
        gap = 0.0 if self._tree else None
        return self._lp.solve(seconds=seconds, nodes=nodes, gap=gap)

    def propose(self, ups: BoolArray) -> None:
        """Directions (bool[p]) to begin with."""
        self._lp.propose(self.direction, ups.astype(np.float64))

    def possible(self, ups: BoolArray) -> BoolArray:
        """The nearest directions that are open."""
        return np.asarray(np.clip(ups, *self._bounds) > 0.5)

    def turned(self, ups: BoolArray) -> tuple[BoolArray, LpResult] | None:
        """Directions for which there is a table, sought from these, and its movements; None if not found."""
        ups = self.possible(ups)
        self._lp.set_bounds(self._missing, np.zeros(self._p), np.full(self._p, np.inf))
        before = np.zeros(self._p, dtype=np.bool_)
        for _ in range(_TURNS):
            fixed = ups.astype(np.float64)
            self._lp.set_bounds(self.direction, fixed, fixed)
            result = self.solve()
            if result.status != "optimal":
                return None
            short = result.primal[self._missing] > _SHORT
            if not short.any():
                return ups, result
            # Not back at once: two cells would go on changing places.
            turn = short & self._open & ~before
            if not turn.any():
                return None
            ups, before = ups ^ turn, turn
        return None

    def flipped(self, ups: BoolArray, result: LpResult, clock: Clock) -> tuple[BoolArray, LpResult]:
        """Turn one cell after the other for as long as that makes a table (of these directions) cheaper."""
        nothing = np.zeros(self._p)
        self._lp.set_bounds(self._missing, nothing, nothing)
        now = ups.astype(np.float64)
        self._lp.set_bounds(self.direction, now, now)
        free = np.flatnonzero(self._open)
        idle, turn = 0, 0
        end = self._lp.work + _FLIPS
        while idle < len(free) and not clock.out and self._lp.work < end:
            cell = free[turn % len(free)]
            turn, idle = turn + 1, idle + 1
            column = self.direction[cell : cell + 1]
            other = 1.0 - now[cell : cell + 1]
            self._lp.set_bounds(column, other, other)
            # Most turns are dearer, which shows long before they are solved.
            answer = self._lp.solve(cutoff=result.objective)
            if answer.status == "optimal" and answer.objective < result.objective * (1 - CLOSED):
                now[cell], result, idle = other[0], answer, 0
            else:
                self._lp.set_bounds(column, now[cell : cell + 1], now[cell : cell + 1])
        return now > 0.5, result

    def ups(self, result: LpResult) -> BoolArray:
        """The directions of a result (bool[p])."""
        return self.possible(result.primal[self.direction] > 0.5)

    def movements(self, result: LpResult) -> WholeArray:
        """The movements of a result in units, rounded (int[n])."""
        k = self._k
        amounts = (result.primal[:k] - result.primal[k : 2 * k]) * self._scale
        steps = np.zeros(self._grid.instance.n, dtype=object)
        steps[self.cells] = [int(x) for x in np.rint(amounts).tolist()]
        return steps

    def cost(self, objective: float) -> float:
        """An objective as the weighted distance that it is."""
        return objective * self._norm


def search(
    grid: Grid, clock: Clock, seed: int, threads: int, note: Callable[[str, float, float], None]
) -> Found | None:
    """The cheapest movements, or the best met within the limit; None if there are none.

    Raises
    ------
    UndecidedError
        The limit was reached before there were any.
    """
    every, relations = np.arange(len(grid.must)), np.arange(grid.instance.m)
    still = np.zeros(grid.instance.n, dtype=object)
    if not len(grid.must):
        return Found(still, 0.0)
    if ((grid.down == np.inf) & (grid.up == np.inf)).any():
        return None
    relaxed = Program(grid, every, relations, tree=False)
    result = relaxed.solve()
    if result.status != "optimal":
        return None
    best = _Best(grid, max(relaxed.cost(result.objective), 0.0), note)
    best.note("relaxation")
    starts = [
        relaxed.turned(ups) for ups in (relaxed.ups(result), every % 2 == 0, np.ones(len(every), np.bool_))
    ]
    start = min((s for s in starts if s is not None), key=lambda s: s[1].objective, default=None)
    if start is not None:
        start = relaxed.flipped(*start, clock.early(_EARLY))
        best.note("start", relaxed.cost(start[1].objective))
        best.ups = start[0]
    undecided = True
    for whole in (False, True):
        if clock.out or best.closed or (whole and best.together > _COUNTABLE):
            break
        tree = Program(grid, every, relations, tree=True, whole=whole, threads=threads, seed=seed)
        if start is not None:
            tree.propose(best.ups)
        # Where only whole numbers are missing, little is to be gained.
        nodes = _FEWEST if whole else None if clock.limited else max(_NODES // tree.size, _FEWEST)
        result = tree.solve(seconds=clock.seconds_left, nodes=nodes)
        undecided = result.status not in ("infeasible", "unbounded")
        if np.isfinite(result.bound):
            best.bound = max(best.bound, tree.cost(result.bound))
        if len(result.primal):
            best.offer(tree.ups(result), tree.movements(result))
        best.note("whole" if whole else "tree")
    if best.steps is None and start is not None:
        best.offer(start[0], relaxed.movements(start[1]))
    if best.steps is not None:
        return Found(best.steps, best.bound)
    if undecided:
        raise UndecidedError(
            "no adjustment was found within the limit, nor is none possible. Give more time."
        )
    return None


class _Best:
    """The cheapest movements met, and the bound proven."""

    def __init__(self, grid: Grid, bound: float, note: Callable[[str, float, float], None]) -> None:
        self._grid, self._note = grid, note
        self.bound, self.cost = bound, np.inf
        self.steps: WholeArray | None = None
        self.ups = np.zeros(len(grid.must), dtype=np.bool_)

    @property
    def closed(self) -> bool:
        """Nothing cheaper is possible, but for rounding."""
        return self.bound >= self.cost * (1 - CLOSED)

    @property
    def together(self) -> float:
        """How far all sensitive cells move at least, the longer way, in units."""
        ways = [
            np.where(side == np.inf, 0, side).astype(np.float64) for side in (self._grid.down, self._grid.up)
        ]
        return float(np.maximum(*ways).sum())

    def offer(self, ups: BoolArray, steps: WholeArray) -> None:
        """Movements that may be better, and have yet to be made whole."""
        whole = _whole(self._grid, ups, steps)
        if whole is not None and self._grid.cost(whole) < self.cost:
            self.ups, self.steps, self.cost = ups, whole, self._grid.cost(whole)

    def note(self, phase: str, cost: float | None = None) -> None:
        """Report, a cost of movements that aren't whole yet too."""
        upper = self.cost if cost is None else cost
        self._note(phase, min(self.bound, upper), upper)


def _whole(grid: Grid, ups: BoolArray, steps: WholeArray) -> WholeArray | None:
    """Movements near these (int[n]) that go these ways (bool[p]) and add up exactly; None if there are none.

    What a double-precision movement of whole numbers misses is small, and a program for that alone exact
    (iterative refinement: Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016).
    """
    low, high = grid.low.copy(), grid.high.copy()
    low[grid.must] = np.where(ups, grid.up, low[grid.must])
    high[grid.must] = np.where(ups, high[grid.must], -grid.down)
    steps = np.minimum(np.maximum(steps, low), high)
    cells = np.flatnonzero(grid.moving)
    part = take_columns(grid.instance.matrix, cells)
    coefs = grid.relations.coefs[_entries(grid)].astype(np.float64)
    for window in _WINDOWS:
        missed = grid.relations.sums(steps)
        if not missed.any():
            return steps
        now = steps[cells]
        down = np.minimum(now - low[cells], window).astype(np.float64)
        up = np.minimum(high[cells] - now, window).astype(np.float64)
        weight = grid.weight[cells]
        weight = weight / max(float(weight.max(initial=0.0)), 1e-300)
        side = np.sign(now.astype(np.float64))
        # On the way back to its value a cell gains; beyond, it would pay, so it goes no farther.
        down = np.where(side > 0, np.minimum(down, now.astype(np.float64)), down)
        up = np.where(side < 0, np.minimum(up, -now.astype(np.float64)), up)
        costs = [weight * np.where(side == 0, 1.0, side * way) for way in (1.0, -1.0)]
        sides = -missed[part.rows].astype(np.float64)
        program = LinearProgram(
            np.concatenate(costs),
            np.zeros(2 * len(cells)),
            np.concatenate([up, down]),
            *_both(part.indptr, part.indices, coefs, len(cells)),
            sides,
            sides,
            integral=np.ones(2 * len(cells), dtype=np.bool_),
            presolve=True,
        )
        result = program.solve(gap=1e-6, nodes=_FEWEST)
        if len(result.primal):
            k = len(cells)
            change = np.rint(result.primal[:k] - result.primal[k:])
            steps = steps.copy()
            steps[cells] = now + change.astype(np.int64).astype(object)
    return None if grid.relations.sums(steps).any() else steps


def _entries(grid: Grid) -> BoolArray:
    """Entries of the relations that belong to moving cells."""
    return np.asarray(grid.moving[grid.instance.indices])


def _both(
    indptr: IntArray, indices: IntArray, coefs: FloatArray, columns: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """A matrix in compressed rows beside its negative."""
    matrix = sparse.csr_array((coefs, indices, indptr), shape=(len(indptr) - 1, columns))
    both = sparse.csr_array(sparse.hstack([matrix, -matrix], format="csr"))
    return both.indptr, both.indices, both.data


def conflict(grid: Grid) -> Conflict:
    """Cells that can't all leave their intervals, and relations that prevent it: as few as found."""
    whole = ((grid.down == np.inf) & (grid.up == np.inf)).nonzero()[0]
    relations = np.arange(grid.instance.m)
    if len(whole):
        return named(grid.instance, grid.must[whole[:1]], relations[:0], grid.moving)

    def impossible(asked: IntArray, tied: IntArray) -> bool:
        result = Program(grid, asked, tied, tree=True, free=True).solve(nodes=_FEWEST)
        return result.status in ("infeasible", "unbounded")

    asked = fewest(np.arange(len(grid.must)), lambda some: impossible(some, relations))
    tied = fewest(relations, lambda some: impossible(asked, some))
    return named(grid.instance, grid.must[asked], tied, grid.moving)
