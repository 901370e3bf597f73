"""The tree of an MDX query: frozen nodes, each with the offset it was written at.

Offsets don't take part in comparisons: two texts that differ in blanks only have equal trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from app.mdx.source import Source


def _offset() -> int:
    return field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A step of a name: ``[Madrid]``, or keys as ``&[28]&[079]`` (``text`` is then the first)."""

    text: str
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name: of a dimension, hierarchy, level, member, set or measure."""

    parts: tuple[Part, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Parameter:
    """``@name``: stands for a member that the visitor chooses."""

    name: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class String:
    value: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Null:
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Braces:
    """A set written out: ``{a, b, c}``."""

    items: tuple[Expression, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Parens:
    """One item: brackets round an expression; several: a tuple."""

    items: tuple[Expression, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Call:
    """A function, written ``F(a, b)`` (target None), ``t.F`` (arguments None) or ``t.F(a)``.

    An argument left out between commas is None.
    """

    function: str
    target: Expression | None
    arguments: tuple[Expression | None, ...] | None
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands of equal precedence from left to right; operator ``k`` stands before operand ``k+1``."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x``, ``+x``, ``NOT x`` or ``EXISTING x``."""

    operator: Literal["-", "+", "NOT", "EXISTING"]
    operand: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Range:
    """``first : last``."""

    first: Expression
    last: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE [subject] WHEN … THEN … ELSE … END``."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Alias:
    """``set AS name``: a set named where it is used."""

    expression: Expression
    name: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Given:
    """A set that no text says: tuples of members, each by its column and number, as its maker counts."""

    columns: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    at: int = _offset()


Expression = (
    Name
    | Parameter
    | Number
    | String
    | Null
    | Braces
    | Parens
    | Call
    | Chain
    | Unary
    | Range
    | Case
    | Alias
    | Given
)


@dataclass(frozen=True, slots=True)
class MemberDefinition:
    """``WITH MEMBER name AS formula, PROPERTY = value, …``; property names in capitals."""

    name: Name
    formula: Expression
    properties: tuple[tuple[str, Expression], ...] = ()
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class SetDefinition:
    """``WITH SET name AS set``."""

    name: Name
    formula: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class AxisDefinition:
    """A set on an axis; ``properties`` are the member properties asked for."""

    ordinal: int
    set: Expression
    non_empty: bool = False
    properties: tuple[Name, ...] = ()
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class SubSelect:
    """``(SELECT … FROM …)`` in place of a cube's name."""

    axes: tuple[AxisDefinition, ...]
    source: Name | SubSelect
    slicer: Expression | None = None
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query; ``axes`` in order of their ordinals."""

    definitions: tuple[MemberDefinition | SetDefinition, ...]
    axes: tuple[AxisDefinition, ...]
    cube: Name | SubSelect
    slicer: Expression | None = None
    cell_properties: tuple[Name, ...] = ()
    source: Source = field(default=Source(""), compare=False, repr=False)

    @property
    def cube_asked(self) -> Name:
        """The name of the cube, through sub-selects."""
        source = self.cube
        while isinstance(source, SubSelect):
            source = source.source
        return source

    @property
    def cube_name(self) -> str:
        """The last part of the cube's name."""
        return self.cube_asked.parts[-1].text
