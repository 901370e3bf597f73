"""What readers know of a maximum: some part of the whole attains it.

Cells are sets of leaves, the finest places with facts that any of them tells apart. A leaf's *ceiling* is the
least value that is shown of a set that it lies in. What is shown of a set is attained by one of its leaves
with a ceiling as high: these are the set's *candidates*, and the maximum over them is told exactly. Nothing
more is told: every candidate may be the one, whichever attain the others. So a set is at most the highest
ceiling of its leaves, and at least whatever is shown of a set all of whose candidates lie in it.

A minimum is a maximum with its sign turned. Whoever looks is taken to know which leaves have facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.domain.cube import IntArray
from app.domain.equation import Floats
from app.domain.known import row_hashes
from app.domain.lattice import Bools, Longs, Space, ranges, row_of
from app.domain.overlaps import gathered

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of some cells.

    Attributes
    ----------
    inside : int8 csr[k, L]
        Which leaves each cell has.
    columns : tuple of int
        The hierarchies' columns in which cells differ.
    classes : int64[L, len(columns)]
        Of each leaf, the class of members in each of these columns; no cell tells members of a class apart.
    members : tuple of int64[present leaves], by column
        The hierarchy's leaves that have facts.
    of : tuple of int64[present leaves], by column
        Their classes.
    """

    inside: sparse.csr_array
    columns: tuple[int, ...]
    classes: Longs
    members: tuple[Longs, ...]
    of: tuple[Longs, ...]

    def boxes(self, leaves: Longs) -> list[tuple[frozenset[int], ...]]:
        """A set of leaves as products of classes, by column: one where it is all facts of a product."""
        mine = self.classes[leaves]
        whole = tuple(frozenset(column.tolist()) for column in mine.T)
        fits = np.ones(len(self.classes), dtype=np.bool_)
        for place, chosen in enumerate(whole):
            fits &= np.isin(self.classes[:, place], list(chosen))
        if int(fits.sum()) == len(leaves):
            return [whole]
        found = [tuple(frozenset((item,)) for item in row) for row in mine.tolist()]
        for place in range(len(self.columns)):
            merged: dict[tuple[frozenset[int], ...], frozenset[int]] = {}
            for box in found:
                rest = box[:place] + box[place + 1 :]
                merged[rest] = merged.get(rest, frozenset()) | box[place]
            found = [(*rest[:place], chosen, *rest[place:]) for rest, chosen in merged.items()]
        return found

    def coords(self, space: Space, measure: int, boxes: Sequence[tuple[frozenset[int], ...]]) -> IntArray:
        """Boxes as coordinates of cells (int32[b, columns]); groups of members become extras of ``space``."""
        result = np.zeros((len(boxes), space.columns), dtype=np.int32)
        result[:, 0] = measure
        numbers: dict[tuple[int, frozenset[int]], int] = {}
        for row, box in enumerate(boxes):
            for place, chosen in enumerate(box):
                if (place, chosen) not in numbers:
                    numbers[place, chosen] = self._number(space, place, chosen)
                result[row, self.columns[place]] = numbers[place, chosen]
        return result

    def _number(self, space: Space, place: int, chosen: frozenset[int]) -> int:
        column = self.columns[place]
        tree = space.trees[column - 1]
        weights, known = np.zeros(tree.size), np.zeros(tree.size, dtype=np.bool_)
        known[self.members[place]] = True
        weights[self.members[place][np.isin(self.of[place], list(chosen))]] = 1.0
        return space.number(column, gathered(tree, weights, known), "", is_formula=False)


def columns_of(space: Space, coords: IntArray, has_all: Sequence[bool]) -> tuple[int, ...]:
    """Columns of hierarchies in which some of the cells aren't the whole."""
    return tuple(
        column
        for column in range(1, space.columns)
        if not has_all[column - 1] or bool((coords[:, column] != 0).any())
    )


