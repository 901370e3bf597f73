"""MDX functions that give members, levels and hierarchies."""

from __future__ import annotations

import numpy as np

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.hierarchies import OWN_KEY
from app.cube.names import Column
from app.cube.values import HierarchyValue, LevelValue, SetValue, TupleValue, Value
from app.domain.errors import UserError
from app.mdx import parse_expression
from app.mdx.tree import Call, Expression

_NONE = -1
#: Names of levels that the to-date functions look for.
_PERIODS = {
    "YTD": ("year", "years", "año", "años", "any", "anys", "ejercicio"),
    "QTD": ("quarter", "quarters", "trimestre", "trimestres"),
    "MTD": ("month", "months", "mes", "meses", "mesos"),
    "WTD": ("week", "weeks", "semana", "semanas", "setmana", "setmanes"),
}


def shifted(column: Column, member: int, steps: int) -> int:
    """The member so many places further on in its level, -1 outside."""
    if not 0 <= member < column.hierarchy.size:
        return _NONE
    level = column.at_level[column.hierarchy.depth[member]]
    place = int(np.searchsorted(level, member)) + steps
    return int(level[place]) if 0 <= place < len(level) else _NONE


def parent(column: Column, member: int) -> int:
    return int(column.hierarchy.parent[member]) if 0 <= member < column.hierarchy.size else _NONE


def children(column: Column, member: int) -> list[int]:
    if not 0 <= member < column.hierarchy.size:
        return []
    found: list[int] = column.hierarchy.child_lists[member].tolist()
    return found


def siblings(column: Column, member: int) -> list[int]:
    if not 0 <= member < column.hierarchy.size:
        return []
    above = parent(column, member)
    if above >= 0:
        return children(column, above)
    top: list[int] = np.flatnonzero(column.hierarchy.parent < 0).tolist()
    return top


def ancestor(column: Column, member: int, level: int) -> int:
    """The ancestor (or self) at a level, -1 where there is none."""
    depth = column.hierarchy.depth
    while 0 <= member < column.hierarchy.size and depth[member] > level:
        member = parent(column, member)
    return member if 0 <= member < column.hierarchy.size and depth[member] == level else _NONE


def beneath(column: Column, member: int, level: int) -> list[int]:
    """Descendants (or self) at a level, in order."""
    if not 0 <= member < column.hierarchy.size:
        return []
    members = column.at_level[level]
    low = np.searchsorted(members, member)
    high = np.searchsorted(members, column.hierarchy.last_descendant[member], side="right")
    found: list[int] = members[low:high].tolist()
    return found


def cousin(column: Column, member: int, uncle: int) -> int:
    """The descendant of ``uncle`` that stands where ``member`` stands under its ancestor of that level."""
    if not (0 <= member < column.hierarchy.size and 0 <= uncle < column.hierarchy.size):
        return _NONE
    above = ancestor(column, member, int(column.hierarchy.depth[uncle]))
    level = int(column.hierarchy.depth[member])
    place = beneath(column, above, level).index(member) if above >= 0 else _NONE
    options = beneath(column, uncle, level)
    return options[place] if 0 <= place < len(options) else _NONE


def parent_of(ev: Evaluator, column: Column, member: int) -> int:
    """The parent of a member, calculated ones too; -1 where it has none."""
    calculated = ev.definitions.get((column.number, member))
    return parent(column, member) if calculated is None else calculated.parent


def _one(ev: Evaluator, node: Expression | None, ctx: Context) -> tuple[Column, int]:
    member = ev.to_member(node, ctx)
    return ev.columns[member.columns[0]], member.numbers[0]


def _member(column: Column, member: int) -> TupleValue:
    return TupleValue((column.number,), (member,))


