"""Protect each primary by the cheapest box of hidden cells (Giessing, Repsilber 2002).

In a table of d dimensions a box has 2^d corners, and raising one corner while its neighbours fall
leaves every total as it is. Boxes are found in the relations alone: start from the primary, and
double the set of corners relation by relation, each corner's partner lying in the same relation as
the corner and beside the partners of its neighbours. A box counts if all its corners have the room;
what no box protects, the cheapest movement does.
"""

from __future__ import annotations

import numpy as np

from solver.heuristics.clock import Clock
from solver.heuristics.lp import protect_lp
from solver.heuristics.needs import Cover
from solver.instance import IntArray
from solver.presolve import Problem

_TRIES = 24
_DIMENSIONS = 8


def protect_hypercube(cover: Cover, clock: Clock) -> None:
    """Meet the needs of a cover by boxes, the rest by linear programs.

    Raises
    ------
    FrozenTargetError
        A need cannot be met by any pattern.
    """
    boxes = _Boxes(cover.problem)
    needs = cover.needs
    for need in needs.by_level.tolist():
        if clock.out:
            break
        if cover.unmet[need]:
            known = set(cover.problem.known[needs.attacker[need]].tolist())
            box = boxes.best(
                int(needs.cell[need]), float(needs.side[need]), float(needs.level[need]), cover, known
            )
            clock.charge(_TRIES * 2.0**6)
            if box is not None:
                cover.add(*box)
    protect_lp(cover, clock)


class _Boxes:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        matrix, columns = problem.matrix, problem.transposed
        self._members = [matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]] for r in range(problem.m)]
        self._coef = [
            dict(
                zip(
                    cells.tolist(), matrix.data[matrix.indptr[r] : matrix.indptr[r + 1]].tolist(), strict=True
                )
            )
            for r, cells in enumerate(self._members)
        ]
        self._relations = [
            columns.indices[columns.indptr[c] : columns.indptr[c + 1]].tolist() for c in range(problem.n)
        ]

    def best(
        self, cell: int, side: float, level: float, cover: Cover, known: set[int]
    ) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.float64]]] | None:
        """The cheapest box found: columns and their movement."""
        problem = self._problem
        relations = self._relations[cell]
        if not relations or len(relations) > _DIMENSIONS:
            return None
        partners = self._members[relations[0]]
        partners = partners[partners != cell]
        price = np.where(cover.hidden[partners], 0.0, problem.weight[partners])
        order = partners[np.argsort(price, kind="stable")][:_TRIES]
        best, least = None, np.inf
        for partner in order.tolist():
            move = self._close({cell: side * level}, relations[0], partner, cover, known)
            if move is None:
                continue
            columns = np.fromiter(move, dtype=np.int64)
            amounts = np.array([move[c] for c in columns.tolist()])
            room = np.where(amounts > 0, problem.hi[columns], problem.lo[columns])
            if (room < np.abs(amounts) * (1 - 1e-9)).any():
                continue
            cost = float(problem.weight[columns[~cover.hidden[columns]]].sum())
            if cost < least:
                best, least = (columns, amounts), cost
        return best

    def _close(
        self, move: dict[int, float], relation: int, partner: int, cover: Cover, known: set[int]
    ) -> dict[int, float] | None:
        """Balance relation after relation; the first takes the partner given."""
        move = dict(move)
        self._balance(move, relation, partner)
        for _ in range(2**_DIMENSIONS):
            open_ = self._unbalanced(move)
            if not open_:
                return None if known & move.keys() else move
            relation = min(open_)
            choice = self._partner(move, relation, open_, cover, known)
            if choice is None:
                return None
            self._balance(move, relation, choice)
        return None

    def _balance(self, move: dict[int, float], relation: int, partner: int) -> None:
        coef = self._coef[relation]
        missing = sum(coef[c] * z for c, z in move.items() if c in coef)
        move[partner] = move.get(partner, 0.0) - missing / coef[partner]
        if move[partner] == 0.0:
            del move[partner]

    def _unbalanced(self, move: dict[int, float]) -> set[int]:
        total: dict[int, float] = {}
        for cell, z in move.items():
            for relation in self._relations[cell]:
                total[relation] = total.get(relation, 0.0) + self._coef[relation][cell] * z
        largest = max((abs(z) for z in move.values()), default=0.0)
        return {relation for relation, miss in total.items() if abs(miss) > 1e-9 * largest}

    def _partner(
        self, move: dict[int, float], relation: int, open_: set[int], cover: Cover, known: set[int]
    ) -> int | None:
        """The cell that balances most of the open relations at once, the cheapest of those."""
        problem = self._problem
        best, best_key = None, (0, -np.inf)
        for cell in self._members[relation].tolist():
            if cell in move or cell in known:
                continue
            closes = sum(r in open_ for r in self._relations[cell])
            price = 0.0 if cover.hidden[cell] else float(problem.weight[cell])
            if (closes, -price) > best_key:
                best, best_key = cell, (closes, -price)
        return best