def leaves_of(space: Space, coords: IntArray, columns: tuple[int, ...], facts: IntArray) -> Leaves:
    """The leaves of cells with contributors of their own.

    Parameters
    ----------
    space
    coords : int32[k, space.columns]
    columns
        As of `columns_of`.
    facts : int32[f, len(columns)]
        Combinations of the hierarchies' leaves that have facts.
    """
    classes, members, of, covering = [], [], [], []
    for place, column in enumerate(columns):
        numbers, which = np.unique(coords[:, column].astype(np.int64), return_inverse=True)
        owner, first, last = branches_of(space, column, numbers)
        present, fact = np.unique(facts[:, place], return_inverse=True)
        # Members that lie in the same numbers get the same hash.
        mark = row_hashes([np.arange(len(numbers))])[owner]
        step = np.zeros(space.trees[column - 1].size + 1, dtype=np.uint64)
        np.add.at(step, first, mark)
        np.subtract.at(step, last + 1, mark)
        _, typical, of_member = np.unique(
            np.cumsum(step, dtype=np.uint64)[present], return_index=True, return_inverse=True
        )
        order = np.argsort(present[typical])
        low = np.searchsorted(present[typical][order], first)
        high = np.searchsorted(present[typical][order], last, "right")
        pair_class = order[ranges(low, high - low)]
        pair_number = np.repeat(owner, high - low)
        pairs = np.unique(pair_class * len(numbers) + pair_number)
        covering.append((which.reshape(-1), len(numbers), pairs // len(numbers), pairs % len(numbers)))
        members.append(present.astype(np.int64))
        of.append(of_member.reshape(-1).astype(np.int64))
        classes.append(of_member.reshape(-1)[fact.reshape(-1)])
    if not columns:
        ones = np.ones((len(coords), min(len(facts), 1)), dtype=np.int8)
        return Leaves(sparse.csr_array(ones), (), np.zeros((ones.shape[1], 0), dtype=np.int64), (), ())
    combined = np.unique(np.stack(classes, axis=1).astype(np.int64), axis=0)
    place_of = np.zeros(len(coords), dtype=np.int64)
    leaf, at = np.arange(len(combined)), np.zeros(len(combined), dtype=np.int64)
    for place, (which, size, pair_class, pair_number) in enumerate(covering):
        keys, place_of = np.unique(place_of * size + which, return_inverse=True)
        place_of = place_of.reshape(-1)
        mine = combined[leaf, place]
        start = np.searchsorted(pair_class, mine)
        counts = np.searchsorted(pair_class, mine, "right") - start
        wanted = np.repeat(at, counts) * size + pair_number[ranges(start, counts)]
        leaf = np.repeat(leaf, counts)
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        met = keys[found] == wanted
        leaf, at = leaf[met], found[met]
    size = int(place_of.max(initial=-1)) + 1
    by_place = sparse.csr_array(
        (np.ones(len(leaf), dtype=np.int8), (at, leaf)), shape=(size, len(combined)), dtype=np.int8
    )
    return Leaves(sparse.csr_array(by_place[place_of]), columns, combined, tuple(members), tuple(of))


def branches_of(space: Space, column: int, numbers: Longs) -> tuple[Longs, Longs, Longs]:
    """Branches of members and groups: (position in ``numbers``, first member, last member)."""
    own = np.flatnonzero(numbers < space.own[column])
    extra = np.flatnonzero(numbers >= space.own[column])
    owner, member, _ = space.terms_of(column, numbers[extra])
    owners = np.concatenate([own, extra[owner]])
    firsts = np.concatenate([numbers[own], member]).astype(np.int64)
    lasts = space.trees[column - 1].last[firsts].astype(np.int64)
    # A group that names a member and one below it holds that one once.
    order = np.lexsort((-lasts, firsts, owners))
    owners, firsts, lasts = owners[order], firsts[order], lasts[order]
    span = int(lasts.max(initial=0)) + 1
    furthest = np.maximum.accumulate(owners * span + lasts) if len(owners) else owners
    inner = np.concatenate([[False], firsts[1:] + owners[1:] * span <= furthest[:-1]])[: len(owners)]
    return owners[~inner], firsts[~inner], lasts[~inner]


@dataclass(frozen=True, eq=False)
class Told:
    """What is told: ``ceiling`` (float64[L]) of each leaf, and the ``candidates`` (int8 csr[k, L]) of each
    shown maximum, no leaf for the other cells."""

    ceiling: Floats
    candidates: sparse.csr_array


def tell(inside: sparse.csr_array, value: Floats, shown: Bools, attained: Bools) -> Told:
    """What shown cells tell.

    Parameters
    ----------
    inside : int8 csr[k, L]
        The leaves of each cell.
    value : float64[k]
    shown : bool[k]
    attained : bool[k]
        Cells that some leaf attains; the others are no less than each of their leaves.
    """
    row = row_of(inside.indptr.astype(np.int64))
    seen = shown[row]
    ceiling = np.full(inside.shape[1], np.inf)
    np.minimum.at(ceiling, inside.indices[seen], value[row[seen]])
    kept = seen & attained[row] & (ceiling[inside.indices] >= value[row])
    candidates = sparse.csr_array(
        (np.ones(int(kept.sum()), dtype=np.int8), (row[kept], inside.indices[kept])),
        shape=inside.shape,
        dtype=np.int8,
    )
    return Told(ceiling, candidates)


def tellers(told: Told, inside: sparse.csr_array, targets: Longs) -> tuple[Longs, Longs]:
    """Whose candidates all lie in a target: pairs (position in ``targets``, cell)."""
    size = np.diff(told.candidates.indptr)
    cells = np.flatnonzero(size > 0)
    shared = sparse.coo_array(inside[targets].astype(np.int64) @ told.candidates[cells].T.astype(np.int64))
    whole = shared.data == size[cells[shared.col]]
    return shared.row[whole].astype(np.int64), cells[shared.col[whole]].astype(np.int64)


def intervals(told: Told, inside: sparse.csr_array, value: Floats, targets: Longs) -> tuple[Floats, Floats]:
    """The least and the most that each target's maximum can be (float64[t] each), given what is told.

    -inf and inf where nothing is known.
    """
    lower = np.full(len(targets), -np.inf)
    target, cell = tellers(told, inside, targets)
    np.maximum.at(lower, target, value[cell])
    upper = np.full(len(targets), -np.inf)
    chosen = inside[targets]
    np.maximum.at(upper, row_of(chosen.indptr.astype(np.int64)), told.ceiling[chosen.indices])
    return lower, np.where(np.diff(chosen.indptr) > 0, upper, np.inf)


def set_hashes(sets: sparse.csr_array) -> Hashes:
    """A hash of each row's set of columns (uint64[k]); other sets meet it with a chance of 2**-64."""
    mark = row_hashes([np.arange(sets.shape[1])])
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mark[sets.indices], dtype=np.uint64)])
    found: Hashes = sums[sets.indptr[1:]] - sums[sets.indptr[:-1]]
    return found
