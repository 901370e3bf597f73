"""Where an expression is evaluated, within which limits, and calculated members as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from app.cube.values import TupleValue
from app.domain.cellset import CalculatedMember
from app.domain.cube import IntArray
from app.domain.formula import Overrides
from app.mdx import Source
from app.mdx.tree import Expression


class NeedColumnError(Exception):
    """The formula's shape depends on the current member of this column."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class Limits:
    """How large the parts of a query may grow.

    Attributes
    ----------
    tuples : int
        Of a set.
    cells : int
        On the axes of an answer.
    operands : int
        Cells of an answer with all operands of its formulas.
    definitions : int
        Members and sets that a query defines.
    steps : int
        Expressions that are evaluated, each for each position of the sets around it.
    letters : int
        Of a text that is made on the way.
    words : int
        Letters of a name, caption, format or text that stands in an answer, at each of its cells perhaps.
    """

    tuples: int = 1_000_000
    cells: int = 2_000_000
    operands: int = 8_000_000
    definitions: int = 100_000
    steps: int = 50_000_000
    letters: int = 100_000_000
    words: int = 10_000


@dataclass(frozen=True)
class Context:
    """Where an expression is evaluated.

    Attributes
    ----------
    known
        Current member by column; a column that isn't here raises `NeedColumnError` when asked for.
    overrides
        Members that an iteration has set: part of every reference to a cell.
    """

    source: Source
    known: Mapping[int, int]
    overrides: Mapping[int, int] = field(default_factory=dict)

    def current(self, column: int) -> int:
        if column in self.overrides:
            return self.overrides[column]
        if column not in self.known:
            raise NeedColumnError(column)
        return self.known[column]

    def at(self, position: TupleValue) -> Context:
        """The context of one position of a set."""
        moved = dict(zip(position.columns, position.numbers, strict=True))
        return replace(self, overrides={**self.overrides, **moved})

    def reference(self, position: TupleValue | None = None) -> Overrides:
        members = dict(self.overrides)
        if position is not None:
            members.update(zip(position.columns, position.numbers, strict=True))
        return tuple(sorted(members.items()))


@dataclass(frozen=True, eq=False)
class Positions:
    """A context at each position of a set: ``rows`` (int32[n, k]) are members of ``columns``."""

    ctx: Context
    columns: tuple[int, ...] = ()
    rows: IntArray = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, columns: int) -> IntArray:
        """The current members of the first columns of all: int32[n, columns]."""
        result = np.zeros((len(self), columns), dtype=np.int32)
        if len(self):
            for column in range(columns):
                if column not in self.columns:
                    result[:, column] = self.ctx.current(column)
        result[:, list(self.columns)] = self.rows
        return result


@dataclass(frozen=True, eq=False)
class Definition:
    """A calculated member as it was written.

    A visual total ``stands_for`` a member of the cube of which only a part is taken. ``parent`` is the member
    that it was written under, -1 for none. ``is_text``: the analyst sees the text that its format
    makes of its value.
    """

    member: CalculatedMember
    number: int
    formula: Expression
    source: Source
    at: int
    solve_order: Fraction | None
    stands_for: int | None = None
    parent: int = -1
    is_text: bool = False
