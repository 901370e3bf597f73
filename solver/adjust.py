"""Controlled tabular adjustment: the closest table in which no sensitive cell is near its value."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solver.adjusting import conflict, search
from solver.arguments import listed, require
from solver.audit import Exposure, find_exposures
from solver.clock import Clock
from solver.discreet import Discreet
from solver.errors import InfeasibleError, InputError, InternalError, UnreachableLevelError
from solver.explain import obstacles
from solver.grid import Grid, as_unit, exact, grid_of, levels, needed
from solver.instance import Instance
from solver.publish import Perturbed, check_arguments, described, within_floats
from solver.solution import Progress, ProgressCallback

_WHAT = "no adjusted table is safe"


@dataclass(frozen=True, eq=False, repr=False)
class AdjustmentReport(Discreet):
    """What is wrong with an adjusted table; nothing, if it may be published.

    Attributes
    ----------
    relations
        Relation → by how much the new values miss it, exactly.
    beyond
        Names of cells outside the bounds that readers know.
    near
        Names of cells inside their protection interval.
    changed
        Names of cells that had to keep their value and don't.
    exposures
        What the cells that keep their value tell about others, to the outsider and to insiders.
    """

    relations: Mapping[int, Fraction]
    beyond: tuple[str, ...]
    near: tuple[str, ...]
    changed: tuple[str, ...]
    exposures: tuple[Exposure, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not (self.relations or self.beyond or self.near or self.changed or self.exposures)


@dataclass(frozen=True, eq=False, repr=False)
class Adjustment(Perturbed):
    """An adjusted table: fields of :class:`solver.publish.Perturbed`, and these.

    Attributes
    ----------
    unit
        All changes are multiples of it.
    report
        The audit, always without a fault.
    """

    unit: Fraction
    report: AdjustmentReport


@within_floats()
def adjust(
    instance: Instance,
    *,
    unit: Any = None,
    move_zeros: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: ProgressCallback | None = None,
) -> Adjustment:
    """Change a table as little as possible so that every sensitive cell is away from its value.

    Every cell with protection levels lies at least ``upl`` above or ``lpl`` below its value; a side without a
    level is no way out, and a sliding level that is wider than both widens both. All relations hold exactly,
    and no value leaves the external bounds. Cells that must be shown keep their value, zeros stay zero unless
    ``move_zeros``; all others may change, at their weight for each unit of the measure. Cells hidden
    beforehand and virtual ones take part, cost nothing, and aren't published.

    Parameters
    ----------
    unit
        Changes are multiples of this decimal number (number or text). Default: one unit of the last decimal
        that the table is written with, so that a table of whole numbers stays one.
    time_limit
        Seconds for the proof; a first table is looked for in any case. None: a limit of work, the same on
        every machine.
    threads, seed
        The result depends on nothing else.
    progress
        Called with :class:`Progress`.

    Raises
    ------
    InfeasibleError
        There is no such table; names cells and relations.
    UnreachableLevelError
        Levels ask more than the external bounds allow (``instance.clipped()`` mends that).
    UndecidedError
        Within the limit no table was found, nor was it proven that there is none; or numbers of too different
        size meet in it.
    InputError
        A sensitive cell has no level, or an argument is wrong.

    References
    ----------
    J. Castro, Minimum-distance controlled perturbation methods for large-scale tabular data protection,
    European Journal of Operational Research 171 (2006), 39-52. D. Baena, Protecció de Dades Estadístiques,
    "Mètode CTA", models (3) to (6).
    """
    began = time.perf_counter()
    threads, seed = check_arguments(instance, time_limit, threads, seed, progress)
    require(move_zeros, bool, "move_zeros", "Say True or False.")
    beyond = instance.out_of_reach
    if len(beyond):
        raise UnreachableLevelError(
            obstacles(instance, beyond), "Lower the levels or clip them to the bounds.", what=_WHAT
        )
    grid = grid_of(instance, None if unit is None else as_unit(unit, "unit"), move_zeros=move_zeros)
    found = search(grid, Clock(time_limit), seed, threads, _noting(progress, began))
    if found is None:
        raise _infeasible(grid)
    values = exact(instance.value, instance.decimals) + found.steps * grid.unit
    report = _audit(grid, values)
    if report.exposures:
        raise _exposed(grid, report.exposures)
    if not report.ok:
        raise InternalError("an adjusted table does not pass its audit")
    fields = described(instance, values, grid.cost(found.steps), found.bound, time.perf_counter() - began)
    return Adjustment(**fields, unit=grid.unit, report=report)


@within_floats()
def audit_adjustment(
    instance: Instance, decimals: Sequence[str], *, move_zeros: bool = False
) -> AdjustmentReport:
    """Check an adjusted table, whoever made it, in exact arithmetic.

    Parameters
    ----------
    decimals
        The new value of each cell as a decimal text.
    move_zeros
        Whether zeros may have been changed.

    Raises
    ------
    InputError
        There is not one decimal number for each cell, or a sensitive cell has no level.
    UndecidedError
        Numbers of too different size meet in the table.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    require(move_zeros, bool, "move_zeros", "Say True or False.")
    texts = listed(decimals, "decimals", "texts")
    if len(texts) != instance.n:
        raise InputError(f"decimals has {len(texts)} entries for {instance.n} cells.")
    try:
        values = np.array([Fraction(text) for text in texts] + [None], dtype=object)[:-1]
    except (ValueError, ZeroDivisionError):
        raise InputError("decimals holds what is no number.", "Give decimal numbers as texts.") from None
    return _audit(grid_of(instance, None, move_zeros=move_zeros), values)


