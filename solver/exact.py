"""Proven optimum of one component: cuts at the root, then a tree of its own over one warm LP.

HiGHS has no lazy constraints, so its own branch and bound cannot be told of cuts while it runs;
here attackers are asked at fractional nodes (Fischetti, Salazar 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from solver.borrow import Borrowed, borrow, crowded
from solver.branching import Brancher, Frontier, Node, Suppositions
from solver.clock import Clock, OutOfTimeError
from solver.cuts import Cut, relation_cuts
from solver.errors import NumericalError
from solver.heuristics.needs import Cover
from solver.incumbent import make_safe
from solver.instance import BoolArray, FloatArray
from solver.lp import LpResult
from solver.master import fixable, is_whole, point_of
from solver.presolve import Problem
from solver.relaxation import Relaxation

_ROOT_ROUNDS = 400
_NODE_ROUNDS = 6
_STALL, _COARSE, _FAST = 12, 0.02, 0.003
_ROOM, _HOPE = 0.02, 0.12
_ATTEMPTS, _EASY_NODES = 40, 300
# Programs of few columns in a row, the part of the limit for each and the seconds it has in any case, and how
# much the relaxation hides of a column that is among them.
_NEAR_ROUNDS, _NEAR_SHARE, _NEAR_LEAST, _HIDES = 10, 0.1, 0.03, 1e-6


class Search(Relaxation):
    """Branch and cut on a component."""

    def __init__(
        self,
        problem: Problem,
        clock: Clock,
        incumbent: BoolArray | None,
        report: Callable[[str, float, float], None],
        cover: Cover | None = None,
    ) -> None:
        super().__init__(problem, clock, incumbent, report, cover)
        self._next_round = 1
        self._brancher = Brancher(problem, self._master, self._solve, self._cutoff)
        # What points of HiGHS's hid that weren't safe.
        self._seen: BoolArray = np.zeros(problem.n, dtype=np.bool_)
        # Is a program of those few columns hard already?
        self._far = False

    def run(self) -> None:
        """Search until the gap is closed or the clock is out.

        HiGHS's own cuts close most of the gap of two-dimensional and easy hierarchical tables at
        once, and then cut and branch does the rest; where they do not, the tree is faster.
        """
        with suppress(OutOfTimeError, NumericalError):
            # What was found and proven until then stands.
            self._run()
        if not self.safe and self._root is not None and not self._patience.out and not self._pace.rounds:
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
            self.limit_to(self._easy, self._patience, pace=self._pace)
        if not self._converge():
            return
        if self._full is not limit:
            self.limit_to(limit, self._patience, pace=self._pace)
        gained = self.bound - before
        if not self.safe and self._pace.rounds:
            return
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
        master, began = self._master, self._full.spent
        master.set_bounds(self._lower, self._upper)
        while len(history) < _ROOT_ROUNDS:
            result = self._solve()
            if result.status == "infeasible":
                self.prove(self.cost)
                return False
            self._root = result
            self.prove(result.objective)
            history.append(result.objective)
            if self.closed or self._clock.out or self._hopeless(began, history):
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
        return not self.safe and self._full.spent > self._pace.late

    def _hopeless(self, began: float, history: list[float]) -> bool:
        """Will the root not end in time, as the first of its rounds tells, or not where it mostly does?"""
        rounds, done = self._pace.rounds, len(history) - 1
        if self.safe or not rounds or done not in (1, rounds):
            return False
        late = began + (self._full.spent - began) * rounds / done > self._pace.unsafe
        return late or (done == rounds and history[-1] - history[-2] > _FAST * history[-1])

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
            if self._late and not self._pace.hopeful:
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
            if not added or (self.safe and not easy):
                break
            found = self._try_near()
            if not easy and not found:
                break
        return not self.closed

    def _ask_highs(self, nodes: int, pool: bool, supposed: float = np.inf) -> tuple[int, bool]:
        """One run of HiGHS on the known inequalities: cuts added, and was it solved with ease?

        `supposed` is a cost that some safe pattern may have; the run is about those up to it.
        """
        lower, upper = self._lower, self._upper
        # HiGHS is quicker to prove that what it is given is cheapest than that nothing is cheaper.
        given = self.incumbent if self.safe and not pool else None
        below = self.cost if given is not None else self.cost - self.step
        if supposed < below and self._root is not None:
            below, given = supposed, None
            zero, one = fixable(self._root, lower < upper, supposed - self._root.objective + self._tolerance)
            lower, upper = lower.copy(), upper.copy()
            upper[zero], lower[one] = 0.0, 1.0
        borrowed = self._run_highs(
            lower, upper, below, nodes, self._clock.seconds_left, pool=pool, given=given
        )
        bound, cuts, point = min(borrowed.bound, supposed), list(borrowed.cuts), borrowed.point
        if point is not None and not self._as_dear(point):
            unsafe = self._against(point)
            if unsafe and bound <= self.bound:
                # Many patterns cost the same, of which one may be safe.
                self._repair(point)
            cuts += unsafe
        # A safe point that is proven cheapest closes the gap by its cost.
        self.prove(bound)
        added = 0 if self.closed else self._master.add(cuts)
        return added, borrowed.exact and not borrowed.hard

    def _run_highs(
        self,
        lower: FloatArray,
        upper: FloatArray,
        below: float,
        nodes: int,
        seconds: float | None,
        *,
        pool: bool = False,
        given: BoolArray | None = None,
    ) -> Borrowed:
        borrowed = borrow(
            self._problem,
            self._master.cuts,
            lower,
            upper,
            below,
            self.step,
            nodes=nodes,
            seconds=seconds,
            pool=pool,
            given=given,
        )
        self._clock.charge(borrowed.work * 1e3)
        return borrowed

    def _against(self, point: FloatArray) -> list[Cut]:
        """Cuts against a 0/1 point, more than enough; none if it is safe (then it is the incumbent)."""
        self._seen |= point > 0.5
        unsafe = self._cuts_at_pattern(point)
        if not unsafe:
            return []
        # Half way to the root relaxation, attackers are less degenerate.
        x = point if self._root is None else 0.5 * (point + point_of(self._problem, self._root))
        return unsafe + self._separate(x, least=0.01)

    def _as_dear(self, point: FloatArray) -> bool:
        """Does a 0/1 point cost what the incumbent costs, if not more?"""
        return self.safe and self._problem.cost(point > 0.5) >= self.cost - self._tolerance

    def _try_near(self) -> bool:
        """Look for a cheaper pattern among what the relaxation hides, if only in part, and what points of
        HiGHS's hid: programs of a fraction of the columns. Their points tell cuts too, and one is soon safe.
        """
        before, known = self.cost, 0
        for _ in range(_NEAR_ROUNDS):
            if self._far or self.closed or self._clock.out or self._root is None:
                break
            some = self._seen | (point_of(self._problem, self._root) > _HIDES)
            upper = np.where(some, self._upper, self._lower)
            left = self._clock.seconds_left
            seconds = None if left is None else min(max(_NEAR_SHARE * left, _NEAR_LEAST), left)
            below = self.cost - self.step
            borrowed = self._run_highs(self._lower, upper, below, _EASY_NODES, seconds)
            # What is hard with few columns stays so.
            self._far = borrowed.hard or not borrowed.exact
            if self._far:
                break
            if borrowed.point is not None:
                cuts = self._cuts_at_pattern(borrowed.point)
                self._seen |= borrowed.point > 0.5
                if not cuts or not self._master.add(cuts):
                    break
            elif self.safe or known == len(self._master.cuts):
                break
            else:
                # With the cuts found since, the relaxation hides other columns.
                self._refresh()
                known = len(self._master.cuts)
        found = self.safe and self.cost < before
        self.rounded |= found
        return found

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
