"""Attacker problems: how far can a hidden cell move while everything shown stays put?

    max or min z_p   subject to   M z = 0,   −lo_i x_i ≤ z_i ≤ hi_i x_i

All problems of one x share their feasible region but for the columns an insider knows, so one
linear program with a warm primal simplex serves them all, and every z met on the way certifies the
other targets that it moves far enough (Fischetti, Salazar 2001). Only columns with room enter the
program; the reduced costs of the others follow from the row duals.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solver.clock import Clock, OutOfTimeError
from solver.columns import take_columns, with_company
from solver.errors import InternalError, NumericalError
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem, Targets

# Relative shortfall that still counts as reaching a level (LP feasibility is 1e-7 absolute, and
# the smallest level is scaled to about 1). The audit decides such ties in exact arithmetic.
SLACK = 1e-6
_STILL = 1e-9
# So many targets are worth a program that moves all of them.
_SWEPT = 4
# Iterations of such a program, times its columns and rows.
_SWEEP_MOST = 1e9


# Columns that move (int64[k]) and how far (float64[k]).
Movement = tuple[IntArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Reach:
    """Optimum of one attacker problem.

    Attributes
    ----------
    value
        How far the cell moves in the direction asked, ≥ 0.
    move : float64[n]
        The movement z that does it.
    gamma : float64[m]
        Its duals, a number for each relation (see :func:`capacities`).
    """

    value: float
    move: FloatArray
    gamma: FloatArray


class Region:
    """The movements open to an attacker for given room, as a warm linear program.

    Parameters
    ----------
    problem
        The component.
    lo, hi : float64[n]
        Room of each column, already multiplied by x. Columns without room stay out for good.
    clock
        Out of seconds, :meth:`sweep` and :meth:`push` raise OutOfTimeError.

    Attributes
    ----------
    columns : int64[k]
        Those that have room.
    part
        The relations of these.
    """

    def __init__(self, problem: Problem, lo: FloatArray, hi: FloatArray, clock: Clock) -> None:
        self._problem, self._clock = problem, clock
        self.columns = np.flatnonzero((lo > 0) | (hi > 0))
        self._position = np.full(problem.n, -1, dtype=np.int64)
        self._position[self.columns] = np.arange(len(self.columns))
        self.part = part = take_columns(problem.matrix, self.columns)
        self._lo, self._hi = lo[self.columns], hi[self.columns]
        self._now = (self._lo.copy(), self._hi.copy())
        self._attacker = 0
        zeros = np.zeros(len(part.rows))
        self._program = LinearProgram(
            np.zeros(len(self.columns)),
            -self._lo,
            self._hi,
            part.indptr,
            part.indices,
            part.coefs,
            zeros,
            zeros,
            primal_simplex=True,
            with_reduced_costs=False,
        )

    @property
    def work(self) -> float:
        """Deterministic effort so far (see :attr:`LinearProgram.work`)."""
        return self._program.work

    def set_room(self, lo: FloatArray, hi: FloatArray) -> None:
        """Change the room of the open columns (float64[k])."""
        self._lo, self._hi = lo, hi
        self._apply()

    def use(self, attacker: int) -> None:
        """Ask on behalf of an attacker: what it knows cannot move."""
        if attacker != self._attacker:
            self._attacker = attacker
            self._apply()

    def _apply(self) -> None:
        lo, hi = self._lo, self._hi
        if self._attacker:
            known = self._position[self._problem.known[self._attacker]]
            known = known[known >= 0]
            lo, hi = lo.copy(), hi.copy()
            lo[known] = hi[known] = 0.0
        changed = np.flatnonzero((lo != self._now[0]) | (hi != self._now[1]))
        if len(changed):
            self._program.set_bounds(changed, -lo[changed], hi[changed])
            self._now = (lo, hi)

    def sweep(self, cells: IntArray, wanted: FloatArray) -> FloatArray | None:
        """Move many cells at once, each as far as wanted (float64[k], signed) or as near to that as
        goes with the others, or as a limit of effort lets; None if the program fails.
        """
        at = self._position[cells]
        some = (at >= 0) & (wanted != 0)
        wanted, at = wanted[some], at[some]
        if not len(at):
            return None
        lo, hi = self._now
        # Up to rounding, a level is met: the audit allows a thousandth of that.
        goal = np.abs(wanted) * (1 + SLACK)
        self._program.set_bounds(at, -np.minimum(lo[at], goal), np.minimum(hi[at], goal))
        self._program.set_costs(at, -np.sign(wanted) / np.maximum(goal, 1.0))
        self._clock.check()
        try:
            most = int(_SWEEP_MOST / (len(self.columns) + len(self.part.rows)))
            result = self._program.solve(seconds=self._clock.seconds_left, iterations=most)
        except InternalError:
            self._program.forget_basis()
            return None
        finally:
            self._program.set_costs(at, np.zeros(len(at)))
            self._program.set_bounds(at, -lo[at], hi[at])
        if result.status not in ("optimal", "limit") or not len(result.primal):
            return None
        move = np.zeros(self._problem.n)
        move[self.columns] = result.primal
        if result.status == "limit":
            move[self.columns] = within_room(result.primal, lo, hi)
        # The primal simplex stops at a movement too, which the caller judges by its own relations.
        if np.abs(self._problem.matrix @ move).max(initial=0.0) > _STILL * max(1.0, float(goal.max())):
            return None
        return move

    def reverse(self, move: FloatArray) -> FloatArray:
        """A movement of this region (float64[n]) turned round, as far as the room goes."""
        part = move[self.columns]
        moving = np.abs(part) > _STILL
        room = np.where(part > 0, *self._now)[moving]
        back = float((room / np.abs(part[moving])).min(initial=1e6))
        return move * -back

    def push(self, cell: int, direction: int) -> Reach:
        """Move a cell as far as it goes, up (1) or down (-1)."""
        move, gamma = self.push_all(np.array([cell]), np.array([direction]))
        return Reach(max(direction * move[cell], 0.0), move, gamma)

    def push_all(self, cells: IntArray, directions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Move cells as far as they go in all, each up (1) or down (-1); the movement (float64[n]) and
        its duals (float64[m]).
        """
        program, problem = self._program, self._problem
        move, gamma = np.zeros(problem.n), np.zeros(problem.m)
        at = self._position[cells]
        costs, at = -directions[at >= 0].astype(np.float64), at[at >= 0]
        if len(at):
            program.set_costs(at, costs)
            self._clock.check()
            result = program.solve(seconds=self._clock.seconds_left)
            if result.status not in ("optimal", "limit"):
                # Standing still is a solution and all room is finite: only rounding can fail.
                program.set_primal_simplex(False)
                result = program.solve(afresh=True, seconds=self._clock.seconds_left)
                program.set_primal_simplex(True)
            program.set_costs(at, np.zeros(len(at)))
            if result.status == "limit":
                raise OutOfTimeError
            if result.status != "optimal":
                raise NumericalError(f"an attacker problem ended {result.status}")
            move[self.columns] = result.primal
            gamma[self.part.rows] = result.row_duals
        return move, gamma


