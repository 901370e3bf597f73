"""MDX functions that give sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from app.cube.context import Context
from app.cube.evaluate import Evaluator, axis_name, function
from app.cube.member_functions import children, parent_of, siblings
from app.cube.names import Column
from app.cube.sets import distinct, keep
from app.cube.values import LevelValue, SetValue, TupleValue, Value
from app.domain.cube import Hierarchy, IntArray
from app.mdx.tree import Call, Expression, Number

Row = tuple[int, ...]
_DESCENDANTS = (
    "SELF",
    "AFTER",
    "BEFORE",
    "SELF_AND_AFTER",
    "SELF_AND_BEFORE",
    "SELF_BEFORE_AFTER",
    "BEFORE_AND_AFTER",
    "LEAVES",
)


def _column_set(column: Column, members: list[int]) -> SetValue:
    return SetValue.of((column.number,), [(member,) for member in members])


@function("MEMBERS", "ALLMEMBERS")
def _members(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (target,) = ev.arguments(call, 1, 1, ctx)
    value = ev.evaluate(ev.given(target, ctx), ctx)
    column = ev.columns[ev.to_column(target, ctx)]
    if isinstance(value, (TupleValue, SetValue)):
        raise ev.error(ctx, call.at, "Members is of a level or hierarchy.", "Use Children, or Descendants.")
    if isinstance(value, LevelValue):
        members = column.at_level[value.level]
        if ev.names.is_tree(column.hierarchy, value.level):
            members = np.arange(column.hierarchy.has_all, column.hierarchy.size, dtype=np.int32)
    else:
        members = np.arange(column.hierarchy.size, dtype=np.int32)
    found = SetValue((column.number,), members[:, None])
    return found if call.function.upper() == "MEMBERS" else _with_calculated(ev, found)


def _with_calculated(ev: Evaluator, value: SetValue) -> SetValue:
    """A set of members with the calculated ones beside them: those under the same parents, or under none."""
    if len(value.columns) != 1:
        return value
    tree = ev.columns[value.columns[0]].hierarchy
    parents = {-1, *tree.parent[value.rows[value.rows[:, 0] < tree.size, 0]].tolist()}
    extra = [
        (number,)
        for (column, number), item in ev.definitions.items()
        if column in value.columns and item.parent in parents
    ]
    if not extra:
        return value
    rows = np.concatenate([value.rows, np.array(extra, dtype=np.int32)])
    return distinct(SetValue(value.columns, rows, value.pending))


@function("ADDCALCULATEDMEMBERS")
def _add_calculated(ev: Evaluator, call: Call, ctx: Context) -> Value:
    value = ev.to_any_set(ev.arguments(call, 1, 1, ctx)[0], ctx)
    return _with_calculated(ev, value)


@function("STRIPCALCULATEDMEMBERS")
def _strip_calculated(ev: Evaluator, call: Call, ctx: Context) -> Value:
    members = ev.to_any_set(ev.arguments(call, 1, 1, ctx)[0], ctx)
    sizes = np.array([ev.columns[column].hierarchy.size for column in members.columns])
    return members.taking(members.rows[(members.rows < sizes).all(axis=1)])


@function("CHILDREN")
def _children(ev: Evaluator, call: Call, ctx: Context) -> Value:
    member = ev.to_member(ev.arguments(call, 1, 1, ctx)[0], ctx)
    column = ev.columns[member.columns[0]]
    return _column_set(column, children(column, member.numbers[0]))


@function("SIBLINGS")
def _siblings(ev: Evaluator, call: Call, ctx: Context) -> Value:
    member = ev.to_member(ev.arguments(call, 1, 1, ctx)[0], ctx)
    column = ev.columns[member.columns[0]]
    return _column_set(column, siblings(column, member.numbers[0]))


@function("ASCENDANTS")
def _ascendants(ev: Evaluator, call: Call, ctx: Context) -> Value:
    member = ev.to_member(ev.arguments(call, 1, 1, ctx)[0], ctx)
    column = ev.columns[member.columns[0]]
    found: list[int] = []
    number = member.numbers[0]
    while 0 <= number < column.hierarchy.size:
        found.append(number)
        number = int(column.hierarchy.parent[number])
    return _column_set(column, found)


@function("DESCENDANTS")
def _descendants(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, where, word = ev.arguments(call, 1, 3, ctx)
    if word is None and ev.is_flag(where, ("LEAVES",)):
        where, word = None, where
    flag = ev.flag(word, _DESCENDANTS, ctx)
    members = ev.to_set(target, ctx)
    if len(members.columns) > 1:
        raise ev.error(ctx, ev.given(target, ctx).at, "Descendants are of members of one hierarchy.")
    if not len(members):
        return members
    column = ev.columns[members.columns[0]]
    value = None if where is None else ev.evaluate(where, ctx)
    if isinstance(value, LevelValue) and value.column != column.number:
        raise ev.error(ctx, call.at, "The level is of another hierarchy than the member.")
    found: list[int] = []
    for member in members.rows[:, 0].tolist():
        if member >= column.hierarchy.size:
            continue
        if isinstance(value, LevelValue):
            found.extend(_branch(column, member, value.level, flag))
        elif where is None:
            found.extend(_branch(column, member, None, flag))
        else:
            found.extend(_branch(column, member, ev.to_integer(where, ctx), flag, of_steps=True))
        if len(found) > ev.limits.tuples:
            raise ev.error(ctx, call.at, f"The set has more than {ev.limits.tuples:,} tuples.")
    return _column_set(column, found)


def _branch(column: Column, member: int, level: int | None, flag: str, of_steps: bool = False) -> list[int]:
    """Members from ``member`` down, by where they stand to a level, or to a number of steps from it."""
    tree = column.hierarchy
    branch = np.arange(member, tree.last_descendant[member] + 1)
    depth = _steps(tree, member) if of_steps else tree.depth[branch]
    if flag == "LEAVES":
        is_leaf = np.array([len(tree.child_lists[number]) == 0 for number in branch])
        chosen = is_leaf if level is None else is_leaf & (depth <= level)
    elif level is None:
        level = int(tree.depth[member])
        chosen = (
            depth >= level
            if flag in ("", "SELF_AND_AFTER", "SELF_BEFORE_AFTER")
            else _near(depth, level, flag)
        )
    else:
        chosen = _near(depth, level, flag or "SELF")
    found: list[int] = branch[chosen].tolist()
    return found


def _steps(tree: Hierarchy, member: int) -> NDArray[np.int32]:
    """How many steps each member of a branch is from its top: a ragged hierarchy skips levels."""
    branch = slice(member, int(tree.last_descendant[member]) + 1)
    depth, above = tree.depth[branch], tree.parent[branch] - member
    steps = np.zeros(len(depth), dtype=np.int32)
    for level in range(int(depth[0]) + 1, int(depth.max()) + 1):
        here = np.flatnonzero(depth == level)
        steps[here] = steps[above[here]] + 1
    return steps


def _near(depth: NDArray[np.int32], level: int, flag: str) -> NDArray[np.bool_]:
    chosen = np.zeros(len(depth), dtype=bool)
    if "SELF" in flag:
        chosen |= depth == level
    if "BEFORE" in flag:
        chosen |= depth < level
    if "AFTER" in flag:
        chosen |= depth > level
    return chosen


@function("CROSSJOIN", "NONEMPTYCROSSJOIN")
def _crossjoin(ev: Evaluator, call: Call, ctx: Context) -> Value:
    nodes = [node for node in (call.target, *(call.arguments or ())) if node is not None]
    only_filled = call.function.upper() != "CROSSJOIN"
    n = len(nodes)
    if only_filled and nodes and isinstance(nodes[-1], Number):
        # The first so many sets come out; the others only say where facts are looked for.
        n = ev.to_integer(nodes.pop(), ctx)
        if not 0 < n <= len(nodes):
            raise ev.error(ctx, call.at, f"{call.function} has {len(nodes)} sets, not {n}.")
    if len(nodes) < 2:
        raise ev.error(ctx, call.at, f"{call.function} takes at least two sets.")
    parts = [ev.to_any_set(node, ctx) for node in nodes]
    members = ev.cross(parts, call.at, ctx)
    if not only_filled:
        return members
    members = members.taking(members.rows[ev.filled(members, ctx, call)])
    width = sum(len(part.columns) for part in parts[:n])
    return distinct(replace(members, columns=members.columns[:width], rows=members.rows[:, :width]))


@function("NONEMPTY")
def _non_empty(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, other = ev.arguments(call, 1, 2, ctx)
    members = ev.to_any_set(target, ctx)
    if other is None or not len(members):
        return members.taking(members.rows[ev.filled(members, ctx, call)])
    second = ev.to_any_set(other, ctx)
    pairs = ev.cross([members, second], call.at, ctx)
    filled = ev.filled(pairs, ctx, call).reshape(len(members), len(second))
    return replace(pairs, columns=members.columns, rows=members.rows[filled.any(axis=1)])


@function("EXISTS")
def _exists(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Tuples that some tuple of the second set goes together with: in one line of a hierarchy, or, in two
    hierarchies of a dimension, in some fact whatever else it is about."""
    target, other, _ = ev.arguments(call, 2, 3, ctx)
    members, second = ev.to_any_set(target, ctx), ev.to_any_set(other, ctx)
    met = np.ones((len(members), len(second)), dtype=bool)
    for place, column in enumerate(members.columns):
        for where, against in enumerate(second.columns):
            one, two = ev.columns[column].hierarchy, ev.columns[against].hierarchy
            if one.dimension == two.dimension:
                met &= _together(
                    ev, column, against, members.rows[:, place], second.rows[:, where], ctx, call
                )
    found = members.taking(members.rows[met.any(axis=1)])
    return replace(found, pending=members.pending or second.pending)


