"""What an exact search knows of a component: the relaxation with its cuts, a pattern, a bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solver.attack import Movement, check_pattern
from solver.branching import cost_step
from solver.clock import Clock, OutOfTimeError
from solver.cuts import Cut
from solver.errors import InternalError, NumericalError
from solver.heuristics.needs import Cover
from solver.heuristics.rounding import Rounding
from solver.incumbent import make_safe, round_up, settle
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LpResult
from solver.master import Master, fixable
from solver.pace import PATIENT, Pace
from solver.presolve import Problem
from solver.separate import Separator, against, as_point

# A point hides a column in good part from here on.
_PART = 0.15


class Relaxation:
    """What is known of a component: the relaxation, its cuts, the best pattern and the best bound.

    Attributes
    ----------
    incumbent : bool[n]
        Best pattern so far; everything until one is found.
    safe
        Is the incumbent known to be safe?
    moves
        Movements (float64[n]) that prove it, if they are at hand.
    cover
        It with all movements known, if a heuristic made it.
    rounded
        Did a pattern come of the relaxation?
    cost, bound
        Its weight, and what no pattern can go below.
    nodes, cuts
        Size of the search.
    problem
        The component searched.
    """

    def __init__(
        self,
        problem: Problem,
        clock: Clock,
        incumbent: BoolArray | None,
        report: Callable[[str, float, float], None],
        cover: Cover | None = None,
    ) -> None:
        self.problem = self._problem = problem
        self._report = report
        # The cheapest pattern costs no more than hiding everything, if any pattern is safe at all.
        self.safe = incumbent is not None
        self.incumbent: BoolArray = np.ones(problem.n, dtype=np.bool_) if incumbent is None else incumbent
        self.cost = problem.cost(self.incumbent)
        self.bound, self.nodes, self._supposed = 0.0, 0, np.inf
        self.moves: list[Movement] = []
        self.cover, self.rounded = cover, False
        self.step = cost_step(problem.weight)
        self._master = Master(problem)
        self._separator = Separator(problem, clock)
        self.limit_to(clock)
        self._charged = 0.0
        self._lower, self._upper = self._master.lower.copy(), self._master.upper.copy()
        self._root: LpResult | None = None

    @property
    def cuts(self) -> int:
        """Cuts in the program."""
        return len(self._master.cuts)

    @property
    def closed(self) -> bool:
        """Is the incumbent proven optimal?"""
        return self.safe and self.bound >= self.cost - self._tolerance

    @property
    def _tolerance(self) -> float:
        return 1e-9 * max(1.0, self.cost)

    @property
    def rounding(self) -> Rounding | None:
        """How to make patterns of the root relaxation, once there is one."""
        return None if self._root is None else Rounding(self._problem, self._root, self._upper > 0)

    def limit_to(
        self,
        clock: Clock,
        patience: Clock | None = None,
        easy: Clock | None = None,
        pace: Pace = PATIENT,
    ) -> None:
        """Run on another clock from now on; `patience` is how long a first pattern may take, `easy` how long
        it may go on while HiGHS solves with ease what it is asked, `pace` how long without a safe pattern.
        """
        self._pace = pace
        self._full, self._early = clock, clock.early(pace.unsafe)
        self._easy = clock if easy is None else easy
        self._patience = self._early if patience is None else patience
        self._separator.clock = self._clock

    @property
    def _clock(self) -> Clock:
        return self._full if self.safe else self._early

    def accept(self, hidden: BoolArray, cover: Cover | None = None) -> None:
        """Take over a safe pattern found elsewhere if it is cheaper."""
        self._accept(hidden, cover=cover)

    def _solve(self, iterations: int | None = None) -> LpResult:
        result = self._master.solve(iterations, self._clock.seconds_left)
        self._charge()
        if result.status == "limit" and iterations is None:
            raise OutOfTimeError
        if result.status == "unbounded":
            raise InternalError("the relaxation of the exact method is unbounded")
        return result

    def _refresh(self) -> None:
        """Solve the relaxation again for its reduced costs."""
        result = self._solve()
        if result.status == "infeasible":
            self.prove(self.cost)
        else:
            self._root = result
            self.prove(result.objective)
            self._fix_root()

    def _charge(self) -> None:
        work = self._master.work + self._separator.work
        self._clock.charge((work - self._charged) * 1e3)
        self._charged = work

    def _separate(
        self, x: FloatArray, least: float, hope: float = 0.0, only: IntArray | None = None
    ) -> list[Cut]:
        cuts = self._separator.separate(x, least=least, hope=hope, only=only)
        self._charge()
        return cuts

    def _cuts_at_pattern(self, x: FloatArray) -> list[Cut]:
        """Cuts against a 0/1 point, or none if it is safe (then it is the incumbent)."""
        hidden = x > 0.5
        point = as_point(self._problem, hidden)
        moves: list[Movement] = []
        shortfalls = check_pattern(self._problem, hidden, self._clock, moves=moves)
        if not shortfalls:
            self._accept(hidden, moves)
            return []
        exposed = np.array([shortfall.target for shortfall in shortfalls])
        cuts = self._separate(point, least=1e-6, only=exposed)
        cuts += against(self._problem, shortfalls, point)
        if not cuts:
            raise NumericalError("an unsafe pattern violates no inequality")
        return cuts

    def _round(self, result: LpResult) -> None:
        """Patterns near the point, and the incumbent with all that the point hides in part, cleaned."""
        problem, rounding = self._problem, Rounding(self._problem, result, self._upper > 0)
        patience = self._clock if self.safe else self._patience
        found = round_up(problem, rounding, self._clock, patience)
        if found is not None:
            self.rounded = True
            self._accept(found.hidden, found.movements(), found)
        elif not self.safe:
            settled = settle(problem, problem.forced | rounding.support, self._clock)
            if settled is not None:
                self._accept(*settled)
        if not self.safe or self._clock.out:
            return
        hidden = self.incumbent | (rounding.x > _PART)
        found = make_safe(problem, hidden, problem.weight, hidden | rounding.support, self._clock)
        if found is not None:
            self._accept(found.hidden, found.movements(), found)

    def _accept(
        self, hidden: BoolArray, moves: list[Movement] | None = None, cover: Cover | None = None
    ) -> None:
        cost = self._problem.cost(hidden)
        if not self.safe or cost < self.cost - self._tolerance:
            self.incumbent, self.cost, self.safe = hidden, cost, True
            self._separator.clock = self._clock
            self.cover = cover
            self.moves = moves or []
            self._fix_root()
            self._report("incumbent", self.bound, self.cost)

    def _fix_root(self) -> None:
        if self._root is None:
            return
        room = self._room(self._root.objective, self.cost - self.step)
        zero, one = fixable(self._root, self._lower < self._upper, room)
        self._upper[zero], self._lower[one] = 0.0, 1.0
        if self.nodes == 0:
            self._master.set_bounds(self._lower, self._upper)

    def _room(self, objective: float, ceiling: float | None = None) -> float:
        """How far the objective may rise without excluding a pattern that is looked for."""
        ceiling = self._ceiling if ceiling is None else ceiling
        return ceiling - objective + 1e-6 * max(1.0, self.step) + self._tolerance

    @property
    def _ceiling(self) -> float:
        """The greatest cost that is looked for."""
        return min(self.cost - self.step, self._supposed)

    def _cutoff(self, bound: float) -> bool:
        return self._room(bound) < 0

    def prove(self, bound: float) -> None:
        """Take over a lower bound."""
        if self.step:
            bound = self.step * np.ceil(bound / self.step * (1 - 1e-9) - 1e-6)
        bound = min(float(bound), self.cost)
        if bound > self.bound:
            self.bound = bound
            self._report("bound", self.bound, self.cost)