@function("CURRENTMEMBER")
def _current(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column = ev.to_column(ev.arguments(call, 1, 1, ctx)[0], ctx)
    return TupleValue((column,), (ctx.current(column),))


@function("DEFAULTMEMBER")
def _default(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column = ev.columns[ev.to_column(ev.arguments(call, 1, 1, ctx)[0], ctx)]
    return _member(column, column.hierarchy.default_member)


@function("PARENT")
def _parent(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column, member = _one(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
    return _member(column, parent_of(ev, column, member))


@function("PREVMEMBER", "NEXTMEMBER")
def _next(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column, member = _one(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
    return _member(column, shifted(column, member, 1 if call.function.upper() == "NEXTMEMBER" else -1))


@function("DATAMEMBER")
def _data_member(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """What a member of a parent-child hierarchy has of its own; of others, the member itself."""
    column, member = _one(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
    own = [child for child in children(column, member) if column.hierarchy.keys[child] == OWN_KEY]
    return _member(column, own[0] if own else member)


@function("LAG", "LEAD")
def _lag(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, steps = ev.arguments(call, 2, 2, ctx)
    column, member = _one(ev, target, ctx)
    sign = 1 if call.function.upper() == "LEAD" else -1
    return _member(column, shifted(column, member, sign * ev.to_integer(steps, ctx)))


@function("FIRSTCHILD", "LASTCHILD", "FIRSTSIBLING", "LASTSIBLING")
def _edge(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column, member = _one(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
    name = call.function.upper()
    options = children(column, member) if name.endswith("CHILD") else siblings(column, member)
    return _member(column, options[0 if name.startswith("FIRST") else -1] if options else _NONE)


@function("ANCESTOR")
def _ancestor(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, where = ev.arguments(call, 2, 2, ctx)
    column, member = _one(ev, target, ctx)
    return _member(column, _above(ev, column, member, where, ctx))


def _above(ev: Evaluator, column: Column, member: int, where: Expression | None, ctx: Context) -> int:
    """The ancestor at a level, or so many parents up, which in a ragged hierarchy may skip levels."""
    value = ev.evaluate(ev.given(where, ctx), ctx)
    if isinstance(value, LevelValue):
        if value.column != column.number:
            raise ev.error(ctx, ev.given(where, ctx).at, "The level is of another hierarchy than the member.")
        return ancestor(column, member, value.level)
    steps = ev.to_integer(where, ctx)
    while steps > 0 and member >= 0:
        member, steps = parent_of(ev, column, member), steps - 1
    return member if steps == 0 else _NONE


@function("ANCESTORS")
def _ancestors(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, where = ev.arguments(call, 2, 2, ctx)
    column, member = _one(ev, target, ctx)
    found = _above(ev, column, member, where, ctx)
    return SetValue.of((column.number,), [] if found < 0 else [(found,)])


@function("COUSIN")
def _cousin(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, other = ev.arguments(call, 2, 2, ctx)
    column, member = _one(ev, target, ctx)
    uncle = ev.to_member(other, ctx)
    if uncle.columns != (column.number,):
        raise ev.error(ctx, ev.given(other, ctx).at, "The members are of different hierarchies.")
    return _member(column, cousin(column, member, uncle.numbers[0]))


def time_column(ev: Evaluator, call: Call, ctx: Context) -> Column:
    """The hierarchy of time, for functions that were not told which: the cube's first."""
    found = next((column for column in ev.columns if column.hierarchy.time), None)
    if found is None:
        cause = f"The cube has no hierarchy of time, so {call.function} must be told which."
        raise ev.error(ctx, call.at, cause, "Name a level or member, or say time = true for one hierarchy.")
    return found


def _period(
    ev: Evaluator, call: Call, where: Expression | None, target: Expression | None, ctx: Context
) -> tuple[Column, int, int | None]:
    """The member (else the current one) and the level that a function of periods is about."""
    level = None if where is None else ev.to_level(where, ctx)
    if target is not None:
        column, member = _one(ev, target, ctx)
    else:
        column = time_column(ev, call, ctx) if level is None else ev.columns[level.column]
        member = ctx.current(column.number)
    if level is not None and level.column != column.number:
        raise ev.error(ctx, call.at, "The level is of another hierarchy than the member.")
    return column, member, None if level is None else level.level


@function("PARALLELPERIOD")
def _parallel(ev: Evaluator, call: Call, ctx: Context) -> Value:
    where, steps, target = ev.arguments(call, 0, 3, ctx)
    column, member, level = _period(ev, call, where, target, ctx)
    if not 0 <= member < column.hierarchy.size:
        return _member(column, _NONE)
    at = max(0, int(column.hierarchy.depth[member]) - 1) if level is None else level
    above = ancestor(column, member, at)
    uncle = shifted(column, above, -(1 if steps is None else ev.to_integer(steps, ctx)))
    return _member(column, cousin(column, member, uncle))


@function("OPENINGPERIOD", "CLOSINGPERIOD")
def _end_of_period(ev: Evaluator, call: Call, ctx: Context) -> Value:
    where, target = ev.arguments(call, 0, 2, ctx)
    column, member, level = _period(ev, call, where, target, ctx)
    options = children(column, member) if level is None else beneath(column, member, level)
    return _member(
        column, options[0 if call.function.upper() == "OPENINGPERIOD" else -1] if options else _NONE
    )


def to_date(column: Column, member: int, level: int) -> SetValue:
    """From the first period of the level's period that the member is in, to the member."""
    above = ancestor(column, member, level)
    if above < 0:
        return SetValue.of((column.number,), [])
    periods = beneath(column, above, int(column.hierarchy.depth[member]))
    return SetValue.of((column.number,), [(period,) for period in periods if period <= member])


@function("PERIODSTODATE")
def _periods_to_date(ev: Evaluator, call: Call, ctx: Context) -> Value:
    where, target = ev.arguments(call, 0, 2, ctx)
    column, member, level = _period(ev, call, where, target, ctx)
    if not 0 <= member < column.hierarchy.size:
        return SetValue.of((column.number,), [])
    at = max(0, int(column.hierarchy.depth[member]) - 1) if level is None else level
    return to_date(column, member, at)


@function("YTD", "QTD", "MTD", "WTD")
def _year_to_date(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (target,) = ev.arguments(call, 0, 1, ctx)
    if target is None:
        column = time_column(ev, call, ctx)
        member = ctx.current(column.number)
    else:
        column, member = _one(ev, target, ctx)
    known = _PERIODS[call.function.upper()]
    told = any(level.period for level in column.hierarchy.levels)
    for number, level in enumerate(column.hierarchy.levels):
        # As in Year, Calendar Year, Year of sale.
        words = level.name.lower().replace("_", " ").split()
        if level.period == known[0] if told else not set(words).isdisjoint(known):
            return to_date(column, member, number)
    cause = f"{column.hierarchy.unique_name} has no level called {known[0].capitalize()}."
    raise ev.error(ctx, call.at, cause, "Use PeriodsToDate with the level.")


@function("LASTPERIODS")
def _last_periods(ev: Evaluator, call: Call, ctx: Context) -> Value:
    count, target = ev.arguments(call, 1, 2, ctx)
    n = ev.to_integer(count, ctx)
    if target is None:
        column = time_column(ev, call, ctx)
        member = ctx.current(column.number)
    else:
        column, member = _one(ev, target, ctx)
    # There are no more periods than members, whatever number a reader asks for.
    n = max(-column.hierarchy.size, min(n, column.hierarchy.size))
    steps = range(1 - n, 1) if n > 0 else range(-n)
    found = [shifted(column, member, step) for step in steps]
    return SetValue.of((column.number,), [(period,) for period in found if period >= 0])


@function("LEVEL")
def _level(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column, member = _one(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
    return LevelValue(column.number, ev.level_of(column.number, member))


@function("LEVELS")
def _levels(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, which = ev.arguments(call, 2, 2, ctx)
    column = ev.columns[ev.to_column(target, ctx)]
    value = ev.evaluate(ev.given(which, ctx), ctx)
    names = [level.name.lower() for level in column.hierarchy.levels]
    if isinstance(value, str):
        number = names.index(value.lower()) if value.lower() in names else _NONE
    else:
        number = ev.to_integer(which, ctx)
    if not 0 <= number < len(names):
        raise ev.error(ctx, call.at, f"{column.hierarchy.unique_name} has no such level.")
    return LevelValue(column.number, number)


@function("ALL")
def _all(ev: Evaluator, call: Call, ctx: Context) -> Value:
    column = ev.columns[ev.to_column(ev.arguments(call, 1, 1, ctx)[0], ctx)]
    if not column.hierarchy.has_all:
        raise ev.error(ctx, call.at, f"{column.hierarchy.unique_name} has no member above all others.")
    return _member(column, 0)


@function("HIERARCHY", "DIMENSION")
def _hierarchy(ev: Evaluator, call: Call, ctx: Context) -> Value:
    return HierarchyValue(ev.to_column(ev.arguments(call, 1, 1, ctx)[0], ctx))


@function("CALCULATEDCHILD")
def _calculated_child(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The calculated member of a name under a member."""
    target, name = ev.arguments(call, 2, 2, ctx)
    column, member = _one(ev, target, ctx)
    found = ev.names.calculated_at(column.number, member, ev.to_text(name, ctx))
    return _member(column, _NONE if found is None or member < 0 else found)


@function("DIMENSIONS", "HIERARCHIES")
def _dimensions(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A hierarchy by its place, the measures being 0, or by its name."""
    which = ev.given(ev.arguments(call, 1, 1, ctx)[0], ctx)
    value = ev.evaluate(which, ctx)
    if isinstance(value, str):
        return HierarchyValue(ev.to_column(_parsed(value, ctx)[0], ctx))
    number = ev.to_integer(which, ctx)
    if not 0 <= number < len(ev.columns):
        raise ev.error(ctx, call.at, f"The cube has {len(ev.columns)} hierarchies with its measures, from 0.")
    return HierarchyValue(number)


def _parsed(text: str, ctx: Context) -> tuple[Expression, Context]:
    """An expression in a text, with the context in which mistakes are shown in the text."""
    return parse_expression(text), Context(type(ctx.source)(text, ctx.source.file), ctx.known, ctx.overrides)


@function("NAMETOSET")
def _named(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The member of a name as a set; of a name that there isn't, the empty set."""
    text = ev.to_text(ev.arguments(call, 1, 1, ctx)[0], ctx)
    expression, inner = _parsed(text, ctx)
    try:
        return ev.to_set(expression, inner)
    except UserError:
        return SetValue.of((), [])


@function("STRTOMEMBER", "STRTOTUPLE", "STRTOSET", "STRTOVALUE")
def _from_text(ev: Evaluator, call: Call, ctx: Context) -> Value:
    node, _ = ev.arguments(call, 1, 2, ctx)
    expression, inner = _parsed(ev.to_text(node, ctx), ctx)
    if call.function.upper() == "STRTOSET":
        return ev.to_set(expression, inner)
    if call.function.upper() == "STRTOVALUE":
        return ev.to_formula(expression, inner)
    return ev.to_tuple(expression, inner)


@function("ITEM")
def _item(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, which, *more = ev.arguments(call, 2, 2 + len(ev.columns), ctx)
    value = ev.evaluate(ev.given(target, ctx), ctx)
    if isinstance(ev.evaluate(ev.given(which, ctx), ctx), str):
        return _named_item(ev, call, ctx)
    if any(more):
        raise ev.error(ctx, call.at, "Item takes one number, or names.")
    place = ev.to_integer(which, ctx)
    if isinstance(value, TupleValue):
        if not 0 <= place < len(value.columns):
            raise ev.error(ctx, call.at, f"The tuple has no item {place}.")
        return TupleValue((value.columns[place],), (value.numbers[place],))
    members = ev.to_set(target, ctx)
    if 0 <= place < len(members):
        return TupleValue(members.columns, tuple(members.rows[place].tolist()))
    return TupleValue(members.columns, (_NONE,) * len(members.columns))


def _named_item(ev: Evaluator, call: Call, ctx: Context) -> TupleValue:
    """The first tuple of a set that bears the names: a name for each hierarchy, or the tuple written out."""
    target, *names = ev.arguments(call, 2, 2 + len(ev.columns), ctx)
    members = ev.to_set(target, ctx)
    texts = [ev.to_text(name, ctx) for name in names if name is not None]
    width = len(members.columns)
    if len(texts) == 1 and width > 1:
        wanted = ev.to_tuple(*_parsed(texts[0], ctx))
        fits = (members.rows == wanted.numbers).all(axis=1) if wanted.columns == members.columns else []
    elif len(texts) == width:
        fits = np.ones(len(members), dtype=bool)
        for place, (column, text) in enumerate(zip(members.columns, texts, strict=True)):
            fits &= np.array(
                [_bears(ev, column, n, text) for n in members.rows[:, place].tolist()], dtype=bool
            )
    else:
        raise ev.error(ctx, call.at, f"The set has tuples of {width} members, but {len(texts)} are named.")
    found = np.flatnonzero(fits)
    row = members.rows[found[0]].tolist() if len(found) else [_NONE] * width
    return TupleValue(members.columns, tuple(row))


def _bears(ev: Evaluator, column: int, number: int, text: str) -> bool:
    tree = ev.columns[column].hierarchy
    if number >= tree.size:
        own = [ev.definitions[column, number].member.name]
    else:
        own = [
            tree.unique_names[number],
            tree.keys[number],
            tree.names[number],
            *(c[number] for c in tree.member_captions.values()),
        ]
    plain = text[1:-1].replace("]]", "]") if text[:1] == "[" and text.count("[") == 1 else text
    return any(name.lower() in (text.lower(), plain.lower()) for name in own)
