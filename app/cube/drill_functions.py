"""MDX functions that open and close members of a set, as a pivot table does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.cube.choosing_functions import largest
from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.member_functions import children
from app.cube.names import Column
from app.cube.values import SetValue, Value
from app.mdx.tree import Call, Expression

Row = tuple[int, ...]


def _depths(column: Column, numbers: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[int]:
    """Levels of members; calculated ones stand at the top."""
    depth, size = column.hierarchy.depth, column.hierarchy.size
    found: list[int] = np.where(numbers < size, depth[np.minimum(numbers, size - 1)], 0).tolist()
    return found


def _place(ev: Evaluator, call: Call, members: SetValue, which: Expression | None, ctx: Context) -> int:
    """Which hierarchy of a set's tuples is drilled: the first, or the one of that index."""
    place = 0 if which is None else ev.to_integer(which, ctx)
    if not 0 <= place < len(members.columns):
        cause = f"{call.function} can't find hierarchy {place} in the set."
        raise ev.error(ctx, call.at, cause, "They count from 0.")
    return place


def _calculated_too(ev: Evaluator, call: Call) -> tuple[Call, bool]:
    """The call without the word that calculated members shall be there too, and whether it was there.

    Spreadsheets write it behind arguments that they leave out.
    """
    given = list(call.arguments or ())
    if not given or not ev.is_flag(given[-1], ("INCLUDE_CALC_MEMBERS",)):
        return call, False
    given.pop()
    while given and given[-1] is None:
        given.pop()
    return replace(call, arguments=tuple(given)), True


@dataclass(frozen=True)
class _Children:
    """Members under others in a column, with the calculated ones if these are asked for."""

    column: Column
    calculated: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, ev: Evaluator, column: Column, calculated: bool) -> _Children:
        found: dict[int, list[int]] = {}
        for (number, member), definition in ev.definitions.items() if calculated else ():
            if number == column.number and definition.parent >= 0:
                found.setdefault(definition.parent, []).append(member)
        return cls(column, found)

    def __call__(self, member: int) -> list[int]:
        return [*children(self.column, member), *self.calculated.get(member, ())]

    def parent(self, member: int) -> int:
        """The parent of a calculated member; another one itself."""
        return next((above for above, found in self.calculated.items() if member in found), member)