def _together(
    ev: Evaluator, column: int, against: int, ones: IntArray, others: IntArray, ctx: Context, call: Call
) -> NDArray[np.bool_]:
    """Which members of two columns share anything: bool[ones, others]."""
    if column == against:
        tree = ev.columns[column].hierarchy
        last = np.append(tree.last_descendant, np.arange(tree.size, max(tree.size, *ones, *others) + 1))
        here, there = ones[:, None], others[None, :]
        return ((there >= here) & (there <= last[here])) | ((here >= there) & (here <= last[there]))
    rows = np.stack([np.repeat(ones, len(others)), np.tile(others, len(ones))], axis=1)
    pairs = SetValue((column, against), rows)
    met = np.zeros(len(pairs), dtype=bool)
    elsewhere = [c for c in range(1, len(ev.columns)) if c not in (column, against)]
    for measure in range(len(ev.names.cube.measures)):
        for rest in product(*(_tops(ev, c) for c in elsewhere)):
            met |= ev.filled(pairs, ctx.at(TupleValue((0, *elsewhere), (measure, *rest))), call)
    return met.reshape(len(ones), len(others))


def _tops(ev: Evaluator, column: int) -> list[int]:
    """Members that all facts lie beneath."""
    tops: list[int] = np.flatnonzero(ev.columns[column].hierarchy.parent < 0).tolist()
    return tops


