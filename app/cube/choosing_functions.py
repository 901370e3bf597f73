"""MDX functions that choose and order the positions of a set by values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.looking import Looked
from app.cube.member_functions import parent_of
from app.cube.names import Column
from app.cube.values import SetValue, Value
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray
from app.domain.formula import Linear
from app.mdx.tree import Call, Expression

Places = NDArray[np.int64]
#: Keys that a set may be ordered by, and their flags.
_MOST_KEYS = 20


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


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Positions of a set whose value may be seen, with the ranks of their values; the others.

    ``values`` are the numbers (float64[k]); of texts they are the ranks.
    """

    places: Places
    values: FloatArray
    unseen: Places
    texts: bool = False

    def in_order(self, largest_first: bool) -> Places:
        """Positions by value, those of equal value as they stand in the set; unseen ones aren't there."""
        return self.places[np.argsort(-self.values if largest_first else self.values, kind="stable")]


def _ranked(
    ev: Evaluator, key: Expression | None, members: SetValue, ctx: Context, call: Call
) -> _Ranked | None:
    """What to order the positions of a set by; None while that isn't known."""
    found = ev.values_at(key, members, ctx, call)
    if found is None:
        return None
    if isinstance(found, Looked):
        seen = np.flatnonzero(~found.hidden)
        return _Ranked(seen, np.nan_to_num(found.values[seen], nan=-np.inf), np.flatnonzero(found.hidden))
    places, none = np.arange(len(found)), np.zeros(0, dtype=np.intp)
    if any(isinstance(value, str) for value in found):
        texts = [value for value in found if isinstance(value, str)]
        if len(texts) < len(found):
            raise ev.error(ctx, call.at, "Some of the values to order by are texts, others numbers.")
        rank = {text: number for number, text in enumerate(sorted(set(texts)))}
        return _Ranked(places, np.array([rank[text] for text in texts], dtype=np.float64), none, texts=True)
    return _Ranked(places, np.array([_number(value) for value in found], dtype=np.float64), none)


@dataclass(frozen=True)
class _Key:
    """What positions are ordered by, and which way."""

    node: Expression
    descending: bool


_FLAGS = ("ASC", "DESC", "BASC", "BDESC")


