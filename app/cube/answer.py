"""Answering MDX over a cube: sets, axes and formulas; where the numbers come from is the source's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

# The modules of MDX functions register what they define.
from app.cube import (
    choosing_functions,
    date_functions,
    drill_functions,
    member_functions,
    set_functions,
    statistics_functions,
    text_functions,
    value_functions,
)
from app.cube.basis import Basis
from app.cube.calculated import Calculations
from app.cube.cells import Solved, filled, look, solve
from app.cube.context import Context, Limits
from app.cube.evaluate import Evaluator, axis_name
from app.cube.explain import explain
from app.cube.explanation import Explanation
from app.cube.looking import AsShown, Candidates
from app.cube.names import Names
from app.cube.port import Shown
from app.cube.showing import Showing
from app.cube.source import CellSource
from app.cube.subselect import ABOVE, restrict, visual_totals
from app.cube.turns import turn
from app.cube.values import SetValue, TupleValue
from app.domain.cellset import Axis, AxisMember, CalculatedMember
from app.domain.cube import Cube, IntArray
from app.domain.errors import Mistake, UserError
from app.domain.patience import Patience
from app.domain.publication import CalculatedDefinition, NamedSetDefinition
from app.mdx import Query, Source, brief, parse_expression
from app.mdx.tree import AxisDefinition, MemberDefinition

__all__ = [
    "Answered",
    "Answerer",
    "choosing_functions",
    "date_functions",
    "drill_functions",
    "member_functions",
    "set_functions",
    "statistics_functions",
    "text_functions",
    "value_functions",
]


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer: ``cells`` are rows of ``solved``, the first axis varying fastest.

    ``hierarchies`` are the unique names on each axis, also where it has no position; ``read`` are the rows
    by which open sets are chosen or ordered. ``by_figures``: sets of the axes are chosen or ordered by what
    cells hold.
    """

    axes: tuple[Axis, ...]
    hierarchies: tuple[tuple[str, ...], ...]
    slicer: tuple[AxisMember, ...]
    calculated: tuple[CalculatedMember, ...]
    solved: Solved
    cells: NDArray[np.int64]
    read: NDArray[np.int64]
    by_figures: bool


@dataclass(eq=False)
class _Task:
    """A query on its way: what it defines, then its slicer and the sets of its axes with their basis."""

    query: Query
    ev: Evaluator
    calculations: Calculations
    base: Context
    slicer: TupleValue = field(default_factory=lambda: TupleValue((), ()))
    sets: list[SetValue] = field(default_factory=list)
    basis: Basis = Basis.STRUCTURE


