"""MDX functions that give texts, or read them."""

from __future__ import annotations

import math
from fractions import Fraction

from app.cube.context import Context
from app.cube.conversions import NUMBER, number_of
from app.cube.evaluate import Evaluator, function
from app.cube.properties import plain_name, property_of
from app.cube.values import HierarchyValue, LevelValue, TupleValue, Value
from app.domain.formula import EMPTY, constant
from app.domain.numbers import format_text, plain_number, spelled_out
from app.mdx import brief
from app.mdx.tree import Alias, Call

#: Types that values are cast to, and the function that does it.
_CASTS = {
    "STRING": "CStr",
    "INTEGER": "Fix",
    "NUMERIC": "CDbl",
    "DECIMAL": "CDbl",
    "DOUBLE": "CDbl",
    "BOOLEAN": "CBool",
}


@function("NAME", "CAPTION", "UNIQUENAME", "UNIQUE_NAME", "KEY", "MEMBERVALUE")
@function("MEMBER_NAME", "MEMBER_CAPTION", "MEMBER_UNIQUE_NAME", "MEMBER_KEY", "MEMBER_VALUE")
def _text(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (target,) = ev.arguments(call, 1, 1, ctx)
    value = ev.evaluate(ev.given(target, ctx), ctx)
    name = plain_name(call.function)
    if isinstance(value, LevelValue):
        level = ev.columns[value.column].hierarchy.levels[value.level]
        return level.unique_name if name == "UNIQUE_NAME" else level.name
    if isinstance(value, HierarchyValue) and name in ("NAME", "UNIQUE_NAME"):
        tree = ev.columns[value.column].hierarchy
        return tree.unique_name if name == "UNIQUE_NAME" else tree.name
    return member_property(ev, ev.to_member(target, ctx), f"MEMBER_{name}") or ""


def member_property(ev: Evaluator, member: TupleValue, name: str) -> str | None:
    """A property of a member, None if there is no such property; of no member it is an empty text."""
    tree = ev.columns[member.columns[0]].hierarchy
    number = member.numbers[0]
    if number < 0:
        return ""
    if number >= tree.size:
        calculated = ev.definitions[member.columns[0], number].member
        unique = plain_name(name) == "UNIQUE_NAME"
        return ev.unique_name(member.columns[0], number) if unique else calculated.name
    return property_of(tree, number, name)


@function("PROPERTIES")
def _properties(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, which, word = ev.arguments(call, 2, 3, ctx)
    typed = ev.flag(word, ("TYPED",), ctx) == "TYPED"
    member = ev.to_member(target, ctx)
    name = ev.to_text(which, ctx)
    value = member_property(ev, member, name)
    if value is None:
        known = ", ".join(ev.columns[member.columns[0]].hierarchy.properties) or "none"
        raise ev.error(ctx, call.at, f"There is no property {brief(name)}; there are: {known}.")
    number = number_of(value) if typed else None
    return value if number is None else number


@function("FORMAT")
def _format(ev: Evaluator, call: Call, ctx: Context) -> Value:
    value, form = ev.arguments(call, 2, 2, ctx)
    number = ev.value_here(ev.to_formula(value, ctx), ctx, call)
    language = next(iter(ev.names.cube.captions), "en")
    return format_text(number, spelled_out(ev.to_text(form, ctx), language), "en")


@function("VAL", "CDBL", "CSNG")
def _number_of(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The number that a text begins with; of other values, these themselves."""
    (node,) = ev.arguments(call, 1, 1, ctx)
    value = ev.evaluate(ev.given(node, ctx), ctx)
    if not isinstance(value, str):
        return ev.as_formula(value, ev.given(node, ctx), ctx)
    found = NUMBER.match(value)
    return constant(Fraction(found.group().strip()) if found else 0)


@function("MEMBERTOSTR", "TUPLETOSTR", "SETTOSTR")
def _written(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (node,) = ev.arguments(call, 1, 1, ctx)
    if call.function.upper() != "SETTOSTR":
        return _tuple_text(ev, ev.to_tuple(node, ctx))
    return f"{{{', '.join(_tuple_text(ev, position) for position in ev.to_set(node, ctx).tuples())}}}"


def _tuple_text(ev: Evaluator, position: TupleValue) -> str:
    names = [
        member_property(ev, TupleValue((column,), (number,)), "UNIQUE_NAME") or "NULL"
        for column, number in zip(position.columns, position.numbers, strict=True)
    ]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


@function("MID", "REPLACE")
def _part(ev: Evaluator, call: Call, ctx: Context) -> Value:
    first, second, third = ev.arguments(call, 2, 3, ctx)
    text = ev.to_text(first, ctx)
    if call.function.upper() == "REPLACE":
        old, new = ev.to_text(second, ctx), ev.to_text(third, ctx)
        ev.write(len(text) + text.count(old) * max(len(new) - len(old), 0), call, ctx)
        return text.replace(old, new)
    start = ev.to_integer(second, ctx) - 1
    if start < 0:
        raise ev.error(ctx, call.at, "Mid counts from 1.")
    return text[start:] if third is None else text[start : start + max(0, ev.to_integer(third, ctx))]


@function("CSTR", "STR")
def _as_text(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A value as a text; of members, their cell."""
    (node,) = ev.arguments(call, 1, 1, ctx)
    value = ev.evaluate(ev.given(node, ctx), ctx)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    number = ev.value_here(ev.as_formula(value, ev.given(node, ctx), ctx), ctx, call)
    return "" if math.isnan(number) else plain_number(number)


@function("CAST")
def _cast(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """``Cast(x AS TYPE)``, as Mondrian has it: whole numbers lose what is behind the point."""
    (node,) = ev.arguments(call, 1, 1, ctx)
    kind = node.name.upper() if isinstance(node, Alias) else ""
    if not isinstance(node, Alias) or kind not in _CASTS:
        raise ev.error(ctx, call.at, f"Cast is written Cast(value AS type); types are {', '.join(_CASTS)}.")
    return ev.evaluate(Call(_CASTS[kind], None, (node.expression,), call.at), ctx)


@function("SPACE", "STRING")
def _repeated(ev: Evaluator, call: Call, ctx: Context) -> Value:
    count, text = ev.arguments(call, 1, 2, ctx)
    letter = " " if text is None else ev.to_text(text, ctx)[:1]
    n = max(0, ev.to_integer(count, ctx))
    ev.write(n, call, ctx)
    return letter * n


@function("STRCOMP")
def _compared(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """-1, 0 or 1 as a text comes before, is, or comes after another; a 1 behind them: whatever their case."""
    first, second, how = ev.arguments(call, 2, 3, ctx)
    one, other = ev.to_text(first, ctx), ev.to_text(second, ctx)
    if how is not None and ev.to_integer(how, ctx) == 1:
        one, other = one.lower(), other.lower()
    return constant((one > other) - (one < other))


@function("CHR", "CHRW")
def _letter(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (code,) = ev.arguments(call, 1, 1, ctx)
    number = ev.to_integer(code, ctx)
    if not 32 <= number <= 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise ev.error(ctx, call.at, f"There is no letter {number}.")
    return chr(number)


@function("INSTRREV")
def _last_place_in(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Where a text is last in another one, from 1; 0: nowhere."""
    text, sought = ev.arguments(call, 2, 2, ctx)
    return constant(ev.to_text(text, ctx).lower().rfind(ev.to_text(sought, ctx).lower()) + 1)


@function("LEN", "UCASE", "LCASE", "LEFT", "RIGHT", "TRIM", "LTRIM", "RTRIM", "STRREVERSE", "ASC", "ASCW")
def _texts(ev: Evaluator, call: Call, ctx: Context) -> Value:
    first, second = ev.arguments(call, 1, 2, ctx)
    text = ev.to_text(first, ctx)
    match call.function.upper():
        case "LEN":
            return constant(len(text))
        case "UCASE":
            return text.upper()
        case "LCASE":
            return text.lower()
        case "TRIM":
            return text.strip()
        case "LTRIM":
            return text.lstrip()
        case "RTRIM":
            return text.rstrip()
        case "STRREVERSE":
            return text[::-1]
        case "ASC" | "ASCW":
            return constant(ord(text[0])) if text else EMPTY
        case "LEFT":
            return text[: max(0, ev.to_integer(second, ctx))]
        case _:
            return text[max(0, len(text) - ev.to_integer(second, ctx)) :]


@function("INSTR")
def _place_in(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Where a text is first in another one, from 1, or from a place that is given first; 0: nowhere."""
    given = [node for node in ev.arguments(call, 2, 4, ctx) if node is not None]
    start = 1 if isinstance(ev.evaluate(given[0], ctx), str) else ev.to_integer(given.pop(0), ctx)
    if start < 1:
        raise ev.error(ctx, call.at, "InStr counts from 1.")
    if len(given) < 2:
        raise ev.error(ctx, call.at, "InStr takes a text, and the text that is sought in it.")
    text, sought = (ev.to_text(node, ctx).lower() for node in given[:2])
    return constant(text.find(sought, start - 1) + 1)
