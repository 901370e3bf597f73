"""Protect each primary along shortest paths of the table's network (Castro 2005 §4).

A cell of the network can rise by what flows back from its head to its tail along other cells. The
layers of arc costs of §4.7 become one price here: a hidden cell costs next to nothing, and a cell
that carries a part of the level counts as often as it would be needed. (With strict layers a cell
that carries the level beats any number of cheaper ones: measured, patterns cost up to ten times
more.) Protection is counted per direction along the path (§4.6), for every primary on it; where the
paths left cannot carry the rest, the cheapest movement of the linear program does (§4.5's recovery).

A path only takes cheap cells, so the graph keeps the cheapest few per node for the level,
and all hidden ones: a table of half a million cells then searches a hundred thousand.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.heuristics.clock import Clock
from solver.heuristics.lp import protect_lp
from solver.heuristics.needs import Cover
from solver.heuristics.network import Network, find_network
from solver.instance import BoolArray, FloatArray, IntArray

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
        _Paths(cover, network, clock).run()
    protect_lp(cover, clock)


class _Paths:
    def __init__(self, cover: Cover, network: Network, clock: Clock) -> None:
        self._cover, self._network, self._clock = cover, network, clock
        weight = cover.problem.weight
        paid = weight[weight > 0]
        self._usual = float(paid.mean()) if len(paid) else 1.0
        self._chosen_at = np.inf
        self._chosen = np.empty(0, dtype=np.int64)

    def run(self) -> None:
        """Every need in order of its level."""
        needs = self._cover.needs
        for need in needs.by_level.tolist():
            if self._cover.unmet[need] and not self._clock.out:
                self._protect(need)

    def _protect(self, need: int) -> None:
        """Send the level around in at most a few paths; nothing is hidden if they don't carry it."""
        needs, network = self._cover.needs, self._network
        cell, level = int(needs.cell[need]), float(needs.level[need])
        candidates = self._candidates(level)
        up = needs.side[need] > 0
        ends = (network.head[cell], network.tail[cell]) if up else (network.tail[cell], network.head[cell])
        if ends[0] == ends[1]:
            return
        known = self._cover.problem.known[needs.attacker[need]]
        candidates = candidates[~np.isin(candidates, known) & (candidates != cell)]
        flow = np.zeros(len(candidates))
        left = level
        for _ in range(_PATHS):
            path = self._path(candidates, flow, left, int(ends[0]), int(ends[1]))
            self._clock.charge(len(candidates))
            if path is None:
                return
            arcs, signs = path
            hi, lo = network.hi[candidates[arcs]], network.lo[candidates[arcs]]
            room = np.where(signs > 0, hi - flow[arcs], lo + flow[arcs])
            sent = min(left, float(room.min()))
            flow[arcs] += signs * sent
            left -= sent
            if left <= 1e-12 * level:
                break
        else:
            return
        used = np.flatnonzero(flow)
        columns = np.concatenate([[cell], candidates[used]])
        amounts = np.concatenate([[level if up else -level], flow[used]])
        self._cover.add(columns, amounts)

    def _candidates(self, level: float) -> IntArray:
        """Hidden cells, and per node the cheapest for the level."""
        cover = self._cover
        if level < _FALL * self._chosen_at or self._chosen_at == np.inf:
            self._chosen_at = level
            self._chosen = _cheapest(cover.problem.weight, self._network, ~cover.problem.forced, level)
        return np.union1d(self._chosen, np.flatnonzero(cover.hidden))

    def _path(
        self, cells: IntArray, flow: FloatArray, level: float, source: int, sink: int
    ) -> tuple[IntArray, FloatArray] | None:
        """Arcs (positions in `cells`) and their directions from source to sink, or None."""
        network, cover = self._network, self._cover
        hidden = cover.hidden[cells] | (flow != 0)
        price = np.where(hidden, 0.0, cover.problem.weight[cells] / self._usual) + _HIDDEN
        forth, back = network.hi[cells] - flow, network.lo[cells] + flow
        room = np.concatenate([forth, back])
        cost = np.tile(price, 2)
        cost *= level / np.clip(room, level / _WEAK, level)
        usable = np.flatnonzero(room > 1e-9 * level)
        tail = np.concatenate([network.tail[cells], network.head[cells]])[usable]
        head = np.concatenate([network.head[cells], network.tail[cells]])[usable]
        cost = cost[usable]
        # Of parallel arcs the cheapest counts.
        order = np.lexsort((cost, head, tail))
        tail, head, cost, usable = tail[order], head[order], cost[order], usable[order]
        first = np.ones(len(tail), dtype=np.bool_)
        first[1:] = (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])
        tail, head, cost, usable = tail[first], head[first], cost[first], usable[first]
        indptr = np.searchsorted(tail, np.arange(network.nodes + 1))
        graph = sparse.csr_array((cost, head, indptr), shape=(network.nodes, network.nodes))
        _, before = csgraph.dijkstra(graph, indices=source, return_predecessors=True)
        if before[sink] < 0:
            return None
        arcs = []
        node = sink
        while node != source:
            previous = int(before[node])
            part = slice(indptr[previous], indptr[previous + 1])
            arcs.append(int(usable[part][np.searchsorted(head[part], node)]))
            node = previous
        found = np.array(arcs)
        signs = np.where(found < len(cells), 1.0, -1.0)
        return found % len(cells), signs


def _cheapest(weight: FloatArray, network: Network, free: BoolArray, level: float) -> IntArray:
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
        taken.append(order[by_node[rank < _PER_NODE]])
    return np.unique(np.concatenate(taken))
