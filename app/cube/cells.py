"""From cells with calculated members to cells of facts, and back to values and relations.

Each calculated cell is replaced by what its formula refers to, until only cells of the facts are left.
Cells that a formula treats alike are replaced together. Then the values are worked out from the bottom up,
and the relations are written in terms of cells of the facts and of groups of members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.cube.basis import Basis
from app.cube.context import Context, Definition, NeedColumnError, Positions
from app.cube.evaluate import Evaluator
from app.cube.formulas import (
    Leaf,
    combine,
    has_words,
    is_whole,
    leaves_of,
    may_be_filled,
    words_of,
    work_out,
)
from app.cube.keys import unique_rows
from app.cube.levels import CircleError, by_level, levels
from app.cube.looking import Asked, Looked, Placed, covered_by, references, worked_out
from app.cube.port import Group
from app.cube.source import Bools, CellSource, Readings
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray
from app.domain.errors import UserError
from app.domain.formula import Formula, Linear, Recompute, Withheld, is_withheld
from app.domain.lattice import row_of
from app.domain.numbers import format_text
from app.mdx import brief

Ints = NDArray[np.int64]
#: Nobody asks for relations where no row is calculated, nor of what readers ask of a release.
_NO_RELATION = sparse.csr_array((0, 0))


@dataclass(eq=False)
class Plan:
    """One formula for all rows that it treats alike; ``operands`` are row numbers for each leaf.

    ``known`` are the members, by column, that the formula's shape hangs on.
    """

    definition: Definition
    known: Mapping[int, int]
    rows: Ints
    formula: Formula
    leaves: list[Leaf]
    operands: list[Ints]


#: Plans and places in their rows, in the order of working out.
Steps = Sequence[tuple[Plan, Ints]]


@dataclass(frozen=True, eq=False)
class Solved:
    """All rows that an answer hangs on. ``requested`` are the rows that were asked for.

    ``filled`` are the rows that have facts, or a formula that can have a value where facts are; it hangs
    on no number, so it is public. ``hidden`` are the rows that the source hides, and every formula over
    such a row: they have no value, and aren't empty either. ``secret`` are those of them that hang on a row
    which the source has, and hides.
    """

    coords: IntArray
    values: FloatArray
    hidden: Bools
    secret: Bools
    requested: Ints
    filled: Bools
    linear: sparse.csr_array
    constant: FloatArray
    depends: sparse.csr_array
    kind: dict[int, str]
    calculated: Bools
    plans: Sequence[Plan]
    texts: Mapping[int, str]


def solve(ev: Evaluator, coords: IntArray, source: CellSource) -> Solved:
    """Values of cells and what they are made of.

    Raises
    ------
    UserError
        When a formula is wrong, refers to itself, or takes in too many cells.
    """
    return _Solver(ev, source).solve(coords)


class _Solver:
    def __init__(self, ev: Evaluator, source: CellSource) -> None:
        self.ev = ev
        self.source = source
        extra = [0] * len(ev.columns)
        for column, _ in ev.definitions:
            extra[column] += 1
        self.own = [column.hierarchy.size for column in ev.columns]
        self.sizes = [own + more for own, more in zip(self.own, extra, strict=True)]
        self.plans: list[Plan] = []
        self.texts: dict[int, str] = {}
        self.hidden: Bools = np.zeros(0, dtype=np.bool_)
        self.secret = self.hidden
        self.ranks: list[Ints] = []
        if not ev.definitions:
            return
        by_precedence = sorted(ev.definitions, key=lambda place: ev.definitions[place].member.precedence)
        rank = {place: number for number, place in enumerate(by_precedence)}
        self.ranks = [
            np.array([-1] * own + [rank[column, n] for n in range(own, size)], dtype=np.int64)
            for column, (own, size) in enumerate(zip(self.own, self.sizes, strict=True))
        ]

    def solve(self, requested: IntArray) -> Solved:
        requested = self.ev.placed(requested)
        first, asked = unique_rows(requested, self.sizes)
        coords = requested[first]
        frontier = self._unheld(coords, 0) if self.ev.definitions else np.zeros(0, dtype=np.int64)
        while len(frontier):
            plans = self._plans(coords, frontier)
            blocks = [block for plan in plans for block in self._operands(plan, coords)]
            self.plans.extend(plans)
            known = len(coords)
            if blocks:
                everything = np.concatenate([coords, *blocks])
                first, place = unique_rows(everything, self.sizes)
                coords = everything[first]
                self._hand_out(plans, place[known:])
            frontier = self._unheld(coords, known)
        calculated = np.zeros(len(coords), dtype=bool)
        for plan in self.plans:
            calculated[plan.rows] = True
        steps = self._steps(calculated)
        values = self._values(coords, calculated, steps)
        filled = self._filled(values, calculated, steps)
        if self.plans and not self.source.hides:
            linear, constant, depends, kind = self._relations(coords, calculated)
        else:
            linear, constant, depends, kind = _NO_RELATION, np.zeros(0), _NO_RELATION, {}
        return Solved(
            coords,
            values,
            self.hidden,
            self.secret,
            asked,
            filled,
            linear,
            constant,
            depends,
            kind,
            calculated,
            self.plans,
            self.texts,
        )

    # Replacing

    def _unheld(self, coords: IntArray, start: int) -> Ints:
        """Rows from ``start`` on that the source doesn't have itself."""
        rows = np.arange(start, len(coords), dtype=np.int64)
        return rows[~self.source.holds(coords[start:], self.ev)] if self.source.knows_formulas else rows

    def _plans(self, coords: IntArray, rows: Ints) -> list[Plan]:
        """Plans of calculated rows; those of too many operands are refused before all are made."""
        plans: list[Plan] = []
        most, total = self.ev.limits.operands, len(coords)
        for plan in self._plan(coords, rows):
            self.ev.patience.check()
            plans.append(plan)
            total += len(plan.rows) * sum(map(_width, plan.leaves))
            if total > most:
                cause = f"The formula takes in more than {most:,} cells."
                definition = plan.definition
                raise UserError(definition.source.mistake(definition.at, cause, "Split the query."))
        return plans

    def _plan(self, coords: IntArray, rows: Ints) -> Iterator[Plan]:
        """The formula that comes first at each calculated row, evaluated for all rows alike."""
        rank = np.full((len(rows), len(self.own)), -1, dtype=np.int64)
        for column, ranks in enumerate(self.ranks):
            rank[:, column] = ranks[coords[rows, column]]
        winner = rank.argmax(axis=1)
        best = rank.max(axis=1, initial=-1)
        for number in np.unique(best[best >= 0]).tolist():
            mine = best == number
            column = int(winner[mine][0])
            chosen = rows[mine]
            definition = self.ev.definitions[column, int(coords[chosen[0], column])]
            yield from self._partial(definition, column, chosen, coords)

    def _partial(self, definition: Definition, column: int, rows: Ints, coords: IntArray) -> Iterator[Plan]:
        pending: list[tuple[Ints, dict[int, int]]] = [(rows, {column: definition.number})]
        while pending:
            some, known = pending.pop()
            try:
                with self.ev.apart():
                    formula = self.ev.to_cell(definition.formula, Context(definition.source, known))
                    basis = self.ev.basis
            except NeedColumnError as need:
                members = coords[some, need.column]
                pending.extend(
                    (some[members == member], {**known, need.column: self.ev.shown_as(need.column, member)})
                    for member in np.unique(members)[::-1].tolist()
                )
            else:
                if self.source.hides and basis.is_partial:
                    # Made of what is shown, it would be taken for the figure that all cells give.
                    formula = Withheld("choice", secret=Basis.CONFIDENTIAL in basis)
                nested = is_withheld(formula) and not isinstance(formula, Withheld)
                if nested and not self.source.hides:
                    name = brief(definition.member.name)
                    cause = f"{name} is worked out from a rank, which may be confidential."
                    raise UserError(definition.source.mistake(definition.at, cause, "Show the rank itself."))
                yield Plan(definition, known, some, formula, list(leaves_of(formula)), [])

    def _operands(self, plan: Plan, coords: IntArray) -> Iterator[IntArray]:
        """Coordinates that each leaf refers to, row by row."""
        for leaf in plan.leaves:
            references = list(leaf.terms) if isinstance(leaf, Linear) else leaf.references
            block = np.repeat(coords[plan.rows][:, None, :], len(references), axis=1)
            for place, reference in enumerate(references):
                for column, member in reference:
                    block[:, place, column] = member
            yield self.ev.placed(block.reshape(-1, block.shape[2]))

    def _hand_out(self, plans: list[Plan], place: Ints) -> None:
        start = 0
        for plan in plans:
            for leaf in plan.leaves:
                width = _width(leaf)
                n = len(plan.rows) * width
                plan.operands.append(place[start : start + n].reshape(len(plan.rows), width))
                start += n

    def _steps(self, calculated: Bools) -> Steps:
        """Plans, and which of their rows, in the order in which their values can be worked out."""
        none = np.zeros(0, dtype=np.int64)
        rows, operands = [none], [none]
        for plan in self.plans:
            for block in plan.operands:
                rows.append(np.repeat(plan.rows, block.shape[1]))
                operands.append(block.ravel())
        try:
            level = levels(calculated, np.concatenate(rows), np.concatenate(operands))
        except CircleError as circle:
            definition = next(plan.definition for plan in self.plans if circle.row in plan.rows)
            cause = f"The formula of {brief(definition.member.name)} refers to itself."
            raise UserError(definition.source.mistake(definition.at, cause)) from None
        steps = by_level(level, [plan.rows for plan in self.plans])
        return [(self.plans[number], places) for number, places in steps]

    # Values

    def _values(self, coords: IntArray, calculated: Bools, steps: Steps) -> FloatArray:
        values = np.full(len(coords), np.nan)
        base = np.flatnonzero(~calculated)
        readings = self.source.read(coords[base], self.ev)
        values[base] = readings.values
        self.hidden = np.zeros(len(coords), dtype=np.bool_)
        if readings.hidden is not None:
            self.hidden[base] = readings.hidden
        self.secret = self.hidden.copy()
        if readings.unknown is not None:
            self.secret[base] &= ~readings.unknown
        if not self.plans:
            return values
        grain = np.full(len(coords), -1, dtype=np.int64)
        decimals = [self.source.decimals(measure) for measure in range(self.own[0])]
        decimals += [None] * (self.sizes[0] - self.own[0])
        grains = np.array([-1 if known is None else known for known in decimals], dtype=np.int64)
        grain[base] = grains[coords[base, 0]]
        if self.source.knows_formulas:
            grain[base[(coords[base] >= np.array(self.own)).any(axis=1)]] = -1
        for plan, chosen in steps:
            self.ev.patience.check()
            self._work_out(plan, chosen, values, grain, coords)
        return values

    def _work_out(self, plan: Plan, chosen: Ints, values: FloatArray, grain: Ints, coords: IntArray) -> None:
        rows = plan.rows[chosen]
        place = iter(range(len(plan.leaves)))
        hidden = np.full(len(rows), self.source.hides and is_withheld(plan.formula))
        secret = np.full(len(rows), self.source.hides and is_withheld(plan.formula, secret=True))

        def of_leaf(leaf: Leaf) -> FloatArray:
            operands = plan.operands[next(place)][chosen]
            if isinstance(leaf, Recompute):
                readings = self.recomputed(leaf, coords[rows])
                if readings.hidden is not None:
                    np.logical_or(hidden, readings.hidden, out=hidden)
                    known = True if readings.unknown is None else ~readings.unknown
                    np.logical_or(secret, readings.hidden & known, out=secret)
                return readings.values
            if self.source.hides:
                np.logical_or(hidden, self.hidden[operands].any(axis=1), out=hidden)
                np.logical_or(secret, self.secret[operands].any(axis=1), out=secret)
            return combine(leaf, values[operands])

        if has_words(plan.formula):
            words = words_of(plan.formula, len(rows), of_leaf)
            self.texts.update(
                (row, text)
                for row, text, secret in zip(rows.tolist(), words, hidden, strict=True)
                if text is not None and not secret
            )
            place = iter(range(len(plan.leaves)))
        result = work_out(plan.formula, len(rows), of_leaf)
        if isinstance(plan.formula, Linear) and is_whole(plan.formula) and plan.operands:
            # Whole multiples of decimals are decimals: take the rounding of the additions away.
            finest = grain[plan.operands[0][chosen]]
            known = (finest >= 0).all(axis=1)
            grain[rows] = np.where(known, finest.max(axis=1), -1)
            power = 10.0 ** np.maximum(grain[rows], 0)
            snapped = np.rint(result * power) / power
            result = np.where(known & (np.abs(result) * power < 2.0**52), snapped, result)
        if np.isinf(result[~hidden]).any():
            definition = plan.definition
            cause = "A number of the formula is too large."
            raise UserError(definition.source.mistake(definition.at, cause, "Simplify it."))
        if plan.definition.is_text and self.ev.gives_texts and not self.source.hides:
            form = plan.definition.member.format or ""
            self.texts.update(
                (row, format_text(value, form, "en"))
                for row, value, gone in zip(rows.tolist(), result.tolist(), hidden, strict=True)
                if not gone and not math.isnan(value)
            )
        self.hidden[rows] = hidden
        self.secret[rows] = secret
        values[rows] = np.where(hidden, np.nan, result) if hidden.any() else result

    def _filled(self, values: FloatArray, calculated: Bools, steps: Steps) -> Bools:
        filled = (~np.isnan(values) | self.hidden) & ~calculated
        for plan, chosen in steps:
            met = (filled[operands[chosen]] for operands in plan.operands)
            leaves = (np.logical_or.reduce(table, axis=1) for table in met)
            filled[plan.rows[chosen]] = may_be_filled(plan.formula, len(chosen), leaves)
        return filled

    def recomputed(self, formula: Recompute, coords: IntArray) -> Readings:
        coords = coords.copy()
        for column, member in formula.elsewhere:
            coords[:, column] = member
        coords = self.ev.placed(coords)
        result = np.full(len(coords), np.nan)
        hidden, unknown = np.zeros((2, len(coords)), dtype=np.bool_)
        others = coords.copy()
        for (first, *more), _ in formula.groups:
            coords[:, first] = self.own[first]
            coords[:, more] = 0
            others[:, [first, *more]] = 0
        calculated = others >= np.array(self.own)
        _, which = unique_rows(np.where(calculated, others, -1) + 1, [size + 1 for size in self.sizes])
        for number in np.unique(which):
            mine = np.flatnonzero(which == number)
            groups = [Group.of(columns, rows) for columns, rows in formula.groups]
            for column in np.flatnonzero(calculated[mine[0]]).tolist():
                definition = self.ev.definitions[column, int(coords[mine[0], column])]
                terms = definition.member.terms
                if terms is None or not definition.member.is_group:
                    name = brief(definition.member.name)
                    cause = f"{name} can't be combined with a measure that doesn't add up."
                    raise UserError(definition.source.mistake(definition.at, cause))
                groups.append(Group(column, np.array([member for member, _ in terms], dtype=np.int32)))
                coords[mine, column] = self.own[column]
            readings = self.source.recompute(int(coords[mine[0], 0]), coords[mine], groups)
            result[mine] = readings.values
            if readings.hidden is not None:
                hidden[mine] = readings.hidden
            if readings.unknown is not None:
                unknown[mine] = readings.unknown
        return Readings(result, hidden, unknown)

    # Relations

    def _relations(
        self, coords: IntArray, calculated: Bools
    ) -> tuple[sparse.csr_array, FloatArray, sparse.csr_array, dict[int, str]]:
        """Linear combinations and dependencies of calculated rows, down to facts and groups."""
        n = len(coords)
        opaque = self._opaque(coords)
        constant = np.zeros(n)
        kind: dict[int, str] = {}
        parts: list[tuple[Ints, Ints, FloatArray]] = []
        touches: list[tuple[Ints, Ints]] = []
        for plan in self.plans:
            for leaf, operands in zip(plan.leaves, plan.operands, strict=True):
                rows = np.repeat(plan.rows, operands.shape[1])
                touches.append((rows, operands.ravel()))
                if isinstance(leaf, Linear) and isinstance(plan.formula, Linear):
                    coefs = np.array([float(value) for value in leaf.terms.values()])
                    parts.append((rows, operands.ravel(), np.tile(coefs, len(plan.rows))))
            if isinstance(plan.formula, Linear):
                constant[plan.rows] = float(plan.formula.constant or 0)
            else:
                kind.update(dict.fromkeys(plan.rows.tolist(), plan.formula.kind))
        direct = _matrix(parts, n)
        pattern = _matrix([(rows, operands, np.ones(len(rows))) for rows, operands in touches], n)
        opaque[list(kind)] = False
        self._inherit(direct, calculated & ~opaque, kind)
        replaced = calculated & ~opaque
        linear_too = replaced.copy()
        linear_too[list(kind)] = False
        linear = direct
        moved = constant.copy()
        while (part := _columns(linear, linear_too)).nnz:
            moved = moved + part @ constant
            linear = linear - part + part @ direct
        depends = pattern
        while (part := _columns(depends, replaced)).nnz:
            depends = depends - part + part @ pattern
            depends.data[:] = 1.0
        return _tidy(linear), moved, _tidy(depends), kind

    @staticmethod
    def _inherit(direct: sparse.csr_array, calculated: Bools, kind: dict[int, str]) -> None:
        """A linear combination of cells that aren't linear is of their kind."""
        rows = row_of(direct.indptr)
        known = np.zeros(direct.shape[0], dtype=bool)
        known[list(kind)] = True
        while True:
            entries = np.flatnonzero(known[direct.indices] & calculated[rows] & ~known[rows])
            if not len(entries):
                return
            heirs, first = np.unique(rows[entries], return_index=True)
            for row, operand in zip(heirs.tolist(), direct.indices[entries[first]].tolist(), strict=True):
                kind[row] = kind[operand]
            known[heirs] = True

    def _opaque(self, coords: IntArray) -> Bools:
        """Groups of members of an own measure that adds up: cells with contributors of their own."""
        result = np.zeros(len(coords), dtype=bool)
        additive = [measure.additive for measure in self.ev.names.cube.measures]
        additive += [False] * (self.sizes[0] - self.own[0])
        plain = np.array(additive)[coords[:, 0]]
        for column, own in enumerate(self.own):
            fits = [True] * own
            fits += [self.ev.definitions[column, n].member.is_group for n in range(own, self.sizes[column])]
            plain &= np.array(fits)[coords[:, column]]
            result |= coords[:, column] >= own
        groups: Bools = result & plain
        return groups


