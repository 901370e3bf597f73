"""Protect each primary along shortest paths of the table's network (Castro 2005 §4).

A cell of the network can rise by what flows back from its head to its tail along other cells. The
layers of arc costs of §4.7 become one price here: a hidden cell costs next to nothing, and a cell
that carries a part of the level counts as often as it would be needed. (With strict layers a cell
that carries the level beats any number of cheaper ones: measured, patterns cost up to ten times
more.) Protection is counted per direction along the path (§4.6), for every primary on it; where the
paths left cannot carry the rest, the cheapest movement of the linear program does (§4.5's recovery).

On a large table, what single relations need comes first (:mod:`solver.heuristics.relations`): paths then meet
the few needs that this leaves.

A path only takes cheap cells, so the graph keeps the cheapest few per node for the level,
and all hidden ones: a table of half a million cells then searches a hundred thousand.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.clock import Clock
from solver.heuristics.lp import meet_within, protect_lp
from solver.heuristics.needs import Cover
from solver.heuristics.network import Network, find_network
from solver.heuristics.relations import find_company
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

# Beyond so many columns the program of single relations comes first.
_MANY = 5_000
_PER_NODE = 40
_PATHS = 12
# A hidden cell still costs a little, and so short detours win.
_HIDDEN = 1e-6
# A cell that carries a part of the level costs as if as many were needed, at most so many.
_WEAK = 1e3
# Candidate cells are chosen anew once the level fell by this factor.
_FALL = 0.8


def protect_shortest_path(cover: Cover, clock: Clock) -> None:
    """Meet the needs of a cover by paths, the rest by linear programs.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    network = find_network(cover.problem)
    if network is not None:
        if cover.problem.n > _MANY:
            _hide_company(cover, clock)
        Paths(cover.problem, network).follow(cover, clock)
    protect_lp(cover, clock)


class Paths:
    """Paths of a network along which needs of covers are met.

    Parameters
    ----------
    problem
        The component.
    network
        Its network.
    per_node
        So many of the cheapest cells of each node are looked at, and all hidden ones.
    """

    def __init__(self, problem: Problem, network: Network, per_node: int = _PER_NODE) -> None:
        self.network = network
        self._problem, self._per_node = problem, per_node
        self._chosen: dict[int, IntArray] = {}

    def follow(self, cover: Cover, clock: Clock, weight: FloatArray | None = None) -> None:
        """Meet the needs of a cover that a few paths each can meet.

        Parameters
        ----------
        weight : float64[n], optional
            Cost of hiding as this search sees it; the problem's own by default.
        """
        _Paths(cover, self, clock, cover.problem.weight if weight is None else weight).run()

    def cheapest(self, level: float) -> tuple[IntArray, float]:
        """Per node the free cells that carry a level both ways at least cost (int64[k]), and from which
        level on they are chosen anew.
        """
        step = int(np.floor(np.log(level) / np.log(_FALL)))
        if step not in self._chosen:
            problem = self._problem
            self._chosen[step] = _cheapest(
                problem.weight, self.network, ~problem.forced, _FALL**step, self._per_node
            )
        return self._chosen[step], _FALL ** (step + 1)


def _hide_company(cover: Cover, clock: Clock) -> None:
    """Hide what single relations need; on a large table that leaves few needs unmet."""
    company = find_company(cover.problem, clock)
    cover.bound = max(cover.bound, company.bound)
    if company.hidden is not None:
        cover.hidden |= company.hidden
        meet_within(cover, clock)


