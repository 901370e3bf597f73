"""What may leave the house: a perturbed table without its original, and hidden cells as intervals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from solver.arguments import as_number, pattern, require, told, whole
from solver.audit import AuditReport, audit
from solver.discreet import Discreet
from solver.errors import InputError, NumericalError, UndecidedError
from solver.grid import WholeArray, exact, finest, published, written
from solver.instance import BoolArray, FloatArray, Instance, Status

#: An end this near (relative) to a step of the unit is that step: more digits are the simplex's rounding.
_ROUNDING = 1e-9
#: Relative to a distance, what rounding leaves of a gap.
CLOSED = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Perturbed(Discreet):
    """A table with other values than the original, and what is proven about it.

    Attributes
    ----------
    value : float64[n]
        The new values, those of cells that aren't published among them.
    decimals
        The same as exact decimal texts.
    published : bool[n]
        All but virtual cells and those hidden beforehand.
    cost
        Σ weight · |new − old| over the published cells.
    lower_bound
        No table of this kind is closer.
    gap
        (cost − lower_bound) / cost, 0 when the cost is 0.
    status
        "optimal" when the gap is closed, else "feasible".
    seconds
        What it took.
    """

    instance: Instance = field(repr=False)
    value: FloatArray
    decimals: tuple[str, ...]
    published: BoolArray
    cost: float
    lower_bound: float
    gap: float
    status: Literal["optimal", "feasible"]
    seconds: float

    def __post_init__(self) -> None:
        for key in ("value", "published"):
            getattr(self, key).setflags(write=False)

    def table(self) -> Instance:
        """The table as it may leave the house: new values and relations, nothing else of the instance that
        could tell the old ones, since weights, bounds and levels are often computed from them.
        """
        given = self.instance
        table = Instance.from_arrays(
            self.value,
            given.matrix,
            status=np.where(self.published, Status.SHOWN, given.status),
            rhs=given.rhs,
            names=given.names,
            tolerance=given.tolerance,
        )
        return table.replace(decimals=self.decimals)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Cell and new value of the published cells, for a data frame of any library."""
        shown = np.flatnonzero(self.published)
        names = np.array([self.instance.name(cell) for cell in shown.tolist()], dtype=object)
        return {"cell": names, "value": self.value[shown]}


def described(
    instance: Instance, values: WholeArray, cost: float, bound: float, seconds: float
) -> dict[str, Any]:
    """The fields of a perturbed table of these exact values (fractions, [n])."""
    # What is missing then is rounding.
    bound = cost if bound >= cost * (1 - CLOSED) else max(bound, 0.0)
    return {
        "instance": instance,
        "value": np.array([float(value) for value in values.tolist()]),
        "decimals": tuple(written(Fraction(value)) for value in values.tolist()),
        "published": published(instance),
        "cost": cost,
        "lower_bound": bound,
        "gap": (cost - bound) / cost if cost > 0 else 0.0,
        "status": "optimal" if bound == cost else "feasible",
        "seconds": seconds,
    }


@contextmanager
def within_floats() -> Iterator[None]:
    """Where floating point gives up, whoever asked is told so.

    Raises
    ------
    UndecidedError
        It gave up.
    """
    try:
        yield
    except NumericalError:
        raise UndecidedError(
            "numbers of too different size meet in the table: nothing can be told of it. "
            "Leave out cells and levels that are less than a part in 10^15 of others, or raise them."
        ) from None


def check_arguments(
    instance: Any, time_limit: Any, threads: Any, seed: Any, progress: Any
) -> tuple[int, int]:
    """Arguments of a search for a perturbed table; gives threads and seed.

    Raises
    ------
    InputError
        One is wrong.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    if time_limit is not None:
        as_number(time_limit, "time_limit", 0.0, "Give 0 or more, or leave it out.")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {told(progress)}.", "Give a function, or leave it out.")
    return whole(threads, "threads", 1), whole(seed, "seed", 0)


@dataclass(frozen=True, eq=False, repr=False)
class IntervalTable(Discreet):
    """A table whose hidden cells are given as intervals.

    Attributes
    ----------
    cells
        Names of the cells that are published.
    value : float64[k]
        Their values, nan where hidden.
    lower, upper : float64[k]
        Between which a hidden value lies, rounded outwards to ``unit``; nan where shown, ±inf where nothing
        limits it.
    unit
        Of the ends.
    report
        The audit that they come from.
    """

    cells: tuple[str, ...]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    unit: Fraction
    report: AuditReport

    def columns(self) -> dict[str, NDArray[Any]]:
        """Cell, value, lower and upper, for a data frame of any library."""
        names = np.array(self.cells, dtype=object)
        return {"cell": names, "value": self.value, "lower": self.lower, "upper": self.upper}


def publish_intervals(instance: Instance, hidden: BoolArray) -> IntervalTable:
    """The intervals that readers can work out for the hidden cells of a safe pattern (bool[n]).

    Who publishes them tells nothing new and spares readers the linear programs. Virtual cells are left out,
    as they are no part of the publication. The ends are rounded outwards to the last decimal that the table
    is written with.

    Raises
    ------
    InputError
        The pattern has another shape than the instance, or isn't safe: then the intervals would say how much
        is given away.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    hidden = pattern(hidden, "a pattern", instance.n)
    report = audit(instance, hidden)
    if not report.ok:
        more = f" (and {len(report.exposures) - 1} more)" if len(report.exposures) > 1 else ""
        name = report.exposures[0].name if report.exposures else None
        raise InputError(f"the pattern exposes it{more}.", "Publish intervals of a safe pattern.", cell=name)
    unit = finest(exact(instance.value, instance.decimals))
    low, high = np.full(instance.n, np.nan), np.full(instance.n, np.nan)
    low[report.cells] = _outwards(report.lower, unit, np.floor)
    high[report.cells] = _outwards(report.upper, unit, np.ceil)
    shown = np.flatnonzero(instance.status != Status.VIRTUAL)
    return IntervalTable(
        cells=tuple(instance.name(cell) for cell in shown.tolist()),
        value=np.where(hidden, np.nan, instance.value)[shown],
        lower=low[shown],
        upper=high[shown],
        unit=unit,
        report=report,
    )


def _outwards(ends: FloatArray, unit: Fraction, rounded: Any) -> FloatArray:
    """Ends rounded to multiples of a unit, the way the function goes."""
    steps = ends * float(1 / unit)
    finite = np.isfinite(steps)
    some = steps[finite]
    near = np.rint(some)
    steps[finite] = np.where(
        np.abs(some - near) <= _ROUNDING * np.maximum(np.abs(some), 1.0), near, rounded(some)
    )
    return np.asarray(steps / float(1 / unit))
