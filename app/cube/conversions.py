"""What the value of an MDX expression is taken as: a set, a tuple, a member, a formula, a text, a level."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from fractions import Fraction

from app.cube.basis import Bases
from app.cube.budget import Budget
from app.cube.context import Context
from app.cube.names import Column
from app.cube.values import (
    DimensionValue,
    HierarchyValue,
    LevelValue,
    SetValue,
    TupleValue,
    Value,
)
from app.domain.errors import UserError
from app.domain.formula import EMPTY, Apply, Formula, Linear, Recompute, Text, Withheld, constant
from app.mdx.tree import Expression, Name

#: A number as texts have it.
NUMBER = re.compile(r"\s*[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,2})?\s*")


def number_of(text: str) -> Linear | None:
    """The number that a text is, as of a property; of an empty text nothing, None of any other."""
    if not text:
        return EMPTY
    return constant(Fraction(text.strip())) if NUMBER.fullmatch(text) else None


class Conversions(Budget, Bases, ABC):
    """Takes values as what a function or operator needs; what can't be is told with its position.

    Attributes
    ----------
    columns : tuple of Column
    gives_texts : bool
        Whether cells may hold texts.
    """

    columns: tuple[Column, ...]
    gives_texts: bool

    @abstractmethod
    def evaluate(self, node: Expression, ctx: Context) -> Value:
        """The value of an expression."""

    def kind(self, value: Value) -> str:
        match value:
            case TupleValue():
                return "a member" if len(value.columns) == 1 else "a tuple"
            case SetValue():
                return "a set"
            case LevelValue():
                return "a level"
            case HierarchyValue() | DimensionValue():
                return "a hierarchy"
            case str():
                return "a text"
            case bool():
                return "a truth value"
            case _:
                return "a number"

    def to_set(self, node: Expression | None, ctx: Context) -> SetValue:
        """A set of which it is known what is in it."""
        return self.decided(self.to_any_set(node, ctx), node, ctx)

    def decided(self, found: SetValue, node: Expression | None, ctx: Context) -> SetValue:
        """The set, unless it is open what is in it."""
        if found.pending:
            raise self.open_set(self.given(node, ctx).at, ctx)
        return found

    def firm(self, at: int, ctx: Context) -> None:
        """Refuse what is being made where it hangs on figures that are hidden.

        Raises
        ------
        UserError
        """
        if self.basis.is_partial:
            raise self.open_set(at, ctx)

    def open_set(self, at: int, ctx: Context) -> UserError:
        cause = "This set is chosen or ordered by values of cells, which may be confidential."
        remedy = "It can stand on an axis, where it is made of the values that are shown; not here."
        return self.error(ctx, at, cause, remedy)

    def to_any_set(self, node: Expression | None, ctx: Context) -> SetValue:
        """A set that may be `pending`."""
        node = self.given(node, ctx)
        return self.as_set(self.evaluate(node, ctx), node, ctx)

    def as_set(self, value: Value, node: Expression, ctx: Context) -> SetValue:
        if isinstance(value, SetValue):
            return value
        position = self.position(value, ctx)
        if position is None:
            remedy = "Add .Members." if isinstance(value, LevelValue) else ""
            raise self.error(ctx, node.at, f"Expected a set, but this is {self.kind(value)}.", remedy)
        return SetValue.of(position.columns, [] if position.is_nothing else [position.numbers])

    def to_tuple(self, node: Expression | None, ctx: Context) -> TupleValue:
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        position = self.position(value, ctx)
        if position is None and isinstance(value, SetValue) and len(value) == 1:
            position = value.tuples()[0]
        if position is None:
            raise self.error(ctx, node.at, f"Expected a member or tuple, but this is {self.kind(value)}.")
        return position

    def to_member(self, node: Expression | None, ctx: Context) -> TupleValue:
        position = self.to_tuple(node, ctx)
        if len(position.columns) != 1:
            raise self.error(ctx, self.given(node, ctx).at, "Expected a member, but this is a tuple.")
        return position

    def position(self, value: Value, ctx: Context) -> TupleValue | None:
        if isinstance(value, TupleValue):
            return value
        if isinstance(value, HierarchyValue):
            return TupleValue((value.column,), (ctx.current(value.column),))
        return None

    def given(self, node: Expression | None, ctx: Context) -> Expression:
        if node is None:
            raise self.error(ctx, 0, "An argument is missing.")
        return node

    def to_formula(self, node: Expression | None, ctx: Context) -> Formula:
        """A value: a reference to a cell where the expression is a member or tuple; the number of a text."""
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        number = number_of(value) if isinstance(value, str) else None
        return self.as_formula(value, node, ctx) if number is None else number

    def to_cell(self, node: Expression | None, ctx: Context) -> Formula:
        """What a cell holds: a value, or for the analyst a text."""
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        if isinstance(value, str) and self.gives_texts:
            if len(value) > self.limits.words:
                raise self.error(ctx, node.at, f"A text in cells has {self.limits.words:,} letters at most.")
            return Text(value)
        return self.as_formula(value, node, ctx)

    def as_formula(self, value: Value, node: Expression, ctx: Context) -> Formula:
        match value:
            case Linear() | Apply() | Recompute() | Text() | Withheld():
                return value
            case TupleValue():
                if value.is_nothing:
                    return EMPTY
                return Linear(None, {ctx.reference(value): Fraction(1)})
            case HierarchyValue():
                return Linear(None, {ctx.reference(): Fraction(1)})
            case bool():
                return constant(int(value))
            case _:
                remedy = "Texts can't be published as cells." if isinstance(value, str) else ""
                cause = f"Expected a value, but this is {self.kind(value)}."
                raise self.error(ctx, node.at, cause, remedy)

    def to_integer(self, node: Expression | None, ctx: Context) -> int:
        node = self.given(node, ctx)
        formula = self.to_formula(node, ctx)
        if not isinstance(formula, Linear) or not formula.is_constant or formula.constant is None:
            raise self.error(ctx, node.at, "Expected a whole number that is written out.")
        if formula.constant.denominator != 1:
            raise self.error(ctx, node.at, "Expected a whole number.")
        return int(formula.constant)

    def to_text(self, node: Expression | None, ctx: Context) -> str:
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        if not isinstance(value, str):
            raise self.error(ctx, node.at, f"Expected a text, but this is {self.kind(value)}.")
        self.write(len(value), node, ctx)
        return value

    def to_column(self, node: Expression | None, ctx: Context) -> int:
        """The hierarchy that an expression is of."""
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        if isinstance(value, (HierarchyValue, LevelValue)):
            return value.column
        if isinstance(value, TupleValue) and len(value.columns) == 1:
            return value.columns[0]
        if isinstance(value, DimensionValue):
            options = ", ".join(self.columns[c].hierarchy.unique_name for c in value.columns)
            cause = f"Dimension {value.name} has several hierarchies: {options}."
            raise self.error(ctx, node.at, cause, "Write one of them.")
        raise self.error(ctx, node.at, f"Expected a hierarchy, but this is {self.kind(value)}.")

    def to_level(self, node: Expression | None, ctx: Context) -> LevelValue:
        node = self.given(node, ctx)
        value = self.evaluate(node, ctx)
        if not isinstance(value, LevelValue):
            raise self.error(ctx, node.at, f"Expected a level, but this is {self.kind(value)}.")
        return value

    def flag(self, node: Expression | None, allowed: tuple[str, ...], ctx: Context) -> str:
        """A word such as LEAVES or ALL among a function's arguments."""
        if node is None:
            return ""
        word = node.parts[0].text.upper() if isinstance(node, Name) and len(node.parts) == 1 else ""
        if word not in allowed:
            raise self.error(
                ctx,
                node.at,
                f"Expected {', '.join(allowed[:-1])} or {allowed[-1]}."
                if len(allowed) > 1
                else f"Expected {allowed[0]}.",
            )
        return word

    def is_flag(self, node: Expression | None, allowed: tuple[str, ...]) -> bool:
        return isinstance(node, Name) and len(node.parts) == 1 and node.parts[0].text.upper() in allowed
