"""A cube server over another OLAP engine that is asked for cells, whatever it speaks.

Queries are worked out here, as over facts: that keeps formulas, their relations and open sets the same for
every engine. The other engine gives the structure once, and then values of cells of its own members.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.answer import Answerer
from app.cube.cellsets import Answering
from app.cube.evaluate import Evaluator
from app.cube.parts import expand
from app.cube.port import Group, Profiles
from app.cube.source import Readings
from app.cube.turns import aside
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, IntArray
from app.domain.errors import Mistake, UserError
from app.domain.publication import CubeDefinition, RemoteDefinition
from app.domain.texts import unprintable

#: How far a member may be from the sum of its children, relatively, for rounding alone.
_SAME = 1e-9
#: Mistakes of one kind that are told.
_SHOWN = 5


class Cells(Protocol):
    """What an adapter gives: numbers for cells, and nothing else."""

    def values(self, tuples: Sequence[Sequence[str]]) -> FloatArray:
        """Values of tuples of unique names (measure first), nan where a cell is empty: float64[n]."""
        ...

    def aggregate(self, tuples: Sequence[Sequence[str]], sets: Sequence[Sequence[str]]) -> FloatArray:
        """Values with members of other hierarchies taken together by the measure's own aggregator.

        ``sets`` has the members of each such hierarchy; tuples have none of these hierarchies.
        """
        ...

    def version(self) -> str:
        """Whatever the engine says of when its data changed."""
        ...

    def close(self) -> None: ...


def variable(definition: CubeDefinition, name: str) -> str:
    """The environment variable of a name; empty for no name.

    Raises
    ------
    UserError
        It isn't set.
    """
    value = os.environ.get(name) if name else ""
    if value is None:
        at = definition.at
        cause = f"Environment variable {name}, which cube {definition.name} needs, isn't set."
        raise UserError(Mistake(at.file, at.line, at.column, cause))
    return value


class RemoteServer(Answering):
    """See `app.cube.port.CubeServer`."""

    hides = False
    knows_formulas = False

    def __init__(
        self, definition: CubeDefinition, remote: RemoteDefinition, cube: Cube, cells: Cells
    ) -> None:
        self._definition = definition
        self._remote = remote
        self._cube = cube
        self._cells = cells
        self._names = [
            [measure.unique_name for measure in cube.measures],
            *(list(tree.unique_names) for tree in cube.hierarchies),
        ]
        self._answerer = Answerer(cube, definition.calculated, definition.named_sets, self)
        self._check_texts()
        self._check_sums()
        self._answerer.try_sets()

    def _check_texts(self) -> None:
        """Names of members that no file could hold; an engine that speaks JSON can tell any."""
        at, wrong = self._definition.at, []
        for tree in self._cube.hierarchies:
            for name, key, *captions in zip(
                tree.unique_names, tree.keys, *tree.member_captions.values(), strict=True
            ):
                if found := unprintable("".join((name, key, *captions))):
                    cause = f"Member {name!r} of {tree.name} holds the control character {found[1]}."
                    wrong.append(Mistake(at.file, at.line, at.column, cause, "Take it out."))
        if wrong:
            raise UserError(wrong[:_SHOWN])

    # CubeServer

    def values(self, coords: IntArray) -> FloatArray:
        tuples = self._tuples(coords)
        with aside():
            return self._cells.values(tuples)

    def fingerprint(self) -> str:
        """A hash of the structure, of what the engine says of its data, and of every member's total."""
        coords = self._totals()
        digest = hashlib.sha256(self._cells.version().encode())
        for names in self._names:
            digest.update("\n".join(names).encode())
        digest.update(np.ascontiguousarray(self.values(coords)).tobytes())
        return digest.hexdigest()

    def facts(self) -> None:
        """No server tells them."""

    def close(self) -> None:
        self._cells.close()

    def measure(self, coords: IntArray, groups: Sequence[Group] = (), top: int = 3) -> Profiles:
        """Profiles as the measures for it tell them; see the cube file's ``[contributors]``.

        Members of a group may share contributors, which no such measure says. So a group is taken to have
        as many as the member that has most, unless counts add up, and as much from the largest ones as
        those of all members have together.

        Raises
        ------
        UserError
            The cube's file names no such measures, or too few.
        """
        if top < 2:
            raise ValueError("profiles hold at least the two largest contributions")
        remote, at = self._remote, self._definition.at
        if not remote.count:
            cause = f"Cube {self._cube.name}: the {remote.engine} engine can't say who is behind a cell."
            remedy = "Name measures for it under [contributors]."
            raise UserError(Mistake(at.file, at.line, at.column, cause, remedy))
        group_of = [
            [group for group in groups if group.column == column] for column in range(coords.shape[1])
        ]
        parts, owner = expand(self._cube, coords, group_of)
        n = len(coords)
        tuples = self._tuples(parts)
        raw = np.nan_to_num(self._cells.values(tuples))
        counted = np.nan_to_num(self._cells.values([[_measure(remote.count), *rest] for _, *rest in tuples]))
        counts = np.zeros(n)
        if any(
            item.name == remote.count and item.aggregator == "count" for item in self._definition.measures
        ):
            np.add.at(counts, owner, counted)
        else:
            np.maximum.at(counts, owner, counted)
        value = np.bincount(owner, raw, n).astype(np.float64)
        largest = np.zeros((n, top))
        for number, measure in enumerate(self._cube.measures):
            mine = parts[:, 0] == number
            if mine.any():
                tallest = self._tallest(number, measure.name, tuples, np.flatnonzero(mine), raw, counted, top)
                np.add.at(largest, owner[mine], tallest)
        # Together no more than there is.
        ceiling = np.minimum(np.cumsum(largest, axis=1), np.abs(value)[:, None])
        largest = np.diff(ceiling, axis=1, prepend=0.0)
        mass: FloatArray = np.abs(value)
        return Profiles(
            value=value,
            count=np.rint(counts).astype(np.int64),
            weighted_count=counts,
            top=largest,
            holder=np.full(n, -1, dtype=np.int64),
            requested=np.zeros(n),
            mass=mass,
        )

    # app.cube.source.CellSource

    def holds(self, coords: IntArray, ev: Evaluator) -> NDArray[np.bool_]:
        return np.zeros(len(coords), dtype=np.bool_)

    def read(self, coords: IntArray, ev: Evaluator) -> Readings:
        return Readings(self.values(coords), None)

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> Readings:
        columns = {
            column for group in groups for column in (group.column, *(other for other, _ in group.beside))
        }
        single = coords.copy()
        single[:, [0, *columns]] = 0
        tuples = [
            [
                self._names[0][measure],
                *(name for column, name in enumerate(item) if column not in {0, *columns}),
            ]
            for item in self._tuples(single)
        ]
        sets = [self._written(group) for group in groups]
        with aside():
            return Readings(self._cells.aggregate(tuples, sets), None)

    def decimals(self, measure: int) -> int | None:
        own = self._cube.measures[measure]
        return own.decimals if own.aggregator == "count" else None

    # Parts

    def _tuples(self, coords: IntArray) -> list[list[str]]:
        return [
            [names[number] for names, number in zip(self._names, row, strict=True)] for row in coords.tolist()
        ]

    def _totals(self) -> IntArray:
        """Each measure at each member, the other hierarchies at their defaults."""
        start = [0, *(tree.default_member for tree in self._cube.hierarchies)]
        rows: list[list[int]] = []
        for measure in range(len(self._cube.measures)):
            for column, tree in enumerate(self._cube.hierarchies, 1):
                for member in range(tree.size):
                    row = [measure, *start[1:]]
                    row[column] = member
                    rows.append(row)
        return np.array(rows, dtype=np.int32).reshape(len(rows), len(start))

    def _check_sums(self) -> None:
        """That members are the sums of their children, which all protection rests on."""
        values = self.values(self._totals())
        place, wrong, at = 0, [], self._definition.at
        for measure in self._cube.measures:
            for tree in self._cube.hierarchies:
                mine = np.nan_to_num(values[place : place + tree.size])
                place += tree.size
                inner = np.flatnonzero(tree.last_descendant > np.arange(tree.size))
                below = np.flatnonzero(tree.parent >= 0)
                total = np.bincount(tree.parent[below], mine[below], tree.size)
                off = inner[np.abs(total - mine)[inner] > _SAME * (1 + np.abs(mine[inner]))]
                if measure.additive and len(off):
                    cause = f"{measure.name} at {tree.unique_names[off[0]]} isn't the sum of its children."
                    remedy = "Leave this hierarchy or measure out, or give the measure's own aggregator."
                    wrong.append(Mistake(at.file, at.line, at.column, cause, remedy))
        if wrong:
            self.close()
            raise UserError(wrong)

    def _written(self, group: Group) -> list[str]:
        """A group's members, or tuples, as MDX."""
        places = [(group.column, group.members), *group.beside]
        names = [[self._names[column][m] for m in members.tolist()] for column, members in places]
        return [row[0] if len(row) == 1 else f"({', '.join(row)})" for row in zip(*names, strict=True)]

    def _tallest(
        self,
        measure: int,
        name: str,
        tuples: Sequence[Sequence[str]],
        rows: NDArray[np.intp],
        values: FloatArray,
        counts: FloatArray,
        top: int,
    ) -> FloatArray:
        """Largest contributions to cells of a measure: float64[k, top]."""
        given = self._remote.top.get(name)
        found = np.zeros((len(rows), top))
        if given is None and self._cube.measures[measure].is_frequency:
            return np.minimum(np.maximum(counts[rows][:, None] - np.arange(top), 0), 1)
        if given is None:
            # Nothing is known of them: it might all be one contributor's.
            found[:, 0] = np.abs(values[rows])
            return found
        if len(given) < top:
            at = self._definition.at
            cause = f"The rules of {name} need its {top} largest contributions, but [contributors] names"
            raise UserError(Mistake(at.file, at.line, at.column, f"{cause} {len(given)}."))
        for place, item in enumerate(given[:top]):
            asked = [[_measure(item), *tuples[row][1:]] for row in rows.tolist()]
            found[:, place] = np.abs(np.nan_to_num(self._cells.values(asked)))
        return found


def _measure(name: str) -> str:
    return f"[Measures].[{name.replace(']', ']]')}]"
