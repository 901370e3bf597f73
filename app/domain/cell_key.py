"""Cell keys: the same cell has the same key wherever it is met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.domain.cellset import CalculatedMember
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Space
from app.domain.places import SEPARATOR


def cell_keys(cube: Cube, space: Space, coords: IntArray) -> tuple[str, ...]:
    """Key of each row of coordinates (int32[n, 1+H]): cube, measure, and the members that aren't All.

    Members are named by unique name, those that formulas add by their normal form.
    """
    parts = [np.array([cube.name] * len(coords), dtype=object)]
    for column in range(space.columns):
        numbers, place = np.unique(coords[:, column], return_inverse=True)
        hidden_all = column > 0 and cube.hierarchies[column - 1].has_all
        names = [
            "" if hidden_all and number == 0 else f"{SEPARATOR}{space.name(column, int(number))}"
            for number in numbers
        ]
        parts.append(np.array(names, dtype=object)[place])
    return tuple("".join(row) for row in zip(*parts, strict=True))


def in_space(space: Space, coords: IntArray, calculated: Sequence[CalculatedMember]) -> IntArray:
    """Coordinates of an answer (int32[n, 1+H]) with its calculated members numbered as a space does."""
    numbers = [list(range(size)) for size in space.own.tolist()]
    for member in calculated:
        numbers[member.column].append(space.number(member.column, member.terms, member.key))
    found = coords.copy()
    for column, known in enumerate(numbers):
        found[:, column] = np.array(known, dtype=np.int32)[coords[:, column]]
    return found
