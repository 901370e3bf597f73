"""MDX functions that open and close members of a set, as a pivot table does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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


def _own_members(ev: Evaluator, call: Call) -> Call:
    """The call without the word that calculated members shall be there too: none has a parent here.

    Spreadsheets write it behind arguments that they leave out.
    """
    given = list(call.arguments or ())
    if given and ev.is_flag(given[-1], ("INCLUDE_CALC_MEMBERS",)):
        given.pop()
        while given and given[-1] is None:
            given.pop()
    return replace(call, arguments=tuple(given)) if call.arguments is not None else call


@function("DRILLDOWNLEVEL")
def _drill_down_level(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Children after each member of the deepest level, or of the level named."""
    call = _own_members(ev, call)
    target, where, which = ev.arguments(call, 1, 3, ctx)
    members = ev.to_set(target, ctx)
    if not len(members):
        return members
    place = _place(ev, call, members, which, ctx)
    level = None
    if where is not None:
        named = ev.to_level(where, ctx)
        if named.column not in members.columns:
            raise ev.error(ctx, call.at, "The level is of another hierarchy than the set.")
        place, level = members.columns.index(named.column), named.level
    column = ev.columns[members.columns[place]]
    depths = _depths(column, members.rows[:, place])
    level = max(depths) if level is None else level
    found: list[Row] = []
    for row, depth in zip(map(tuple, members.rows.tolist()), depths, strict=True):
        found.append(row)
        if depth == level:
            found.extend(_beneath(column, row, place))
    return SetValue.of(members.columns, found)


def _beneath(column: Column, row: Row, place: int) -> list[Row]:
    return [(*row[:place], child, *row[place + 1 :]) for child in children(column, row[place])]


@dataclass(frozen=True)
class _Drill:
    """Which members of a column are opened, closed, or turned over, and how deep."""

    column: Column
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
                beneath = _beneath(self.column, row, self.place)
                found.extend(self.apply(beneath) if self.recursive else beneath)
        return found

    def _is_child(self, row: Row, above: Row) -> bool:
        return self._is_below(row, above) and row[self.place] in children(self.column, above[self.place])

    def _is_below(self, row: Row, above: Row) -> bool:
        member, upper = row[self.place], above[self.place]
        last = self.column.hierarchy.last_descendant
        alike = row[: self.place] == above[: self.place] and row[self.place + 1 :] == above[self.place + 1 :]
        return alike and upper < len(last) and upper < member <= int(last[upper])


@function("DRILLDOWNMEMBER", "TOGGLEDRILLSTATE", "DRILLUPMEMBER")
def _drill_member(ev: Evaluator, call: Call, ctx: Context) -> Value:
    call = _own_members(ev, call)
    target, which, word = ev.arguments(call, 2, 3, ctx)
    name = call.function.upper()
    members, chosen = ev.to_set(target, ctx), ev.to_set(which, ctx)
    recursive = name != "DRILLUPMEMBER" and ev.flag(word, ("RECURSIVE",), ctx) == "RECURSIVE"
    if not len(members) or not len(chosen):
        return members
    if len(chosen.columns) != 1 or chosen.columns[0] not in members.columns:
        cause = f"{call.function} takes a set, and the members of one of its hierarchies to be drilled."
        raise ev.error(ctx, call.at, cause)
    drill = _Drill(
        ev.columns[chosen.columns[0]],
        members.columns.index(chosen.columns[0]),
        frozenset(chosen.rows[:, 0].tolist()),
        name != "DRILLUPMEMBER",
        name != "DRILLDOWNMEMBER",
        recursive,
    )
    return SetValue.of(members.columns, drill.apply(list(map(tuple, members.rows.tolist()))))


@function("DRILLUPLEVEL")
def _drill_up_level(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The set without its deepest level, or without all beneath the level named, if it has any of that."""
    target, where = ev.arguments(call, 1, 2, ctx)
    members = ev.to_set(target, ctx)
    if not len(members):
        return members
    place, level = 0, None
    if where is not None:
        named = ev.to_level(where, ctx)
        if named.column not in members.columns:
            raise ev.error(ctx, call.at, "The level is of another hierarchy than the set.")
        place, level = members.columns.index(named.column), named.level
    depths = np.array(_depths(ev.columns[members.columns[place]], members.rows[:, place]))
    if level is None:
        level = int(depths.max()) - 1
    elif level not in depths:
        return members
    return SetValue(members.columns, members.rows[depths <= level])