class _Paths:
    def __init__(self, cover: Cover, paths: Paths, clock: Clock, weight: FloatArray) -> None:
        self._cover, self._paths, self._clock, self._weight = cover, paths, clock, weight
        self._network = paths.network
        paid = weight[weight > 0]
        self._usual = float(paid.mean()) if len(paid) else 1.0
        self._until = np.inf

    def run(self) -> None:
        """Every need in order of its level."""
        needs = self._cover.needs
        for need in needs.by_level.tolist():
            self._clock.check()
            if self._cover.unmet[need] and not self._clock.out:
                self._protect(need)

    def _protect(self, need: int) -> None:
        """Send the level around in at most a few paths; nothing is hidden if they don't carry it."""
        needs, network = self._cover.needs, self._network
        cell, level = int(needs.cell[need]), float(needs.level[need])
        if level < self._until:
            self._choose(level)
        up = needs.side[need] > 0
        if (network.hi if up else network.lo)[cell] < level * (1 - 1e-9):
            return
        ends = (network.head[cell], network.tail[cell]) if up else (network.tail[cell], network.head[cell])
        if ends[0] == ends[1]:
            return
        closed = np.append(self._cover.problem.known[needs.attacker[need]], cell)
        closed = self._position[closed]
        closed = closed[closed >= 0]
        flow = np.zeros(len(self._cells))
        left = level
        for _ in range(_PATHS):
            path = self._path(flow, left, closed, int(ends[0]), int(ends[1]))
            self._clock.charge(len(self._cells) / 10)
            if path is None:
                return
            at, signs = path
            hi, lo = network.hi[self._cells[at]], network.lo[self._cells[at]]
            room = np.where(signs > 0, hi - flow[at], lo + flow[at])
            sent = min(left, float(room.min()))
            flow[at] += signs * sent
            left -= sent
            if left <= 1e-12 * level:
                break
        else:
            return
        used = np.flatnonzero(flow)
        columns = np.concatenate([[cell], self._cells[used]])
        amounts = np.concatenate([[level if up else -level], flow[used]])
        self._cover.add(columns, amounts)

    def _choose(self, level: float) -> None:
        """Candidates for levels from here: hidden cells, and per node the cheapest; arcs by their ends."""
        cover, network = self._cover, self._network
        chosen, until = self._paths.cheapest(level)
        # By rounding, a level may lie below where its own step ends.
        self._until = min(until, level)
        self._cells = np.union1d(chosen, np.flatnonzero(cover.hidden))
        self._position = np.full(cover.problem.n, -1, dtype=np.int64)
        self._position[self._cells] = np.arange(len(self._cells))
        tail, head = network.tail[self._cells], network.head[self._cells]
        tails, heads = np.concatenate([tail, head]), np.concatenate([head, tail])
        self._order = np.lexsort((heads, tails))
        self._heads = heads[self._order].astype(np.int32)
        self._indptr = np.searchsorted(tails[self._order], np.arange(network.nodes + 1)).astype(np.int32)
        # Made once: SciPy takes longer to check a graph than to search it.
        self._graph = sparse.csr_array(
            (np.ones(len(heads)), self._heads, self._indptr), shape=(network.nodes, network.nodes)
        )

    def _path(
        self, flow: FloatArray, level: float, closed: IntArray, source: int, sink: int
    ) -> tuple[IntArray, FloatArray] | None:
        """Positions of the cells on the way from source to sink, and their directions, or None."""
        network, cover, cells = self._network, self._cover, self._cells
        hidden = cover.hidden[cells] | (flow != 0)
        price = np.where(hidden, 0.0, self._weight[cells] / self._usual) + _HIDDEN
        cost = []
        for room in (network.hi[cells] - flow, network.lo[cells] + flow):
            one_way = price * (level / np.clip(room, level / _WEAK, level))
            one_way[room <= 1e-9 * level] = np.inf
            one_way[closed] = np.inf
            cost.append(one_way)
        prices = self._graph.data
        prices[:] = np.concatenate(cost)[self._order]
        _, before = csgraph.dijkstra(self._graph, indices=source, return_predecessors=True)
        if before[sink] < 0:
            return None
        arcs = []
        node = sink
        while node != source:
            previous = int(before[node])
            begin, end = int(self._indptr[previous]), int(self._indptr[previous + 1])
            first, last = begin + np.searchsorted(self._heads[begin:end], [node, node + 1])
            # Of parallel arcs the cheapest counts.
            arcs.append(int(self._order[first + int(np.argmin(prices[first:last]))]))
            node = previous
        found = np.array(arcs)
        signs = np.where(found < len(cells), 1.0, -1.0)
        return found % len(cells), signs


def _cheapest(weight: FloatArray, network: Network, free: BoolArray, level: float, most: int) -> IntArray:
    """Per node the free cells that carry a level both ways at least cost."""
    room = np.minimum(np.minimum(network.hi, network.lo), level)
    room = np.maximum(room, level / _WEAK)
    cells = np.flatnonzero(free & (np.maximum(network.hi, network.lo) > 0))
    order = cells[np.argsort(weight[cells] / room[cells], kind="stable")]
    taken = []
    for ends in (network.tail[order], network.head[order]):
        by_node = np.argsort(ends, kind="stable")
        sorted_ends = ends[by_node]
        start = np.searchsorted(sorted_ends, sorted_ends, side="left")
        rank = np.arange(len(order)) - start
        taken.append(order[by_node[rank < most]])
    return np.unique(np.concatenate(taken))
