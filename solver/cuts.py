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

import numpy as np
from scipy import sparse

from solver.columns import keep_entries
from solver.entries import ranges, row_of
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem, Targets

_TINY = 1e-9
_PREFIXES = 60


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
    coefs: FloatArray, level: float, forced: BoolArray, x: FloatArray, least: float, most: int = 1
) -> list[Cut]:
    """Violated cuts from one requirement, at most the capacity constraint and `most` covers.

    Parameters
    ----------
    coefs : float64[n]
        Untruncated, ≥ 0.
    level
        What they must add up to.
    forced : bool[n]
        Columns that are always hidden.
    x : float64[n]
        The point to cut off.
    least
        Smallest violation worth having (right-hand side one).
    """
    rest, left = residual(coefs, level, forced)
    if left <= _TINY * level:
        return []
    support = np.flatnonzero((rest > 0) & (x > 1e-7))
    c, point = rest[support], x[support]
    order = np.lexsort((-c, -point))[:_PREFIXES]
    gained = np.concatenate([[0.0], np.cumsum(c[order])])
    missing = left - gained
    missing = missing[missing > _TINY * left]
    rank = np.full(len(support), len(missing))
    rank[order] = np.arange(len(order))
    inside = rank < np.arange(len(missing))[:, None]
    reached = np.where(inside, 0.0, np.minimum(c, missing[:, None])) @ point / missing
    cuts = []
    chosen = np.argsort(reached, kind="stable")[:most]
    if 0 not in chosen:
        chosen = np.concatenate([[0], chosen])
    for k in chosen:
        if reached[k] > 1.0 - least:
            continue
        needed = missing[k]
        outside = rest.copy()
        outside[support[order[:k]]] = 0.0
        cuts.append(scaled_cut(np.minimum(outside, needed), needed))
    return cuts


def scaled_cut(coefs: FloatArray, rhs: float) -> Cut:
    """A cut with right-hand side about one; negligible coefficients are given away safely."""
    columns = np.flatnonzero(coefs > 0)
    return _sparse_cut(columns, coefs[columns] / rhs)


def _sparse_cut(columns: IntArray, coefs: FloatArray) -> Cut:
    large = coefs >= 1e-6
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
