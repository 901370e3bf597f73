"""Cell keys: the same cell has the same key wherever it is met (DESIGN §3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.domain.cellset import CalculatedMember
from app.domain.cube import Cube, IntArray


def cell_keys(cube: Cube, coords: IntArray, calculated: Sequence[CalculatedMember] = ()) -> tuple[str, ...]:
    """Key of each row of coordinates: cube, measure, and the members that aren't All.

    Parameters
    ----------
    coords : int32[n, 1+H]
    calculated
        Those that the coordinates number, as in a `CellSet`.
    """
    texts: list[np.ndarray[tuple[int], np.dtype[np.object_]]] = []
    own = [[f"|{name}" for name in (measure.unique_name for measure in cube.measures)]]
    for hierarchy in cube.hierarchies:
        names = [f"|{name}" for name in hierarchy.unique_names]
        if hierarchy.has_all:
            names[0] = ""
        own.append(names)
    for column, names in enumerate(own):
        names.extend(f"|{member.key}" for member in calculated if member.column == column)
        texts.append(np.array(names, dtype=object)[coords[:, column]])
    keys = np.full(len(coords), cube.name, dtype=object)
    for text in texts:
        keys = keys + text
    return tuple(keys.tolist())
