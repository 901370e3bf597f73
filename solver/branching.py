"""Which node comes next, which column to branch on, what cost to look for, and by what steps costs differ."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from solver.instance import FloatArray, IntArray
from solver.lp import LpResult
from solver.master import Master
from solver.presolve import Problem

_INTEGRAL = 1e-6
# How far from the cheapest node towards the cost looked for a dive goes on.
_DEEP = 0.2
# A first supposition, and the least of later ones, as parts of the gap; how many times the nodes of the last
# the next may take; and the part of the gap beyond which nothing is supposed.
_FIRST, _LEAST, _TIMES, _ALL = 0.3, 0.2, 4.0, 0.7


class _Solve(Protocol):
    def __call__(self, iterations: int | None = None) -> LpResult: ...


@dataclass(order=True)
class Node:
    """A part of the search, by the least that its patterns cost."""

    bound: float
    order: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)
    depth: int = field(compare=False)


class Frontier:
    """Nodes to visit: the cheapest, and its children as long as they are hardly dearer.

    Attributes
    ----------
    least
        No node left costs less, but for rounding.
    """

    def __init__(self, root: Node) -> None:
        self._heap, self._count = [root], 0
        self._dive: Node | None = None
        self.least = root.bound

    def next(self, cutoff: Callable[[float], bool]) -> Node | None:
        """The node to visit now; None if all that are left are cut off."""
        node, self._dive = self._dive, None
        if node is not None and not cutoff(node.bound):
            return node
        if not self._heap or cutoff(self._heap[0].bound):
            return None
        node = heapq.heappop(self._heap)
        self.least = node.bound
        return node

    def add(self, children: list[Node], ceiling: float) -> None:
        """Children of the node visited, the one to dive into first, in a search for costs up to a ceiling."""
        for child in children:
            self._count += 1
            child.order = self._count
        if children and children[0].bound <= self.least + _DEEP * (ceiling - self.least):
            self._dive = children.pop(0)
        for child in children:
            heapq.heappush(self._heap, child)


class Suppositions:
    """Costs that some pattern is supposed to have, dearer each time there is none.

    A tree visits the nodes below the cost it looks for, and that cost fixes columns at each. Supposed below
    the incumbent's, it leaves far fewer nodes than an incumbent that is far from the optimum.
    """

    def __init__(self, step: float) -> None:
        self._step, self._bound = step, -np.inf
        self._tried: list[tuple[float, int]] = []

    def note(self, supposed: float, nodes: int) -> None:
        """So many nodes were visited to find nothing up to a cost."""
        self._tried.append((supposed, max(nodes, 2)))

    def next(self, bound: float, cost: float) -> float:
        """What to suppose between a bound and the cost of the incumbent; infinity for all up to this."""
        if bound <= self._bound:
            # What the last one proved is no more than the arithmetic of a bound takes back.
            return np.inf
        self._bound = bound
        gap = cost - bound
        room = _FIRST * gap
        if len(self._tried) > 1:
            (before, few), (last, many) = self._tried[-2:]
            if many > few and last > before:
                # Nodes grow with the room, as an exponential does.
                room = float(np.log(_TIMES) * (last - before) / np.log(many / few))
        supposed = bound + max(room, _LEAST * gap, self._step)
        if self._step:
            supposed = float(np.floor(supposed / self._step + 1e-6)) * self._step
        return supposed if supposed < bound + _ALL * gap else np.inf


class Brancher:
    """Chooses columns of a problem by what branching on them gained before.

    Parameters
    ----------
    solve
        Solves the master, within so many iterations.
    cutoff
        Can nothing better than the incumbent cost this much?
    """

    def __init__(
        self, problem: Problem, master: Master, solve: _Solve, cutoff: Callable[[float], bool]
    ) -> None:
        self._problem, self._master, self._solve, self._cutoff = problem, master, solve, cutoff
        self._up, self._down = _Average(problem.n), _Average(problem.n)

    def choose(
        self, bound: float, depth: int, lower: FloatArray, upper: FloatArray, result: LpResult
    ) -> tuple[int, tuple[float, float]]:
        """Branching column by pseudo-costs, tried on the program where they are unreliable, and what its two
        sides cost at least.

        Parameters
        ----------
        bound, depth
            Of the node.
        lower, upper, result
            Its bounds of the columns (float64[n]) and the solution of its relaxation.
        """
        x = result.primal
        fractional = np.flatnonzero((x > _INTEGRAL) & (x < 1 - _INTEGRAL) & (lower < upper))
        part = x[fractional]
        weight = self._problem.weight[fractional]
        down = self._down.guess(fractional, weight) * part
        up = self._up.guess(fractional, weight) * (1 - part)
        score = _score(down, up)
        order = np.argsort(-score, kind="stable")
        best, best_score, best_bounds = -1, -1.0, (0.0, 0.0)
        tries = 12 if depth < 6 else 6
        patience = 0
        basis = None
        for k in order[: 4 * tries]:
            column = int(fractional[k])
            reliable = min(self._down.count[column], self._up.count[column]) >= 4
            bounds = (bound, bound)
            value = float(score[k])
            if not reliable and tries > 0:
                tries -= 1
                basis = self._master.save() if basis is None else basis
                bounds = self._try(column, lower, upper, result.objective, basis)
                gains = [max(side - result.objective, 0.0) for side in bounds]
                self._down.note(column, gains[0] / part[k])
                self._up.note(column, gains[1] / (1 - part[k]))
                value = float(_score(np.array(gains[:1]), np.array(gains[1:]))[0])
                if all(self._cutoff(side) for side in bounds):
                    return column, bounds
            if value > best_score:
                best, best_score, best_bounds, patience = column, value, bounds, 0
            else:
                patience += 1
                if patience >= 5:
                    break
        if basis is not None:
            self._master.set_bounds(lower, upper)
            self._master.load(basis)
        return best, best_bounds

    def _try(
        self, column: int, lower: FloatArray, upper: FloatArray, objective: float, basis: object
    ) -> tuple[float, float]:
        found = []
        for value in (0.0, 1.0):
            low, high = lower.copy(), upper.copy()
            low[column] = high[column] = value
            self._master.set_bounds(low, high)
            self._master.load(basis)
            result = self._solve(iterations=60)
            if result.status == "infeasible":
                found.append(np.inf)
            else:
                found.append(max(result.objective, objective))
        return found[0], found[1]


class _Average:
    """Mean gain per unit of a column, guessed from its weight until known."""

    def __init__(self, n: int) -> None:
        self.count: IntArray = np.zeros(n, dtype=np.int64)
        self._sum = np.zeros(n)
        self._ratio, self._known = 0.0, 0

    def note(self, column: int, gain: float) -> None:
        """Take an observed gain into account."""
        if np.isfinite(gain):
            self.count[column] += 1
            self._sum[column] += gain

    def guess(self, columns: IntArray, weight: FloatArray) -> FloatArray:
        """Expected gains per unit of columns (int64[k]) of these weights (float64[k])."""
        count = self.count[columns]
        seen = self.count > 0
        typical = float(self._sum[seen].sum() / self.count[seen].sum()) if seen.any() else 1.0
        share = typical / max(float(weight.mean()), 1e-12)
        return np.where(count > 0, self._sum[columns] / np.maximum(count, 1), share * weight)


def _score(down: FloatArray, up: FloatArray) -> FloatArray:
    """How good it is to branch on columns whose two sides gain so much."""
    return np.maximum(down, 1e-6) * np.maximum(up, 1e-6)


def cost_step(weight: FloatArray) -> float:
    """All costs are multiples of this; 0 if none is found."""
    positive = weight[weight > 0]
    for factor in (1.0, 10.0, 100.0, 1000.0, 1e4):
        scaled = positive * factor
        whole = np.round(scaled)
        if len(whole) and (np.abs(scaled - whole) <= 1e-9 * whole).all() and whole.max() < 2**52:
            return float(np.gcd.reduce(whole.astype(np.int64))) / factor
    return 0.0
