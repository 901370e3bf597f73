"""Safe patterns near a point of the relaxation."""

from __future__ import annotations

import numpy as np

from solver.clock import Clock
from solver.heuristics.light import sweep
from solver.heuristics.lp import protect_lp
from solver.heuristics.needs import Cover
from solver.instance import BoolArray, FloatArray
from solver.lp import LpResult
from solver.master import point_of
from solver.presolve import Problem

# Parts of the columns, least reduced costs first, that may be hidden besides those of the point.
_CHEAP = (0.0625, 0.125, 0.25)
_ZERO = 1e-6


class Rounding:
    """A point of the relaxation, and how to make patterns of it.

    Parameters
    ----------
    problem
        The component.
    point
        The solution of the relaxation, with its reduced costs.
    allowed : bool[n]
        Columns that may be hidden.

    Attributes
    ----------
    x : float64[n]
        How much the point hides of each column.
    """

    def __init__(self, problem: Problem, point: LpResult, allowed: BoolArray) -> None:
        self.x = point_of(problem, point)
        self._problem, self._allowed = problem, allowed
        self._price: FloatArray = problem.weight * (1 - self.x)
        self.support: BoolArray = allowed & (self.x > _ZERO)
        order = np.argsort(point.reduced_costs, kind="stable")
        others = order[self.x[order] <= _ZERO]
        self._choices = [self.support]
        for part in _CHEAP:
            columns = self.support.copy()
            columns[others[: int(part * problem.n)]] = True
            self._choices.append(columns & allowed)
        self._choices.append(allowed)

    @property
    def kinds(self) -> tuple[int, ...]:
        """What :meth:`cover` may begin with, surest first: an eighth of the columns by their reduced costs,
        those of the point alone, all.
        """
        return 2, 0, len(self._choices) - 1

    def cover(
        self,
        start: Cover,
        kind: int,
        clock: Clock,
        spread: float = 0.0,
        generator: np.random.Generator | None = None,
        power: float = 1.0,
    ) -> Cover:
        """A cover that meets all needs, cheap where the point hides; not cleaned.

        Needs that the columns of its kind can't meet are met by the next wider choice.

        Parameters
        ----------
        start
            What is hidden in any case; stays as it is.
        spread, generator
            Distort the prices by up to this part.
        power
            Of what the point leaves of a column, in its price: the higher, the nearer to the point.

        Raises
        ------
        FrozenTargetError
            A need cannot be met.
        OutOfTimeError
            The clock's seconds are over.
        """
        price = self._price if power == 1 else self._problem.weight * (1 - self.x) ** power
        if generator is not None:
            price = price * generator.uniform(1 - spread, 1 + spread, self._problem.n)
        cover = start.copy()
        self._meet(cover, kind, price, clock)
        return cover

    def haste(self, start: Cover, clock: Clock) -> Cover:
        """As :meth:`cover`, sooner and dearer: most cells move together, among few columns."""
        cover = start.copy()
        sweep(cover, self._choices[1] | cover.hidden, clock)
        self._meet(cover, 1, self._price, clock)
        return cover

    def thin(self, start: Cover, other: Cover, clock: Clock) -> Cover:
        """What of another cover's columns the cheapest movements need, each need by its own."""
        cover = start.copy()
        protect_lp(cover, clock, self._price, other.hidden, slopes=0)
        return cover

    def _meet(self, cover: Cover, kind: int, price: FloatArray, clock: Clock) -> None:
        for columns in self._choices[kind:]:
            if cover.unmet.any():
                last = columns is self._allowed
                protect_lp(cover, clock, price, columns, slopes=0, lenient=not last)