@function("DRILLDOWNLEVEL")
def _drill_down_level(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Children after each member of the deepest level, or of the level named."""
    call, calculated = _calculated_too(ev, call)
    target, where, which = ev.arguments(call, 1, 3, ctx)
    members = ev.to_set(target, ctx)
    if not len(members):
        return members
    place = _place(ev, call, members, which, ctx)
    level = None
    if where is not None:
        place, level = _level_in(ev, members, where, ctx, call)
    column = ev.columns[members.columns[place]]
    depths = _depths(column, members.rows[:, place])
    level = max(depths) if level is None else level
    under = _Children.of(ev, column, calculated)
    found: list[Row] = []
    for row, depth in zip(map(tuple, members.rows.tolist()), depths, strict=True):
        found.append(row)
        if depth == level:
            found.extend(_beneath(under, row, place))
    return SetValue.of(members.columns, found)


def _beneath(under: _Children, row: Row, place: int) -> list[Row]:
    return [(*row[:place], child, *row[place + 1 :]) for child in under(row[place])]


@dataclass(frozen=True)
class _Drill:
    """Which members of a column are opened, closed, or turned over, and how deep."""

    under: _Children
    place: int
    chosen: frozenset[int]
    opens: bool
    closes: bool
    recursive: bool

    def apply(self, rows: list[Row]) -> list[Row]:
        found: list[Row] = []
        index = 0
        while index < len(rows):
            row = rows[index]
            found.append(row)
            index += 1
            if row[self.place] not in self.chosen:
                continue
            is_open = index < len(rows) and self._is_child(rows[index], row)
            if is_open and self.closes:
                while index < len(rows) and self._is_below(rows[index], row):
                    index += 1
            elif not is_open and self.opens:
                beneath = _beneath(self.under, row, self.place)
                found.extend(self.apply(beneath) if self.recursive else beneath)
        return found

    def _is_child(self, row: Row, above: Row) -> bool:
        return self._is_below(row, above) and row[self.place] in self.under(above[self.place])

    def _is_below(self, row: Row, above: Row) -> bool:
        member, upper = row[self.place], above[self.place]
        last = self.under.column.hierarchy.last_descendant
        alike = row[: self.place] == above[: self.place] and row[self.place + 1 :] == above[self.place + 1 :]
        holder = self.under.parent(member)
        return alike and upper < len(last) and member != upper and upper <= holder <= int(last[upper])


@function("DRILLDOWNMEMBER", "TOGGLEDRILLSTATE", "DRILLUPMEMBER")
def _drill_member(ev: Evaluator, call: Call, ctx: Context) -> Value:
    call, calculated = _calculated_too(ev, call)
    target, which, word = ev.arguments(call, 2, 3, ctx)
    name = call.function.upper()
    members, chosen = ev.to_set(target, ctx), ev.to_set(which, ctx)
    recursive = name != "DRILLUPMEMBER" and ev.flag(word, ("RECURSIVE",), ctx) == "RECURSIVE"
    if not len(members) or not len(chosen):
        return members
    place = _drilled_place(ev, members, chosen, ctx, call)
    drill = _Drill(
        _Children.of(ev, ev.columns[chosen.columns[0]], calculated),
        place,
        frozenset(chosen.rows[:, 0].tolist()),
        name != "DRILLUPMEMBER",
        name != "DRILLDOWNMEMBER",
        recursive,
    )
    return SetValue.of(members.columns, drill.apply(list(map(tuple, members.rows.tolist()))))


@function("DRILLDOWNLEVELTOP", "DRILLDOWNLEVELBOTTOM")
def _drill_down_level_chosen(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """As DrilldownLevel, with so many children of the largest or smallest values, these first."""
    call, calculated = _calculated_too(ev, call)
    target, count, where, key = ev.arguments(call, 2, 4, ctx)
    members = ev.to_any_set(target, ctx)
    if not len(members):
        return members
    place, level = 0, None
    if where is not None:
        place, level = _level_in(ev, members, where, ctx, call)
    column = ev.columns[members.columns[place]]
    depths = _depths(column, members.rows[:, place])
    level = max(depths) if level is None else level
    chosen = np.array([depth == level for depth in depths], dtype=bool)
    return _drilled(ev, _Chosen(members, place, chosen, calculated), count, key, ctx, call)


@function("DRILLDOWNMEMBERTOP", "DRILLDOWNMEMBERBOTTOM")
def _drill_down_member_chosen(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """As DrilldownMember, with so many children of the largest or smallest values, these first."""
    call, calculated = _calculated_too(ev, call)
    target, which, count, key = ev.arguments(call, 3, 4, ctx)
    members, drilled = ev.to_any_set(target, ctx), ev.to_set(which, ctx)
    if not len(members) or not len(drilled):
        return members
    place = _drilled_place(ev, members, drilled, ctx, call)
    chosen = np.isin(members.rows[:, place], drilled.rows[:, 0])
    return _drilled(ev, _Chosen(members, place, chosen, calculated), count, key, ctx, call)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The rows of a set that are opened (bool[n]), in one of its hierarchies."""

    members: SetValue
    place: int
    rows: NDArray[np.bool_]
    calculated: bool


def _drilled(
    ev: Evaluator, opened: _Chosen, count: Expression | None, key: Expression | None, ctx: Context, call: Call
) -> SetValue:
    n, smallest = ev.to_integer(count, ctx), call.function.upper().endswith("BOTTOM")
    members, pending = opened.members, opened.members.pending
    under = _Children.of(ev, ev.columns[members.columns[opened.place]], opened.calculated)
    found: list[Row] = []
    for row, opens in zip(map(tuple, members.rows.tolist()), opened.rows.tolist(), strict=True):
        found.append(row)
        beneath = _beneath(under, row, opened.place) if opens else []
        if beneath:
            best = largest(ev, key, SetValue.of(members.columns, beneath), n, ctx, call, smallest)
            found.extend(map(tuple, best.rows.tolist()))
            pending |= best.pending
    return replace(SetValue.of(members.columns, found), pending=pending)


def _level_in(
    ev: Evaluator, members: SetValue, where: Expression, ctx: Context, call: Call
) -> tuple[int, int]:
    """Which hierarchy of a set a level is of, and the level's number."""
    named = ev.to_level(where, ctx)
    if named.column not in members.columns:
        raise ev.error(ctx, call.at, "The level is of another hierarchy than the set.")
    return members.columns.index(named.column), named.level


def _drilled_place(ev: Evaluator, members: SetValue, drilled: SetValue, ctx: Context, call: Call) -> int:
    if len(drilled.columns) != 1 or drilled.columns[0] not in members.columns:
        cause = f"{call.function} takes a set, and the members of one of its hierarchies to be drilled."
        raise ev.error(ctx, call.at, cause)
    return members.columns.index(drilled.columns[0])


@function("DRILLUPLEVEL")
def _drill_up_level(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The set without its deepest level, or without all beneath the level named, if it has any of that."""
    target, where = ev.arguments(call, 1, 2, ctx)
    members = ev.to_set(target, ctx)
    if not len(members):
        return members
    place, level = 0, None
    if where is not None:
        place, level = _level_in(ev, members, where, ctx, call)
    depths = np.array(_depths(ev.columns[members.columns[place]], members.rows[:, place]))
    if level is None:
        level = int(depths.max()) - 1
    elif level not in depths:
        return members
    return SetValue(members.columns, members.rows[depths <= level])
