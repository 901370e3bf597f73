"""Lifted cover inequalities (Fischetti, Salazar 2001 §4; Balas 1975) of one requirement."""

from __future__ import annotations

import numpy as np

from solver.cuts import Cut, residual
from solver.instance import BoolArray, FloatArray

_TINY = 1e-9
# Most columns that are supposed to be hidden, and the largest number of others that is told apart.
_SUPPOSED, _NUMBERS = 30, 60


def lifted_cover(
    coefs: FloatArray, level: float, forced: BoolArray, x: FloatArray, least: float
) -> Cut | None:
    """The most violated of some lifted covers of Σ coefs·x ≥ level; None if none is.

    With a set A of columns hidden, the others must still give level − c(A), which takes at least a number k
    of them: Σ_{i∉A} x_i ≥ k. Each column of A is lifted then, the one that x hides least first: without it,
    so many more are needed.

    Parameters
    ----------
    coefs : float64[n]
        Untruncated, ≥ 0.
    level
        What they must add up to.
    forced : bool[n]
        Columns that are always hidden.
    x : float64[n]
        The point to cut off. The sets A are the columns that it hides most.
    least
        Smallest violation worth having (right-hand side one).
    """
    rest, left = residual(coefs, level, forced)
    if left <= _TINY * level:
        return None
    columns = np.flatnonzero(rest > 0)
    c, point = np.minimum(rest[columns], left), x[columns]
    falling = np.argsort(-c, kind="stable")
    columns, c, point = columns[falling], c[falling], point[falling]
    touched = np.flatnonzero(point > 1e-7)
    order = touched[np.argsort(-point[touched], kind="stable")][:_SUPPOSED]
    missing = (left - np.concatenate([[0.0], np.cumsum(c[order])])) * (1 - _TINY)
    missing = missing[missing > _TINY * left]
    rank = np.full(len(c), len(missing))
    rank[order] = np.arange(len(order))
    outside = rank >= np.arange(len(missing))[:, None]
    short = np.cumsum(np.where(outside, c, 0.0), axis=1) < missing[:, None]
    number = (short & outside).sum(axis=1) + 1
    k = int(np.argmin(np.where(outside, point, 0.0).sum(axis=1) / number))
    taken = outside[k].astype(np.int64)
    total, supposed = int(number[k]), float(c[order[:k]].sum())
    # The most that columns can give that count for 0, 1, 2, … on the left-hand side.
    most = np.concatenate([[0.0], np.cumsum(c[outside[k]])])[:_NUMBERS]
    for j in order[:k][::-1].tolist():
        supposed -= float(c[j])
        needed = int(np.searchsorted(most, (left - supposed) * (1 - _TINY)))
        more = max(needed - total, 0)
        taken[j], total = more, total + more
        most[more:] = np.maximum(most[more:], most[: len(most) - more] + c[j])
    used = taken > 0
    if total - float(taken[used] @ point[used]) <= least * total:
        return None
    rising = np.argsort(columns[used])
    return Cut(columns[used][rising], taken[used][rising] / total, 1.0)
