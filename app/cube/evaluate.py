"""Evaluation of MDX expressions, in full for sets and in part for formulas.

Sets, members, texts and constants are worked out; references to cells stay in the `Formula`. A formula asks
for a current member only where its shape depends on it (`NeedColumnError`), so that it is evaluated once for
all the cells that it treats alike.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.basis import Basis
from app.cube.context import Context, Definition, Limits, NeedColumnError, Positions
from app.cube.conversions import Conversions
from app.cube.looking import Asked, Look, Looked, RecomputedError
from app.cube.names import Column, Names
from app.cube.values import (
    HierarchyValue,
    SetValue,
    TupleValue,
    Value,
)
from app.domain.cube import IntArray
from app.domain.formula import (
    EMPTY,
    Apply,
    Formula,
    FormulaError,
    Linear,
    Recompute,
    Text,
    Withheld,
    constant,
)
from app.mdx import Source, brief, quote
from app.mdx.tree import (
    Alias,
    Braces,
    Call,
    Case,
    Chain,
    Expression,
    Given,
    Name,
    Null,
    Number,
    Parameter,
    Parens,
    Range,
    String,
    Unary,
)

#: Formulas and named sets within one another.
MAX_NESTING = 40
#: Sets chosen by cells whose formulas hang on such sets in turn.
MAX_LOOKS = 4


Handler = Callable[["Evaluator", Call, Context], Value]
MakeTotal = Callable[[int, int, list[int], str, Source], int]
Occupied = Callable[[Positions], NDArray[np.bool_]]
FUNCTIONS: dict[str, Handler] = {}
#: What the operators do, by type of node; see `app.cube.operators`.
OPERATORS: dict[type, Callable[[Evaluator, Any, Context], Value]] = {}


def axis_name(number: int) -> str:
    """The name under which the set of an axis is known: no query can give it to another one."""
    return f"axis({number})"


def function(*names: str) -> Callable[[Handler], Handler]:
    """Register what an MDX function does, under its names in capitals."""

    def register(handler: Handler) -> Handler:
        for name in names:
            FUNCTIONS[name] = handler
        return handler

    return register


class Evaluator(Conversions):
    """Evaluates expressions of one query over one cube."""

    def __init__(
        self,
        names: Names,
        definitions: Mapping[tuple[int, int], Definition] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.names = names
        super().__init__(limits or Limits())
        self.columns: tuple[Column, ...] = names.columns
        self.definitions: dict[tuple[int, int], Definition] = dict(definitions or {})
        self.sets: dict[str, tuple[Expression, Source]] = {}
        self.base: Context | None = None
        #: Which cells have facts, and what may be seen of them, while sets are made.
        self.occupied: Occupied | None = None
        self.look: Look | None = None
        self.sees_values = False
        #: Whether cells may hold texts.
        self.gives_texts = False
        #: By column of a sub-select: members that are in it or beneath one that is (1), or above one (0).
        self.within: dict[int, NDArray[np.int8]] = {}
        #: By such a column: what each own member counts as, a visual total where it is above.
        self.visual: dict[int, IntArray] = {}
        #: Makes a visual total: of a column, a member, the members that count, and a caption.
        self.make_total: MakeTotal | None = None
        #: By column: members that are in no set.
        self._unlisted = {
            column.number: np.array(column.hierarchy.unlisted, dtype=np.int32)
            for column in self.columns
            if column.hierarchy.unlisted
        }
        self._looking = 0
        self._made: dict[str, tuple[SetValue, Basis]] = {}
        #: What functions keep for the other cells that they are evaluated for.
        self.kept: dict[object, Any] = {}
        #: By node: sets that hang on no current member, and nodes whose sets do.
        self._fixed: dict[int, tuple[Expression, SetValue | None, Basis]] = {}
        self._making: list[str] = []

    def fork(self) -> Evaluator:
        """An evaluator that knows the same calculated members and may learn more."""
        forked = Evaluator(self.names.fork(), self.definitions, self.limits)
        forked.sets = dict(self.sets)
        forked.occupied, forked.look, forked.sees_values = self.occupied, self.look, self.sees_values
        return forked

    def placed(self, coords: IntArray) -> IntArray:
        """Coordinates with visual totals in place of the members that a sub-select leaves in part."""
        if not self.visual:
            return coords
        coords = coords.copy()
        for column, stand_ins in self.visual.items():
            own = coords[:, column] < len(stand_ins)
            coords[own, column] = stand_ins[coords[own, column]]
        return coords

    def placed_members(self, column: int, numbers: IntArray) -> list[int]:
        """As `placed`, for members of one column."""
        if column not in self.visual:
            return numbers.tolist()  # type: ignore[no-any-return]
        coords = np.zeros((len(numbers), len(self.columns)), dtype=np.int32)
        coords[:, column] = numbers
        return self.placed(coords)[:, column].tolist()  # type: ignore[no-any-return]

    def level_of(self, column: int, number: int) -> int:
        """Level of a member; of a calculated one the level beneath its parent, else the top."""
        depth = self.columns[column].hierarchy.depth
        if number < len(depth):
            return int(depth[number]) if number >= 0 else 0
        above = self.definitions[column, number].parent
        deepest = len(self.columns[column].hierarchy.levels) - 1
        return min(int(depth[above]) + 1, deepest) if above >= 0 else 0

    def unique_name(self, column: int, number: int) -> str:
        """Of a calculated member it begins with that of the member it is under."""
        tree = self.columns[column].hierarchy
        if number < tree.size:
            return tree.unique_names[number]
        found = self.definitions[column, number]
        above = tree.unique_name if found.parent < 0 else tree.unique_names[found.parent]
        return f"{above}.{quote(found.member.name)}"

    def shown_as(self, column: int, number: int) -> int:
        """The member of the cube that a visual total stands for; any other member itself."""
        found = self.definitions.get((column, number))
        return number if found is None or found.stands_for is None else found.stands_for

    def total(self, column: int, member: int, parts: list[int], caption: str, ctx: Context, at: int) -> int:
        """A member that counts as a part of the members beneath it only."""
        if self.make_total is None or self._looking:
            raise self.error(ctx, at, "Visual totals can only be made for an axis.")
        return self.make_total(column, member, parts, caption, ctx.source)

    def forget_sets(self) -> None:
        """Work named sets out again: what they are taken over has changed."""
        self._made.clear()
        self._fixed.clear()
        self.kept.clear()

    def same_set(self, node: Expression | None, ctx: Context) -> SetValue:
        """A set in a formula, which may be evaluated for many cells: made once if it is the same for all."""
        node = self.given(node, ctx)
        known = self._fixed.get(id(node))
        if known is None:
            with self.apart():
                try:
                    found = self.to_any_set(node, Context(ctx.source, {}))
                except NeedColumnError:
                    known = node, None, self.basis
                else:
                    known = node, found, self.basis
            self._fixed[id(node)] = known
        if known[1] is None:
            return self.to_any_set(node, ctx)
        self.meet(known[2])
        return known[1]

    # Calls

    def arguments(self, call: Call, least: int, most: int, ctx: Context) -> list[Expression | None]:
        """Target and arguments together, padded with None to ``most``."""
        found: list[Expression | None] = [] if call.target is None else [call.target]
        found.extend(call.arguments or ())
        if not least <= len(found) <= most:
            name, n = call.function, len(found)
            cause = f"{name} takes {least} to {most} arguments, but has {n}."
            if least == most:
                cause = f"{name} takes {least} arguments, but has {n}."
            if most == 1:
                cause = f"{name} takes one argument, but has {n}."
            raise self.error(ctx, call.at, cause)
        return found + [None] * (most - len(found))

    def evaluate(self, node: Expression, ctx: Context) -> Value:
        self.step(node, ctx)
        match node:
            case Name():
                return self._name(node, ctx)
            case Number(value):
                return constant(value)
            case String(text):
                return text
            case Null():
                return EMPTY
            case Call():
                handler = FUNCTIONS.get(node.function.upper())
                if handler is None:
                    near = difflib.get_close_matches(node.function.upper(), list(FUNCTIONS), 3)
                    hint = f"Nearest: {', '.join(near)}." if near else ""
                    raise self.error(ctx, node.at, f"There is no function {brief(node.function)}.", hint)
                try:
                    found = handler(self, node, ctx)
                except FormulaError as error:
                    raise self.error(ctx, node.at, str(error), "Simplify it.") from None
                return self._seen(found)
            case Braces(items):
                return self.visible(self._braces(items, node, ctx))
            case Parens(items):
                return self.evaluate(items[0], ctx) if len(items) == 1 else self._tuple(items, ctx)
            case Chain() | Unary() | Range() | Case():
                try:
                    return self._seen(OPERATORS[type(node)](self, node, ctx))
                except FormulaError as error:
                    raise self.error(ctx, node.at, str(error), "Simplify it.") from None
            case Alias(expression, name):
                self.sets[name.lower()] = (expression, ctx.source)
                return self._keep_set(name.lower(), expression, ctx)
            case Given(columns, rows):
                return SetValue.of(columns, list(rows))
            case Parameter(name):
                raise self.error(ctx, node.at, f"Parameter @{brief(name)} has no value.")

    def _name(self, node: Name, ctx: Context) -> Value:
        if len(node.parts) == 1 and node.parts[0].keys is None:
            name = node.parts[0].text.lower()
            if name in self.sets:
                return self.named_set(name, node, ctx)
            if name in ("true", "false"):
                return name == "true"
        return self.names.resolve(node, ctx.source)

    def named_set(self, name: str, node: Name | Call, ctx: Context) -> SetValue:
        """A set by its name, made once; ``node`` is where it is asked for."""
        made = self._made.get(name)
        if made is not None:
            self.meet(made[1])
            return made[0]
        if name in self._making:
            raise self.error(
                ctx, node.at, f"Set {brief(node) if isinstance(node, Name) else name} is defined by itself."
            )
        if len(self._making) > MAX_NESTING:
            raise self.error(ctx, node.at, f"Sets are defined by one another more than {MAX_NESTING} deep.")
        expression, source = self.sets[name]
        self._making.append(name)
        try:
            base = self.base if self.base is not None else ctx
            return self._keep_set(name, expression, replace(base, source=source))
        finally:
            self._making.pop()

    def _keep_set(self, name: str, expression: Expression, ctx: Context) -> SetValue:
        with self.apart():
            made = self.to_any_set(expression, ctx)
            basis = self.basis
        self._made[name] = made, basis
        self.meet(basis)
        return made

    def _braces(self, items: tuple[Expression, ...], node: Braces, ctx: Context) -> SetValue:
        parts = [self.to_any_set(item, ctx) for item in items]
        return self.join(parts, [item.at for item in items], ctx)

    def join(self, parts: list[SetValue], places: list[int], ctx: Context) -> SetValue:
        """Sets one after another; all must be over the same hierarchies."""
        if not parts:
            return SetValue.of((), [])
        columns = next((part.columns for part in parts if part.columns), ())
        for part, at in zip(parts, places, strict=True):
            if part.columns and part.columns != columns:
                one, other = (
                    " × ".join(self.columns[c].hierarchy.unique_name for c in used)
                    for used in (columns, part.columns)
                )
                raise self.error(ctx, at, f"A set of {one} can't hold members of {other}.")
        rows = np.concatenate([part.rows.reshape(len(part), len(columns)) for part in parts])
        pending = any(part.pending for part in parts)
        return self.limited(SetValue(columns, rows, pending), places[0], ctx)

    def values_at(
        self, expression: Expression | None, members: SetValue, ctx: Context, call: Call
    ) -> list[Value] | Looked | None:
        """An expression (None: the cell) at each position of a set: constants as they are, else numbers.

        None where it hangs on cells of which it isn't known yet which may be seen.

        Raises
        ------
        UserError
            When it hangs on the values of cells and no look may be taken at them.
        """
        node = self.given(expression, ctx) if expression is not None else call
        alike = self.value_anywhere(expression, members, ctx)
        if alike is not None and _is_constant(alike):
            return [alike] * len(members)
        if alike is not None:
            formula = self.as_formula(alike, node, ctx)
            return self.looked([(formula, Positions(ctx, members.columns, members.rows))], ctx, call)
        places = [ctx.at(position) for position in members.tuples()]
        found = [self.evaluate(node, place) for place in places]
        if all(_is_constant(value) for value in found):
            return found
        asked = [
            (self.as_formula(value, node, place), Positions(place))
            for value, place in zip(found, places, strict=True)
        ]
        return self.looked(asked, ctx, call)

    def value_anywhere(self, expression: Expression | None, members: SetValue, ctx: Context) -> Value | None:
        """An expression as it is at every position of a set: a constant or a formula of the cells there.

        None where its shape hangs on the position.
        """
        known, overrides = (
            {column: number for column, number in given.items() if column not in members.columns}
            for given in (ctx.known, ctx.overrides)
        )
        anywhere = Context(ctx.source, known, overrides)
        if expression is None:
            return Linear(None, {anywhere.reference(): Fraction(1)})
        try:
            value = self.evaluate(expression, anywhere)
        except NeedColumnError:
            return None
        return value if _is_constant(value) else self.as_formula(value, expression, anywhere)

    def looked(self, asked: Asked, ctx: Context, call: Call) -> Looked | None:
        """Values of formulas that hang on cells, as far as they may be seen.

        Raises
        ------
        UserError
        """
        if self.look is None:
            cause = f"{call.function} picks or orders members by values of cells, which may be confidential."
            raise self.error(ctx, call.at, cause, "Choose members by name, level or property instead.")
        try:
            with self._reading(ctx, call):
                looked = self.look(asked, len(self.columns), self.placed)
        except RecomputedError:
            cause = f"{call.function} can't go by a measure that is taken over several members again."
            raise self.error(ctx, call.at, cause, "Go by a cell of the cube.") from None
        if looked is not None:
            self.meet(looked.basis)
        return looked

    def value_here(self, formula: Formula, ctx: Context, call: Call) -> float:
        """The value of a formula at the members of the context, nan where it is empty.

        Raises
        ------
        UserError
            When it hangs on the values of cells and these may not be seen.
        """
        if isinstance(formula, Linear) and formula.is_constant:
            return math.nan if formula.constant is None else float(formula.constant)
        looked = self.looked([(formula, Positions(ctx))], ctx, call) if self.gives_texts else None
        if looked is None:
            cause = f"{call.function} makes a text of values of cells, which may be confidential."
            raise self.error(ctx, call.at, cause, "Use FORMAT_STRING to say how a value is printed.")
        return float(looked.values[0])

    def filled(self, members: SetValue, ctx: Context, call: Call) -> NDArray[np.bool_]:
        """bool[n]: positions of a set whose cell has facts, which is public."""
        if self.occupied is None:
            raise self.error(ctx, call.at, f"{call.function} can't read cells here.")
        if not len(members):
            return np.zeros(0, dtype=np.bool_)
        with self._reading(ctx, call):
            return self.occupied(Positions(ctx, members.columns, members.rows))

    @contextmanager
    def _reading(self, ctx: Context, call: Call) -> Iterator[None]:
        if self._looking >= MAX_LOOKS:
            cause = f"{call.function} hangs on the cells that it is to choose, or on too many others."
            raise self.error(ctx, call.at, cause)
        self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1

    def _seen(self, value: Value) -> Value:
        if not isinstance(value, SetValue):
            return value
        self.made(value)
        return self.visible(value) if self.within or self._unlisted else value

    def visible(self, members: SetValue) -> SetValue:
        """The set without what a sub-select leaves out, and what the cube doesn't list."""
        chosen = np.ones(len(members), dtype=bool)
        for place, column in enumerate(members.columns):
            if column in self._unlisted:
                chosen &= ~np.isin(members.rows[:, place], self._unlisted[column])
            if column in self.within:
                numbers = members.rows[:, place]
                size = self.columns[column].hierarchy.size
                own = self.within[column][np.minimum(numbers, size - 1)]
                chosen &= (numbers >= size) | (own >= 0)
        return members if chosen.all() else members.taking(members.rows[chosen])

    def limited(self, value: SetValue, at: int, ctx: Context) -> SetValue:
        most = self.limits.tuples
        if len(value) > most:
            raise self.error(ctx, at, f"The set has {len(value):,} tuples; the limit is {most:,}.")
        return value

    def _tuple(self, items: tuple[Expression, ...], ctx: Context) -> Value:
        columns: list[int] = []
        numbers: list[int] = []
        values = [self.evaluate(item, ctx) for item in items]
        if any(isinstance(value, SetValue) for value in values):
            return self.cross([self.to_any_set(item, ctx) for item in items], items[0].at, ctx)
        for item in items:
            position = self.to_tuple(item, ctx)
            for column, number in zip(position.columns, position.numbers, strict=True):
                if column in columns:
                    name = self.columns[column].hierarchy.unique_name
                    raise self.error(ctx, item.at, f"{name} is in the tuple twice.")
                columns.append(column)
                numbers.append(number)
        return TupleValue(tuple(columns), tuple(numbers))

    def cross(self, parts: list[SetValue], at: int, ctx: Context) -> SetValue:
        """Every combination of tuples, the first set varying slowest."""
        columns = tuple(column for part in parts for column in part.columns)
        for column in columns:
            if columns.count(column) > 1:
                name = self.columns[column].hierarchy.unique_name
                raise self.error(ctx, at, f"{name} is on both sides of a CrossJoin.")
        size = 1
        for part in parts:
            size *= len(part)
        if size > self.limits.tuples:
            shape = " × ".join(f"{len(part):,}" for part in parts)
            cause = f"The CrossJoin has {shape} = {size:,} tuples; the limit is {self.limits.tuples:,}."
            raise self.error(ctx, at, cause, "Take fewer members, or split the query.")
        pending = any(part.pending for part in parts)
        if size == 0:
            return SetValue(columns, np.zeros((0, len(columns)), dtype=np.int32), pending)
        result = parts[0].rows
        for part in parts[1:]:
            left = np.repeat(result, len(part), axis=0)
            right = np.tile(part.rows, (len(result), 1))
            result = np.concatenate([left, right], axis=1)
        return SetValue(columns, result, pending)


def _is_constant(value: Value) -> bool:
    if isinstance(value, (TupleValue, HierarchyValue, Apply, Recompute, Text, Withheld)):
        return False
    return not isinstance(value, Linear) or value.is_constant
