"""Audit a pattern: what can each attacker find out about each hidden cell?

Shares nothing with the search but the LP layer. Feasibility intervals of *all* hidden cells, the
levels of every attacker, and for each exposure the relation multipliers that prove it in exact
arithmetic: anyone can add up those equations and see.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from solver.errors import InputError, InternalError
from solver.instance import BoolArray, FloatArray, Instance, IntArray
from solver.lp import LinearProgram
from solver.rational import proven_limit, rational_multipliers

# Nearer to a level than this (relative) the float verdict is checked in exact arithmetic.
_DOUBT = 1e-5
# Levels themselves are doubles, often computed as a percentage: what misses one by less than this
# (relative) in exact arithmetic meets it.
_EXACT = Fraction(1, 10**9)
_STILL = 1e-9
OUTSIDER = "outsider"


@dataclass(frozen=True, eq=False)
class Exposure:
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


@dataclass(frozen=True, eq=False)
class AuditReport:
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


def audit(instance: Instance, hidden: BoolArray, *, threads: int = 1) -> AuditReport:
    """Feasibility intervals, slacks and exposures of a pattern (bool[n]).

    Raises
    ------
    InputError
        The pattern has another shape than the instance.
    """
    hidden = np.asarray(hidden, dtype=np.bool_)
    if hidden.shape != (instance.n,):
        raise InputError(f"a pattern of shape {hidden.shape} does not fit {instance.n} cells.")
    cells = np.flatnonzero(hidden)
    intervals = _Intervals(instance, hidden)
    numbers = range(len(intervals.parts))
    if threads > 1 and len(numbers) > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(intervals.fill, numbers))
    else:
        for number in numbers:
            intervals.fill(number)
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


def exposures_among(instance: Instance, hidden: BoolArray, cells: IntArray) -> tuple[Exposure, ...]:
    """Exposures of a few cells only, to whichever attacker (for explanations)."""
    intervals = _Intervals(instance, hidden)
    found = []
    for cell in np.unique(cells).tolist():
        levels = (float(instance.lpl[cell]), float(instance.upl[cell]), float(instance.spl[cell]))
        found.append(_judge(instance, hidden, intervals, cell, OUTSIDER, None, levels))
        for insider in instance.insiders:
            for k in np.flatnonzero(insider.targets == cell).tolist():
                levels = (float(insider.lpl[k]), float(insider.upl[k]), float(insider.spl[k]))
                found.append(_judge(instance, hidden, intervals, cell, insider.name, insider.known, levels))
    return tuple(exposure for exposure in found if exposure is not None)


def _components(instance: Instance, cells: IntArray) -> list[IntArray]:
    """The hidden cells, split where no relation links them."""
    part = instance.matrix[:, cells]
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    size = len(cells) + part.shape[0]
    links = sparse.csr_array((np.ones(len(rows)), (part.indices, len(cells) + rows)), shape=(size, size))
    _, label = csgraph.connected_components(links, directed=False)
    order = np.argsort(label[: len(cells)], kind="stable")
    cuts = np.flatnonzero(np.diff(label[: len(cells)][order])) + 1
    return [np.sort(cells[piece]) for piece in np.split(order, cuts) if len(piece)]


class _Intervals:
    """How far each hidden cell can move, and for the insiders' sake the movements met."""

    def __init__(self, instance: Instance, hidden: BoolArray) -> None:
        self._instance, self._hidden = instance, hidden
        self.up, self.down = np.zeros(instance.n), np.zeros(instance.n)
        self.complete = True
        self.claims = _Claims(instance)
        self.parts = _components(instance, np.flatnonzero(hidden))
        self._matrix = sparse.csc_array(instance.matrix)
        self._part_of = np.full(instance.n, -1, dtype=np.int64)
        for number, part in enumerate(self.parts):
            self._part_of[part] = number
        self._attacks: dict[int, _Attack] = {}

    def _attack(self, number: int) -> _Attack:
        if number not in self._attacks:
            self._attacks[number] = _Attack(self._instance, self._matrix, self.parts[number])
        return self._attacks[number]

    def fill(self, number: int) -> None:
        """Compute the intervals of one component."""
        cells = self.parts[number]
        try:
            program = self._attack(number)
            for side, reach in ((1, self.up), (-1, self.down)):
                limit = program.room(side)
                settled = limit <= 0
                for k in range(len(cells)):
                    if settled[k]:
                        continue
                    value, move = program.push(k, side)
                    reach[cells[k]] = value
                    settled[k] = True
                    if move is None:
                        continue
                    self.claims.credit(cells, move)
                    touched = ~settled & (side * move >= limit * (1 - 1e-10)) & np.isfinite(limit)
                    reach[cells[touched]] = limit[touched]
                    settled |= touched
        except InternalError:
            self.complete = False

    def multipliers(
        self, cell: int, direction: int, known: IntArray | None = None
    ) -> tuple[float, FloatArray]:
        """How far a cell moves for an attacker, and the multipliers that limit it."""
        number = int(self._part_of[cell])
        if number < 0 or (known is not None and cell in known):
            return 0.0, np.zeros(self._instance.m)
        part, attack = self.parts[number], self._attack(number)
        empty = np.empty(0, dtype=np.int64)
        mine = empty if known is None else known[self._part_of[known] == number]
        attack.hold(np.searchsorted(part, mine))
        found = attack.limit(int(np.searchsorted(part, cell)), direction)
        attack.hold(empty)
        return found


