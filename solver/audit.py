"""Audit a pattern: what can each attacker find out about each hidden cell?

Shares nothing with the search but the LP layer. Feasibility intervals of *all* hidden cells, the
levels of every attacker, and for each exposure the relation multipliers that prove it in exact
arithmetic: anyone can add up those equations and see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from solver.arguments import pattern, require
from solver.clock import Clock
from solver.discreet import Discreet
from solver.errors import NumericalError
from solver.instance import BoolArray, FloatArray, Instance, IntArray
from solver.intervals import Intervals
from solver.rational import proven_limit, rational_multipliers

# A movement that was checked meets a level up to its own rounding; what floats say is up to this
# (relative) below the level is decided in exact arithmetic.
_MET, _DOUBT = 1 - 1e-9, 1e-5
# Levels themselves are doubles, often computed as a percentage: what misses one by less than this
# (relative) in exact arithmetic meets it.
_EXACT = Fraction(1, 10**9)
OUTSIDER = "outsider"


@dataclass(frozen=True, eq=False, repr=False)
class Exposure(Discreet):
    """A requirement that the pattern fails.

    Attributes
    ----------
    cell, name
        The cell.
    attacker
        "outsider" or the insider's name.
    interval
        What the attacker knows of the value.
    required
        Lowest value, highest value that must stay possible, and the width.
    certificate
        Relation number → multiplier for the lower and the upper end: adding up the equations so
        multiplied bounds the cell. Empty if the cell is simply shown.
    """

    cell: int
    name: str
    attacker: str
    interval: tuple[float, float]
    required: tuple[float, float, float]
    certificate: tuple[Mapping[int, float], Mapping[int, float]]


@dataclass(frozen=True, eq=False, repr=False)
class InsiderInterval(Discreet):
    """What an attacker, most often an insider, knows of a cell that is to be protected against it.

    Attributes
    ----------
    cell, attacker
        The cell, and "outsider" or the insider's name.
    interval
        Lowest and highest value that are possible for it.
    required
        Lowest value, highest value that must stay possible, and the width.
    """

    cell: int
    attacker: str
    interval: tuple[float, float]
    required: tuple[float, float, float]


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(Discreet):
    """What every attacker can find out.

    Attributes
    ----------
    cells : int64[k]
        The hidden cells.
    lower, upper : float64[k]
        The outsider's feasibility interval, as values (±inf: unbounded).
    slack : float64[k]
        How far the interval reaches beyond the outsider's requirement; negative: exposed;
        inf: no requirement.
    exposures
        Requirements failed, of outsider and insiders.
    complete
        Every interval was computed. A report that is not complete is a failed audit.
    """

    cells: IntArray
    lower: FloatArray
    upper: FloatArray
    slack: FloatArray
    exposures: tuple[Exposure, ...]
    complete: bool

    @property
    def ok(self) -> bool:
        """Nothing is exposed, and nothing was left unchecked."""
        return self.complete and not self.exposures


def audit(instance: Instance, hidden: BoolArray) -> AuditReport:
    """Feasibility intervals, slacks and exposures of a pattern (bool[n]).

    Raises
    ------
    InputError
        The pattern has another shape than the instance.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    hidden = pattern(hidden, "a pattern", instance.n)
    cells = np.flatnonzero(hidden)
    intervals = Intervals(instance, hidden, Clock())
    for number in range(intervals.components):
        intervals.compute(number)
    reach = np.stack([intervals.down, intervals.up])
    exposures = _shown(instance, hidden) + _outsider(instance, hidden, intervals)
    exposures += _insiders(instance, hidden, intervals)
    slack = np.full(instance.n, np.inf)
    own = instance.protected
    margins = np.stack(
        [
            np.where(instance.lpl[own] > 0, reach[0, own] - instance.lpl[own], np.inf),
            np.where(instance.upl[own] > 0, reach[1, own] - instance.upl[own], np.inf),
            np.where(instance.spl[own] > 0, reach[0, own] + reach[1, own] - instance.spl[own], np.inf),
        ]
    )
    slack[own] = margins.min(axis=0)
    exposed = np.array([e.cell for e in exposures if e.attacker == OUTSIDER], dtype=np.int64)
    slack[exposed] = np.minimum(slack[exposed], -np.finfo(np.float64).tiny)
    settled = np.setdiff1d(np.flatnonzero(np.isfinite(slack) & (slack < 0)), exposed)
    # Exact arithmetic found these safe: the shortfall was rounding.
    slack[settled] = 0.0
    return AuditReport(
        cells=cells,
        lower=instance.value[cells] - reach[0, cells],
        upper=instance.value[cells] + reach[1, cells],
        slack=slack[cells],
        exposures=tuple(sorted(exposures, key=lambda e: (e.cell, e.attacker))),
        complete=intervals.complete,
    )


