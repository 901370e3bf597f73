"""Cells of groups as the cells of own members that they consist of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.cube.port import Group
from app.domain.cube import Cube, IntArray
from app.domain.lattice import ranges

Ints = NDArray[np.int64]


def expand(cube: Cube, coords: IntArray, group_of: list[list[Group]]) -> tuple[IntArray, Ints]:
    """Cells of own members that cells consist of, and which cell each belongs to."""
    owner = np.arange(len(coords), dtype=np.int64)
    for column, groups in enumerate(group_of):
        if not groups:
            continue
        size = cube.hierarchies[column - 1].size
        members = [np.asarray(group.members, dtype=np.int32) for group in groups]
        starts = np.cumsum([0, *(len(group) for group in members)])
        flat = np.concatenate(members)
        grouped = coords[:, column] >= size
        rank = np.where(grouped, coords[:, column] - size, 0)
        length = np.where(grouped, np.diff(starts)[rank], 1)
        source = np.repeat(np.arange(len(coords)), length)
        step = ranges(np.zeros_like(length), length)
        within = grouped[source]
        coords = coords[source]
        chosen = (starts[rank[source]] + step)[within]
        coords[within, column] = flat[chosen]
        for number, group in enumerate(groups):
            for other, fellows in group.beside:
                mine = within & (rank[source] == number)
                coords[mine, other] = fellows[step[mine]]
        owner = owner[source]
    return coords, owner