@function("ORDER")
def _order(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Positions by values, each with its flag; those whose value may not be seen come last, as they stand."""
    target, first, *rest = ev.arguments(call, 2, 2 + _MOST_KEYS, ctx)
    flags: list[str] = []
    nodes = [ev.given(first, ctx)]
    for node in rest:
        if node is None:
            continue
        if ev.is_flag(node, _FLAGS) and len(flags) < len(nodes):
            flags.extend(["ASC"] * (len(nodes) - 1 - len(flags)))
            flags.append(ev.flag(node, _FLAGS, ctx))
        else:
            nodes.append(node)
    flags.extend(["ASC"] * (len(nodes) - len(flags)))
    keys = [_Key(node, flag.endswith("DESC")) for node, flag in zip(nodes, flags, strict=True)]
    members = ev.to_any_set(target, ctx)
    if not flags[0].startswith("B"):
        return _order_siblings(ev, keys, members, ctx, call)
    ranks = _ranked_by(ev, keys, members, ctx, call)
    if ranks is None:
        return replace(members, pending=True)
    places = np.concatenate([ranks.in_order(largest_first=False), ranks.unseen])
    unseen = members.unseen | frozenset(map(tuple, members.rows[ranks.unseen].tolist()))
    return replace(members, rows=members.rows[places], unseen=unseen)


def _ranked_by(
    ev: Evaluator, keys: list[_Key], members: SetValue, ctx: Context, call: Call
) -> _Ranked | None:
    """Ranks of positions by several keys, the first one first; what one of them may not see isn't seen."""
    seen = np.ones(len(members), dtype=bool)
    columns: list[FloatArray] = []
    for key in keys:
        ranks = _ranked(ev, key.node, members, ctx, call)
        if ranks is None:
            return None
        seen[ranks.unseen] = False
        column = np.zeros(len(members))
        column[ranks.places] = -ranks.values if key.descending else ranks.values
        columns.append(column)
    places = np.flatnonzero(seen)
    rows = np.stack(columns, axis=1)[places]
    values = rows[:, 0] if len(keys) == 1 else rows
    rank = np.unique(values, axis=0, return_inverse=True)[1]
    return _Ranked(places, rank.reshape(-1).astype(np.float64), np.flatnonzero(~seen))


def _order_siblings(ev: Evaluator, keys: list[_Key], members: SetValue, ctx: Context, call: Call) -> SetValue:
    """Positions in hierarchical order, but siblings by value, and those of equal value as in the hierarchy.

    Tuples go by their first members, those with the same first member by their second, and so on. Where
    siblings are compared that aren't in the set themselves, as parents of its members, it is by their value.
    """
    rows = members.rows
    unseen = np.zeros(len(rows), dtype=bool)
    orders: list[Places] = []
    for place, number in enumerate(members.columns):
        prefixes, prefix = np.unique(rows[:, :place], axis=0, return_inverse=True)
        path = _paths(ev, ev.columns[number], rows[:, place])
        # A step is a member on the way down to one of the set, behind the members of earlier columns.
        size = int(path.max(initial=0)) + 2
        on_way = (prefix.reshape(-1, 1) * size + path + 1)[path >= 0]
        above = np.concatenate([np.full((len(rows), 1), -1), path[:, :-1]], axis=1)[path >= 0]
        steps, first, step = np.unique(on_way, return_index=True, return_inverse=True)
        _, family = np.unique(steps // size * size + above[first] + 1, return_inverse=True)
        compared = np.flatnonzero(np.bincount(family)[family] > 1)
        hidden, rank = np.zeros(len(steps), dtype=bool), np.zeros(len(steps), dtype=np.int64)
        if len(compared):
            last = (steps[compared] % size - 1).astype(np.int32)
            tuples = np.column_stack([prefixes[steps[compared] // size], last])
            ranks = _ranked_by(ev, keys, SetValue(members.columns[: place + 1], tuples), ctx, call)
            if ranks is None:
                return replace(members, pending=True)
            hidden[compared[ranks.unseen]] = True
            rank[compared[ranks.places]] = ranks.values.astype(np.int64)
        ordered = np.empty(len(steps), dtype=np.int64)
        ordered[np.lexsort((steps, rank, hidden))] = np.arange(len(steps))
        # Who has no further step comes before those beneath.
        order = np.full(path.shape, -1, dtype=np.int64)
        order[path >= 0] = ordered[step]
        met = np.zeros(path.shape, dtype=bool)
        met[path >= 0] = hidden[step]
        orders.extend(order.T)
        unseen |= met.any(axis=1)
    places = np.lexsort(orders[::-1]) if orders else np.arange(len(rows))
    known = members.unseen | frozenset(map(tuple, rows[unseen].tolist()))
    return replace(members, rows=rows[places], unseen=known)


def _paths(ev: Evaluator, column: Column, members: IntArray) -> Places:
    """Members with those above them, from the top: int64[n, depth], -1 behind the ends."""
    size = column.hierarchy.size
    calculated = range(size, int(members.max(initial=size - 1)) + 1)
    parents = [parent_of(ev, column, number) for number in calculated]
    levels, parent = [members.astype(np.int64)], np.append(column.hierarchy.parent, parents).astype(np.int64)
    while (inside := (levels[-1] >= 0) & (levels[-1] < len(parent))).any():
        levels.append(np.where(inside, parent[np.where(inside, levels[-1], 0)], -1))
    upwards = np.stack(levels[::-1], axis=1)
    behind = np.argsort(upwards < 0, axis=1, kind="stable")
    return np.take_along_axis(upwards, behind, axis=1)


@function("TOPCOUNT", "BOTTOMCOUNT", "TOPPERCENT", "BOTTOMPERCENT", "TOPSUM", "BOTTOMSUM")
def _extremes(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Largest or smallest positions: a count of them, or as many as a share or amount of the sum takes.

    Without a value to go by, the count is of the first or last positions.
    """
    target, limit, key = ev.arguments(call, 2, 3, ctx)
    members = ev.to_any_set(target, ctx)
    name = call.function.upper()
    if key is None and name.endswith("COUNT"):
        n = max(0, ev.to_integer(limit, ctx))
        rows = members.rows[:n] if name.startswith("TOP") else members.rows[max(0, len(members) - n) :]
        return members if members.pending else members.taking(rows)
    ranks = _ranked(ev, key, members, ctx, call)
    if ranks is None:
        return replace(members, pending=True)
    places = ranks.in_order(name.startswith("TOP"))
    if name.endswith("COUNT"):
        return members.taking(members.rows[places[: max(0, ev.to_integer(limit, ctx))]])
    if ranks.texts:
        raise ev.error(ctx, call.at, f"{call.function} adds up numbers, and these are texts.")
    wanted = _number(ev.to_formula(limit, ctx))
    value_of = np.zeros(len(members))
    value_of[ranks.places] = np.where(np.isneginf(ranks.values), 0.0, ranks.values)
    amounts = value_of[places]
    if name.endswith("PERCENT"):
        wanted = amounts.sum() * wanted / 100
    if wanted <= 0:
        return members.taking(members.rows[:0])
    reached = np.cumsum(amounts) >= wanted
    n = int(reached.argmax()) + 1 if reached.any() else len(places)
    return members.taking(members.rows[places[:n]])


def largest(
    ev: Evaluator,
    key: Expression | None,
    members: SetValue,
    count: int,
    ctx: Context,
    call: Call,
    smallest: bool = False,
) -> SetValue:
    """So many positions of the largest (or smallest) values, or cells (None), these first; open while they
    aren't known."""
    ranks = _ranked(ev, key, members, ctx, call)
    if ranks is None:
        return replace(members, pending=True)
    return members.taking(members.rows[ranks.in_order(not smallest)[: max(0, count)]])
