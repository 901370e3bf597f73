"""suppress: unions, the sums of a relation's hidden cells: its parent less what is shown of it.

Two cells of three and four contributors hide each other, and still everyone reads that they are seven
together. A union is exactly derivable however well its parts are hidden; where the rules find it sensitive,
a virtual cell equal to it takes their levels (the sums of hidden cells of the solver's model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.cube.port import Group
from app.domain.crawled import CubeCells
from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.errors import InternalError
from app.domain.lattice import Bools, Longs, Space
from app.pipeline.cell_table import as_groups
from solver import Instance, Status

#: Fewer hidden cells are no union: one alone is protected as itself.
FEWEST = 2


@dataclass(frozen=True, eq=False)
class Union:
    """A union that must stay protected.

    ``parts`` (int64[k], ascending) are the cells that it adds up: places in an instance, or rows of a
    table; ``lpl``, ``upl`` and ``spl`` its levels.
    """

    name: str
    parts: Longs
    lpl: float
    upl: float
    spl: float

    def __post_init__(self) -> None:
        if len(self.parts) < FEWEST or np.any(np.diff(self.parts) <= 0):
            raise ValueError("a union adds up several cells, each once")


@dataclass(frozen=True, eq=False)
class UnionVerdicts:
    """Which of some groups of contributors are sensitive (bool[k]), and their levels (float64[k] each)."""

    sensitive: Bools
    lpl: Floats
    upl: Floats
    spl: Floats


class UnionJudge(Protocol):
    """Whoever knows the rules and who contributes to what."""

    def watched(self, cube: int) -> Bools:
        """bool[M]: by measure of a cube, whether unions of its cells are to be protected."""
        ...

    def judge(self, cube: int, coords: IntArray, groups: Sequence[Group]) -> UnionVerdicts:
        """The rules on groups of members: ``coords`` and ``groups`` as of `CubeServer.measure`.

        Raises
        ------
        OperatorError
            If the data changed since the crawl.
        """
        ...


def exposed_unions(
    cube: int,
    cells: CubeCells,
    rows: Longs,
    instance: Instance,
    hidden: Bools,
    judge: UnionJudge,
    asked: set[bytes],
) -> tuple[Union, ...]:
    """Sensitive unions that a pattern leaves exactly derivable.

    Parameters
    ----------
    cube
        Number of the cube whose table ``cells`` is.
    rows : int64[k]
        The instance's first k cells in the table.
    hidden : bool[n]
    judge
    asked
        Parts of the unions that need no look, as bytes; those that this one looks at are added.
    """
    watched = judge.watched(cube)
    if not watched.any():
        return ()
    own = cells.coords[rows, 0]
    fit = cells.has_contributors[rows]
    fit[fit] = watched[own[fit]]
    lines: list[tuple[Longs, int]] = []
    for parts in _derivable(instance, hidden, fit):
        key = parts.tobytes()
        if key not in asked:
            asked.add(key)
            column = _line_of(cells, rows[parts])
            if column is not None:
                lines.append((parts, column))
    return tuple(union for union, sensitive in _judged(cube, cells, rows, lines, judge) if sensitive)


def judged_again(
    cube: int, cells: CubeCells, rows: Longs, unions: Sequence[Union], judge: UnionJudge
) -> tuple[Union, ...]:
    """The same unions with the levels of the rules."""
    columns = [_line_of(cells, rows[union.parts]) for union in unions]
    lines = [(union.parts, column) for union, column in zip(unions, columns, strict=True) if column]
    if len(lines) != len(unions):
        raise InternalError("a union isn't one of a line")
    return tuple(union for union, _ in _judged(cube, cells, rows, lines, judge))


def _judged(
    cube: int, cells: CubeCells, rows: Longs, lines: Sequence[tuple[Longs, int]], judge: UnionJudge
) -> list[tuple[Union, bool]]:
    """Unions of the parts of lines, each with the hierarchy's column: levels, and whether it is sensitive."""
    if not lines:
        return []
    found = judge.judge(cube, *_grouped(cells, rows, lines))
    levels = np.stack([found.lpl, found.upl, found.spl], axis=1).tolist()
    return [
        (Union(" + ".join(cells.keys(rows[parts])), parts, *level), sensitive)
        for (parts, _), level, sensitive in zip(lines, levels, found.sensitive.tolist(), strict=True)
    ]


