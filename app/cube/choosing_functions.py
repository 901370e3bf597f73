"""MDX functions that choose and order the positions of a set by values."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.looking import Looked
from app.cube.names import Column
from app.cube.values import SetValue, Value
from app.domain.formula import Linear
from app.mdx.tree import Call, Expression

Row = tuple[int, ...]


@function("FILTER")
def _filter(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, condition = ev.arguments(call, 2, 2, ctx)
    members = ev.to_any_set(target, ctx)
    node = ev.given(condition, ctx)
    found = ev.values_at(node, members, ctx, call)
    if found is None:
        return replace(members, pending=True)
    if isinstance(found, Looked):
        chosen = np.nan_to_num(found.values) != 0
    else:
        truths = [value if isinstance(value, bool) else ev.as_formula(value, node, ctx) for value in found]
        chosen = np.array([t if isinstance(t, bool) else bool(_number(t)) for t in truths], dtype=bool)
    return members.taking(members.rows[chosen])


def _number(value: Value) -> float:
    """A constant as a number, empty as less than anything."""
    if not isinstance(value, Linear) or value.constant is None:
        return -math.inf
    return float(value.constant)


@dataclass(frozen=True)
class _Ranked:
    """Positions of a set whose value may be seen, with the values (all texts or all numbers); the others."""

    places: list[int]
    values: list[Any]
    unseen: list[int]

    def in_order(self, largest_first: bool) -> list[int]:
        """Positions by value, those of equal value as they stand in the set; unseen ones aren't there."""
        by_value = sorted(range(len(self.places)), key=self.values.__getitem__, reverse=largest_first)
        return [self.places[place] for place in by_value]


def _ranked(
    ev: Evaluator, key: Expression | None, members: SetValue, ctx: Context, call: Call
) -> _Ranked | None:
    """What to order the positions of a set by; None while that isn't known."""
    found = ev.values_at(key, members, ctx, call)
    if found is None:
        return None
    if isinstance(found, Looked):
        seen = np.flatnonzero(~found.hidden)
        values = np.nan_to_num(found.values[seen], nan=-np.inf).tolist()
        return _Ranked(seen.tolist(), values, np.flatnonzero(found.hidden).tolist())
    if any(isinstance(value, str) for value in found):
        if not all(isinstance(value, str) for value in found):
            raise ev.error(ctx, call.at, "Some of the values to order by are texts, others numbers.")
        return _Ranked(list(range(len(found))), list(found), [])
    return _Ranked(list(range(len(found))), [_number(value) for value in found], [])


@function("ORDER")
def _order(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Positions by value; those whose value may not be seen come last, as they stand in the set."""
    target, key, word = ev.arguments(call, 2, 3, ctx)
    flag = ev.flag(word, ("ASC", "DESC", "BASC", "BDESC"), ctx) or "ASC"
    members = ev.to_any_set(target, ctx)
    if not flag.startswith("B"):
        return _order_siblings(ev, ev.given(key, ctx), members, flag == "DESC", ctx, call)
    ranks = _ranked(ev, ev.given(key, ctx), members, ctx, call)
    if ranks is None:
        return replace(members, pending=True)
    places = [*ranks.in_order(flag.endswith("DESC")), *ranks.unseen]
    unseen = members.unseen | frozenset(map(tuple, members.rows[ranks.unseen].tolist()))
    return replace(members, rows=members.rows[places], unseen=unseen)


def _order_siblings(
    ev: Evaluator, key: Expression, members: SetValue, descending: bool, ctx: Context, call: Call
) -> SetValue:
    """Positions in hierarchical order, but siblings by value, and those of equal value as in the hierarchy.

    Tuples go by their first members, those with the same first member by their second, and so on. Where
    siblings are compared that aren't in the set themselves, as parents of its members, it is by their value.
    """
    rows = [tuple(row) for row in members.rows.tolist()]
    keys: list[list[list[tuple[bool, int, int]]]] = [[] for _ in rows]
    unseen = set(members.unseen)
    for place, number in enumerate(members.columns):
        paths = {member: _path(ev.columns[number], member) for member in {row[place] for row in rows}}
        steps = {
            (row[:place], above, member)
            for row in rows
            for above, member in pairwise((-1, *paths[row[place]]))
        }
        siblings = Counter((prefix, above) for prefix, above, _ in steps)
        compared = sorted((*prefix, member) for prefix, above, member in steps if siblings[prefix, above] > 1)
        place_of: dict[Row, tuple[bool, int]] = {}
        if compared:
            ranks = _ranked(ev, key, SetValue.of(members.columns[: place + 1], compared), ctx, call)
            if ranks is None:
                return replace(members, pending=True)
            ordered = sorted(set(ranks.values), reverse=descending)
            step_of = {value: step for step, value in enumerate(ordered)}
            for index, value in zip(ranks.places, ranks.values, strict=True):
                place_of[compared[index]] = (False, step_of[value])
            place_of.update((compared[index], (True, 0)) for index in ranks.unseen)
        for row, key_of_row in zip(rows, keys, strict=True):
            met = [(*place_of.get((*row[:place], m), (False, 0)), m) for m in paths[row[place]]]
            key_of_row.append(met)
            if any(hidden for hidden, _, _ in met):
                unseen.add(row)
    places = sorted(range(len(rows)), key=keys.__getitem__)
    return replace(members, rows=members.rows[places], unseen=frozenset(unseen))


def _path(column: Column, member: int) -> list[int]:
    """A member with those above it, from the top."""
    found = [member]
    while member < column.hierarchy.size and (member := int(column.hierarchy.parent[member])) >= 0:
        found.append(member)
    return found[::-1]


@function("TOPCOUNT", "BOTTOMCOUNT", "TOPPERCENT", "BOTTOMPERCENT", "TOPSUM", "BOTTOMSUM")
def _extremes(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Largest or smallest positions: a count of them, or as many as a share or amount of the sum takes."""
    target, limit, key = ev.arguments(call, 2, 3, ctx)
    members = ev.to_any_set(target, ctx)
    name = call.function.upper()
    if key is None and name.endswith("COUNT"):
        n = max(0, ev.to_integer(limit, ctx))
        return members if members.pending else members.taking(members.rows[:n])
    ranks = _ranked(ev, key, members, ctx, call)
    if ranks is None:
        return replace(members, pending=True)
    places = ranks.in_order(name.startswith("TOP"))
    if name.endswith("COUNT"):
        return members.taking(members.rows[places[: max(0, ev.to_integer(limit, ctx))]])
    wanted = _number(ev.to_formula(limit, ctx))
    value_of = dict(zip(ranks.places, ranks.values, strict=True))
    amounts = np.array([value_of[place] if value_of[place] != -math.inf else 0.0 for place in places])
    if name.endswith("PERCENT"):
        wanted = amounts.sum() * wanted / 100
    if wanted <= 0:
        return members.taking(members.rows[:0])
    reached = np.cumsum(amounts) >= wanted
    n = int(reached.argmax()) + 1 if reached.any() else len(places)
    return members.taking(members.rows[places[:n]])