def within_room(move: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """A movement (float64[k]) as far as its room goes: a program that a limit ends may be far beyond it."""
    moving = np.flatnonzero(move)
    room = np.where(move > 0, hi, lo)[moving]
    return move * float((room / np.abs(move[moving])).min(initial=1.0))


def capacities(
    problem: Problem, gammas: FloatArray, cells: IntArray, directions: IntArray, attackers: IntArray
) -> FloatArray:
    """Untruncated coefficients of the capacity constraints of some duals (float64[k, n]).

    Of the reduced costs d = ±e_p − Mᵀγ of all columns: for *every* pattern x the cell moves at most
    Σ_{d>0} d·hi·x + Σ_{d<0} |d|·lo·x.

    Parameters
    ----------
    gammas : float64[m, k]
        The duals.
    cells, directions, attackers : int64[k]
        Which cell each is about, whether up (1) or down (-1), and on whose behalf it moves.
    """
    dual = np.ascontiguousarray((problem.transposed @ gammas).T)
    dual[np.abs(dual) < _STILL] = 0.0
    dual[np.arange(len(cells)), cells] += directions
    for k in np.flatnonzero(attackers).tolist():
        dual[k, problem.known[attackers[k]]] = 0.0
    return np.where(dual > 0, dual * problem.hi, -dual * problem.lo)


class Certificates:
    """The farthest that each target is known to move, from every movement met so far."""

    def __init__(self, problem: Problem) -> None:
        targets = problem.targets
        self._problem = problem
        self.moves: list[Movement] = []
        self.up, self.down = np.zeros(len(targets)), np.zeros(len(targets))
        sizes = np.array([len(known) for known in problem.known])[targets.attacker]
        self._insiders = bool(sizes.any())
        if self._insiders:
            indices = np.concatenate([problem.known[k] for k in targets.attacker])
            indptr = np.concatenate([[0], np.cumsum(sizes)])
            self._known = sparse.csr_array(
                (problem.heft[indices], indices, indptr), shape=(len(targets), problem.n)
            )

    def add(self, move: FloatArray, largest: FloatArray | None = None) -> None:
        """Credit a movement to the targets whose attacker it leaves possible.

        Parameters
        ----------
        move : float64[n]
            Made within the full room, or within room capped at `largest` about each target.
        largest : float64[t], optional
            Only targets whose levels are at most this may use the movement.
        """
        moved = move[self._problem.targets.cell]
        if self._insiders:
            moved = np.where(self._known @ np.abs(move) > _STILL, 0.0, moved)
        if largest is not None:
            moved = np.where(self._problem.targets.highest <= largest, moved, 0.0)
        np.maximum(self.up, moved, out=self.up)
        np.maximum(self.down, -moved, out=self.down)

    def keep(self, move: FloatArray) -> None:
        """Credit a movement within the full room, and remember it."""
        self.add(move)
        cells = np.flatnonzero(move)
        self.moves.append((cells, move[cells]))

    def meets(self, k: int) -> bool:
        """Is every level of a target certified?"""
        targets, keep = self._problem.targets, 1 - SLACK
        up, down = self.up[k], self.down[k]
        met = up >= targets.upper[k] * keep and down >= targets.lower[k] * keep
        return bool(met and up + down >= targets.sliding[k] * keep)

    def met(self) -> BoolArray:
        """Targets whose every level is certified (bool[t])."""
        targets, keep = self._problem.targets, 1 - SLACK
        return np.asarray(
            (self.up >= targets.upper * keep)
            & (self.down >= targets.lower * keep)
            & (self.up + self.down >= targets.sliding * keep)
        )


@dataclass(frozen=True, eq=False)
class Shortfall:
    """A requirement that a pattern fails.

    Attributes
    ----------
    target
        Index into ``problem.targets``.
    kind
        "upper", "lower" or "sliding".
    level, reached
        What is required and what is possible.
    coefs : float64[n]
        Σ coefs·x ≥ level holds for every protecting pattern.
    """

    target: int
    kind: str
    level: float
    reached: float
    coefs: FloatArray


def check_pattern(
    problem: Problem,
    hidden: BoolArray,
    clock: Clock,
    *,
    only: IntArray | None = None,
    stop_at: int | None = None,
    moves: list[Movement] | None = None,
) -> list[Shortfall]:
    """Every requirement that a 0/1 pattern fails, each with a capacity constraint it violates.

    Parameters
    ----------
    problem, hidden
        The component and its pattern (bool[n]).
    clock
        How long.
    only
        Indices of the targets to look at; all by default.
    stop_at
        Give up once so many shortfalls are found.
    moves
        Filled with the movements that prove what is met.

    Raises
    ------
    OutOfTimeError
        The clock's seconds are over.
    """
    targets = problem.targets
    chosen = np.arange(len(targets)) if only is None else np.asarray(only, dtype=np.int64)
    certificates = Certificates(problem)
    region = Region(problem, problem.lo * hidden, problem.hi * hidden, clock)
    _sweep(problem, region, certificates, chosen)
    found: list[Shortfall] = []
    open_ = chosen[~certificates.met()[chosen]]
    for k in open_[np.argsort(targets.attacker[open_], kind="stable")].tolist():
        found += _check_target(problem, region, certificates, k)
        if stop_at is not None and len(found) >= stop_at:
            break
    if moves is not None:
        moves += certificates.moves
    return found


def without_safe_targets(
    problem: Problem, exposed: BoolArray, clock: Clock
) -> tuple[Problem, list[Movement]]:
    """The same problem without the targets that what is always hidden protects already, and the
    movements that prove it.

    Hiding more never narrows an interval, so they are safe in every pattern. Out of time, those not
    looked at yet stay in.

    `exposed` (bool[t]) tells those that are known to be in danger.
    """
    old = problem.targets
    certificates = Certificates(problem)
    keep = np.ones(len(old), dtype=np.bool_)
    open_ = np.flatnonzero(~exposed)
    if not len(open_):
        return problem, []
    # Most of what is always hidden can't move on its own, and stays out of the program.
    able = with_company(problem.matrix, problem.forced)
    region = Region(problem, problem.lo * able, problem.hi * able, clock)
    try:
        _sweep(problem, region, certificates, open_)
        met = certificates.met()
        keep[open_] = ~met[open_]
        left = open_[~met[open_] & able[old.cell[open_]]]
        for k in left[np.argsort(old.attacker[left], kind="stable")].tolist():
            if clock.out:
                break
            with suppress(NumericalError):
                keep[k] = bool(_check_target(problem, region, certificates, k))
    except OutOfTimeError:
        keep &= ~certificates.met() | exposed
    if keep.all():
        return problem, certificates.moves
    left = np.flatnonzero(keep)
    levels = (old.lower[left], old.upper[left], old.sliding[left])
    kept = replace(problem, targets=Targets(old.attacker[left], old.cell[left], *levels))
    return kept, certificates.moves


def _sweep(problem: Problem, region: Region, certificates: Certificates, chosen: IntArray) -> None:
    """Certify many targets with few programs."""
    targets, keep = problem.targets, 1 - SLACK
    missing = np.inf
    while True:
        left = chosen[~certificates.met()[chosen]]
        wide = targets.sliding[left]
        up = np.maximum(targets.upper[left], wide - certificates.down[left])
        down = np.maximum(targets.lower[left], wide - certificates.up[left])
        lacking = certificates.up[left] < up * keep
        sides = int(lacking.sum() + (certificates.down[left] < down * keep).sum())
        if sides < _SWEPT or sides > missing - _SWEPT:
            return
        missing = sides
        goal = np.where(lacking, up, -down)
        cells, first = np.unique(targets.cell[left], return_index=True)
        move = region.sweep(cells, goal[first])
        if move is None:
            return
        certificates.keep(move)
        certificates.add(region.reverse(move))


def _check_target(problem: Problem, region: Region, certificates: Certificates, k: int) -> list[Shortfall]:
    targets, keep = problem.targets, 1 - SLACK
    if certificates.meets(k):
        return []
    region.use(int(targets.attacker[k]))
    cell, width = int(targets.cell[k]), targets.sliding[k]
    sides: list[FloatArray] = []
    found = []
    for side, kind, best, level in (
        (1, "upper", certificates.up, targets.upper[k]),
        (-1, "lower", certificates.down, targets.lower[k]),
    ):
        wide = certificates.up[k] + certificates.down[k] >= width * keep
        if best[k] >= level * keep and wide:
            continue
        reach = region.push(cell, side)
        certificates.keep(reach.move)
        certificates.add(region.reverse(reach.move))
        where = (targets.cell[[k]], np.array([side]), targets.attacker[[k]])
        sides.append(capacities(problem, reach.gamma[:, None], *where)[0])
        if reach.value < level * keep:
            found.append(Shortfall(k, kind, level, reach.value, sides[-1]))
    reached = certificates.up[k] + certificates.down[k]
    if reached < width * keep:
        found.append(Shortfall(k, "sliding", width, reached, np.sum(sides, axis=0)))
    return found