def _all_flag(ev: Evaluator, nodes: list[Expression], ctx: Context) -> tuple[list[Expression], bool]:
    if nodes and ev.is_flag(nodes[-1], ("ALL",)):
        return nodes[:-1], True
    return nodes, False


@function("UNION")
def _union(ev: Evaluator, call: Call, ctx: Context) -> Value:
    nodes, everything = _all_flag(ev, [node for node in call.arguments or () if node is not None], ctx)
    if len(nodes) < 2:
        raise ev.error(ctx, call.at, "Union takes at least two sets.")
    joined = ev.join([ev.to_any_set(node, ctx) for node in nodes], [node.at for node in nodes], ctx)
    return joined if everything else distinct(joined)


@function("EXCEPT", "INTERSECT")
def _except(ev: Evaluator, call: Call, ctx: Context) -> Value:
    nodes, everything = _all_flag(ev, [node for node in call.arguments or () if node is not None], ctx)
    if len(nodes) != 2:
        raise ev.error(ctx, call.at, f"{call.function} takes two sets.")
    left, right = (ev.to_any_set(node, ctx) for node in nodes)
    ev.join([left, right], [node.at for node in nodes], ctx)
    left = left if everything else distinct(left)
    inside = call.function.upper() == "INTERSECT"
    shown, others = _shown(ev, left), _shown(ev, right)
    if shown is left.rows and others is right.rows:
        return keep(left, right, inside)
    # Visual totals are the members that they stand for; what is in both sets comes as the total that it has.
    totals = dict(zip(map(tuple, others.tolist()), right.rows.tolist(), strict=True))
    rows = [
        totals[row] if inside and list(row) == own else own
        for row, own in zip(map(tuple, shown.tolist()), left.rows.tolist(), strict=True)
        if (row in totals) == inside
    ]
    found = np.array(rows, dtype=np.int32).reshape(len(rows), len(left.columns))
    return replace(left, rows=found, pending=left.pending or right.pending)


def _shown(ev: Evaluator, members: SetValue) -> IntArray:
    """Rows of a set with the members that visual totals stand for; the very rows where there are none."""
    sizes = [ev.columns[column].hierarchy.size for column in members.columns]
    if not sizes or bool((members.rows < np.array(sizes)).all()):
        return members.rows
    return np.array(
        [
            [ev.shown_as(c, n) for c, n in zip(members.columns, row, strict=True)]
            for row in members.rows.tolist()
        ],
        dtype=np.int32,
    )


