"""Controlled rounding: a table of multiples of a base that adds up, as near to the original as can be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from solver.audit import Exposure, InsiderInterval, find_exposures, target_intervals
from solver.clock import Clock
from solver.conflict import fewest, named
from solver.discreet import Discreet
from solver.errors import InfeasibleError, InternalError, UndecidedError
from solver.grid import Relations, WholeArray, as_unit, exact, finest, published, rounded
from solver.instance import Instance, IntArray, Status
from solver.lp import LinearProgram, LpResult
from solver.publish import Perturbed, check_arguments, described, within_floats
from solver.solution import Progress, ProgressCallback

#: A cell that isn't published may take any multiple; farther than so many steps no relation sends it.
_FAR = 2.0**20
#: Beyond so many bases from its value, no cell is sought.
_WIDEST = 2**16
#: Up to so many they grow one by one, then twofold.
_SLOWLY = 4
#: Without a limit of time, the tree ends after so many nodes times columns and rows.
_NODES, _FEWEST = 1_000_000, 100
#: Part of the time left for the two multiples beside each cell, and for those within some steps more.
_SHARES = (0.4, 0.8)
_WHAT = "no rounded table adds up"


@dataclass(frozen=True, eq=False, repr=False)
class RoundingReport(Discreet):
    """What readers who know the base can find out about the sensitive cells.

    Attributes
    ----------
    intervals
        For each cell to protect and each attacker, where the cell's true value can lie, and what must stay
        possible.
    exposures
        Where that is too little: the base is too small to protect these cells.
    """

    intervals: tuple[InsiderInterval, ...]
    exposures: tuple[Exposure, ...]

    @property
    def ok(self) -> bool:
        """Rounding alone protects every cell."""
        return not self.exposures


@dataclass(frozen=True, eq=False, repr=False)
class Rounding(Perturbed):
    """A rounded table: fields of :class:`solver.publish.Perturbed`, and these.

    Attributes
    ----------
    base
        Every published value is a multiple of it.
    steps
        1: each cell is one of the two multiples beside its value, or its value (zero-restricted rounding).
        k: no such table was found, and cells are less than k bases away. The bound is for those.
    report
        The audit: whether rounding protects the sensitive cells. It may well not.
    """

    base: Fraction
    steps: int
    report: RoundingReport


@within_floats()
def round_table(
    instance: Instance,
    base: Any,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: ProgressCallback | None = None,
) -> Rounding:
    """Round a table to multiples of a base so that it still adds up, as near to the original as can be.

    Each published cell goes to one of the two multiples beside its value, and stays where it is one. If no
    such table adds up, multiples farther away are allowed, step by step; zeros stay zero all the same. Cells
    hidden beforehand and virtual ones take any multiple, cost nothing, and aren't published. A cell that must
    be shown is shown rounded.

    Parameters
    ----------
    base
        A positive decimal number, as a number or as text.
    time_limit
        Seconds. None: a limit of work, the same on every machine.
    threads, seed
        The result depends on nothing else.
    progress
        Called with :class:`Progress`.

    Raises
    ------
    InfeasibleError
        No multiples add up; names cells and relations.
    UndecidedError
        Within the limit no table was found, nor was it proven that there is none; or numbers of too different
        size meet in it.
    InputError
        An argument is wrong.

    References
    ----------
    L. H. Cox, A constructive procedure for unbiased controlled rounding, Journal of the American Statistical
    Association 82 (1987), 520-524. J.-J. Salazar-González, Controlled rounding and cell perturbation,
    Mathematical Programming 105 (2006), 583-603.
    """
    began = time.perf_counter()
    threads, seed = check_arguments(instance, time_limit, threads, seed, progress)
    multiple = as_unit(base, "base")
    search = _Search(instance, multiple, Clock(time_limit), threads, seed)
    steps, values, bound = search.run()
    value = exact(instance.value, instance.decimals)
    weight = np.where(published(instance), instance.weight, 0.0)
    cost = float(np.sort(weight * np.abs(values - value).astype(np.float64)).sum())
    if progress is not None:
        progress(Progress("rounded", min(bound, cost), cost, time.perf_counter() - began))
    report = _audit(instance, values, multiple * steps)
    fields = described(instance, values, cost, bound, time.perf_counter() - began)
    return Rounding(**fields, base=multiple, steps=steps, report=report)


class _Search:
    """Multiples f + t of the base, f the one below the value: t = beside + above − below."""

    def __init__(self, instance: Instance, base: Fraction, clock: Clock, threads: int, seed: int) -> None:
        self._instance, self._base, self._clock = instance, base, clock
        self._threads, self._seed = threads, seed
        self._relations = Relations.of(instance)
        quotient = exact(instance.value, instance.decimals) / base
        self._floor = rounded(quotient, up=False)
        rest = (quotient - self._floor).astype(np.float64)
        shown = published(instance)
        self._shown, self._zero = shown, shown & (instance.value == 0)
        self._between = rest > 0
        lowest = rounded(exact(instance.lower_bound) / base, up=False)
        highest = rounded(exact(instance.upper_bound) / base, up=True)
        self._down = (self._floor - lowest).astype(np.float64)
        self._up = (highest - self._floor).astype(np.float64) - self._between
        self._weight = np.where(shown, instance.weight, 0.0) * float(base)
        positive = self._weight[self._weight > 0]
        self._norm = float(np.median(positive)) if len(positive) else 1.0
        self._rest = rest
        wanted = exact(instance.rhs) * self._relations.factor / base - self._relations.sums(self._floor)
        self._wanted = wanted

    def run(self) -> tuple[int, WholeArray, float]:
        """Steps, exact values, and a bound on their cost."""
        self._check_divisible()
        if not self._instance.n:
            return 1, exact(self._instance.value), 0.0
        undecided, steps = False, 1
        while steps <= _WIDEST:
            result = self._solve(steps)
            if len(result.primal):
                n = self._instance.n
                beside, above, below = (np.rint(x).astype(np.int64) for x in result.primal.reshape(3, n))
                multiples = self._floor + (beside + above - below).astype(object)
                if (self._relations.sums(multiples - self._floor) != self._wanted).any():
                    raise InternalError("a rounded table does not add up")
                least = float((self._weight * self._rest).sum()) + result.bound * self._norm
                return steps, multiples * self._base, least
            undecided |= result.status == "limit"
            if undecided and self._clock.out:
                break
            steps = steps + 1 if steps < _SLOWLY else 2 * steps
        if undecided:
            raise UndecidedError("no rounded table was found within the limit. Give more time.")
        every = np.arange(self._instance.m)
        tied = fewest(every, lambda some: self._solve(_WIDEST, some).status in ("infeasible", "unbounded"))
        raise self._infeasible(tied)

    def _solve(self, steps: int, relations: IntArray | None = None) -> LpResult:
        """The program in which cells are less than so many bases away; of some relations, free of cost."""
        n, far = self._instance.n, np.where(self._shown, steps - 1.0, _FAR)
        far[self._zero] = 0.0
        cost = self._weight / self._norm * (relations is None)
        tied = np.arange(self._instance.m) if relations is None else relations
        matrix = sparse.csr_array(
            (self._relations.coefs.astype(np.float64), self._instance.indices, self._instance.indptr),
            shape=(self._instance.m, n),
        )[tied]
        both = sparse.csr_array(sparse.hstack([matrix, matrix, -matrix], format="csr"))
        sides = self._wanted[tied].astype(np.float64)
        program = LinearProgram(
            np.concatenate([cost * (1 - 2 * self._rest), cost, cost]),
            np.zeros(3 * n),
            np.concatenate(
                [self._between.astype(np.float64), np.minimum(far, self._up), np.minimum(far, self._down)]
            ),
            both.indptr,
            both.indices,
            both.data,
            sides,
            sides,
            integral=np.ones(3 * n, dtype=np.bool_),
            presolve=True,
            threads=self._threads,
            seed=self._seed,
        )
        nodes = None if self._clock.limited else max(_NODES // (3 * n + len(tied)), _FEWEST)
        # A part of the time is kept for tables farther away, which are found sooner.
        return program.solve(seconds=self._clock.part(_SHARES[steps > 1]).seconds_left, nodes=nodes, gap=0.0)

    def _check_divisible(self) -> None:
        """A relation whose right-hand side no multiples add up to."""
        coefs, starts = self._relations.coefs, self._instance.indptr
        filled = np.flatnonzero(np.diff(starts) > 0)
        divisor = np.ones(self._instance.m, dtype=object)
        if len(filled):
            divisor[filled] = np.gcd.reduceat(coefs, starts[filled])
        missed = [x % d if d else x for x, d in zip(self._wanted.tolist(), divisor.tolist(), strict=True)]
        wrong = np.flatnonzero(np.array(missed, dtype=object) != 0)
        if len(wrong):
            raise self._infeasible(wrong[:1])

    def _infeasible(self, relations: IntArray) -> InfeasibleError:
        parts = [
            self._instance.indices[self._instance.indptr[r] : self._instance.indptr[r + 1]] for r in relations
        ]
        cells = np.unique(np.concatenate(parts)) if len(parts) else np.empty(0, dtype=np.int64)
        told = named(self._instance, cells, relations, ~self._zero)
        return InfeasibleError((), "Take another base.", what=_WHAT, conflict=told)


def _audit(instance: Instance, values: WholeArray, reach: Fraction) -> RoundingReport:
    """What follows from every published cell being less than `reach` away from its true value."""
    unit = finest(exact(instance.value, instance.decimals))
    shown = published(instance)
    # The nearest multiples of the last decimal that are not that far away.
    low = (rounded((values - reach) / unit, up=False) + 1) * unit
    high = (rounded((values + reach) / unit, up=True) - 1) * unit
    lower = np.where(shown, np.maximum(instance.lower_bound, low.astype(np.float64)), instance.lower_bound)
    upper = np.where(shown, np.minimum(instance.upper_bound, high.astype(np.float64)), instance.upper_bound)
    known = instance.replace(
        lower_bound=np.minimum(lower, instance.value), upper_bound=np.maximum(upper, instance.value)
    )
    # Readers know which cells are empty.
    hidden = ~((instance.status == Status.SHOWN) & (instance.value == 0))
    return RoundingReport(target_intervals(known, hidden), find_exposures(known, hidden))
