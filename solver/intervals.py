"""How far hidden cells can move: the linear programs behind the audit.

Cells that only move together are one column here, which makes the programs several times smaller;
every movement found is expanded to all cells and checked against all relations and bounds, so the
reduction need not be trusted. Proofs of limits are sought on the unreduced relations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from solver.claims import Claims
from solver.clock import Clock, OutOfTimeError
from solver.columns import evened, heft, linked, take_columns
from solver.entries import row_of
from solver.errors import InternalError
from solver.instance import BoolArray, FloatArray, Instance, IntArray
from solver.lp import LinearProgram
from solver.presolve import merge_cells
from solver.units import units_of

_ROUNDING = 1e-7
# Rounding of a movement relative to its largest amount, amounts beside which that is nothing, and rounding of
# a sum relative to its terms.
_FINEST, _CLEAR, _SUMMED = 1e-12, 1e6, 1e-15
# Part of a movement that may lie beyond a bound for the rest of it to count.
_NEARLY = 1e-5
# How often a movement is refined at most, and how far each time, in units of the smallest level.
_REFINEMENTS, _NEAR = 2, 1e6
_NOTHING = np.empty(0, dtype=np.int64)


class Intervals:
    """How far each hidden cell can move for the outsider, and each insider's target for the insider.

    Out of seconds, whatever solves a program raises OutOfTimeError.

    Attributes
    ----------
    up, down : float64[n]
        Farthest movements; inf where unbounded.
    complete
        Every program was solved and every movement checked.
    claims
        The insiders' targets.
    factor : float64[m]
        What brings each relation's coefficients to a common size.
    """

    def __init__(self, instance: Instance, hidden: BoolArray, clock: Clock) -> None:
        self._instance, self._clock = instance, clock
        self._matrix, self.factor = evened(instance.matrix)
        self._lo = np.where(hidden, instance.value - instance.lower_bound, 0.0)
        self._hi = np.where(hidden, instance.upper_bound - instance.value, 0.0)
        self.up, self.down = np.zeros(instance.n), np.zeros(instance.n)
        self.complete = True
        self.claims = Claims(instance, heft(self._matrix))
        smallest = np.where(instance.lpl > 0, instance.lpl, np.inf)
        for levels in (instance.upl, instance.spl):
            smallest = np.minimum(smallest, np.where(levels > 0, levels, np.inf))
        for levels in (self.claims.lpl, self.claims.upl, self.claims.spl):
            np.minimum.at(smallest, self.claims.cell, np.where(levels > 0, levels, np.inf))
        self._whole: _System | None = None
        self._units: FloatArray = np.ones(0)
        self._plain_levels = smallest

    @cached_property
    def _size(self) -> sparse.csr_array:
        return abs(self._matrix)

    @cached_property
    def _ties(self) -> tuple[sparse.csr_array, IntArray, FloatArray, FloatArray, FloatArray]:
        """Relations and room of the cells that stand for those tied to them; root and ratio of all."""
        return merge_cells(self._matrix, self._lo, self._hi)

    @property
    def _root(self) -> IntArray:
        return self._ties[1]

    @property
    def _ratio(self) -> FloatArray:
        return self._ties[2]

    @cached_property
    def _merged(self) -> _System:
        matrix, root, ratio, lo, hi = self._ties
        level = np.full(self._instance.n, np.inf)
        np.minimum.at(level, root, self._plain_levels / np.abs(ratio))
        return _System(matrix, lo, hi, level, self._clock)

    @cached_property
    def _unit(self) -> float:
        return min(float(self._plain_levels.min(initial=1.0)), 1.0)

    def credit(self, moves: sparse.csr_array) -> None:
        """Note what movements prove that somebody else found, each as far as it goes both ways.

        Parameters
        ----------
        moves : csr (k × n)
            Those that break a relation or a bound are passed over; for outsiders, those that leave a bound
            by a little count as far as it.
        """
        # Products would sort the entries in place, under the arrays made of them here.
        moves = moves.copy()
        moves.sum_duplicates()
        count = moves.shape[0]
        move = row_of(moves.indptr)
        cell, amount = moves.indices, moves.data
        size, unit = np.abs(amount), self._unit
        high = np.where(amount > 0, self._hi[cell], self._lo[cell])
        low = np.where(amount > 0, self._lo[cell], self._hi[cell])
        beyond = np.bincount(move, size > high + _ROUNDING * (size + unit), count) > 0
        transposed = self._matrix.T
        missed = sparse.csr_array(moves @ transposed)
        missed.data = np.abs(missed.data)
        short = np.zeros(count)
        np.maximum.at(short, row_of(missed.indptr), missed.data)
        if (missed.data > _ROUNDING * unit).any():
            missed = missed - _ROUNDING * (abs(moves) @ abs(transposed))
            missed.sum_duplicates()
        row = row_of(missed.indptr)
        # What a relation is missed by beyond its own rounding is that of the movement's largest amounts, or
        # an error; it leaves much larger amounts as they are.
        noise, largest = np.zeros(count), np.zeros(count)
        np.maximum.at(noise, row, np.where(missed.data > _ROUNDING * unit, missed.data, 0.0))
        np.maximum.at(largest, move, size)
        wrong = noise > _FINEST * largest
        clear = size >= _CLEAR * noise[move]
        forth, back = np.full(count, np.inf), np.full(count, np.inf)
        np.minimum.at(forth, move, high / size)
        np.minimum.at(back, move, low / size)
        # The room of a cell may be missed by the rounding of the movement alone.
        fits = np.where(beyond, forth, 1.0)
        wrong |= fits < 1 - _NEARLY
        forth = np.where(wrong, 0.0, np.maximum(forth, fits))[move]
        back = np.where(wrong, 0.0, back)[move]
        # Going on, a movement misses its relations by more: amounts of the size of that stay what they are.
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.maximum(_ROUNDING * unit / short, 1.0)[move]
        small = size < _CLEAR * short[move]
        forth, back = (np.where(small, np.minimum(far, most), far) for far in (forth, back))
        with np.errstate(invalid="ignore"):
            ahead, behind = size * forth, size * back
        up = amount > 0
        for reach, gain in ((self.up, np.where(up, ahead, behind)), (self.down, np.where(up, behind, ahead))):
            np.maximum.at(reach, cell, np.where(clear, gain, 0.0))
        wrong |= (noise > 0) | beyond
        if len(self.claims.who):
            sound = sparse.csr_array(
                (np.where(wrong[move], 0.0, amount), cell, moves.indptr), shape=moves.shape
            )
            self.claims.credit_all(sound)

    def seek(self, cell: int) -> None:
        """Push a cell both ways, and note how far it and the others move."""
        root = int(self._root[cell])
        number = int(self._merged.part_of[root])
        if number < 0:
            return
        cells, program, check = self._part(number)
        try:
            for side in (1, -1):
                found = program.push(int(np.searchsorted(cells, root)), side, check)
                if found is None:
                    upward = (side == 1) == bool(self._ratio[cell] > 0)
                    (self.up if upward else self.down)[cell] = np.inf
                    continue
                np.maximum(self.up, found[1], out=self.up)
                np.maximum(self.down, -found[1], out=self.down)
                self.claims.credit(found[1])
        except InternalError:
            self.complete = False

    def compute(self, number: int) -> None:
        """Compute the intervals of one component."""
        cells, program, check = self._part(number)
        up, down = np.zeros(self._instance.n), np.zeros(self._instance.n)
        try:
            for side, reach in ((1, up), (-1, down)):
                limit = program.room(side)
                settled = limit <= 0
                for k in range(len(cells)):
                    if settled[k]:
                        continue
                    found = program.push(k, side, check)
                    settled[k] = True
                    if found is None:
                        reach[cells[k]] = np.inf
                        continue
                    move, whole = found
                    reach[cells[k]] = max(float(side * move[k]), 0.0)
                    self.claims.credit(whole)
                    touched = ~settled & (side * move >= limit * (1 - 1e-10)) & np.isfinite(limit)
                    reach[cells[touched]] = side * move[touched]
                    settled |= touched
        except InternalError:
            self.complete = False
        mine = np.flatnonzero(np.isin(self._root, cells))
        root, ratio = self._root[mine], self._ratio[mine]
        size = np.abs(ratio)
        self.up[mine] = _snapped(size * np.where(ratio > 0, up[root], down[root]), self._hi[mine])
        self.down[mine] = _snapped(size * np.where(ratio > 0, down[root], up[root]), self._lo[mine])

    @property
    def components(self) -> int:
        """How many independent parts there are."""
        return len(self._merged.parts)

    def _part(self, number: int) -> tuple[IntArray, _Program, Callable[[FloatArray], FloatArray]]:
        """The cells of a component, its program, and what checks that program's movements."""
        cells = self._merged.parts[number]
        return cells, self._merged.program(number), partial(self._checked, cells)

    def _checked(self, cells: IntArray, move: FloatArray) -> FloatArray:
        """The movement of all cells, if it respects relations and bounds."""
        roots = np.zeros(self._instance.n)
        roots[cells] = move
        whole = self._ratio * roots[self._root]
        size = np.abs(whole)
        missed = np.abs(self._matrix @ whole) > _ROUNDING * (self._size @ size + self._unit)
        beyond = (whole > self._hi + _ROUNDING * (size + self._unit)) | (
            -whole > self._lo + _ROUNDING * (size + self._unit)
        )
        if missed.any() or beyond.any():
            raise InternalError("a movement breaks a relation or a bound")
        return np.asarray(whole)

    def try_claim(self, k: int) -> None:
        """Let the insider of a claim look for its own movements."""
        claims = self.claims
        cell, root = int(claims.cell[k]), int(self._root[claims.cell[k]])
        known = np.unique(self._root[self._instance.insiders[int(claims.who[k])].known])
        number = int(self._merged.part_of[root])
        if number < 0 or root in known:
            return
        cells, program, check = self._part(number)
        program.hold(np.searchsorted(cells, known[self._merged.part_of[known] == number]))
        try:
            for side in (1, -1):
                found = program.push(int(np.searchsorted(cells, root)), side, check)
                if found is not None:
                    claims.credit(found[1])
                else:
                    claims.free(k, side if self._ratio[cell] > 0 else -side)
        except InternalError:
            self.complete = False
        program.hold(_NOTHING)

    def multipliers(
        self, cell: int, direction: int, known: IntArray | None = None
    ) -> tuple[float, FloatArray]:
        """How far a cell moves for an attacker, and the multipliers of the relations that limit it."""
        if self._whole is None:
            found = units_of(self._matrix)
            self._units = np.ones(self._instance.n) if found is None else found
            scaled = sparse.csr_array(
                (
                    self._matrix.data * self._units[self._matrix.indices],
                    self._matrix.indices,
                    self._matrix.indptr,
                ),
                shape=self._matrix.shape,
            )
            scaled, again = evened(scaled)
            self.factor = self.factor * again
            lo, hi, level = (part / self._units for part in (self._lo, self._hi, self._plain_levels))
            self._whole = _System(scaled, lo, hi, level, self._clock)
        system = self._whole
        number = int(system.part_of[cell])
        if number < 0 or (known is not None and cell in known):
            return 0.0, np.zeros(self._instance.m)
        part, program = system.parts[number], system.program(number)
        mine = _NOTHING if known is None else known[system.part_of[known] == number]
        program.hold(np.searchsorted(part, mine))
        reach, gamma = program.limit(int(np.searchsorted(part, cell)), direction)
        program.hold(_NOTHING)
        return reach * float(self._units[cell]), gamma * self.factor * float(self._units[cell])


