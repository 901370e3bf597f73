"""Find inequalities that a fractional point violates.

Each attacker problem is solved in units of its level with room capped at one level: the capacity
constraint is truncated at the level anyway, so this separates the truncated constraint itself
(exactly so on networks), and neighbouring targets differ only in the few cells with less room than
a level, which keeps the simplex warm.
"""

from __future__ import annotations

import numpy as np

from solver.attack import SLACK, Certificates, Reach, Region, capacity
from solver.clock import Clock, OutOfTimeError
from solver.cuts import Cut, knapsack_cuts, row_bridgeless
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lifted import lifted_cover
from solver.presolve import Problem

_ZERO = 1e-7
_MEMORY = 0.6


class Separator:
    """Separates capacity, knapsack-cover and bridgeless inequalities of a problem.

    Attributes
    ----------
    work
        Deterministic effort so far, in about milliseconds.
    clock
        Out of time, the cuts found so far must do.
    lifted
        Separate lifted covers too: in a tree they save nodes, at the root they end its loop early.
    """

    def __init__(self, problem: Problem, clock: Clock) -> None:
        self._problem, self.clock = problem, clock
        self.work, self.lifted = 0.0, False
        targets = problem.targets
        levels = np.stack([targets.upper, targets.lower, targets.sliding], axis=1)
        kind = np.tile(np.arange(3), len(targets))
        target = np.repeat(np.arange(len(targets)), 3)
        level = levels.ravel()
        used = np.flatnonzero(level > 0)
        # Highest level first: a movement by a high level certifies the lower ones.
        order = used[np.lexsort((kind[used], -level[used], targets.attacker[target[used]]))]
        self._target, self._kind, self._level = target[order], kind[order], level[order]
        # Hopes of a violated cut, from how often a requirement gave one lately.
        self._hope = np.ones(len(order))

    def separate(
        self, x: FloatArray, *, least: float, hope: float = 0.0, only: IntArray | None = None
    ) -> list[Cut]:
        """Violated inequalities at x.

        Parameters
        ----------
        x : float64[n]
            Between 0 and 1, forced columns at 1.
        least
            Smallest violation worth having.
        hope
            Skip requirements that gave a cut less often than this lately (0: ask all).
        only
            Ask on behalf of these targets alone (indices).
        """
        problem = self._problem
        x = np.where(x > _ZERO, x, 0.0)
        cuts = _Collection()
        region: Region | None = None
        certificates = Certificates(problem)
        last_level = np.nan
        asked = np.flatnonzero(self._hope >= hope)
        if only is not None:
            asked = asked[np.isin(self._target[asked], only)]
        for r in asked.tolist():
            t, kind, level = int(self._target[r]), int(self._kind[r]), float(self._level[r])
            if self._certified(certificates, t, kind, level):
                self._hope[r] *= _MEMORY
                continue
            if level != last_level:
                lo, hi = (np.minimum(room / level, 1.0) * x for room in (problem.lo, problem.hi))
                if region is None:
                    region = Region(problem, lo, hi, self.clock)
                else:
                    region.set_room(lo, hi)
                last_level = level
                symmetric = bool((lo == hi).all())
            assert region is not None
            region.use(int(problem.targets.attacker[t]))
            if kind == 1 and symmetric and level == problem.targets.upper[t]:
                # The same both ways.
                continue
            try:
                coefs = self._ask(region, certificates, t, kind, level)
            except OutOfTimeError:
                break
            new = knapsack_cuts(coefs, level, problem.forced, x, least)
            cover = lifted_cover(coefs, level, problem.forced, x, least) if self.lifted else None
            new += [] if cover is None else [cover]
            cuts.extend(new)
            self._hope[r] = _MEMORY * self._hope[r] + (1 - _MEMORY) * bool(new)
            if self.clock.out:
                break
        cuts.extend(row_bridgeless(problem, x, least))
        if region is not None:
            self.work += region.work
        return cuts.found

    def _certified(self, certificates: Certificates, t: int, kind: int, level: float) -> bool:
        need = level * (1 - SLACK)
        if kind == 0:
            return bool(certificates.up[t] >= need)
        if kind == 1:
            return bool(certificates.down[t] >= need)
        return bool(certificates.up[t] + certificates.down[t] >= need)

    def _ask(self, region: Region, certificates: Certificates, t: int, kind: int, level: float) -> FloatArray:
        problem, cell = self._problem, int(self._problem.targets.cell[t])
        sides = {0: (1,), 1: (-1,), 2: (1, -1)}[kind]
        total = np.zeros(problem.n)
        for side in sides:
            reach: Reach = region.push(cell, side)
            certificates.add(reach.move * level, level)
            total += capacity(problem, reach.dual)
        return total


class _Collection:
    """Cuts without repetitions."""

    def __init__(self) -> None:
        self.found: list[Cut] = []
        self._seen: set[bytes] = set()

    def extend(self, cuts: list[Cut]) -> None:
        for cut in cuts:
            if cut.key not in self._seen:
                self._seen.add(cut.key)
                self.found.append(cut)


def as_point(problem: Problem, hidden: BoolArray) -> FloatArray:
    """A pattern as a 0/1 point with forced columns at one."""
    return (hidden | problem.forced).astype(np.float64)