@function("UNORDER", "NATIVIZESET", "CACHE")
def _same(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A set whatever its order, or however it is to be worked out: the set."""
    return ev.to_any_set(ev.arguments(call, 1, 1, ctx)[0], ctx)


@function("AXIS")
def _axis(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The set of one of the query's axes, before empty positions are left out."""
    number = ev.to_integer(ev.arguments(call, 1, 1, ctx)[0], ctx)
    if axis_name(number) not in ev.sets:
        raise ev.error(ctx, call.at, f"The query has no axis {number}.")
    return ev.named_set(axis_name(number), call, ctx)


@function("DISTINCT")
def _distinct(ev: Evaluator, call: Call, ctx: Context) -> Value:
    return distinct(ev.to_any_set(ev.arguments(call, 1, 1, ctx)[0], ctx))


@function("HEAD", "TAIL")
def _head(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, count = ev.arguments(call, 1, 2, ctx)
    members = ev.to_any_set(target, ctx)
    n = max(0, 1 if count is None else ev.to_integer(count, ctx))
    if members.pending:
        return members
    rows = members.rows[:n] if call.function.upper() == "HEAD" else members.rows[max(0, len(members) - n) :]
    return members.taking(rows)


@function("SUBSET")
def _subset(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, start, count = ev.arguments(call, 2, 3, ctx)
    members = ev.to_any_set(target, ctx)
    first = max(0, ev.to_integer(start, ctx))
    n = len(members) if count is None else max(0, ev.to_integer(count, ctx))
    return members if members.pending else members.taking(members.rows[first : first + n])


@function("HIERARCHIZE")
def _hierarchize(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, word = ev.arguments(call, 1, 2, ctx)
    members = ev.to_any_set(target, ctx)
    post = ev.flag(word, ("POST", "PRE"), ctx) == "POST"
    keys: list[NDArray[np.int64]] = []
    for position, number in enumerate(members.columns):
        keys.extend(_places(ev, ev.columns[number], members.rows[:, position], post))
    return members.taking(members.rows[np.lexsort(keys[::-1])]) if keys else members


def _places(ev: Evaluator, column: Column, members: IntArray, post: bool) -> list[NDArray[np.int64]]:
    """What members stand in hierarchical order by, first keys first: calculated ones end their siblings."""
    tree = column.hierarchy
    # A visual total stands where its member does, another calculated member behind all beneath its parent.
    numbers = np.array([ev.shown_as(column.number, number) for number in members.tolist()], dtype=np.int64)
    inside = numbers < tree.size
    near = numbers.copy()
    near[~inside] = [parent_of(ev, column, number) for number in numbers[~inside].tolist()]
    last = np.where(near >= 0, tree.last_descendant[near], tree.size).astype(np.int64)
    depth = np.where(near >= 0, tree.depth[near], -1).astype(np.int64)
    if post:
        return [last, np.where(inside, -2 * depth, -2 * depth - 1), numbers]
    return [np.where(inside, numbers, last), np.where(inside, -tree.size, -depth), numbers]


@function("GENERATE")
def _generate(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A set, or a text with what stands between its parts, made of each position of a set."""
    target, what, word = ev.arguments(call, 2, 3, ctx)
    node = ev.given(what, ctx)
    over = ev.to_any_set(target, ctx)
    places = [ctx.at(position) for position in over.tuples()]
    values = [ev.evaluate(node, place) for place in places]
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        ev.to_set(target, ctx)
        between = "" if word is None else ev.to_text(word, ctx)
        ev.write(sum(map(len, texts)) + len(texts) * len(between), call, ctx)
        return between.join(texts)
    if not values and word is not None and not ev.is_flag(word, ("ALL",)):
        return ""
    everything = ev.flag(word, ("ALL",), ctx) == "ALL"
    parts = [ev.as_set(value, node, place) for value, place in zip(values, places, strict=True)]
    joined = ev.join(parts, [node.at] * len(parts), ctx)
    joined = replace(joined, pending=joined.pending or over.pending)
    return joined if everything else distinct(joined)


@function("CURRENT")
def _current(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The tuple of a set at which an iteration over it is."""
    columns = ev.to_any_set(ev.arguments(call, 1, 1, ctx)[0], ctx).columns
    return TupleValue(columns, tuple(map(ctx.current, columns)))


@function("EXTRACT")
def _extract(ev: Evaluator, call: Call, ctx: Context) -> Value:
    nodes = list(call.arguments or ())
    if len(nodes) < 2:
        raise ev.error(ctx, call.at, "Extract takes a set and the hierarchies wanted.")
    members = ev.to_any_set(nodes[0], ctx)
    wanted = [ev.to_column(node, ctx) for node in nodes[1:]]
    for column, node in zip(wanted, nodes[1:], strict=True):
        if column not in members.columns:
            raise ev.error(ctx, ev.given(node, ctx).at, "The set isn't of this hierarchy.")
    rows = members.rows[:, [members.columns.index(column) for column in wanted]]
    return distinct(SetValue(tuple(wanted), rows, members.pending))