class _Attack:
    """Movements of some cells as a warm linear program.

    Its unit is near the smallest level; if rooms are then too large for double precision, which
    shows as a problem without solution (standing still always is one), it is made coarser.
    """

    def __init__(self, instance: Instance, matrix: sparse.csc_array, cells: IntArray) -> None:
        self._hi = instance.upper_bound[cells] - instance.value[cells]
        self._lo = instance.value[cells] - instance.lower_bound[cells]
        part = sparse.csr_array(matrix[:, cells])
        self._rows = np.flatnonzero(np.diff(part.indptr))
        self._m, self._part = part.shape[0], part[self._rows]
        rooms = np.concatenate([self._hi, self._lo])
        rooms = rooms[(rooms > 0) & np.isfinite(rooms)]
        levels = np.concatenate([instance.lpl[cells], instance.upl[cells], instance.spl[cells]])
        levels = levels[levels > 0]
        typical = np.median(rooms) if len(rooms) else 1.0
        # Below a billionth of the largest room lies only rounding.
        finest = max(min(levels.min(initial=np.inf), typical), rooms.max(initial=0.0) * 1e-9)
        self._units = [float(2.0 ** np.floor(np.log2(finest * factor))) for factor in (1.0, 1e3, 1e6)]
        self._held = np.empty(0, dtype=np.int64)
        self._build()

    def hold(self, positions: IntArray) -> None:
        """Let these cells (int64[k]) stand still, and only these."""
        before, self._held = self._held, positions
        self._program.set_bounds(before, -self._lo[before] / self._unit, self._hi[before] / self._unit)
        zeros = np.zeros(len(positions))
        self._program.set_bounds(positions, zeros, zeros)

    def _build(self) -> None:
        self._unit = self._units.pop(0)
        zeros = np.zeros(len(self._rows))
        self._program = LinearProgram(
            np.zeros(len(self._hi)),
            -self._lo / self._unit,
            self._hi / self._unit,
            self._part.indptr,
            self._part.indices,
            self._part.data,
            zeros,
            zeros,
            primal_simplex=True,
        )
        self.hold(self._held)

    def room(self, side: int) -> FloatArray:
        """What the external bounds leave (float64[cells])."""
        return self._hi if side == 1 else self._lo

    def push(self, k: int, side: int) -> tuple[float, FloatArray | None]:
        """The farthest movement of a cell, and the whole movement unless unbounded."""
        result = self._solve(k, side)
        if result is None:
            return np.inf, None
        move = result[0] * self._unit
        return max(float(side * move[k]), 0.0), move

    def limit(self, k: int, side: int) -> tuple[float, FloatArray]:
        """The farthest movement, and the relation multipliers that prove it."""
        result = self._solve(k, side)
        gamma = np.zeros(self._m)
        if result is None:
            return np.inf, gamma
        gamma[self._rows] = -result[1]
        return max(float(side * result[0][k]) * self._unit, 0.0), gamma

    def _solve(self, k: int, side: int) -> tuple[FloatArray, FloatArray] | None:
        target = np.array([k])
        while True:
            try:
                self._program.set_costs(target, np.array([-float(side)]))
                result = self._program.solve()
                self._program.set_costs(target, np.zeros(1))
                if result.status == "unbounded" and not self._bounded(k, side):
                    return None
                if result.status == "optimal":
                    return result.primal, result.row_duals
            except InternalError:
                if not self._units:
                    raise
            if not self._units:
                raise InternalError(f"an interval problem ended {result.status}")
            self._build()

    def _bounded(self, k: int, side: int) -> bool:
        """Does the cell's own bound limit it?"""
        return bool(np.isfinite(self.room(side)[k]))


