"""MDX functions that give texts, or read them."""

from __future__ import annotations

from fractions import Fraction

from app.cube.context import Context
from app.cube.conversions import NUMBER, number_of
from app.cube.evaluate import Evaluator, function
from app.cube.properties import plain_name, property_of
from app.cube.values import HierarchyValue, LevelValue, TupleValue, Value
from app.domain.formula import constant
from app.domain.numbers import format_text, spelled_out
from app.mdx import brief
from app.mdx.tree import Call


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


@function("VAL", "CDBL", "CINT")
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


@function("LEN", "UCASE", "LCASE", "LEFT", "RIGHT", "TRIM")
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