def insider_intervals(instance: Instance, hidden: BoolArray) -> tuple[InsiderInterval, ...]:
    """What each insider can find out about each of its targets, exposed or not.

    Raises
    ------
    InputError
        The pattern has another shape than the instance.
    NumericalError
        A linear program could not be solved.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    hidden = pattern(hidden, "a pattern", instance.n)
    intervals = Intervals(instance, hidden, Clock())
    return _known_to_insiders(instance, hidden, intervals)


def target_intervals(instance: Instance, hidden: BoolArray) -> tuple[InsiderInterval, ...]:
    """What the outsider can find out about each cell to protect, then each insider about its targets."""
    intervals = Intervals(instance, hidden, Clock())
    own = instance.protected
    levels = (instance.lpl[own], instance.upl[own], instance.spl[own])
    found = _known_to(instance, hidden, intervals, OUTSIDER, None, own, levels)
    return found + _known_to_insiders(instance, hidden, intervals)


def _known_to_insiders(
    instance: Instance, hidden: BoolArray, intervals: Intervals
) -> tuple[InsiderInterval, ...]:
    found: tuple[InsiderInterval, ...] = ()
    for insider in instance.insiders:
        levels = (insider.lpl, insider.upl, insider.spl)
        found += _known_to(instance, hidden, intervals, insider.name, insider.known, insider.targets, levels)
    return found


def _known_to(
    instance: Instance,
    hidden: BoolArray,
    intervals: Intervals,
    attacker: str,
    known: IntArray | None,
    targets: IntArray,
    levels: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[InsiderInterval, ...]:
    """What an attacker who knows some cells can find out about others (int64[t], levels float64[t])."""
    found = []
    for cell, lower, upper, sliding in zip(targets.tolist(), *levels, strict=True):
        value = float(instance.value[cell])
        down, up = (intervals.multipliers(cell, side, known)[0] if hidden[cell] else 0.0 for side in (-1, 1))
        required = (value - float(lower), value + float(upper), float(sliding))
        found.append(InsiderInterval(cell, attacker, (value - down, value + up), required))
    return tuple(found)


def find_exposures(
    instance: Instance,
    hidden: BoolArray,
    moves: sparse.csr_array | None = None,
    clock: Clock | None = None,
) -> tuple[Exposure, ...]:
    """The audit without its intervals: only what a pattern (bool[n]) exposes.

    Parameters
    ----------
    moves : csr (k × n), optional
        Movements of the cells that may prove something. Each is checked on the relations and bounds
        of the instance; what none of them proves is sought anew.
    clock
        How long; default, as long as it takes.

    Raises
    ------
    NumericalError
        A linear program could not be solved.
    OutOfTimeError
        The clock's seconds are over.
    """
    intervals = Intervals(instance, hidden, clock or Clock())
    if moves is not None and moves.shape[0]:
        intervals.credit(moves)
    own = instance.protected
    own = own[hidden[own]]
    for cell in own[~_reached(instance, intervals, own)].tolist():
        # The search for others before it may have answered.
        if not _reached(instance, intervals, np.array([cell]))[0]:
            intervals.seek(cell)
    exposures = _shown(instance, hidden) + _outsider(instance, hidden, intervals)
    exposures += _insiders(instance, hidden, intervals)
    if not intervals.complete:
        raise NumericalError("the audit of the pattern found could not be finished")
    return tuple(sorted(exposures, key=lambda e: (e.cell, e.attacker)))


def exposures_among(instance: Instance, hidden: BoolArray, cells: IntArray) -> tuple[Exposure, ...]:
    """Exposures of a few cells only, to whichever attacker (for explanations)."""
    intervals = Intervals(instance, hidden, Clock())
    found, protected = [], set(instance.protected.tolist())
    for cell in np.unique(cells).tolist():
        if cell in protected:
            levels = (float(instance.lpl[cell]), float(instance.upl[cell]), float(instance.spl[cell]))
            found.append(_judge(instance, hidden, intervals, cell, OUTSIDER, None, levels))
        for insider in instance.insiders:
            for k in np.flatnonzero(insider.targets == cell).tolist():
                levels = (float(insider.lpl[k]), float(insider.upl[k]), float(insider.spl[k]))
                found.append(_judge(instance, hidden, intervals, cell, insider.name, insider.known, levels))
    return tuple(exposure for exposure in found if exposure is not None)


def _shown(instance: Instance, hidden: BoolArray) -> list[Exposure]:
    """Cells that must be hidden and are not."""
    exposures = []
    for cell in np.flatnonzero(instance.always_hidden & ~hidden).tolist():
        value = float(instance.value[cell])
        required = (value - instance.lpl[cell], value + instance.upl[cell], float(instance.spl[cell]))
        exposures.append(Exposure(cell, instance.name(cell), OUTSIDER, (value, value), required, ({}, {})))
    return exposures


def _outsider(instance: Instance, hidden: BoolArray, intervals: Intervals) -> list[Exposure]:
    exposures = []
    own = instance.protected
    own = own[hidden[own]]
    safe = _reached(instance, intervals, own)
    for cell in own[~safe].tolist():
        levels = (float(instance.lpl[cell]), float(instance.upl[cell]), float(instance.spl[cell]))
        exposure = _judge(instance, hidden, intervals, cell, OUTSIDER, None, levels)
        if exposure is not None:
            exposures.append(exposure)
    return exposures


def _reached(instance: Instance, intervals: Intervals, cells: IntArray) -> BoolArray:
    """Cells that move as far as their levels ask."""
    up, down = intervals.up[cells], intervals.down[cells]
    return np.asarray(
        (up >= instance.upl[cells] * _MET)
        & (down >= instance.lpl[cells] * _MET)
        & (up + down >= instance.spl[cells] * _MET)
    )


def _insiders(instance: Instance, hidden: BoolArray, intervals: Intervals) -> list[Exposure]:
    exposures = []
    claims = intervals.claims
    for k in range(len(claims.who)):
        cell = int(claims.cell[k])
        if not hidden[cell] or claims.met(k):
            continue
        intervals.try_claim(k)
        if claims.met(k):
            continue
        insider = instance.insiders[int(claims.who[k])]
        levels = (float(claims.lpl[k]), float(claims.upl[k]), float(claims.spl[k]))
        exposure = _judge(instance, hidden, intervals, cell, insider.name, insider.known, levels)
        if exposure is not None:
            exposures.append(exposure)
    return exposures


def _judge(
    instance: Instance,
    hidden: BoolArray,
    intervals: Intervals,
    cell: int,
    attacker: str,
    known: IntArray | None,
    levels: tuple[float, float, float],
) -> Exposure | None:
    """Decide one cell for one attacker, in exact arithmetic where floats are in doubt."""
    moving = hidden.copy()
    if known is not None:
        moving[known] = False
    reach, proofs, limits = [], [], []
    for direction in (-1, 1):
        distance, gamma = intervals.multipliers(cell, direction, known)
        multipliers = rational_multipliers(gamma, intervals.factor)
        proofs.append({relation: float(number) for relation, number in multipliers.items()})
        limits.append(proven_limit(instance, moving, cell, direction, multipliers))
        reach.append(distance)
    lower, upper, sliding = levels
    needs = ((limits[0], reach[0], lower), (limits[1], reach[1], upper))
    both = None if limits[0] is None or limits[1] is None else limits[0] + limits[1]
    failed = [_fails(*need) for need in (*needs, (both, reach[0] + reach[1], sliding))]
    if not any(failed):
        return None
    value = float(instance.value[cell])
    return Exposure(
        cell,
        instance.name(cell),
        attacker,
        (value - reach[0], value + reach[1]),
        (value - lower, value + upper, sliding),
        (proofs[0], proofs[1]),
    )


def _fails(limit: Fraction | None, reach: float, level: float) -> bool:
    """A level is failed if a limit below it is proven, or floats say so beyond any rounding."""
    if level <= 0:
        return False
    if limit is not None and limit < Fraction(repr(level)) * (1 - _EXACT):
        return True
    return reach < level * (1 - _DOUBT)