def _snapped(reach: FloatArray, room: FloatArray) -> FloatArray:
    """A reach up to the cell's own bound is the bound itself, without the rounding of the program."""
    return np.where(reach >= room * (1 - 1e-10), room, reach)


class _System:
    """Relations on movements, split into independent parts, with a program for each when needed."""

    def __init__(
        self, matrix: sparse.csr_array, lo: FloatArray, hi: FloatArray, level: FloatArray, clock: Clock
    ) -> None:
        self._matrix, self._clock = matrix, clock
        self._lo, self._hi, self._level = lo, hi, level
        self.parts = _components(matrix, np.flatnonzero((lo > 0) | (hi > 0)))
        self.part_of = np.full(len(lo), -1, dtype=np.int64)
        for number, part in enumerate(self.parts):
            self.part_of[part] = number
        self._programs: dict[int, _Program] = {}

    def program(self, number: int) -> _Program:
        """The program of a part."""
        if number not in self._programs:
            cells = self.parts[number]
            self._programs[number] = _Program(
                self._matrix,
                cells,
                self._lo[cells],
                self._hi[cells],
                self._level[cells],
                self._clock,
            )
        return self._programs[number]


def _components(matrix: sparse.csr_array, cells: IntArray) -> list[IntArray]:
    """Cells split where no relation links them, each part sorted."""
    part = take_columns(matrix, cells)
    _, label = linked(part.indptr, part.indices, len(cells))
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return [np.sort(cells[piece]) for piece in np.split(order, cuts) if len(piece)]


