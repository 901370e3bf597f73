"""From the tree back to text, in one normal form: printing and parsing again gives the same tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from app.domain.errors import UserError
from app.mdx.parser import parse_expression
from app.mdx.tree import (
    Alias,
    AxisDefinition,
    Braces,
    Call,
    Case,
    Chain,
    Expression,
    Given,
    MemberDefinition,
    Name,
    Null,
    Number,
    Parameter,
    Parens,
    Part,
    Query,
    Range,
    SetDefinition,
    String,
    SubSelect,
    Unary,
)

Node = Query | Expression | MemberDefinition | SetDefinition | AxisDefinition | SubSelect
_AXES = ("COLUMNS", "ROWS", "PAGES", "SECTIONS", "CHAPTERS")
#: Letters of what a sentence says again.
_BRIEF = 80
_N = TypeVar("_N", bound=Query | Expression)


def to_text(node: Node) -> str:
    """The node as MDX on one line, names in square brackets, keywords in capitals."""
    match node:
        case Query():
            return _query(node)
        case MemberDefinition(name, formula, properties):
            extra = "".join(f", {key} = {to_text(value)}" for key, value in properties)
            return f"MEMBER {to_text(name)} AS {to_text(formula)}{extra}"
        case SetDefinition(name, formula):
            return f"SET {to_text(name)} AS {to_text(formula)}"
        case AxisDefinition(ordinal, axis_set, non_empty, properties):
            wanted = f" DIMENSION PROPERTIES {', '.join(map(to_text, properties))}" if properties else ""
            where = _AXES[ordinal] if ordinal < len(_AXES) else str(ordinal)
            return f"{'NON EMPTY ' if non_empty else ''}{to_text(axis_set)}{wanted} ON {where}"
        case SubSelect(axes, source, slicer):
            return f"({_select(axes, source, slicer)})"
        case _:
            return _expression(node)


def _query(query: Query) -> str:
    definitions = " ".join(map(to_text, query.definitions))
    text = f"WITH {definitions} " if definitions else ""
    text += _select(query.axes, query.cube, query.slicer)
    if query.cell_properties:
        text += f" CELL PROPERTIES {', '.join(map(to_text, query.cell_properties))}"
    return text


def _select(axes: tuple[AxisDefinition, ...], source: Name | SubSelect, slicer: Expression | None) -> str:
    shown = ", ".join(map(to_text, axes))
    text = f"SELECT {shown} FROM" if shown else "SELECT FROM"
    text += f" {to_text(source)}"
    return text if slicer is None else f"{text} WHERE {to_text(slicer)}"


def _expression(node: Expression) -> str:
    match node:
        case Name(parts):
            return ".".join(map(_part, parts))
        case Parameter(name):
            return f"@{name}"
        case Given():
            return "{…}"
        case Number(value):
            return _number(value)
        case String(value):
            return '"' + value.replace('"', '""') + '"'
        case Null():
            return "NULL"
        case Braces(items):
            return f"{{{', '.join(map(to_text, items))}}}"
        case Parens(items):
            return f"({', '.join(map(to_text, items))})"
        case Call(function, target, arguments):
            shown = (
                ""
                if arguments is None
                else f"({', '.join('' if a is None else to_text(a) for a in arguments)})"
            )
            return f"{function}{shown}" if target is None else f"{to_text(target)}.{function}{shown}"
        case Chain(operands, operators):
            rest = (f" {sign} {to_text(right)}" for sign, right in zip(operators, operands[1:], strict=True))
            return to_text(operands[0]) + "".join(rest)
        case Unary(operator, operand):
            return f"{operator} {to_text(operand)}" if operator.isalpha() else f"{operator}{_spaced(operand)}"
        case Range(first, last):
            return f"{to_text(first)} : {to_text(last)}"
        case Case(subject, branches, otherwise):
            text = "CASE" if subject is None else f"CASE {to_text(subject)}"
            text += "".join(f" WHEN {to_text(test)} THEN {to_text(value)}" for test, value in branches)
            return f"{text} END" if otherwise is None else f"{text} ELSE {to_text(otherwise)} END"
        case Alias(expression, name):
            return f"{to_text(expression)} AS {quote(name)}"


def _spaced(operand: Expression) -> str:
    # Two minus signs in a row would begin a comment.
    return f" {to_text(operand)}" if isinstance(operand, Unary) else to_text(operand)


def quote(name: str) -> str:
    """A name in square brackets."""
    return f"[{name.replace(']', ']]')}]"


def brief(node: Node | str) -> str:
    """A node, or what somebody wrote, as a sentence about it can hold it."""
    text = node if isinstance(node, str) else to_text(node)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…"


def _part(part: Part) -> str:
    if part.keys is not None:
        return "".join(f"&{quote(key)}" for key in part.keys)
    return quote(part.text)


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    places = 0
    scaled = value
    # Every number that the parser reads is a decimal, so this ends.
    while scaled.denominator != 1:
        scaled *= 10
        places += 1
    digits = str(scaled.numerator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def substitute(query: _N, values: Mapping[str, str]) -> _N:
    """The tree with every ``@name`` replaced by the member of that unique name.

    Raises
    ------
    UserError
        When the text of a value isn't a name, or a parameter has no value.
    """
    names: dict[str, Name] = {}
    for parameter, text in values.items():
        node = parse_expression(text)
        if not isinstance(node, Name):
            raise UserError(f"The value of parameter {parameter} isn't the name of a member.")
        names[parameter] = node
    source = query.source if isinstance(query, Query) else None

    def missing(node: Parameter) -> UserError:
        cause = f"Parameter @{brief(node.name)} has no value."
        return UserError(source.mistake(node.at, cause) if source is not None else cause)

    def walk(node: Any) -> Any:
        if isinstance(node, Parameter):
            if node.name not in names:
                raise missing(node)
            return replace(names[node.name], at=node.at)
        if isinstance(node, tuple):
            return tuple(map(walk, node))
        if not is_dataclass(node) or isinstance(node, (Name, type)) or node is source:
            return node
        changed = {field.name: walk(getattr(node, field.name)) for field in fields(node)}
        return replace(node, **changed)

    result: _N = walk(query)
    return result
