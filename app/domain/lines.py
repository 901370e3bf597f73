"""Lines: cells that differ in one hierarchy only, and who covers whom in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.domain.cube import IntArray
from app.domain.lattice import Bools, Longs, Space, Tree


@dataclass(frozen=True, eq=False)
class Lines:
    """Cells in the touched lines of one hierarchy; ``key`` sorts the own members of all lines."""

    tree: Tree
    rows: Longs
    line: Longs
    member: Longs
    key: Longs

    def present(self, line: Longs, member: Longs) -> Bools:
        return self.below(line, member, member) > 0

    def below(self, line: Longs, first: Longs, last: Longs) -> Longs:
        """How many own members from ``first`` to ``last`` each line has."""
        base = line * self.tree.size
        return np.searchsorted(self.key, base + last, "right") - np.searchsorted(self.key, base + first)


def lines_of(space: Space, cells: IntArray, eligible: Longs, fresh: Longs, h: int) -> tuple[Lines, Bools]:
    """The eligible cells of the lines that fresh ones lie in, and which of them are at own members."""
    tree, column = space.trees[h], 1 + h
    (key,) = space.pack(cells[eligible], without=column)
    lines, line = np.unique(key, return_inverse=True)
    touched = np.zeros(len(lines), dtype=np.bool_)
    touched[line[np.isin(eligible, fresh)]] = True
    keep = touched[line]
    rows, line = eligible[keep], line[keep]
    member = cells[rows, column].astype(np.int64)
    own = member < tree.size
    return Lines(tree, rows, line, member, np.sort(line[own] * tree.size + member[own])), own


def cover(view: Lines, owner: Longs, line: Longs, branch: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    """Cover branches of each owner by the nearest present members.

    Returns (owner, member) of the present members and (owner, member) of the branches left over.
    """
    tree = view.tree
    taken_owner, taken, left_owner, left = [], [], [], []
    while len(owner):
        here = view.present(line, branch)
        opened = ~here & (view.below(line, branch, tree.last[branch].astype(np.int64)) > 0)
        rest = ~here & ~opened
        taken_owner.append(owner[here])
        taken.append(branch[here])
        left_owner.append(owner[rest])
        left.append(branch[rest])
        position, child = tree.children_of(branch[opened])
        owner, line, branch = owner[opened][position], line[opened][position], child
    none = [np.zeros(0, dtype=np.int64)]
    return (
        np.concatenate(taken_owner or none),
        np.concatenate(taken or none),
        np.concatenate(left_owner or none),
        np.concatenate(left or none),
    )


def covers(space: Space, cells: IntArray, rows: Longs, h: int) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """For each of the cells with others below it in hierarchy ``h``: its row, the rows of the nearest ones
    below, and whether they leave some branch out. All cells must be at own members.
    """
    view, _ = lines_of(space, cells, rows, rows, h)
    tree = view.tree
    has = view.below(view.line, view.member + 1, tree.last[view.member].astype(np.int64)) > 0
    owner, branch = tree.children_of(view.member[has])
    taken_owner, taken, left_owner, _ = cover(view, owner, view.line[has][owner], branch)
    key = view.line * tree.size + view.member
    order = np.argsort(key)
    found = order[np.searchsorted(key[order], view.line[has][taken_owner] * tree.size + taken)]
    short = np.isin(np.arange(int(has.sum())), left_owner)
    for place, row in enumerate(view.rows[has].tolist()):
        yield row, tuple(view.rows[found[taken_owner == place]].tolist()), bool(short[place])


def overlapping(line: Longs, first: Longs, last: Longs) -> Bools:
    """Intervals that meet another one of their line."""
    order = np.lexsort((-last, first, line))
    a, b, c = line[order], first[order], last[order]
    clash = np.zeros(len(line), dtype=np.bool_)
    if len(line) < 2:
        return clash
    # Branches of a tree are nested or apart, so a branch meets another one before it in the order
    # exactly when it starts at or before the furthest end so far.
    width = int(c.max()) + 2
    furthest = np.maximum.accumulate(a * width + c)
    later = np.concatenate([[False], (b[1:] + a[1:] * width <= furthest[:-1])])
    # The earlier partner: the branch that reaches that far.
    clash[order[later]] = True
    inner_start = np.minimum.accumulate(np.where(later, a * width + b, np.iinfo(np.int64).max)[::-1])[::-1]
    earlier = np.concatenate([inner_start[1:] <= (a * width + c)[:-1], [False]])
    clash[order[earlier]] = True
    return clash
