"""Protect each primary by the cheapest box of hidden cells (Giessing, Repsilber 2002).

In a table of d dimensions a box has 2^d corners, and raising one corner while its neighbours fall
leaves every total as it is. Boxes are found in the relations alone: start from the primary, and
double the set of corners relation by relation, each corner's partner lying in the same relation as
the corner and beside the partners of its neighbours. A box counts if all its corners have the room;
what no box protects, the cheapest movement does.
"""

from __future__ import annotations

import numpy as np

from solver.clock import Clock
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
        clock.check()
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
        starts = [(r, other) for r in relations for other in self._members[r].tolist() if other != cell]
        price = np.array([0.0 if cover.hidden[c] else problem.weight[c] for _, c in starts])
        order = np.argsort(price, kind="stable")[:_TRIES].tolist()
        best, least = None, np.inf
        for start in order:
            relation, partner = starts[start]
            move = self._close({cell: side * level}, relation, partner, cover, known)
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
        missing: dict[int, float] = {}
        move = dict(move)
        for cell in move:
            self._count(missing, cell, move[cell])
        choice: int | None = partner
        for _ in range(2**_DIMENSIONS):
            if choice is None:
                return None
            amount = -missing[relation] / self._coef[relation][choice]
            move[choice] = amount
            self._count(missing, choice, amount)
            if not missing:
                return None if known & move.keys() else move
            relation = min(missing)
            choice = self._partner(move, relation, missing, cover, known)
        return None

    def _count(self, missing: dict[int, float], cell: int, amount: float) -> None:
        """Add a cell's movement to what its relations miss; a balanced relation is dropped."""
        for relation in self._relations[cell]:
            total = missing.get(relation, 0.0) + self._coef[relation][cell] * amount
            if abs(total) <= 1e-9 * abs(amount):
                missing.pop(relation, None)
            else:
                missing[relation] = total

    def _partner(
        self, move: dict[int, float], relation: int, missing: dict[int, float], cover: Cover, known: set[int]
    ) -> int | None:
        """The cell that balances most of the open relations at once, the cheapest of those."""
        problem = self._problem
        best, best_key = None, (0, -np.inf)
        for cell in self._members[relation].tolist():
            if cell in move or cell in known:
                continue
            amount = -missing[relation] / self._coef[relation][cell]
            if abs(amount) > (problem.hi[cell] if amount > 0 else problem.lo[cell]) * (1 + 1e-9):
                continue
            closes = sum(r in missing for r in self._relations[cell])
            price = 0.0 if cover.hidden[cell] else float(problem.weight[cell])
            if (closes, -price) > best_key:
                best, best_key = cell, (closes, -price)
        return best