class _Claims:
    """Insiders' targets, and how far movements met so far take them."""

    def __init__(self, instance: Instance) -> None:
        who = [np.full(len(insider.targets), k) for k, insider in enumerate(instance.insiders)]
        empty = np.empty(0, dtype=np.int64)
        self.who = np.concatenate([empty, *who]).astype(np.int64)
        self.cell = np.concatenate([empty, *(insider.targets for insider in instance.insiders)])
        self.lpl, self.upl, self.spl = (
            np.concatenate([np.empty(0), *(getattr(insider, key) for insider in instance.insiders)])
            for key in ("lpl", "upl", "spl")
        )
        self.up, self.down = np.zeros(len(self.who)), np.zeros(len(self.who))
        self._n = instance.n
        known = [instance.insiders[k].known for k in self.who]
        indptr = np.concatenate([[0], np.cumsum([len(cells) for cells in known])]).astype(np.int64)
        indices = np.concatenate([empty, *known])
        self._known = sparse.csr_array(
            (np.ones(len(indices)), indices, indptr), shape=(len(self.who), instance.n)
        )

    def credit(self, cells: IntArray, move: FloatArray) -> None:
        """A movement helps those whose known cells stay still."""
        if not len(self.who):
            return
        whole = np.zeros(self._n)
        whole[cells] = move
        moved = np.where(self._known @ np.abs(whole) > _STILL, 0.0, whole[self.cell])
        np.maximum(self.up, moved, out=self.up)
        np.maximum(self.down, -moved, out=self.down)

    def met(self, k: int) -> bool:
        """Are all levels of a claim reached beyond doubt?"""
        wide = self.up[k] + self.down[k] >= self.spl[k]
        return bool(self.up[k] >= self.upl[k] and self.down[k] >= self.lpl[k] and wide)


def _shown(instance: Instance, hidden: BoolArray) -> list[Exposure]:
    """Cells that must be hidden and are not."""
    exposures = []
    for cell in np.flatnonzero(instance.always_hidden & ~hidden).tolist():
        value = float(instance.value[cell])
        required = (value - instance.lpl[cell], value + instance.upl[cell], float(instance.spl[cell]))
        exposures.append(Exposure(cell, instance.name(cell), OUTSIDER, (value, value), required, ({}, {})))
    return exposures


def _outsider(instance: Instance, hidden: BoolArray, intervals: _Intervals) -> list[Exposure]:
    exposures = []
    own = instance.protected
    own = own[hidden[own]]
    safe = (
        (intervals.up[own] >= instance.upl[own] * (1 + _DOUBT))
        & (intervals.down[own] >= instance.lpl[own] * (1 + _DOUBT))
        & (intervals.up[own] + intervals.down[own] >= instance.spl[own] * (1 + _DOUBT))
    )
    for cell in own[~safe].tolist():
        levels = (float(instance.lpl[cell]), float(instance.upl[cell]), float(instance.spl[cell]))
        exposure = _judge(instance, hidden, intervals, cell, OUTSIDER, None, levels)
        if exposure is not None:
            exposures.append(exposure)
    return exposures


def _insiders(instance: Instance, hidden: BoolArray, intervals: _Intervals) -> list[Exposure]:
    exposures = []
    claims = intervals.claims
    for k in range(len(claims.who)):
        cell = int(claims.cell[k])
        if claims.met(k) or not hidden[cell]:
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
    intervals: _Intervals,
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
        multipliers = rational_multipliers(gamma)
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
