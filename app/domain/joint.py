"""Hierarchies that two others decide together: whoever crosses those two has the third.

Commuters who stay are those whose town of work is their town of residence. A reader who sees the table of
both towns adds up its diagonal, though no hierarchy decides the other. So a cell at a member of the decided
hierarchy is the sum of *boxes*, cells of the two others, and is tied to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.cube import IntArray
from app.domain.equation import Entries
from app.domain.lattice import Bools, Longs, Space
from app.domain.overlaps import gathered, leaf_weights


@dataclass(frozen=True, eq=False)
class Joint:
    """Columns of a decided hierarchy and of the two that decide it, and all leaves that have facts together.

    ``made``, ``one``, ``other`` (int64[k]) are leaves of ``column``, ``first`` and ``second``; a pair of the
    latter occurs once.
    """

    column: int
    first: int
    second: int
    made: Longs
    one: Longs
    other: Longs


#: Coefficient, member or group of the first deciding hierarchy, and of the second.
Box = tuple[float, int, int]


def joint_sums(space: Space, joints: Sequence[Joint], cells: IntArray, rows: Longs) -> list[Entries]:
    """Cells at members of decided hierarchies as sums of boxes."""
    return [entries for joint in joints if (entries := _sums(space, cells, rows, joint)) is not None]


def _sums(space: Space, cells: IntArray, rows: Longs, joint: Joint) -> Entries | None:
    columns = [joint.column, joint.first, joint.second]
    rows = rows[cells[rows, joint.column] != 0]
    if not len(rows):
        return None
    names, place = np.unique(cells[rows][:, columns], axis=0, return_inverse=True)
    boxes = [_boxes(space, joint, *map(int, name)) for name in names]
    told = [boxes[which] for which in place.reshape(-1).tolist()]
    counts = np.array([len(found) for found in told], dtype=np.int64)
    rows, told, counts = rows[counts > 0], [found for found in told if found], counts[counts > 0]
    if not len(rows):
        return None
    k = len(rows)
    owner = np.repeat(np.arange(k), counts)
    operands = cells[rows[owner]].copy()
    flat = [box for found in told for box in found]
    operands[:, joint.column] = 0
    operands[:, joint.first] = [one for _, one, _ in flat]
    operands[:, joint.second] = [other for _, _, other in flat]
    return Entries(
        relation=np.concatenate([np.arange(k), owner]),
        coords=np.concatenate([cells[rows], operands]),
        coef=np.concatenate([np.full(k, -1.0), [factor for factor, _, _ in flat]]),
        optional=np.concatenate([np.zeros(k, dtype=np.bool_), np.ones(len(owner), dtype=np.bool_)]),
        rhs=np.zeros(k),
        completes=np.zeros(k, dtype=np.bool_),
    )


def _boxes(space: Space, joint: Joint, made: int, one: int, other: int) -> list[Box]:
    """The boxes of a cell; none where it has no facts or is no plain set of members.

    Where most of what a member of the first hierarchy has belongs to the cell, the rest is taken off it: the
    boxes stay small.
    """
    weights = [
        leaf_weights(space, column, number)
        for column, number in ((joint.column, made), (joint.first, one), (joint.second, other))
    ]
    sets = [weight != 0 for weight in weights if weight is not None and np.isin(weight, (0, 1)).all()]
    if len(sets) < len(weights):
        return []
    around = np.flatnonzero(sets[1][joint.one] & sets[2][joint.other])
    inside = sets[0][joint.made[around]]
    if not inside.any():
        return []
    whole: list[int] = []
    plus: dict[bytes, list[int]] = {}
    minus: dict[bytes, list[int]] = {}
    order = np.argsort(joint.one[around], kind="stable")
    members, starts = np.unique(joint.one[around][order], return_index=True)
    for member, mine in zip(members.tolist(), np.split(order, starts[1:]), strict=True):
        taken = inside[mine]
        leaves = joint.other[around[mine]]
        if 2 * taken.sum() > len(mine):
            whole.append(member)
            if not taken.all():
                minus.setdefault(np.sort(leaves[~taken]).tobytes(), []).append(member)
        elif taken.any():
            plus.setdefault(np.sort(leaves[taken]).tobytes(), []).append(member)
    known = _known(space, joint.first, joint.one), _known(space, joint.second, joint.other)
    boxes: list[Box] = []
    if whole:
        boxes.append((1.0, _named(space, joint.first, np.array(whole), known[0]), other))
    for factor, parts in ((1.0, plus), (-1.0, minus)):
        for leaves_of, owners in parts.items():
            inner = np.frombuffer(leaves_of, dtype=np.int64)
            boxes.append(
                (
                    factor,
                    _named(space, joint.first, np.array(owners), known[0]),
                    _named(space, joint.second, inner, known[1]),
                )
            )
    return boxes


def _known(space: Space, column: int, leaves: Longs) -> Bools:
    known = np.zeros(space.trees[column - 1].size, dtype=np.bool_)
    known[leaves] = True
    return known


def _named(space: Space, column: int, leaves: Longs, known: Bools) -> int:
    tree = space.trees[column - 1]
    weights = np.zeros(tree.size)
    weights[leaves] = 1.0
    return space.number(column, gathered(tree, weights, known), "", is_formula=False)