class Answerer:
    """Works queries over one cube out.

    Parameters
    ----------
    cube : Cube
    calculated, named_sets
        What the cube offers to every query.
    source : CellSource
    limits : Limits

    Raises
    ------
    UserError
        When a formula of the cube is wrong.
    """

    def __init__(
        self,
        cube: Cube,
        calculated: Sequence[CalculatedDefinition],
        named_sets: Sequence[NamedSetDefinition],
        source: CellSource,
        limits: Limits | None = None,
    ) -> None:
        self._cube = cube
        self._source = source
        self._limits = limits or Limits()
        self._names = Names(cube)
        self._showing = Showing(self._names)
        # Wrong formulas of the cube are told at once, not by the first query.
        self._ev = Evaluator(self._names, limits=self._limits)
        calculations = Calculations(self._ev, cube)
        mistakes: list[Mistake] = []
        for named in named_sets:
            text = Source(named.formula, named.at.file, named.at.line)
            expression = parse_expression(named.formula, named.at.file, named.at.line)
            self._ev.sets[named.name.lower()] = (expression, text)
        for definition in calculated:
            try:
                calculations.add_cube(definition)
            except UserError as error:
                mistakes.extend(error.mistakes)
        if mistakes:
            raise UserError(mistakes)
        calculations.finish()

    def try_sets(self) -> None:
        """Make each named set of the cube once, as the analyst may."""
        ev = self._looking(self._ready(), raw=True)
        mistakes: list[Mistake] = []
        for expression, source in self._ev.sets.values():
            try:
                ev.to_set(expression, self._base(source))
            except UserError as error:
                mistakes.extend(error.mistakes)
        if mistakes:
            raise UserError(mistakes)

    def _ready(self) -> Evaluator:
        """An evaluator for one question."""
        ev = self._ev.fork()
        ev.base = self._base(Source(""))
        ev.occupied = partial(filled, ev, source=self._source)
        return ev

    def _looking(self, ev: Evaluator, raw: bool, shown: Shown | None = None) -> Evaluator:
        """Let an evaluator see what the cells hold, where the source hides what is confidential or ``raw``;
        else what is shown, or only note which ones it would look at."""
        ev.sees_values = raw
        ev.gives_texts = raw or self._source.hides
        if ev.gives_texts:
            ev.look = partial(look, ev=ev, source=self._source)
        else:
            ev.look = Candidates() if shown is None else AsShown(shown)
        return ev

    def members(self, set_text: str) -> tuple[AxisMember, ...]:
        """Members of a set expression over one hierarchy, in order."""
        ev, source = self._ready(), Source(set_text)
        members = ev.to_set(parse_expression(set_text), self._base(source))
        if len(members.columns) != 1:
            raise UserError(source.mistake(0, "Expected a set of members of one hierarchy."))
        return tuple(self._showing.member(ev, members.columns[0], row[0]) for row in members.rows.tolist())

    def answer(
        self,
        query: Query,
        raw: bool = False,
        shown: Shown | None = None,
        patience: Patience | None = None,
    ) -> Answered:
        """The axes of a query and its cells.

        Parameters
        ----------
        raw : bool
            Whether sets may be chosen and ordered by whatever the source holds.
        shown : Shown, optional
            What they are made of instead.
        patience : Patience, optional
            For how long to work on it; to its end where it isn't given.

        Raises
        ------
        UserError
            See `app.cube.port.CubeServer.execute`.
        OverdueError, AbandonedError
        """
        with turn():
            return self._answer(query, raw, shown, patience or Patience())

    def explain(self, query: Query) -> tuple[Explanation, ...]:
        """What each calculated member of a query, and each of the cube's that it uses, becomes.

        What is wrong with the query itself is told of under the name of *the query*.

        Raises
        ------
        UserError
            When the query is about another cube, or defines what can't be defined.
        """
        with turn():
            task = self._define(query, raw=False, shown=None, patience=Patience())
            base = coords = self._coordinates((), task.base, query.axes, query.source)
            refusals: list[Mistake] = []
            try:
                self._place(task)
                coords = self._coordinates(task.sets, task.ev.base or task.base, query.axes, query.source)
            except UserError as error:
                refusals.extend(error.mistakes)
            try:
                task.calculations.finish()
            except UserError as error:
                refusals.extend(error.mistakes)
            task.ev.make_total = None
            added = [p for p in task.calculations.added if task.ev.definitions[p].stands_for is None]
            found = explain(task.ev, added, coords, base, self._source)
            told = {mistake for explanation in found for mistake in explanation.refusal}
            rest = tuple(mistake for mistake in refusals if mistake not in told)
            return (*found, Explanation("the query", (), rest)) if rest else found

    def _define(self, query: Query, raw: bool, shown: Shown | None, patience: Patience) -> _Task:
        """Take up what a query defines."""
        source = query.source
        self._check_cube(query, source)
        ev = self._looking(self._ready(), raw, shown)
        ev.patience = patience
        calculations = Calculations(ev, self._cube)
        if len(query.definitions) > self._limits.definitions:
            cause = f"The query defines more than {self._limits.definitions:,} members and sets."
            raise UserError(source.mistake(query.definitions[-1].at, cause, "Split the query."))
        for definition in query.definitions:
            if isinstance(definition, MemberDefinition):
                calculations.add_query(definition, source)
            elif len(definition.name.parts) != 1:
                raise UserError(source.mistake(definition.at, "The name of a set has one part."))
            else:
                ev.sets[definition.name.parts[0].text.lower()] = (definition.formula, source)
        for axis in query.axes:
            ev.sets[axis_name(axis.ordinal)] = (axis.set, source)
        base = self._base(source)
        ev.base = base
        ev.make_total = calculations.add_total
        return _Task(query, ev, calculations, base)

    def _place(self, task: _Task) -> None:
        """Work out the slicer and the axes."""
        query, ev, base, source = task.query, task.ev, task.base, task.query.source
        parts = restrict(ev, query.cube, base)
        visual_totals(ev, parts, base, query.cube.at)
        if parts and self._source.knows_formulas:
            # Of a part of the cube, formulas are others.
            task.calculations.finish()
        slicer = self._slicer(query, ev, task.calculations, base)
        ev.base = self._at(base, slicer)
        sets = self._axes(task)
        self._check_axes(query.axes, sets, slicer, source)
        placed = {*slicer.columns, *(column for members in sets for column in members.columns)}
        if parts.keys() - placed:
            rest = {column: part for column, part in parts.items() if column not in placed}
            if isinstance(ev.look, Candidates):
                ev.look = Candidates()
            slicer = self._off_axes(rest, slicer, task.calculations, ev, source)
            ev.base = self._at(base, slicer)
            ev.forget_sets()
            sets = self._axes(task)
        task.slicer, task.sets = slicer, sets

    def _answer(self, query: Query, raw: bool, shown: Shown | None, patience: Patience) -> Answered:
        task = self._define(query, raw, shown, patience)
        if self._source.knows_formulas:
            # Cells of formulas are looked up by their keys, also while sets are made.
            task.calculations.finish()
        self._place(task)
        ev, sets, source = task.ev, task.sets, query.source
        ev.make_total = None
        calculated = task.calculations.finish()
        coords = self._coordinates(sets, ev.base or task.base, query.axes, source)
        solved = solve(ev, coords, self._source)
        if isinstance(ev.look, Candidates) and len(noted := ev.look.cells(coords.shape[1])):
            # Solving the cells has noted those of their ranks.
            solved = solve(ev, np.concatenate([coords, noted]), self._source)
            self._check_read(solved, solved.requested[len(coords) :], source)
        kept = self._keep(query.axes, sets, solved.filled[solved.requested[: len(coords)]])
        shape = [len(part) for part in sets][::-1]
        index = np.arange(len(coords), dtype=np.int64).reshape(shape)
        for number, rows in enumerate(kept):
            sets[number] = SetValue(sets[number].columns, sets[number].rows[rows])
            index = np.take(index, rows, axis=len(sets) - 1 - number)
        return Answered(
            tuple(
                Axis(
                    tuple(
                        zip(
                            *(
                                self._showing.members(ev, column, numbers)
                                for column, numbers in zip(part.columns, part.rows.T.tolist(), strict=True)
                            ),
                            strict=True,
                        )
                    )
                )
                for part in sets
            ),
            tuple(tuple(self._names.columns[c].hierarchy.unique_name for c in part.columns) for part in sets),
            self._showing.sliced(ev, sets, task.slicer),
            calculated,
            solved,
            solved.requested[index.ravel()],
            solved.requested[len(coords) :],
            Basis.FIGURES in task.basis,
        )

    @staticmethod
    def _check_read(solved: Solved, read: NDArray[np.int64], source: Source) -> None:
        for row in read.tolist():
            if solved.kind.get(row) == "rank":
                plan = next(plan for plan in solved.plans if row in plan.rows)
                cause = f"Members are chosen or ordered by {plan.definition.member.name}, which is a rank."
                raise UserError(source.mistake(0, cause, "Go by the measure that it ranks."))

    # Parts of a query

    def _check_cube(self, query: Query, source: Source) -> None:
        cube = query.cube_asked
        written = ".".join(part.text for part in cube.parts)
        if written.lower() != self._cube.name.lower():
            cause = f"This is cube {self._cube.name}, but the query is FROM {brief(cube)}."
            raise UserError(source.mistake(cube.at, cause))

    def _base(self, source: Source) -> Context:
        members = {column.number: column.hierarchy.default_member for column in self._names.columns}
        return Context(source, members)

    @staticmethod
    def _axes(task: _Task) -> list[SetValue]:
        ev = task.ev
        with ev.apart():
            sets = [ev.to_any_set(axis.set, ev.base or task.base) for axis in task.query.axes]
            task.basis = ev.basis
        # A tuple without a member somewhere is no position.
        return [members.taking(members.rows[(members.rows >= 0).all(axis=1)]) for members in sets]

    def _slicer(self, query: Query, ev: Evaluator, calculations: Calculations, base: Context) -> TupleValue:
        """The slicer as one tuple; a set of several becomes a group for each hierarchy."""
        if query.slicer is None:
            return TupleValue((), ())
        with ev.apart():
            value = ev.evaluate(query.slicer, base)
            ev.firm(query.slicer.at, base)
        if isinstance(value, TupleValue):
            if value.is_nothing:
                raise ev.error(base, query.slicer.at, "The slicer names a member that isn't there.")
            return value
        members = ev.decided(ev.as_set(value, query.slicer, base), query.slicer, base)
        if not len(members):
            raise ev.error(base, query.slicer.at, "The slicer is an empty set.")
        parts = [np.unique(members.rows[:, place]) for place in range(len(members.columns))]
        distinct = len(np.unique(members.rows, axis=0))
        if distinct != int(np.prod([len(part) for part in parts])):
            return self._tuples_together(ev, members, calculations, query.source)
        numbers = [
            self._together(ev, column, part, calculations, query.source)
            for column, part in zip(members.columns, parts, strict=True)
        ]
        return TupleValue(members.columns, tuple(numbers))

    def _tuples_together(
        self, ev: Evaluator, members: SetValue, calculations: Calculations, source: Source
    ) -> TupleValue:
        """Any tuples as one member of their first hierarchy; the other hierarchies are the slicer's too."""
        rows = tuple(sorted(set(map(tuple, members.rows.tolist()))))
        number = calculations.add_group(members.columns, rows, source).numbers[0]
        others = members.columns[1:]
        rest = tuple(self._names.columns[column].hierarchy.default_member for column in others)
        return TupleValue(members.columns, (number, *rest))

    def _off_axes(
        self,
        parts: dict[int, IntArray],
        slicer: TupleValue,
        calculations: Calculations,
        ev: Evaluator,
        source: Source,
    ) -> TupleValue:
        """The slicer, with what sub-selects leave of the hierarchies that the query doesn't place."""
        columns, numbers = list(slicer.columns), list(slicer.numbers)
        for column, part in parts.items():
            tree = self._names.columns[column].hierarchy
            if tree.has_all:
                number = self._together(ev, column, part, calculations, source)
            else:
                # One of which a part is left is the total of that.
                left = ev.within[column] >= ABOVE
                number = tree.default_member
                if not left[number]:
                    number = int(np.flatnonzero(left & (tree.parent < 0))[0])
            columns.append(column)
            numbers.append(number)
        return TupleValue(tuple(columns), tuple(numbers))

    def _together(
        self, ev: Evaluator, column: int, members: IntArray, calculations: Calculations, source: Source
    ) -> int:
        """Members of a slicer as one: what stands beneath another one is in already."""
        tree = self._names.columns[column].hierarchy
        tops: list[int] = []
        for number in sorted(members.tolist()):
            if not tops or number >= tree.size or number > tree.last_descendant[tops[-1]]:
                tops.append(number)
        if len(tops) == 1:
            return tops[0]
        return calculations.add_group((column,), tuple((top,) for top in tops), source).numbers[0]

    @staticmethod
    def _at(base: Context, slicer: TupleValue) -> Context:
        known = {**base.known, **dict(zip(slicer.columns, slicer.numbers, strict=True))}
        return Context(base.source, known)

    def _check_axes(
        self, axes: Sequence[AxisDefinition], sets: Sequence[SetValue], slicer: TupleValue, source: Source
    ) -> None:
        used = dict.fromkeys(slicer.columns, "the slicer")
        for axis, members in zip(axes, sets, strict=True):
            for column in members.columns:
                if column in used:
                    name = self._names.columns[column].hierarchy.unique_name
                    cause = f"{name} is on this axis and on {used[column]}."
                    raise UserError(source.mistake(axis.at, cause, "Take it off one of them."))
                used[column] = f"axis {axis.ordinal}"

    def _coordinates(
        self, sets: Sequence[SetValue], base: Context, axes: Sequence[AxisDefinition], source: Source
    ) -> IntArray:
        """Cells of the axes, the first axis varying fastest."""
        n = 1
        for members in sets:
            n *= len(members)
        if n > self._limits.cells:
            cause = f"The axes span {n:,} cells; the limit is {self._limits.cells:,}."
            raise UserError(source.mistake(axes[0].at, cause, "Take fewer members, or split the query."))
        coords = np.empty((n, len(self._names.columns)), dtype=np.int32)
        coords[:] = [base.current(column.number) for column in self._names.columns]
        repeat = 1
        for members in sets:
            if n:
                rows = np.tile(np.repeat(members.rows, repeat, axis=0), (n // (repeat * len(members)), 1))
                coords[:, list(members.columns)] = rows
            repeat *= len(members)
        return coords

    def _keep(
        self, axes: Sequence[AxisDefinition], sets: Sequence[SetValue], occupied: NDArray[np.bool_]
    ) -> list[NDArray[np.intp]]:
        """Positions of each axis that stay: with NON EMPTY, those of which some cell has facts."""
        filled_cells = occupied.reshape([len(members) for members in sets][::-1])
        kept: list[NDArray[np.intp]] = []
        for number, (axis, members) in enumerate(zip(axes, sets, strict=True)):
            here = len(sets) - 1 - number
            others = tuple(place for place in range(len(sets)) if place != here)
            stays = filled_cells.any(axis=others) if axis.non_empty else np.ones(len(members), dtype=bool)
            kept.append(np.flatnonzero(stays))
        return kept
