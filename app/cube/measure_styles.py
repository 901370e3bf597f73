"""How a calculated measure prints that says nothing of it: as the measures that its formula is over.

A sum or difference has no more decimals than what it is made of, so it prints and is published with those;
of a quotient, a mean or a root that can't be said.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from app.cube.context import Definition
from app.cube.evaluate import Evaluator
from app.cube.values import TupleValue
from app.domain.cellset import CalculatedMember
from app.domain.errors import UserError
from app.domain.numbers import decimals_format
from app.mdx import Source
from app.mdx.tree import Call, Case, Chain, Expression, Name, Number, Parens, Unary

#: Functions whose values are whole numbers.
_WHOLE = frozenset(
    [
        "COUNT",
        "DISTINCTCOUNT",
        "RANK",
        "INT",
        "FIX",
        "CINT",
        "SGN",
        "LEN",
        "INSTR",
        "ORDINAL",
        "CURRENTORDINAL",
    ]
)
#: Functions whose values are one of their arguments, or sums of them.
_KEEPING = frozenset(
    ["SUM", "AGGREGATE", "MIN", "MAX", "ABS", "IIF", "COALESCEEMPTY", "VALUE", "ITEM", "CDBL", "VALIDMEASURE"]
)
#: Functions that give members, levels and sets, in which no measure is added to another.
_STRUCTURAL = frozenset(
    [
        *("CURRENTMEMBER", "PARENT", "PREVMEMBER", "NEXTMEMBER", "LAG", "LEAD", "FIRSTCHILD", "LASTCHILD"),
        *(
            "PARALLELPERIOD",
            "OPENINGPERIOD",
            "CLOSINGPERIOD",
            "ANCESTOR",
            "COUSIN",
            "DEFAULTMEMBER",
            "CHILDREN",
        ),
        *("MEMBERS", "DESCENDANTS", "YTD", "QTD", "MTD", "WTD", "PERIODSTODATE", "LASTPERIODS", "SIBLINGS"),
        *(
            "CROSSJOIN",
            "UNION",
            "EXCEPT",
            "INTERSECT",
            "HEAD",
            "TAIL",
            "FILTER",
            "LEVEL",
            "DATAMEMBER",
            "ALL",
        ),
    ]
)
_MOST_DEPTH = 20


class _Digits(NamedTuple):
    """Decimals that a value has at most, and the format of the first measure that it is of, if any."""

    decimals: int
    form: str | None = None


def style_of_formula(ev: Evaluator, definition: Definition, depth: int = 0) -> CalculatedMember:
    """The calculated measure with the format and decimals of its formula's measures, if these are known."""
    member = definition.member
    if member.column or member.format is not None or member.decimals is not None or depth > _MOST_DEPTH:
        return member
    found = _digits(ev, definition.formula, definition.source, depth)
    if found is None:
        return member
    return replace(member, format=found.form or decimals_format(found.decimals), decimals=found.decimals)


def _digits(ev: Evaluator, node: Expression | None, source: Source, depth: int) -> _Digits | None:
    """What is known of the decimals of a value; None: nothing."""
    match node:
        case Number(value):
            return _of_number(value)
        case Name():
            return _of_name(ev, node, source, depth)
        case Parens(items):
            return _most(ev, items, source, depth)
        case Unary(operator, operand):
            return _digits(ev, operand, source, depth) if operator in "+-" else _Digits(0)
        case Chain(operands, operators):
            return _of_chain(ev, operands, operators, source, depth)
        case Case(_, branches, otherwise):
            results = [result for _, result in branches]
            return _most(ev, [*results, otherwise] if otherwise else results, source, depth)
        case Call(name, target, arguments):
            given = [part for part in (target, *(arguments or ())) if part is not None]
            if name.upper() in _WHOLE:
                return _Digits(0)
            if name.upper() in _STRUCTURAL:
                return _Digits(0)
            if name.upper() == "IIF":
                given = given[1:]
            return _most(ev, given, source, depth) if name.upper() in _KEEPING else None
        case _:
            return _Digits(0)


def _of_number(value: Fraction) -> _Digits | None:
    for digits in range(13):
        if (value * 10**digits).denominator == 1:
            return _Digits(digits)
    return None


def _of_name(ev: Evaluator, node: Name, source: Source, depth: int) -> _Digits | None:
    try:
        found = ev.names.resolve(node, source)
    except UserError:
        return _Digits(0)
    if not isinstance(found, TupleValue) or found.columns != (0,):
        return _Digits(0)
    (number,) = found.numbers
    measures = ev.names.cube.measures
    if number < len(measures):
        return _Digits(measures[number].decimals, measures[number].format)
    other = style_of_formula(ev, ev.definitions[0, number], depth + 1)
    return None if other.decimals is None else _Digits(other.decimals, other.format)


def _most(
    ev: Evaluator, nodes: list[Expression] | tuple[Expression, ...], source: Source, depth: int
) -> _Digits | None:
    found = [_digits(ev, node, source, depth) for node in nodes]
    known = [digits for digits in found if digits is not None]
    if len(known) < len(found):
        return None
    most = max((digits.decimals for digits in known), default=0)
    form = next((digits for digits in known if digits.form is not None), None)
    return _Digits(most, form.form if form is not None and form.decimals == most else None)


def _of_chain(
    ev: Evaluator,
    operands: tuple[Expression, ...],
    operators: tuple[str, ...],
    source: Source,
    depth: int,
) -> _Digits | None:
    if set(operators) <= {"+", "-"}:
        return _most(ev, operands, source, depth)
    if set(operators) != {"*"}:
        return None if not set(operators).isdisjoint("/^*") else _Digits(0)
    found = [_digits(ev, operand, source, depth) for operand in operands]
    numbers = [isinstance(operand, Number) for operand in operands]
    if None in found or numbers.count(False) > 1:
        return None
    return _Digits(sum(digits.decimals for digits in found if digits is not None))
