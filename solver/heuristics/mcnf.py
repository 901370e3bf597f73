"""Protect each primary by a minimum-cost network flow (Castro 2002; Cox 1995).

Successive shortest paths with potentials on the network of the table, prices per unit of flow:
weight over what the cell can carry of the level. Where the relations are no network, the same
problem is the linear program of :mod:`solver.heuristics.lp` without its second thoughts.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.clock import Clock
from solver.heuristics.lp import protect_lp
from solver.heuristics.needs import Cover
from solver.heuristics.network import Network, find_network
from solver.instance import FloatArray

_AUGMENTATIONS = 200
_FREE = 1e-6


def protect_mcnf(cover: Cover, clock: Clock) -> None:
    """Meet the needs of a cover by minimum-cost flows.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    network = find_network(cover.problem)
    if network is not None:
        weight = cover.problem.weight
        usual = max(float(weight.mean()), 1e-12)
        for need in cover.needs.by_level.tolist():
            clock.check()
            if clock.out:
                break
            if cover.unmet[need]:
                flow = _flow(cover, network, need, weight / usual, clock)
                if flow is not None:
                    cover.add(np.arange(cover.problem.n), flow)
    protect_lp(cover, clock)


def _flow(cover: Cover, network: Network, need: int, price: FloatArray, clock: Clock) -> FloatArray | None:
    """The cheapest movement (float64[n]) that meets a need, or None."""
    needs, n = cover.needs, cover.problem.n
    cell, level, up = int(needs.cell[need]), float(needs.level[need]), needs.side[need] > 0
    source, sink = network.head[cell], network.tail[cell]
    if not up:
        source, sink = sink, source
    if source == sink:
        return None
    hi, lo = network.hi.copy(), network.lo.copy()
    closed = np.append(cover.problem.known[needs.attacker[need]], cell)
    hi[closed] = lo[closed] = 0.0
    unit = np.where(cover.hidden, 0.0, price)
    forth = unit * level / np.clip(hi, 1e-6 * level, level) + _FREE
    back = unit * level / np.clip(lo, 1e-6 * level, level) + _FREE
    tail, head = np.concatenate([network.tail, network.head]), np.concatenate([network.head, network.tail])
    flow, potential, left = np.zeros(n), np.zeros(network.nodes), level
    for _ in range(_AUGMENTATIONS):
        # Flow that runs backwards is first taken back, at the price it was paid.
        room = np.concatenate([np.where(flow < 0, -flow, hi - flow), np.where(flow > 0, flow, lo + flow)])
        cost = np.concatenate([np.where(flow < 0, -back, forth), np.where(flow > 0, -forth, back)])
        usable = np.flatnonzero(room > 1e-9 * level)
        reduced = np.maximum(cost + potential[tail] - potential[head], 0.0)[usable] + 1e-12
        order = np.lexsort((reduced, head[usable], tail[usable]))
        usable, reduced = usable[order], reduced[order]
        first = np.ones(len(usable), dtype=np.bool_)
        first[1:] = (np.diff(tail[usable]) != 0) | (np.diff(head[usable]) != 0)
        usable, reduced = usable[first], reduced[first]
        indptr = np.searchsorted(tail[usable], np.arange(network.nodes + 1))
        graph = sparse.csr_array((reduced, head[usable], indptr), shape=(network.nodes, network.nodes))
        distance, before = csgraph.dijkstra(graph, indices=source, return_predecessors=True)
        clock.charge(len(usable))
        if before[sink] < 0:
            return None
        potential += np.minimum(distance, distance[sink])
        arcs, node = [], int(sink)
        while node != source:
            previous = int(before[node])
            part = slice(indptr[previous], indptr[previous + 1])
            arcs.append(int(usable[part][np.searchsorted(head[usable[part]], node)]))
            node = previous
        path = np.array(arcs)
        sent = min(left, float(room[path].min()))
        np.add.at(flow, path % n, np.where(path < n, sent, -sent))
        left -= sent
        if left <= 1e-12 * level:
            flow[np.abs(flow) < 1e-12 * level] = 0.0
            flow[cell] = level if up else -level
            return flow
    return None
