"""crawl: members of a cube whose records all are in another cube, though neither cube lies in the other.

A cube of the large firms by activity and one of industry by size share the large firms of industry. What the
one has at industry and the other at the large ones is the same, and is protected twice, apart; and where the
other cube doesn't tell sizes, the difference is its small firms, which nobody protects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from app.domain.cube import Hierarchy
from app.domain.known import FactRows
from app.domain.lattice import Bools, Longs
from app.pipeline.brought import ENOUGH, NEAR, SHARE, TOLD_APART, Brought, most_within

#: Pairs of members of two hierarchies up to which they are looked at.
MOST_PAIRS = 1_000_000
#: How unlikely it must be that a member's records are in the other cube by chance, as the logarithm of its
#: inverse, and up to which share of all others may be there as well.
SURE = 20.0
MOST_ELSEWHERE = 0.8


def shared_part(facts: FactRows, mine: Sequence[Brought], theirs: Sequence[Brought]) -> str | None:
    """A member, or pair of members, whose records all but all are another cube's as well.

    ``mine`` and ``theirs`` are what the records bring to the measures of this cube and the other. None where
    there is no such member, or where chance might have it so.
    """
    for a in mine:
        for b in theirs:
            if a.aggregator == b.aggregator:
                member = _whole(facts, a, _met(a, b))
                if member is not None:
                    return member
    return None


def _met(one: Brought, other: Brought) -> Bools:
    """Which records are the other's too: of the same contributor at the same place, be it in other units; or
    of the same amount there, names left out.
    """
    found = np.zeros(len(one.amount), dtype=np.bool_)
    if one.aggregator == "sum":
        found = np.isin(one.kind, other.unnamed[0])
    if one.who is None or other.who is None:
        return found
    (mine, amounts), (theirs, others) = one.brought, other.brought
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    told = amounts[a] * others[b] > 0
    a, b = a[told], b[told]
    times = np.log(np.abs(amounts[a])) - np.log(np.abs(others[b]))
    order = np.argsort(times)
    many, first = most_within(times[order], NEAR)
    named: Bools = np.isin(one.contribution, mine[a[order[first : first + many]]])
    return named if named.sum() > found.sum() else found


def _whole(facts: FactRows, brought: Brought, met: Bools) -> str | None:
    if not ENOUGH <= int(met.sum()) < SHARE * len(met):
        return None
    trees = facts.cube.hierarchies
    leaf = [column[brought.row].astype(np.int64) for column in facts.leaf]
    _, kind = np.unique(brought.kind, return_inverse=True)
    for columns in _columns(trees):
        some = [trees[column] for column in columns]
        every = _counted(some, [leaf[column] for column in columns])
        there = _counted(some, [leaf[column][met] for column in columns])
        # At a member that has everything there is nothing elsewhere.
        elsewhere = (met.sum() - there) / np.maximum(len(met) - every, 1)
        chance = np.log(np.maximum(elsewhere, 1e-9)) * every + np.log(every.size)
        fits = (there >= ENOUGH) & (there >= SHARE * every)
        fits &= (elsewhere <= MOST_ELSEWHERE) & (chance <= -SURE)
        places = np.flatnonzero(fits)
        for place in places[np.argsort(-every.reshape(-1)[places], kind="stable")].tolist():
            at = [int(member) for member in np.unravel_index(place, every.shape)]
            inside = np.ones(len(met), dtype=np.bool_)
            for column, member in zip(columns, at, strict=True):
                inside &= (leaf[column] >= member) & (leaf[column] <= trees[column].last_descendant[member])
            if brought.who is not None or len(np.unique(kind[inside])) >= TOLD_APART * inside.sum():
                names = (tree.unique_names[member] for tree, member in zip(some, at, strict=True))
                return ", ".join(names)
    return None


def _columns(trees: Sequence[Hierarchy]) -> Iterator[tuple[int, ...]]:
    """Hierarchies one by one, then by two as far as there are few pairs of members."""
    yield from ((column,) for column in range(len(trees)))
    for one, other in combinations(range(len(trees)), 2):
        if trees[one].size * trees[other].size <= MOST_PAIRS:
            yield one, other


def _counted(trees: Sequence[Hierarchy], leaves: Sequence[Longs]) -> Longs:
    """How many records are at each combination of members (int64[sizes])."""
    sizes = tuple(tree.size for tree in trees)
    count = np.bincount(np.ravel_multi_index(tuple(leaves), sizes), minlength=int(np.prod(sizes))).reshape(
        sizes
    )
    for axis, tree in enumerate(trees):
        moved = np.moveaxis(count, axis, 0)
        running = np.concatenate([np.zeros((1, *moved.shape[1:]), dtype=np.int64), np.cumsum(moved, axis=0)])
        count = np.moveaxis(running[tree.last_descendant + 1] - running[np.arange(tree.size)], 0, axis)
    return count.astype(np.int64)
