"""Sub-selects, a query over a part of the cube, and the visual totals that go with it.

A member above others that the part holds is the total of those. Off the axes, the part's members are taken
together as in a slicer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.values import SetValue, Value
from app.domain.cube import Hierarchy, IntArray
from app.mdx.tree import Call, Name, SubSelect

OUTSIDE, ABOVE, INSIDE = -1, 0, 1


def restrict(ev: Evaluator, cube: Name | SubSelect, base: Context) -> dict[int, IntArray]:
    """Members that sub-selects leave of each hierarchy they name, none above another; the evaluator
    keeps to them from now on.

    Raises
    ------
    UserError
        When a sub-select isn't a plain choice of members of each hierarchy.
    """
    chosen: dict[int, IntArray] = {}
    while isinstance(cube, SubSelect):
        places = [(axis.set, axis.at) for axis in cube.axes]
        places += [] if cube.slicer is None else [(cube.slicer, cube.slicer.at)]
        for node, at in places:
            with ev.apart():
                taken = ev.to_set(node, base)
                ev.firm(at, base)
            _take(ev, taken, at, base, chosen)
        cube = cube.source
    for column, members in chosen.items():
        ev.within[column] = _places(ev.columns[column].hierarchy, members)
    return chosen


def _take(ev: Evaluator, members: SetValue, at: int, base: Context, chosen: dict[int, IntArray]) -> None:
    if not len(members):
        raise ev.error(base, at, "The sub-select is an empty set.")
    parts = [np.unique(members.rows[:, place]) for place in range(len(members.columns))]
    if len(np.unique(members.rows, axis=0)) != int(np.prod([len(part) for part in parts])):
        cause = "The sub-select's set isn't every combination of its members."
        raise ev.error(base, at, cause, "Write it as a CrossJoin.")
    for column, part in zip(members.columns, parts, strict=True):
        tree = ev.columns[column].hierarchy
        if column == 0 or part.max() >= tree.size:
            raise ev.error(base, at, "A sub-select takes members of the cube's hierarchies only.")
        inside = _places(tree, part) == INSIDE
        if column in chosen:
            inside &= _places(tree, chosen[column]) == INSIDE
        if not inside.any():
            raise ev.error(base, at, "The sub-selects leave no member.")
        tops = np.flatnonzero(inside)
        parents = tree.parent[tops]
        chosen[column] = tops[(parents < 0) | ~inside[np.maximum(parents, 0)]].astype(np.int32)


def _places(tree: Hierarchy, members: IntArray) -> NDArray[np.int8]:
    """Where each member of a hierarchy stands to a part of it: OUTSIDE, ABOVE or INSIDE."""
    place = np.full(tree.size, OUTSIDE, dtype=np.int8)
    for member in members.tolist():
        place[member : tree.last_descendant[member] + 1] = INSIDE
        above = int(tree.parent[member])
        while above >= 0 and place[above] == OUTSIDE:
            place[above] = ABOVE
            above = int(tree.parent[above])
    return place


def visual_totals(ev: Evaluator, chosen: Mapping[int, IntArray], ctx: Context, at: int) -> None:
    """From now on a member above some that a sub-select leaves is the total of these alone."""
    for column, members in chosen.items():
        tree = ev.columns[column].hierarchy
        stand_ins = np.arange(tree.size, dtype=np.int32)
        for above in np.flatnonzero(ev.within[column] == ABOVE).tolist():
            parts = members[(members > above) & (members <= tree.last_descendant[above])]
            stand_ins[above] = ev.total(column, above, parts.tolist(), "*", ctx, at)
        ev.visual[column] = stand_ins


@function("VISUALTOTALS")
def _visual_totals(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A set whose members count as the members of the set beneath them, where there are any."""
    target, form = ev.arguments(call, 1, 2, ctx)
    with ev.apart():
        members = ev.to_set(target, ctx)
        ev.firm(call.at, ctx)
        basis = ev.basis
    ev.meet(basis)
    pattern = "*" if form is None else ev.to_text(form, ctx)
    if len(pattern) > ev.limits.words:
        raise ev.error(ctx, call.at, f"A pattern of names has {ev.limits.words:,} letters at most.")
    if not len(members):
        return members
    if len(members.columns) != 1:
        raise ev.error(ctx, call.at, "VisualTotals takes members of one hierarchy.")
    column = members.columns[0]
    tree = ev.columns[column].hierarchy
    own = np.unique(members.rows[members.rows[:, 0] < tree.size, 0])
    last = tree.last_descendant[own]
    has_some = np.append(own[1:], tree.size) <= last
    leaves = own[~has_some]
    found: dict[int, int] = {}
    for member in own[has_some].tolist():
        parts = leaves[(leaves > member) & (leaves <= tree.last_descendant[member])]
        found[member] = ev.total(column, member, parts.tolist(), pattern, ctx, call.at)
    rows = [found.get(number, number) for number in members.rows[:, 0].tolist()]
    return SetValue(members.columns, np.array(rows, dtype=np.int32)[:, None])
