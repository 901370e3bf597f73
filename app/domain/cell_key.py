"""Cell keys: the same cell has the same key wherever it is met."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from app.domain.cellset import CalculatedMember
from app.domain.cube import Cube, IntArray
from app.domain.lattice import Space
from app.domain.places import SEPARATOR

#: Calculated members of an answer by column and number.
Placed = dict[tuple[int, int], CalculatedMember]


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


class Numbering:
    """Numbers the calculated members of an answer as a space does.

    Parameters
    ----------
    space : Space
        Takes in those that it doesn't have.
    calculated : sequence of CalculatedMember
        In the order in which the answer numbers them.
    """

    def __init__(self, space: Space, calculated: Sequence[CalculatedMember]) -> None:
        self.space = space
        self._placed: Placed = {}
        numbers = [list(range(size)) for size in space.own.tolist()]
        for member in calculated:
            self._placed[member.column, len(numbers[member.column])] = member
            numbers[member.column].append(space.number(member.column, member.terms, member.key))
        self._numbers = [np.array(known, dtype=np.int32) for known in numbers]

    def __call__(self, coords: IntArray) -> IntArray:
        """Coordinates of the answer (int32[n, 1+H]) as the space has them.

        Cells that may differ in value differ in coordinates.
        """
        found = coords.copy()
        if not self._placed:
            return found
        for column, known in enumerate(self._numbers):
            found[:, column] = known[coords[:, column]]
        _tell_sums_from_groups(self.space, coords, self._placed, found)
        _tell_orders(self.space, coords, self._placed, found)
        return found


def _tell_sums_from_groups(space: Space, coords: IntArray, placed: Placed, found: IntArray) -> None:
    """Where a measure doesn't add up, a sum over members isn't what they have together."""
    if space.additive.all():
        return
    otherwise = ~space.adds_up(coords)
    for column, own in enumerate(space.own.tolist()):
        for number in np.unique(coords[:, column][coords[:, column] >= own]).tolist():
            member = placed[column, number]
            if member.terms is not None and not member.takes_together:
                rows = otherwise & (coords[:, column] == number)
                if rows.any():
                    found[rows, column] = space.number(column, None, member.key)


def _tell_orders(space: Space, coords: IntArray, placed: Placed, found: IntArray) -> None:
    """Where formulas meet, the order in which they are worked out is part of the last one's key.

    It goes without saying where the order doesn't matter, and where formulas of measures are worked out
    last, then those of the first hierarchy and so on: a ratio of sums.
    """
    formula = coords >= space.own
    meeting = np.flatnonzero(formula.sum(axis=1) > 1)
    if not len(meeting):
        return
    adds = space.adds_up(coords[meeting])
    told = np.column_stack([np.where(formula[meeting], coords[meeting], -1), adds])
    for *numbers, adding in np.unique(told, axis=0).tolist():
        places = [(column, number) for column, number in enumerate(numbers) if number >= 0]
        members = [placed[place] for place in places]
        if _any_order(members, bool(adding)):
            continue
        named = {place: placed[place] for member in members for place in member.names} | dict(
            zip(places, members, strict=True)
        )
        inwards = sorted(named.values(), key=lambda member: member.precedence, reverse=True)
        columns = [member.column for member in inwards]
        if columns == sorted(columns):
            continue
        last = max(members, key=lambda member: member.precedence)
        steps = (
            f"{column}: {'; '.join(sorted(member.key for member in some))}"
            for column, some in groupby(inwards, lambda member: member.column)
        )
        order = hashlib.blake2b("|".join(steps).encode(), digest_size=16).hexdigest()
        rows = meeting[(told == [*numbers, adding]).all(axis=1)]
        found[rows, last.column] = space.number(last.column, None, f"{last.key} in order {order}")


def _any_order(members: Sequence[CalculatedMember], adding: bool) -> bool:
    """Whether the formulas come to the same in whichever order: sums of sums, groups of groups."""
    if any(member.terms is None for member in members):
        return False
    return adding or all(member.takes_together for member in members)