def _audit(grid: Grid, values: NDArray[Any]) -> AdjustmentReport:
    """Check values (of any exact numbers) against the instance itself."""
    instance = grid.instance
    moves = values - exact(instance.value, instance.decimals)
    missed = grid.relations.sums(moves)
    beyond = (values < exact(instance.lower_bound)) | (values > exact(instance.upper_bound))
    # By the levels themselves: the table may be counted in finer units than the original's.
    must, lower, upper = levels(instance)
    below, above = needed(lower), needed(upper)
    mine = moves[must]
    near = ((above == 0) | (mine < above)) & ((below == 0) | (mine > -below))
    changed = ~grid.moving & (moves != 0)

    def names(cells: NDArray[Any]) -> tuple[str, ...]:
        return tuple(instance.name(cell) for cell in cells.tolist())

    floats = moves.astype(np.float64)
    known = sparse.csr_array(np.stack([floats, -floats])) if not missed.any() else None
    return AdjustmentReport(
        relations={
            relation: missed[relation] / grid.relations.factor[relation]
            for relation in np.flatnonzero(missed != 0).tolist()
        },
        beyond=names(np.flatnonzero(beyond.astype(np.bool_))),
        near=names(must[near.astype(np.bool_)]),
        changed=names(np.flatnonzero(changed.astype(np.bool_))),
        # Whatever is not known to be as it was could be anything: as in a pattern that hides all of it.
        exposures=find_exposures(instance, grid.moving, known),
    )


def _noting(progress: ProgressCallback | None, began: float) -> Callable[[str, float, float], None]:
    def note(phase: str, lower: float, upper: float) -> None:
        if progress is not None:
            progress(Progress(phase, lower, upper, time.perf_counter() - began))

    return note


def _infeasible(grid: Grid) -> InfeasibleError:
    exposures = find_exposures(grid.instance, grid.moving)
    if exposures:
        return _exposed(grid, exposures)
    return InfeasibleError(
        (),
        "Let more cells change, lower the levels, or give a finer unit.",
        what=_WHAT,
        conflict=conflict(grid),
    )


def _exposed(grid: Grid, exposures: tuple[Exposure, ...]) -> InfeasibleError:
    cells = np.array([exposure.cell for exposure in exposures], dtype=np.int64)
    told = obstacles(grid.instance, cells, hidden=grid.moving)
    return InfeasibleError(told, "Let more cells change, or lower the levels.", what=_WHAT)
