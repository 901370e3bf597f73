"""Figures made of those that a table shows: shares of a total, changes from period to period, indices.

They are functions of masked cells alone: of the figures that are shown, at their published digits, and of
which cells are hidden, empty or not released. Whoever has the table can work them out, so that they tell
nothing that it doesn't tell; and a figure that takes a hidden one is hidden (ADR 11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Hierarchy
from app.domain.masked import AxisMember, CellStatus, CellStyle, FloatArray, MaskedCellSet
from app.domain.numbers import rounded
from app.web.language import marked as _
from app.web.language import translations
from app.web.picks import Members
from app.web.refusals import RefusalError
from app.web.tables import caption

SHARE, CHANGE, GROWTH, INDEX = "share-", "change", "growth", "index"
#: What an address may say; a share names the hierarchy of its total by number.
SAID = re.compile(rf"{SHARE}\d{{1,3}}|{CHANGE}|{GROWTH}|{INDEX}", re.ASCII)
NO_FIGURES = _("The figures of this table can't be shown as “%(value)s”.")

_DIGITS = 1
_FORM = "#,##0.0"
#: Of the states of two cells that stands for both which comes first.
_RANK = (CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED, CellStatus.EMPTY)
_Numbers = NDArray[np.int64]


def derivations(hierarchies: Sequence[Members]) -> tuple[str, ...]:
    """What the figures of a table can be shown as, in the words of addresses.

    A share needs a total: the one member of a hierarchy that all the others lie in. Changes and indices need
    two periods of a level.
    """
    shares = [f"{SHARE}{number}" for number, members in enumerate(hierarchies) if _total(members) is not None]
    return (*shares, *((CHANGE, GROWTH, INDEX) if _time(hierarchies) is not None else ()))


def figures_text(show: str, hierarchies: Sequence[Members], language: str) -> str:
    """What a table's figures are shown as, for readers."""
    say = translations(language).gettext
    if show.startswith(SHARE):
        total = _total(hierarchies[int(show.removeprefix(SHARE))])
        return say(_("Per cent of “%(member)s”")) % {"member": caption(total, language) if total else ""}
    return {
        CHANGE: say(_("Change from the period before")),
        GROWTH: say(_("Change from the period before, per cent")),
        INDEX: say(_("Index, the first period = 100")),
    }[show]


def derive(
    table: MaskedCellSet, show: str, hierarchies: Sequence[Members], periods: frozenset[str]
) -> MaskedCellSet:
    """The same places with other figures, worked out of those that are shown.

    Parameters
    ----------
    table
        As published, on two axes: totals and earlier periods count also where a reader leaves them out.
    hierarchies
        Those of its axes, numbered as addresses do.
    periods
        Unique names of the periods that a reader wants to see; an index begins at the first of each level.

    Raises
    ------
    RefusalError
        400 where the table has no such total, or no periods.
    """
    if show not in derivations(hierarchies):
        raise RefusalError(400, NO_FIGURES, value=show)
    if show.startswith(SHARE):
        members = hierarchies[int(show.removeprefix(SHARE))]
        total = _total(members)
        other = {member.unique_name: total for member in members.members}
    else:
        members = hierarchies[_time(hierarchies) or 0]
        other = _bases(members, periods) if show == INDEX else _before(members)
    theirs, style = _operands(table, members.members[0].hierarchy, other)
    status, values = table.status.reshape(-1), table.values.reshape(-1)
    met = theirs >= 0
    other_status = np.where(met, status[theirs], np.int8(CellStatus.EMPTY))
    base = np.where(met, values[theirs], np.nan)
    found = np.full(len(status), CellStatus.SHOWN, np.int8)
    for state in reversed(_RANK):
        found[(status == state) | (other_status == state)] = state
    if show != CHANGE:
        # A part of nothing, or of less, is no share of it.
        found[(found == CellStatus.SHOWN) & ~(base > 0)] = CellStatus.EMPTY
    shown = found == CellStatus.SHOWN
    with np.errstate(over="ignore"):
        made = _worked_out(np.where(shown, values, np.nan), base, show)
    # Larger than any number: none that could be said.
    beyond = shown & np.isinf(made)
    found[beyond], made[beyond] = CellStatus.EMPTY, np.nan
    shown = found == CellStatus.SHOWN
    if show == CHANGE:
        for number, one in enumerate(table.styles):
            mine = shown & (table.style == number)
            made[mine] = rounded(made[mine], one.decimals)
        return replace(table, status=found, values=made, texts={})
    made[shown] = rounded(made[shown], _DIGITS)
    units = [{"en": "%"}] if show != INDEX else [_unit(one) for one in _distinct(other)]
    styles = tuple(CellStyle(_FORM, _DIGITS, unit) for unit in units)
    numbers = style if show == INDEX else np.zeros(len(status), np.int32)
    return replace(table, status=found, values=made, style=numbers, styles=styles, texts={})


