"""Sub-selects: a query over a part of the cube.

Supported as far as no visual total is needed: a hierarchy of the sub-select either is off the axes, where
its members are taken together as in a slicer, or is on them with members that lie wholly inside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.cube.context import Context
from app.cube.evaluate import Evaluator
from app.cube.values import SetValue
from app.domain.cube import Hierarchy, IntArray
from app.domain.errors import UserError
from app.mdx import Source
from app.mdx.tree import Name, SubSelect

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
        for axis in cube.axes:
            _take(ev, ev.to_set(axis.set, base), axis.at, base, chosen)
        if cube.slicer is not None:
            _take(ev, ev.to_set(cube.slicer, base), cube.slicer.at, base, chosen)
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


def check_inside(ev: Evaluator, coords: IntArray, source: Source, at: int) -> None:
    """That no cell takes in more of a hierarchy than the sub-select leaves.

    Raises
    ------
    UserError
    """
    for column, place in ev.within.items():
        numbers = coords[:, column]
        own = numbers < len(place)
        wrong = np.flatnonzero(own & (place[np.minimum(numbers, len(place) - 1)] != INSIDE))
        if len(wrong):
            tree = ev.columns[column].hierarchy
            name = tree.unique_names[int(numbers[wrong[0]])]
            cause = f"{name} takes in more than the sub-select leaves of {tree.unique_name}."
            remedy = "Take it off the query, or use WHERE instead of the sub-select."
            raise UserError(source.mistake(at, cause, remedy))
