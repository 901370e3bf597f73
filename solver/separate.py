"""Find inequalities that a fractional point violates.

Each attacker problem is solved in units of its level with room capped at one level: the capacity
constraint is truncated at the level anyway, so this separates the truncated constraint itself
(exactly so on networks), and neighbouring targets differ only in the few cells with less room than
a level, which keeps the simplex warm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.attack import SLACK, Certificates, Shortfall, capacities
from solver.clock import Clock, OutOfTimeError
from solver.cuts import BATCH, Cut, knapsack_cuts, row_bridgeless
from solver.instance import BoolArray, FloatArray, IntArray
from solver.islands import Islands
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
        asked = np.flatnonzero(self._hope >= hope)
        if only is not None:
            asked = asked[np.isin(self._target[asked], only)]
        if len(asked):
            round_ = _Round(problem, x, self.clock)
            queues = _queues(round_.home[self._target[asked]], asked)
            while len(chosen := self._turn(queues, round_)):
                try:
                    self._ask(chosen, round_)
                except OutOfTimeError:
                    break
                if round_.count * problem.n >= BATCH:
                    self._settle(round_, cuts, x, least)
                if self.clock.out:
                    break
            if round_.count:
                self._settle(round_, cuts, x, least)
            self.work += round_.islands.work
        cuts.extend(row_bridgeless(problem, x, least))
        return cuts.found

    def _turn(self, queues: list[list[int]], round_: _Round) -> IntArray:
        """The next requirement of each island that must be asked."""
        chosen = []
        for queue in queues:
            while queue:
                r = queue.pop()
                if self._certified(r, round_.certificates):
                    self._hope[r] *= _MEMORY
                elif not self._even(r, round_):
                    chosen.append(r)
                    break
        return np.array(chosen, dtype=np.int64)

    def _certified(self, r: int, certificates: Certificates) -> bool:
        t, kind, need = self._target[r], self._kind[r], self._level[r] * (1 - SLACK)
        if kind == 0:
            return bool(certificates.up[t] >= need)
        if kind == 1:
            return bool(certificates.down[t] >= need)
        return bool(certificates.up[t] + certificates.down[t] >= need)

    def _even(self, r: int, round_: _Round) -> bool:
        """Is this a way down as long as the way up, which was asked before?"""
        t, level = self._target[r], self._level[r]
        if self._kind[r] != 1 or level != self._problem.targets.upper[t]:
            return False
        return round_.islands.even(int(round_.home[t]), float(level))

    def _ask(self, chosen: IntArray, round_: _Round) -> None:
        """Ask requirements (int64[k]) of different islands; those that go both ways, up first."""
        kind = self._kind[chosen]
        answers = [self._push(round_, chosen, np.where(kind == 1, -1, 1))]
        both = chosen[kind == 2]
        if len(both):
            answers.append(self._push(round_, both, np.full(len(both), -1)))
        # All or none: one way of a requirement that has two is no cut, should time end in between.
        round_.keep(answers)

    def _push(self, round_: _Round, asked: IntArray, directions: IntArray) -> _Answer:
        return round_.push(asked, self._target[asked], self._level[asked], directions)

    def _settle(self, round_: _Round, cuts: _Collection, x: FloatArray, least: float) -> None:
        """The cuts of the requirements asked since the last time."""
        forced = self._problem.forced
        asked, coefs = round_.take()
        levels = self._level[asked]
        for k, new in enumerate(knapsack_cuts(coefs, levels, forced, x, least)):
            cover = lifted_cover(coefs[k], float(levels[k]), forced, x, least) if self.lifted else None
            new += [] if cover is None else [cover]
            cuts.extend(new)
            r = asked[k]
            self._hope[r] = _MEMORY * self._hope[r] + (1 - _MEMORY) * bool(new)


def _queues(islands: IntArray, asked: IntArray) -> list[list[int]]:
    """The requirements (int64[k]) of each island, the first one last."""
    order = np.argsort(islands, kind="stable")
    ends = np.flatnonzero(np.diff(islands[order])) + 1
    return [part[::-1].tolist() for part in np.split(asked[order], ends)]


class _Round:
    """Requirements that are asked at one point.

    Attributes
    ----------
    home : int64[t]
        The island of each target.
    count
        Answers that are waiting.
    """

    def __init__(self, problem: Problem, x: FloatArray, clock: Clock) -> None:
        self._problem = problem
        self.islands = Islands(problem, x, clock)
        self.home = self.islands.of(problem.targets.cell)
        self.certificates = Certificates(problem)
        self._answers: list[_Answer] = []
        self.count = 0

    def push(self, asked: IntArray, targets: IntArray, levels: FloatArray, directions: IntArray) -> _Answer:
        """Move the cells of some requirements' targets (int64[k] both), each on an island of its own."""
        at = self._problem.targets
        cells, attackers = at.cell[targets], at.attacker[targets]
        move, gamma = self.islands.push(cells, directions, levels, attackers)
        self.certificates.add(move, self.islands.levels(self.home))
        return _Answer(asked, targets, directions, gamma)

    def keep(self, answers: list[_Answer]) -> None:
        """Have answers wait for :meth:`take`."""
        self._answers += answers
        self.count += sum(len(answer.asked) for answer in answers)

    def take(self) -> tuple[IntArray, FloatArray]:
        """The requirements that are waiting (int64[k]), and the coefficients of their capacity constraints
        (float64[k, n])."""
        answers, self._answers, self.count = self._answers, [], 0
        asked = np.concatenate([answer.asked for answer in answers])
        targets = np.concatenate([answer.targets for answer in answers])
        directions = np.concatenate([answer.directions for answer in answers])
        gammas = np.stack([answer.gamma for answer in answers], axis=1)
        gammas = gammas[:, np.repeat(np.arange(len(answers)), [len(answer.asked) for answer in answers])]
        apart, at = self.islands.apart(gammas, self.home[targets]), self._problem.targets
        found = capacities(self._problem, apart, at.cell[targets], directions, at.attacker[targets])
        # What is asked both ways must add up.
        order = np.argsort(asked, kind="stable")
        which, first = np.unique(asked[order], return_index=True)
        return which, np.add.reduceat(found[order], first)


@dataclass(frozen=True, eq=False)
class _Answer:
    """What one push gave: of whom (int64[k] each), and its duals (float64[m])."""

    asked: IntArray
    targets: IntArray
    directions: IntArray
    gamma: FloatArray


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


def against(problem: Problem, shortfalls: list[Shortfall], x: FloatArray) -> list[Cut]:
    """Cuts of the requirements that a pattern fails, violated at it (float64[n], 0 or 1)."""
    cuts: list[Cut] = []
    size = BATCH // problem.n + 1
    for start in range(0, len(shortfalls), size):
        part = shortfalls[start : start + size]
        coefs, levels = np.stack([s.coefs for s in part]), np.array([s.level for s in part])
        for new in knapsack_cuts(coefs, levels, problem.forced, x, 1e-9):
            cuts += new
    return cuts


def as_point(problem: Problem, hidden: BoolArray) -> FloatArray:
    """A pattern as a 0/1 point with forced columns at one."""
    return (hidden | problem.forced).astype(np.float64)