def _worked_out(values: FloatArray, base: FloatArray, show: str) -> FloatArray:
    """The figures before they are rounded, nan where one of the two is."""
    if show == CHANGE:
        return values - base
    return 100 * (values / np.where(base > 0, base, np.nan)) - (100 if show == GROWTH else 0)


def _total(members: Members) -> AxisMember | None:
    """The member that all the others lie in."""
    hierarchy = members.hierarchy
    if hierarchy is None or len(members.members) < 2:
        return None
    top = min(members.members, key=lambda member: member.depth)
    rest = (member for member in members.members if member.unique_name != top.unique_name)
    return top if all(_lies_in(member, top.unique_name, hierarchy) for member in rest) else None


def _lies_in(member: AxisMember, name: str, hierarchy: Hierarchy) -> bool:
    at = hierarchy.index_of.get(member.parent, -1) if member.parent is not None else -1
    while at >= 0 and hierarchy.unique_names[at] != name:
        at = int(hierarchy.parent[at])
    return at >= 0


def _time(hierarchies: Sequence[Members]) -> int | None:
    """The number of the first hierarchy of time with two periods of a level."""
    for number, members in enumerate(hierarchies):
        depths = [member.depth for member in members.members]
        if members.time and len(set(depths)) < len(depths):
            return number
    return None


def _levels(members: Members) -> dict[int, list[AxisMember]]:
    """The periods of each level in the order of the hierarchy; calculated members are none."""
    hierarchy = members.hierarchy
    assert hierarchy is not None
    levels: dict[int, list[AxisMember]] = {}
    known = [member for member in members.members if member.unique_name in hierarchy.index_of]
    for member in sorted(known, key=lambda one: hierarchy.index_of[one.unique_name]):
        levels.setdefault(member.depth, []).append(member)
    return levels


def _before(members: Members) -> dict[str, AxisMember | None]:
    """The period before each one, None where the table doesn't have that."""
    hierarchy = members.hierarchy
    assert hierarchy is not None
    found: dict[str, AxisMember | None] = {}
    for depth, periods in _levels(members).items():
        level = np.flatnonzero(hierarchy.depth == depth)
        rank = {hierarchy.unique_names[at]: place for place, at in enumerate(level.tolist())}
        here = {rank[period.unique_name]: period for period in periods}
        found |= {period.unique_name: here.get(place - 1) for place, period in here.items()}
    return found


def _bases(members: Members, wanted: frozenset[str]) -> dict[str, AxisMember | None]:
    """For each period the first of its level that a reader wants to see."""
    found: dict[str, AxisMember | None] = {}
    for periods in _levels(members).values():
        base = next((period for period in periods if period.unique_name in wanted), periods[0])
        found |= {period.unique_name: base for period in periods}
    return found


def _distinct(other: Mapping[str, AxisMember | None]) -> list[AxisMember]:
    found = {member.unique_name: member for member in other.values() if member is not None}
    return list(found.values())


def _unit(base: AxisMember) -> dict[str, str]:
    return {code: f"{text} = 100" for code, text in base.captions.items()} or {"en": "100"}


def _operands(
    table: MaskedCellSet, hierarchy: str, other: Mapping[str, AxisMember | None]
) -> tuple[_Numbers, NDArray[np.int32]]:
    """For each cell the one that its figure is set against, -1 for none, and which of the members it has."""
    across, down = table.axes
    numbers = np.arange(table.status.size, dtype=np.int64).reshape(len(down.positions), len(across.positions))
    kinds = {member.unique_name: number for number, member in enumerate(_distinct(other))}
    axis = down if hierarchy in down.hierarchies else across
    column = axis.hierarchies.index(hierarchy)
    names = [tuple(member.unique_name for member in position) for position in axis.positions]
    place = {name: number for number, name in enumerate(names)}
    theirs, kind = [], []
    for name in names:
        met = other.get(name[column])
        theirs.append(
            -1 if met is None else place.get((*name[:column], met.unique_name, *name[column + 1 :]), -1)
        )
        kind.append(0 if met is None else kinds[met.unique_name])
    at, of = np.asarray(theirs, np.int64), np.asarray(kind, np.int32)
    if axis is down:
        found = np.where(at[:, None] >= 0, numbers[at], -1)
        return found.reshape(-1), np.broadcast_to(of[:, None], numbers.shape).reshape(-1)
    found = np.where(at[None, :] >= 0, numbers[:, at], -1)
    return found.reshape(-1), np.broadcast_to(of[None, :], numbers.shape).reshape(-1)