class _Program:
    """Movements of some cells as a warm linear program.

    Its unit is near the smallest level; if rooms are then too large for double precision, which
    shows as a problem without solution (standing still always is one), it is made coarser.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        cells: IntArray,
        lo: FloatArray,
        hi: FloatArray,
        level: FloatArray,
        clock: Clock,
    ) -> None:
        self._lo, self._hi, self._clock = lo, hi, clock
        self._m, self._part = matrix.shape[0], take_columns(matrix, cells)
        self._rows = self._part.rows
        rooms = np.concatenate([hi, lo])
        rooms = rooms[(rooms > 0) & np.isfinite(rooms)]
        typical = float(np.median(rooms)) if len(rooms) else 1.0
        # Below a billionth of the largest room lies only rounding.
        self._finest = float(2.0 ** np.floor(np.log2(min(float(level.min()), typical))))
        finest = max(self._finest, float(rooms.max(initial=0.0)) * 1e-9)
        self._units = [float(2.0 ** np.floor(np.log2(finest * factor))) for factor in (1.0, 1e3, 1e6)]
        self._held = _NOTHING
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
            self._part.coefs,
            zeros,
            zeros,
            primal_simplex=True,
        )
        self.hold(self._held)

    def room(self, side: int) -> FloatArray:
        """What the external bounds leave (float64[cells])."""
        return self._hi if side == 1 else self._lo

    def push(
        self, k: int, side: int, check: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray] | None:
        """The movement that takes a cell farthest, and what `check` makes of it; None if nothing limits it.

        `check` raises InternalError if it finds the movement wrong; once, its rounding is mended.
        """
        result = self._solve(k, side)
        if result is None:
            return None
        move = result[0] * self._unit
        try:
            return move, check(move)
        except InternalError:
            move = self._refined(k, side, move)
            return move, check(move)

    def _refined(self, k: int, side: int, move: FloatArray) -> FloatArray:
        """A movement with its rounding mended, by programs for what is amiss in units near the levels.

        Beside amounts of many digits a program's own tolerance is more than a small level; what a movement
        misses is small, though, and so is what mends it (iterative refinement: Gleixner, Steffy and Wolter,
        INFORMS J. Computing 28, 2016).
        """
        lo, hi = self._lo.copy(), self._hi.copy()
        lo[self._held] = hi[self._held] = 0.0
        # Far finer than the levels, so that the program's tolerance is nothing beside them.
        unit = self._finest / 64
        near = _NEAR * self._finest
        cost = np.zeros(len(move))
        cost[k] = -float(side)
        part = self._part
        matrix = sparse.csr_array((part.coefs, part.indices, part.indptr), shape=(len(part.rows), len(move)))
        for _ in range(_REFINEMENTS):
            move = np.clip(move, -lo, hi)
            missed, noise = matrix @ move, _SUMMED * (abs(matrix) @ abs(move))
            program = LinearProgram(
                cost,
                np.maximum(-lo - move, -near) / unit,
                np.minimum(hi - move, near) / unit,
                part.indptr,
                part.indices,
                part.coefs,
                (-missed - noise) / unit,
                (-missed + noise) / unit,
            )
            result = program.solve(seconds=self._clock.seconds_left)
            if result.status == "limit":
                raise OutOfTimeError
            if result.status != "optimal":
                raise InternalError(f"a refinement ended {result.status}")
            move = move + result.primal * unit
        return move

    def limit(self, k: int, side: int) -> tuple[float, FloatArray]:
        """The farthest movement, and the relation multipliers that prove it."""
        result = self._solve(k, side)
        gamma = np.zeros(self._m)
        if result is None:
            return np.inf, gamma
        gamma[self._rows] = -result[1]
        return max(float(side * result[0][k]) * self._unit, 0.0), gamma

    def _solve(self, k: int, side: int) -> tuple[FloatArray, FloatArray] | None:
        while True:
            try:
                self._program.set_cost(k, -float(side))
                self._clock.check()
                result = self._program.solve(seconds=self._clock.seconds_left)
                if result.status == "unbounded":
                    if self._recedes(k, side):
                        self._program.set_cost(k, 0.0)
                        return None
                    result = self._program.solve(afresh=True, seconds=self._clock.seconds_left)
                self._program.set_cost(k, 0.0)
                if result.status == "limit":
                    raise OutOfTimeError
                # From rest on, without a vertex far away, the answer is to be believed.
                if result.status == "unbounded" and not np.isfinite(self.room(side)[k]):
                    return None
                if result.status == "optimal":
                    return result.primal, result.row_duals
            except InternalError:
                if not self._units:
                    raise
            if not self._units:
                raise InternalError(f"an interval problem ended {result.status}")
            self._build()

    def _recedes(self, k: int, side: int) -> bool:
        """Can a cell really move without end?"""
        if np.isfinite(self.room(side)[k]):
            return False
        lo, hi = self._lo.copy(), self._hi.copy()
        lo[self._held] = hi[self._held] = 0.0
        return self._program.recedes(-lo, hi)
