"""Inequalities that every protecting pattern satisfies.

From a requirement Σ c_i x_i ≥ L (c untruncated, see :mod:`solver.attack`): the truncated capacity
constraint, and knapsack covers Σ_{i∉A} min(c_i, L − c(A)) x_i ≥ L − c(A) (Fischetti, Salazar 2001
§4; Carr, Fleischer, Leung, Phillips 2000). From a relation: bridgeless inequalities.
All are stored scaled to a right-hand side of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from solver.columns import keep_entries
from solver.entries import ranges, row_of
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem, Targets

_TINY, _NEGLIGIBLE = 1e-9, 1e-6
_PREFIXES = 60
# Requirements are worked on together that have so many coefficients in all.
BATCH = 200_000
# Entries of arrays that are worked on at once.
_CHUNK = 1_000_000


@dataclass(frozen=True, eq=False)
class Cut:
    """Σ coefs·x[columns] ≥ rhs."""

    columns: IntArray
    coefs: FloatArray
    rhs: float

    @cached_property
    def key(self) -> bytes:
        """Equal for equal cuts."""
        return self.columns.tobytes() + np.round(self.coefs, 7).tobytes()

    def violation(self, x: FloatArray) -> float:
        """How much x misses the right-hand side."""
        return self.rhs - float(self.coefs @ x[self.columns])


class UnreachableRequirementError(Exception):
    """Even hiding everything leaves the requirement unmet."""


def residual(coefs: FloatArray, level: float, forced: BoolArray) -> tuple[FloatArray, float]:
    """Move what is always hidden to the right-hand side: coefficients of the rest, level left."""
    left = level - float(coefs[forced].sum())
    return np.where(forced, 0.0, coefs), left


def knapsack_cuts(
    coefs: FloatArray, levels: FloatArray, forced: BoolArray, x: FloatArray, least: float
) -> list[list[Cut]]:
    """Violated cuts of each requirement: of its capacity constraint, and of its most violated cover.

    Parameters
    ----------
    coefs : float64[k, n]
        Untruncated, ≥ 0.
    levels : float64[k]
        What they must add up to.
    forced : bool[n]
        Columns that are always hidden.
    x : float64[n]
        The point to cut off.
    least
        Smallest violation worth having (right-hand side one).
    """
    cuts: list[list[Cut]] = [[] for _ in levels]
    left = levels - coefs[:, forced].sum(axis=1)
    able = np.flatnonzero(left > _TINY * levels)
    if not len(able):
        return cuts
    rest, left = np.where(forced, 0.0, coefs[able]), left[able]
    covers = _covers(rest, left, np.flatnonzero(~forced & (x > 1e-7)), x)
    few = np.flatnonzero(covers.reached <= 1.0 - least)
    which = covers.requirement[few]
    outside = rest[which]
    cut, place = np.nonzero(np.arange(covers.columns.shape[1]) < covers.size[few, None])
    outside[cut, covers.columns[which[cut], place]] = 0.0
    for k, new in zip(able[which].tolist(), _truncated(outside, covers.missing[few]), strict=True):
        cuts[k].append(new)
    return cuts


@dataclass(frozen=True, eq=False)
class _Covers:
    """Two covers of each requirement, the empty one and the most violated one (one, if they are the same).

    Attributes
    ----------
    columns : int64[k, p]
        Of each requirement, in the order in which its covers take them.
    requirement, size, missing, reached
        Of each cover: how many columns it takes, what it leaves to be reached, and the part of that
        which the point reaches.
    """

    columns: IntArray
    requirement: IntArray
    size: IntArray
    missing: FloatArray
    reached: FloatArray


def _covers(rest: FloatArray, left: FloatArray, support: IntArray, x: FloatArray) -> _Covers:
    """The covers of requirements (float64[k, n] and float64[k]) among columns that x hides in part."""
    c, point = rest[:, support], x[support]
    # What x hides most comes first, the largest of these before the others.
    order = np.lexsort((-c, np.where(c > 0, -point, 1.0)), axis=-1)[:, :_PREFIXES]
    gained = np.cumsum(np.take_along_axis(c, order, axis=1), axis=1)
    missing = left[:, None] - np.concatenate([np.zeros((len(c), 1)), gained], axis=1)
    longest = np.arange(missing.shape[1]) <= (c > 0).sum(axis=1)[:, None]
    requirement, size = np.nonzero(longest & (missing > _TINY * left[:, None]))
    missed = missing[requirement, size]
    rank = np.full(c.shape, _PREFIXES)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :], axis=1)
    reached = np.empty(len(missed))
    chunk = max(_CHUNK // (len(support) + 1), 1)
    for start in range(0, len(missed), chunk):
        part = slice(start, start + chunk)
        own = requirement[part]
        inside = rank[own] < size[part, None]
        reached[part] = np.where(inside, 0.0, np.minimum(c[own], missed[part, None])) @ point
    reached /= missed
    first = np.flatnonzero(size == 0)
    # Requirements have as many covers as before, the most violated one of each in front.
    best = np.lexsort((size, reached, requirement))[first]
    chosen = np.unique(np.concatenate([first, best]))
    return _Covers(support[order], requirement[chosen], size[chosen], missed[chosen], reached[chosen])


def _truncated(coefs: FloatArray, rhs: FloatArray) -> list[Cut]:
    """Cuts with right-hand sides of about one; negligible coefficients are given away safely."""
    share = np.minimum(coefs / rhs[:, None], 1.0)
    large = share >= _NEGLIGIBLE
    given = 1.0 - np.where(large, 0.0, share).sum(axis=1)
    cut, column = np.nonzero(large)
    values = share[cut, column]
    ends = np.searchsorted(cut, np.arange(len(rhs) + 1))
    parts = [slice(start, end) for start, end in pairwise(ends.tolist())]
    return [Cut(column[part], values[part], one) for part, one in zip(parts, given.tolist(), strict=True)]


def _sparse_cut(columns: IntArray, coefs: FloatArray) -> Cut:
    large = coefs >= _NEGLIGIBLE
    if large.all():
        return Cut(columns, coefs, 1.0)
    return Cut(columns[large], coefs[large], 1.0 - float(coefs[~large].sum()))


@dataclass(frozen=True, eq=False)
class _Company:
    """Pairs of a target and a relation of it (`target`: which, per pair), and the other columns there,
    pair by pair, with what each of them adds to the target's way up and down.
    """

    target: IntArray
    pair: IntArray
    column: IntArray
    up: FloatArray
    down: FloatArray

    def sides(self, targets: Targets) -> Iterator[tuple[FloatArray, FloatArray]]:
        """What the columns add, and the levels (per target) to which they have to add up."""
        yield self.up, targets.upper
        yield self.down, targets.lower
        yield self.up + self.down, targets.sliding


def _company(problem: Problem, matrix: sparse.csr_array) -> _Company:
    """The company that relations give to targets; the matrix may lack columns."""
    targets, columns = problem.targets, problem.transposed
    count = np.diff(columns.indptr)[targets.cell]
    target = np.repeat(np.arange(len(targets)), count)
    at = ranges(columns.indptr[targets.cell], count)
    relation, own = columns.indices[at], columns.data[at]
    length = np.diff(matrix.indptr)[relation]
    pair = np.repeat(np.arange(len(target)), length)
    entry = ranges(matrix.indptr[relation], length)
    column, dual = matrix.indices[entry], -matrix.data[entry] / own[pair]
    company = column != targets.cell[target[pair]]
    if any(len(known) for known in problem.known):
        keys = [k * problem.n + known for k, known in enumerate(problem.known)]
        who = targets.attacker[target[pair]] * problem.n + column
        company &= ~np.isin(who, np.concatenate(keys))
    pair, column, dual = pair[company], column[company], dual[company]
    up = np.where(dual > 0, dual * problem.hi[column], -dual * problem.lo[column])
    down = np.where(dual > 0, dual * problem.lo[column], -dual * problem.hi[column])
    return _Company(target, pair, column, up, down)


def exposed_in_relations(problem: Problem) -> BoolArray:
    """Targets that what is always hidden leaves exposed by some relation alone (bool[t])."""
    forced = problem.forced[problem.matrix.indices]
    found = _company(problem, keep_entries(problem.matrix, forced))
    exposed = np.zeros(len(problem.targets), dtype=np.bool_)
    for coefs, levels in found.sides(problem.targets):
        level = levels[found.target]
        left = level - np.bincount(found.pair, coefs, len(level))
        exposed[found.target[left > _TINY * level]] = True
    return exposed


def relation_cuts(problem: Problem) -> list[Cut]:
    """What each relation alone asks of the company of each target: capacity constraints of the multipliers
    that are one relation.
    """
    found = _company(problem, problem.matrix)
    target, pair, column = found.target, found.pair, found.column
    cuts: list[Cut] = []
    for coefs, levels in found.sides(problem.targets):
        level = levels[target]
        fixed = problem.forced[column]
        left = level - np.bincount(pair[fixed], coefs[fixed], len(target))
        open_ = left > _TINY * level
        useful = open_[pair] & ~fixed & (coefs > 0)
        ends = np.searchsorted(pair[useful], np.arange(len(target) + 1))
        share = np.minimum(coefs[useful] / left[pair[useful]], 1.0)
        where = column[useful]
        for k in np.flatnonzero(open_).tolist():
            part = slice(ends[k], ends[k + 1])
            cuts.append(_sparse_cut(where[part].astype(np.int64), share[part]))
    return cuts


def row_bridgeless(problem: Problem, x: FloatArray, least: float) -> list[Cut]:
    """Violated x_i ≤ Σ_{j≠i} x_j over the relations without an always-hidden cell."""
    matrix = problem.matrix
    rows = row_of(matrix.indptr)
    columns = matrix.indices
    closed = np.bincount(rows, problem.forced[columns], problem.m) > 0
    total = np.bincount(rows, x[columns], problem.m)
    alone = 2 * x[columns] - total[rows]
    cuts = []
    for entry in np.flatnonzero((alone > least) & ~closed[rows]):
        row = rows[entry]
        part = columns[matrix.indptr[row] : matrix.indptr[row + 1]]
        cuts.append(Cut(part.astype(np.int64), np.where(part == columns[entry], -1.0, 1.0), 0.0))
    return cuts