def filled(ev: Evaluator, cells: Positions, source: CellSource) -> Bools:
    """Whether the cell at each position has facts, or can have a value by its formula: bool[n]."""
    solver = _Solver(ev, source)
    solved = solver.solve(cells.places(len(solver.own)))
    if (solved.hidden & ~solved.secret & ~solved.calculated).any():
        # Of cells that the source doesn't have it isn't known either.
        ev.meet(Basis.UNRELEASED)
    return solved.filled[solved.requested]


def look(asked: Asked, columns: int, placed: Placed, ev: Evaluator, source: CellSource) -> Looked:
    """Values of formulas, each at its positions, as the source has them."""
    solver = _Solver(ev, source)
    wanted = references(asked, columns, placed)
    values, hidden, secret = np.zeros(0), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    if len(wanted):
        solved = solver.solve(wanted)
        rows = solved.requested
        values, hidden, secret = solved.values[rows], solved.hidden[rows], solved.secret[rows]
    found = worked_out(asked, values, columns, lambda leaf, here: solver.recomputed(leaf, here).values)
    covered = covered_by(asked, hidden, recomputing=source.hides)
    return Looked.of(found, covered, covered & covered_by(asked, secret))


def _width(leaf: Leaf) -> int:
    """Cells that a leaf refers to."""
    return len(leaf.terms) if isinstance(leaf, Linear) else leaf.width


def _matrix(parts: list[tuple[Ints, Ints, FloatArray]], n: int) -> sparse.csr_array:
    if not parts:
        return sparse.csr_array((n, n))
    rows, columns, data = (np.concatenate([part[index] for part in parts]) for index in range(3))
    return sparse.csr_array((data, (rows, columns)), shape=(n, n))


def _columns(matrix: sparse.csr_array, chosen: Bools) -> sparse.csr_array:
    """The matrix with all but the chosen columns empty."""
    kept = matrix.copy()
    kept.data = np.where(chosen[kept.indices], kept.data, 0.0)
    kept.eliminate_zeros()
    return kept


def _tidy(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
