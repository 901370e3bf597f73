"""Attacker problems: how far can a hidden cell move while everything shown stays put?

    max or min z_p   subject to   M z = 0,   −lo_i x_i ≤ z_i ≤ hi_i x_i

All problems of one attacker and one x share their feasible region, so one linear program with a
warm primal simplex serves them all, and every z met on the way certifies other targets that it
moves far enough (Fischetti, Salazar 2001; `SOLVER` §2.4). Only columns with room enter the program;
reduced costs of the others follow from the row duals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem

# Relative shortfall that still counts as reaching a level (LP feasibility is 1e-7 absolute, and
# the smallest level is scaled to about 1).
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Reach:
    """Optimum of one attacker problem.

    Attributes
    ----------
    value
        How far the cell moves in the direction asked, ≥ 0.
    move : float64[n]
        The movement z that does it.
    dual : float64[n]
        Reduced costs d = ±e_p − Mᵀγ of all columns: for *every* pattern x the cell moves at most
        Σ_{d>0} d·hi·x + Σ_{d<0} |d|·lo·x.
    """

    value: float
    move: FloatArray
    dual: FloatArray


class Region:
    """The movements open to one attacker for given room, as a warm linear program.

    Parameters
    ----------
    problem
        The component.
    lo, hi : float64[n]
        Room of each column (already multiplied by x).
    attacker
        Index into ``problem.known``; what it knows cannot move.
    """

    def __init__(self, problem: Problem, lo: FloatArray, hi: FloatArray, attacker: int = 0) -> None:
        open_ = (lo > 0) | (hi > 0)
        open_[problem.known[attacker]] = False
        self._transposed = problem.matrix.T.tocsr()
        self._n = problem.n
        self.columns = np.flatnonzero(open_)
        self._known = problem.known[attacker]
        self._position = np.full(problem.n, -1, dtype=np.int64)
        self._position[self.columns] = np.arange(len(self.columns))
        part = sparse.csr_array(problem.matrix[:, self.columns])
        self._rows = np.flatnonzero(np.diff(part.indptr))
        part = part[self._rows]
        self._m = problem.m
        zeros = np.zeros(len(self._rows))
        self._program = LinearProgram(
            np.zeros(len(self.columns)),
            -lo[self.columns],
            hi[self.columns],
            part.indptr,
            part.indices,
            part.data,
            zeros,
            zeros,
            primal_simplex=True,
        )

    def set_room(self, columns: IntArray, lo: FloatArray, hi: FloatArray) -> None:
        """Change the room of open columns."""
        self._program.set_bounds(self._position[columns], -lo, hi)

    def push(self, cell: int, direction: int) -> Reach:
        """Move a cell as far as it goes, up (1) or down (-1)."""
        move = np.zeros(self._n)
        gamma = np.zeros(self._m)
        at = self._position[cell]
        if at >= 0:
            target = np.array([at])
            self._program.set_costs(target, np.array([-float(direction)]))
            result = self._program.solve()
            self._program.set_costs(target, np.zeros(1))
            move[self.columns] = result.primal
            gamma[self._rows] = -result.row_duals
        dual = -(self._transposed @ gamma)
        dual[np.abs(dual) < 1e-9] = 0.0
        dual[cell] += direction
        dual[self._known] = 0.0
        return Reach(max(direction * move[cell], 0.0), move, dual)


@dataclass(frozen=True, eq=False)
class Shortfall:
    """A requirement that a pattern fails: ask for at least `level` by `dual`.

    Attributes
    ----------
    target
        Index into ``problem.targets``.
    kind
        "upper", "lower" or "sliding".
    level, reached
        What is required and what is possible.
    coefs : float64[n]
        Σ coefs·x ≥ level holds for every protecting pattern (inf where room is unlimited).
    """

    target: int
    kind: str
    level: float
    reached: float
    coefs: FloatArray


def capacity(dual: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Untruncated coefficients of the capacity constraint of a dual (`SOLVER` §1)."""
    return np.where(dual > 0, dual * hi, -dual * lo)


def check_pattern(
    problem: Problem,
    hidden: BoolArray,
    *,
    only: IntArray | None = None,
    stop_at: int | None = None,
) -> list[Shortfall]:
    """Every requirement that a 0/1 pattern fails, with a violated capacity constraint each.

    Parameters
    ----------
    problem, hidden
        The component and its pattern (bool[n]).
    only
        Indices of the targets to look at; all by default.
    stop_at
        Give up once so many shortfalls are found.
    """
    targets = problem.targets
    chosen = np.arange(len(targets)) if only is None else np.asarray(only, dtype=np.int64)
    found: list[Shortfall] = []
    for attacker in np.unique(targets.attacker[chosen]):
        mine = chosen[targets.attacker[chosen] == attacker]
        region = Region(problem, problem.lo * hidden, problem.hi * hidden, int(attacker))
        _check_attacker(problem, region, mine, found, stop_at)
        if stop_at is not None and len(found) >= stop_at:
            break
    return found


def is_safe(problem: Problem, hidden: BoolArray, only: IntArray | None = None) -> bool:
    """Does a pattern keep every requirement (of the targets named)?"""
    return not check_pattern(problem, hidden, only=only, stop_at=1)


def _check_attacker(
    problem: Problem, region: Region, mine: IntArray, found: list[Shortfall], stop_at: int | None
) -> None:
    targets = problem.targets
    cells = targets.cell[mine]
    need = {1: targets.upper[mine] * (1 - SLACK), -1: targets.lower[mine] * (1 - SLACK)}
    width = targets.sliding[mine] * (1 - SLACK)
    best = {1: np.zeros(len(mine)), -1: np.zeros(len(mine))}
    done = {1: np.zeros(len(mine), dtype=np.bool_), -1: np.zeros(len(mine), dtype=np.bool_)}
    duals: dict[tuple[int, int], FloatArray] = {}
    for k in range(len(mine)):
        for side in (1, -1):
            wide = best[1][k] + best[-1][k] >= width[k]
            if done[side][k] or (best[side][k] >= need[side][k] and wide):
                continue
            reach = region.push(int(cells[k]), side)
            done[side][k] = True
            moved = reach.move[cells]
            np.maximum(best[1], moved, out=best[1])
            np.maximum(best[-1], -moved, out=best[-1])
            duals[k, side] = reach.dual
            if best[side][k] < need[side][k]:
                level = (targets.upper if side == 1 else targets.lower)[mine[k]]
                coefs = capacity(reach.dual, problem.lo, problem.hi)
                kind = "upper" if side == 1 else "lower"
                found.append(Shortfall(int(mine[k]), kind, level, best[side][k], coefs))
        if done[1][k] and done[-1][k] and best[1][k] + best[-1][k] < width[k]:
            both = [capacity(duals[k, side], problem.lo, problem.hi) for side in (1, -1)]
            reached = best[1][k] + best[-1][k]
            level = targets.sliding[mine[k]]
            found.append(Shortfall(int(mine[k]), "sliding", level, reached, both[0] + both[1]))
        if stop_at is not None and len(found) >= stop_at:
            return