def _derivable(instance: Instance, hidden: Bools, fit: Bools) -> list[Longs]:
    """Sets of hidden cells whose sum one relation gives: all of them are ``fit`` and weigh the same."""
    m, k = instance.m, len(fit)
    relation = instance.relation
    mark = hidden[instance.indices]
    places, coefs, of = instance.indices[mark], instance.coefs[mark], relation[mark]
    good = np.bincount(of, minlength=m) >= FEWEST
    usable = np.zeros(instance.n, dtype=np.bool_)
    usable[:k] = fit
    good[of[~usable[places]]] = False
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    np.minimum.at(low, of, coefs)
    np.maximum.at(high, of, coefs)
    good &= low == high
    edges = np.searchsorted(of, np.arange(m + 1))
    return [np.sort(places[edges[r] : edges[r + 1]]) for r in np.flatnonzero(good).tolist()]


def _members(space: Space, column: int, number: int) -> list[int]:
    """Own members of a member or a group."""
    if number < space.own[column]:
        return [number]
    return [member for member, _ in space.extra(column, number).terms or ()]


def _line_of(cells: CubeCells, rows: Longs) -> int | None:
    """The hierarchy's column in which some cells differ, if it is one alone and none is part of another."""
    coords = cells.coords[rows]
    differ = np.flatnonzero((coords != coords[0]).any(axis=0))
    if len(differ) != 1 or differ[0] == 0:
        return None
    column = int(differ[0])
    tree = cells.space.trees[column - 1]
    members = np.array(
        [member for number in coords[:, column].tolist() for member in _members(cells.space, column, number)]
    )
    members.sort()
    apart = members[1:] > tree.last[members[:-1]]
    return column if apart.all() else None


def _grouped(
    cells: CubeCells, rows: Longs, lines: Sequence[tuple[Longs, int]]
) -> tuple[IntArray, Sequence[Group]]:
    """Unions as coordinates and groups for `UnionJudge.judge`."""
    space = Space.of(cells.cube)
    for extra in cells.extras:
        space.number(extra.column, extra.terms, extra.key, extra.is_formula)
    coords = np.stack([cells.coords[rows[parts[0]]] for parts, _ in lines])
    for place, (parts, column) in enumerate(lines):
        terms = [
            (member, 1.0)
            for number in cells.coords[rows[parts], column].tolist()
            for member in _members(space, column, number)
        ]
        coords[place, column] = space.number(column, terms, "", is_formula=False)
    return as_groups(space, coords)


def with_unions(instance: Instance, unions: Sequence[Union]) -> Instance:
    """The instance with a virtual cell for each union behind its cells, and what it adds up to behind its
    relations."""
    if not unions:
        return instance
    n, count = instance.n, len(unions)
    sizes = np.array([len(union.parts) + 1 for union in unions])
    parts = [np.append(union.parts, n + place) for place, union in enumerate(unions)]
    signs = [np.append(np.ones(len(union.parts)), -1.0) for union in unions]

    def sums(column: Floats) -> Floats:
        return np.append(column, [column[union.parts].sum() for union in unions])

    return instance.replace(
        value=sums(instance.value),
        weight=np.append(instance.weight, np.zeros(count)),
        lower_bound=sums(instance.lower_bound),
        upper_bound=sums(instance.upper_bound),
        lpl=np.append(instance.lpl, [union.lpl for union in unions]),
        upl=np.append(instance.upl, [union.upl for union in unions]),
        spl=np.append(instance.spl, [union.spl for union in unions]),
        status=np.append(instance.status, np.full(count, Status.VIRTUAL, dtype=np.int8)),
        indptr=np.append(instance.indptr, instance.indptr[-1] + np.cumsum(sizes)),
        indices=np.concatenate([instance.indices, *parts]),
        coefs=np.concatenate([instance.coefs, *signs]),
        rhs=np.append(instance.rhs, np.zeros(count)),
        names=(*(instance.names or ()), *(union.name for union in unions)),
    )


def unions_in(before: Instance, after: Instance) -> tuple[Union, ...]:
    """The unions that `with_unions` gave an instance, with the levels that were kept."""
    found = []
    for place in range(after.n - before.n):
        cell, relation = before.n + place, before.m + place
        entries = after.indices[after.indptr[relation] : after.indptr[relation + 1]]
        levels = (float(after.lpl[cell]), float(after.upl[cell]), float(after.spl[cell]))
        found.append(Union(after.name(cell), entries[entries != cell], *levels))
    return tuple(found)
