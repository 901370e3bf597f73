"""assess: the rules on what is left of a cell less others in it, where that is no cell (`app.domain.rests`).

What is left is tied to the cells that tell it, so that it bounds those of them that are hidden; where the
rules find its contributors sensitive, it has levels like a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from app.cube.port import Group
from app.domain.crawled import CubeCells
from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.known import Behind
from app.domain.lattice import Bools, Longs, Space
from app.domain.maxima import branches_of
from app.domain.rests import Rest, rests
from app.pipeline.cell_table import as_groups
from app.pipeline.unions import UnionJudge

#: Combinations of leaves that all rests of a measure together may have; those of the smallest share are
#: looked at first.
MOST_PLACES = 2_000_000
#: Cells that are taken off at a time.
CHUNK = 16


class RestJudge(UnionJudge, Protocol):
    """Whoever knows the rules, and where there are facts."""

    def protects(self, cube: int, measure: int) -> bool:
        """Whether a measure has rules, or is hidden with another one."""
        ...

    def together(self, cube: int, columns: tuple[int, ...]) -> IntArray | None:
        """Combinations of leaves of some hierarchies that have facts, None where nobody knows."""
        ...


@dataclass(frozen=True, eq=False)
class _Found:
    """A rest, and where its contributors are: combinations of leaves (int32[p, d]) of some columns."""

    rest: Rest
    columns: tuple[int, ...]
    places: IntArray


def rests_of(number: int, cells: CubeCells, judge: RestJudge) -> Behind:
    """The rests of the cells of one cube, which has that number among the crawl's, behind its table.

    Those that aren't sensitive are among them where nothing more can be taken off and amounts are never
    negative: they are no less than nothing.

    Raises
    ------
    OperatorError
        If the data changed since the crawl.
    """
    usable = cells.has_contributors & ~cells.is_derived & ~np.isnan(cells.values)
    usable &= cells.space.adds_up(cells.coords)
    kept: list[tuple[Rest, Floats]] = []
    for measure, item in enumerate(cells.cube.measures):
        rows = np.flatnonzero(usable & (cells.coords[:, 0] == measure))
        if len(rows) < 2 or not judge.protects(number, measure):
            continue
        bounded = item.nonnegative or item.is_frequency
        for columns, found in _by_columns(_placed(number, cells, rows, judge)):
            some = [one for one in found if len(one.places)]
            verdicts = judge.judge(number, *_asked(cells, columns, some)) if some else None
            at = iter(range(len(some)))
            for one in found:
                levels = np.zeros(3)
                if verdicts is not None and len(one.places):
                    place = next(at)
                    if verdicts.sensitive[place]:
                        levels = np.array([verdicts.lpl[place], verdicts.upl[place], verdicts.spl[place]])
                if levels.any() or (bounded and one.rest.least):
                    # That nobody is in it is no secret, as with cells.
                    size = cells.values[one.rest.total] - cells.values[one.rest.less].sum()
                    least = min(size, 1.0 if item.is_frequency else 0.0) if bounded else -np.inf
                    kept.append((one.rest, np.append(levels, least)))
    return _behind(cells, kept)


def _placed(number: int, cells: CubeCells, rows: Longs, judge: RestJudge) -> Iterator[_Found]:
    """The rests with their places, those of the smallest share of their totals first, to `MOST_PLACES`."""
    space, value = cells.space, np.abs(cells.values)
    found = [
        Rest(int(rows[rest.total]), rows[rest.less], rest.least) for rest in rests(space, cells.coords[rows])
    ]
    share = [1 - value[rest.less].sum() / max(value[rest.total], np.finfo(float).tiny) for rest in found]
    left = MOST_PLACES
    for place in np.argsort(share, kind="stable").tolist():
        rest = found[place]
        coords = cells.coords[np.append(rest.total, rest.less)]
        columns = tuple(np.flatnonzero((coords != coords[0]).any(axis=0)).tolist())
        facts = judge.together(number, columns)
        if facts is None:
            continue
        places = facts[_inside(space, columns, coords[:1], facts)[0]]
        for start in range(1, len(coords), CHUNK):
            taken = _inside(space, columns, coords[start : start + CHUNK], places)
            places = places[~taken.any(axis=0)]
        left -= len(places)
        if left < 0:
            return
        yield _Found(rest, columns, places)


def _by_columns(found: Iterator[_Found]) -> Iterator[tuple[tuple[int, ...], list[_Found]]]:
    def columns(one: _Found) -> tuple[int, ...]:
        return one.columns

    return ((key, list(some)) for key, some in groupby(sorted(found, key=columns), columns))


def _inside(space: Space, columns: Sequence[int], coords: IntArray, facts: IntArray) -> Bools:
    """Which combinations of leaves of the columns (int32[f, d]) lie in each of some cells (bool[k, f])."""
    result = np.ones((len(coords), len(facts)), dtype=np.bool_)
    for place, column in enumerate(columns):
        owner, low, high = branches_of(space, column, coords[:, column].astype(np.int64))
        covers = np.zeros((len(coords), space.trees[column - 1].size), dtype=np.bool_)
        for cell, first, last in zip(owner.tolist(), low.tolist(), high.tolist(), strict=True):
            covers[cell, first : last + 1] = True
        result &= covers[:, facts[:, place]]
    return result


def _asked(
    cells: CubeCells, columns: tuple[int, ...], found: Sequence[_Found]
) -> tuple[IntArray, Sequence[Group]]:
    """The rests as coordinates and groups for `UnionJudge.judge`: groups of tuples of the columns' leaves."""
    coords = cells.coords[[one.rest.total for one in found]].copy()
    coords[:, list(columns)] = 0
    coords, groups = as_groups(cells.space, coords)
    coords[:, columns[0]] = cells.space.own[columns[0]] + np.arange(len(found))
    tuples = [Group.of(columns, tuple(map(tuple, one.places.tolist()))) for one in found]
    return coords, [*groups, *tuples]


def _behind(cells: CubeCells, kept: Sequence[tuple[Rest, Floats]]) -> Behind:
    value = np.nan_to_num(cells.values)
    n, k = len(cells), len(kept)
    named = [np.concatenate([[rest.total, n + place], rest.less]) for place, (rest, _) in enumerate(kept)]
    signs = [np.append(-1.0, np.ones(1 + len(rest.less))) for rest, _ in kept]
    levels = np.array([item for _, item in kept]).reshape(k, 4)
    return Behind(
        np.array([value[rest.total] - value[rest.less].sum() for rest, _ in kept], dtype=np.float64),
        levels[:, 3],
        levels[:, 0],
        levels[:, 1],
        levels[:, 2],
        tuple(
            " less ".join([*cells.keys(np.array([rest.total])), ", ".join(cells.keys(rest.less))])
            for rest, _ in kept
        ),
        Equations(
            np.cumsum([0, *(len(entries) for entries in named)]).astype(np.int64),
            np.concatenate([np.zeros(0, dtype=np.int64), *named]).astype(np.int64),
            np.concatenate([np.zeros(0), *signs]),
            np.zeros(k),
        ),
    )
