"""Proven optimum of one component: cuts at the root, then a tree of its own over one warm LP.

HiGHS has no lazy constraints, so its own branch and bound cannot be told of cuts while it runs;
here attackers are asked at fractional nodes (Fischetti, Salazar 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from solver.attack import Movement, check_pattern
from solver.borrow import borrow, crowded
from solver.branching import Brancher, Frontier, Node, Suppositions, cost_step
from solver.clock import Clock, OutOfTimeError
from solver.cuts import Cut, relation_cuts
from solver.errors import InternalError, NumericalError
from solver.heuristics.needs import Cover
from solver.heuristics.rounding import Rounding
from solver.incumbent import make_safe, round_up, settle
from solver.instance import BoolArray, FloatArray, IntArray
from solver.lp import LpResult
from solver.master import Master, fixable, is_whole, point_of
from solver.presolve import Problem
from solver.separate import Separator, against, as_point

_ROOT_ROUNDS = 400
_NODE_ROUNDS = 6
_STALL, _COARSE, _PATIENCE = 12, 0.02, 0.3
# Part of the seconds after which a search without a safe pattern stops, as one must be found otherwise.
_UNSAFE = 0.6
_ROOM, _HOPE = 0.02, 0.12
# Part of the limit after which a pattern is wanted that costs no more than so many times what isn't safe.
_SOON, _DEAR = 0.1, 1.06
_PART, _ATTEMPTS, _EASY_NODES = 0.15, 40, 300


class Search:
    """Branch and cut on a component.

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
    keen
        Is a cheap pattern worth as much as a proof?
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
        self.cover, self.rounded, self.keen = cover, False, False
        self.step = cost_step(problem.weight)
        self._master = Master(problem)
        self._separator = Separator(problem, clock)
        self.limit_to(clock)
        self._charged, self._next_round = 0.0, 1
        self._lower, self._upper = self._master.lower.copy(), self._master.upper.copy()
        self._brancher = Brancher(problem, self._master, self._solve, self._cutoff)
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

    def limit_to(self, clock: Clock, patience: Clock | None = None, easy: Clock | None = None) -> None:
        """Run on another clock from now on; `patience` is how long a first pattern may take, `easy` how long
        it may go on while HiGHS solves with ease what it is asked.
        """
        self._full, self._early = clock, clock.early(_UNSAFE)
        self._easy = clock if easy is None else easy
        self._patience = self._early if patience is None else patience
        self._separator.clock = self._clock

    @property
    def _clock(self) -> Clock:
        return self._full if self.safe else self._early

    def accept(self, hidden: BoolArray, cover: Cover | None = None) -> None:
        """Take over a safe pattern found elsewhere if it is cheaper."""
        self._accept(hidden, cover=cover)

    def run(self) -> None:
        """Search until the gap is closed or the clock is out.

        HiGHS's own cuts close most of the gap of two-dimensional and easy hierarchical tables at
        once, and then cut and branch does the rest; where they do not, the tree is faster.
        """
        with suppress(OutOfTimeError, NumericalError):
            # What was found and proven until then stands.
            self._run()
        if not self.safe and self._root is not None and not self._patience.out:
            with suppress(OutOfTimeError, NumericalError):
                self._round(self._root)

    def _run(self) -> None:
        self._supposed = np.inf
        if not self._master.cuts and self._root is None:
            self._master.add(relation_cuts(self._problem))
        if not self._cut_root():
            return
        before, limit = self.bound, self._full
        if self._easy is not limit and not crowded(self._problem):
            self.limit_to(self._easy, self._patience)
        if not self._converge():
            return
        if self._full is not limit:
            self.limit_to(limit, self._patience)
        gained = self.bound - before
        self._round(self._solve())
        if not self.safe or not self._cut_root():
            return
        worth = gained > 0.15 * (self.cost - before) and not crowded(self._problem)
        if worth and self._borrow() and not self._converge():
            return
        self._branch()

    # ------------------------------------------------------------------- root

    def _cut_root(self) -> bool:
        """Cutting planes at the root; False if that closed the gap or time ran out."""
        history: list[float] = []
        master = self._master
        master.set_bounds(self._lower, self._upper)
        while len(history) < _ROOT_ROUNDS:
            result = self._solve()
            if result.status == "infeasible":
                self.prove(self.cost)
                return False
            self._root = result
            self.prove(result.objective)
            history.append(result.objective)
            if self.closed or self._clock.out:
                return False
            if self._late:
                break
            master.grow_older(result)
            x = point_of(self._problem, result)
            if is_whole(x):
                cuts = self._cuts_at_pattern(x)
                if not cuts:
                    return not self.closed
            else:
                cuts = self._separate(x, least=2e-3, hope=_HOPE)
                if not cuts:
                    cuts = self._separate(x, least=2e-3)
            if not master.add(cuts):
                break
            if len(history) > _STALL and self._stalled(history):
                break
        self._fix_root()
        return True

    @property
    def _late(self) -> bool:
        """Is it time to look for a safe pattern, whatever it costs?"""
        return not self.safe and self._full.spent > _PATIENCE

    def _stalled(self, history: list[float]) -> bool:
        gained = history[-1] - history[-1 - _STALL]
        if not self.safe:
            return gained < _COARSE * history[-1]
        return gained < 0.004 * max(self.cost - history[-1], self._tolerance)

    def _borrow(self) -> bool:
        """Alternate HiGHS's root cuts with our own; True if they are worth going on with."""
        worth = False
        while not self.closed and not self._clock.out:
            before = self.bound
            added = self._ask_highs(nodes=1, pool=True)[0]
            if self.closed or not self._cut_root():
                break
            share = (self.bound - before) / max(self.cost - before, self._tolerance)
            worth = worth or share > 0.4
            if not added or share < 0.15 or not worth:
                break
        return worth

    def _converge(self) -> bool:
        """Cut and branch while HiGHS solves the known inequalities easily; False if that closed the
        gap.

        A pattern little dearer than the bound is supposed, which leaves few columns open. If there is
        none, that is a bound, and more is supposed.
        """
        room = 0.0
        for _ in range(_ATTEMPTS):
            if self.closed or self._clock.out or self._root is None:
                return False
            if self._late:
                break
            before = self.bound
            room = max(room, _ROOM * before, self.step)
            supposed = before + room if before + room < self.cost - self.step else np.inf
            added, easy = self._ask_highs(nodes=_EASY_NODES, pool=False, supposed=supposed)
            if added:
                self._refresh()
            elif np.isfinite(supposed) and easy:
                room *= 3
                continue
            if not easy or not added:
                break
        return not self.closed

    def _refresh(self) -> None:
        """Solve the relaxation again for its reduced costs."""
        result = self._solve()
        if result.status == "infeasible":
            self.prove(self.cost)
        else:
            self._root = result
            self.prove(result.objective)
            self._fix_root()

    def _ask_highs(self, nodes: int, pool: bool, supposed: float = np.inf) -> tuple[int, bool]:
        """One run of HiGHS on the known inequalities: cuts added, and was it solved with ease?

        `supposed` is a cost that some safe pattern may have; the run is about those up to it.
        """
        lower, upper = self._lower, self._upper
        below = self.cost - self.step
        if supposed < below and self._root is not None:
            below = supposed
            zero, one = fixable(self._root, lower < upper, supposed - self._root.objective + self._tolerance)
            lower, upper = lower.copy(), upper.copy()
            upper[zero], lower[one] = 0.0, 1.0
        borrowed = borrow(
            self._problem,
            self._master.cuts,
            lower,
            upper,
            below,
            self.step,
            nodes=nodes,
            seconds=self._clock.seconds_left,
            pool=pool,
        )
        self._clock.charge(borrowed.work * 1e3)
        bound = min(borrowed.bound, supposed)
        cuts = list(borrowed.cuts)
        if borrowed.point is not None:
            unsafe = self._cuts_at_pattern(borrowed.point)
            if unsafe:
                # Half way to the root relaxation, attackers are less degenerate.
                x = (
                    borrowed.point
                    if self._root is None
                    else 0.5 * (borrowed.point + point_of(self._problem, self._root))
                )
                cuts += unsafe + self._separate(x, least=0.01)
                if bound <= self.bound or self._wants(borrowed.point):
                    # Many patterns cost the same, of which one may be safe; or one near this is wanted.
                    self._repair(borrowed.point)
        # A safe point that is proven cheapest closes the gap by its cost.
        self.prove(bound)
        added = 0 if self.closed else self._master.add(cuts)
        return added, borrowed.exact and not borrowed.hard

    def _wants(self, x: FloatArray) -> bool:
        """Is time running, and what there is dear beside a 0/1 point that isn't safe?"""
        return self.keen and self._full.spent > _SOON and self.cost > _DEAR * self._problem.cost(x > 0.5)

    def _repair(self, x: FloatArray) -> None:
        """Make a 0/1 point safe at little cost."""
        clock = self._clock if self.safe else self._patience
        found = make_safe(self._problem, x > 0.5, self._problem.weight, self._upper > 0, clock)
        if found is not None:
            self.rounded = True
            self._accept(found.hidden, found.movements(), found)

    # ------------------------------------------------------------------- tree

    def _branch(self) -> None:
        """Trees for one supposed cost after the other; what one finds out helps the next."""
        suppositions, self._separator.lifted = Suppositions(self.step), True
        while not self.closed:
            before = self.nodes
            self._supposed = suppositions.next(self.bound, self.cost)
            if not self._explore():
                return
            suppositions.note(self._supposed, self.nodes - before)
            self._supposed = np.inf
            self._cut_root()

    def _explore(self) -> bool:
        """One tree, for patterns up to the ceiling; False if time ran out."""
        frontier = Frontier(Node(self.bound, 0, self._lower.copy(), self._upper.copy(), 0))
        while (node := frontier.next(self._cutoff)) is not None:
            self.prove(min(frontier.least, self._ceiling + self.step))
            if self._clock.out:
                return False
            self.nodes += 1
            frontier.add(self._process(node), self._ceiling)
        self.prove(self._ceiling + self.step)
        return True

    def _process(self, node: Node) -> list[Node]:
        lower, upper = np.maximum(node.lower, self._lower), np.minimum(node.upper, self._upper)
        if (lower > upper).any():
            return []
        master = self._master
        before, round_ = -np.inf, 0
        while True:
            master.set_bounds(lower, upper)
            result = self._solve()
            if result.status == "infeasible" or self._cutoff(result.objective):
                return []
            node.bound = max(node.bound, result.objective)
            zero, one = fixable(result, lower < upper, self._room(result.objective))
            if len(zero) or len(one):
                upper[zero], lower[one] = 0.0, 1.0
            x = point_of(self._problem, result)
            if is_whole(x):
                cuts = self._cuts_at_pattern(x)
                if not cuts:
                    return []
                if not master.add(cuts):
                    break
                # There is nothing to branch on: until the clock is out, the cuts must go on.
                if self._clock.out:
                    return [Node(node.bound, 0, lower, upper, node.depth)]
                continue
            slow = result.objective - before < 0.01 * (self.cost - result.objective)
            if round_ > 0 and (slow or round_ >= _NODE_ROUNDS):
                break
            before = result.objective
            known = master.recall(x, 0.02)
            cuts = known or self._separate(x, least=0.02, hope=0.05 if round_ else 0.0)
            if not master.add(cuts):
                break
            round_ += 1
        if self._clock.out:
            return [Node(node.bound, 0, lower, upper, node.depth)]
        if self.nodes >= self._next_round:
            self._next_round = 20 + 2 * self._next_round
            self._round(result)
            if self._cutoff(node.bound):
                return []
        master.grow_older(result)
        master.forget_idle()
        return self._children(node, lower, upper, result)

    def _children(self, node: Node, lower: FloatArray, upper: FloatArray, result: LpResult) -> list[Node]:
        column, bounds = self._brancher.choose(node.bound, node.depth, lower, upper, result)
        children = []
        for value, bound in zip((0.0, 1.0), bounds, strict=True):
            if self._cutoff(bound):
                continue
            low, high = lower.copy(), upper.copy()
            low[column] = high[column] = value
            children.append(Node(max(node.bound, bound), 0, low, high, node.depth + 1))
        # Dive into the side the relaxation leans to; the other waits.
        if len(children) == 2 and result.primal[column] > 0.5:
            children.reverse()
        return children

    # ----------------------------------------------------------------- pieces

    def _solve(self, iterations: int | None = None) -> LpResult:
        result = self._master.solve(iterations, self._clock.seconds_left)
        self._charge()
        if result.status == "limit" and iterations is None:
            raise OutOfTimeError
        if result.status == "unbounded":
            raise InternalError("the relaxation of the exact method is unbounded")
        return result

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
