"""Relations that no single line shows: found by linear algebra, for the rare sheets that have them.

Sums along lines (`app.domain.equation`) give every relation between whole tables. Cells picked here and
there in three or more dimensions can hang together otherwise: a cube may be split into bars and blocks of
which no two lie in one line. Every cell is the sum over a box of places, so a combination of cells that
vanishes for enough random products of place weights vanishes always. The combinations that the lines
don't explain are added as relations.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.errors import InternalError
from app.domain.lattice import Bools, Longs, Space, row_of

#: Cells without parts, of one measure, up to which the search is made; whole tables need none.
MOST = 4_000
SMALL = 1e-8
#: What an elimination leaves of a coefficient that is none; whole numbers and small fractions are larger.
NOISE = 1e-6
SINGULAR = 1e-13
PRIME = 2**31 - 1
#: Denominators that are tried when a relation is written in whole numbers.
MOST_TIMES = 1_000


def missing_relations(space: Space, coords: IntArray, equations: Equations) -> Equations:
    """Relations between cells that the equations don't imply, over the same rows.

    Raises
    ------
    InternalError
        If one is found that can't be written down exactly.
    """
    matrix = equations.matrix(len(coords))
    found: list[tuple[Longs, Floats]] = []
    members = _members(space)
    for rows in blocks(space, coords):
        part, finest = finest_of(_Products(space, coords[rows]), rows, matrix)
        if not 2 < len(finest) <= MOST:
            continue
        key = hashlib.sha256(members)
        for said in (_structure(space, coords[rows]), part.indptr, part.indices, part.data):
            key.update(np.ascontiguousarray(said).tobytes() if isinstance(said, np.ndarray) else said)
        again = SEARCHED.get(key.digest())
        if again is None:
            again = tuple(search(_Products(space, coords[rows]), part, finest))
            SEARCHED.put(key.digest(), again)
        found.extend((rows[places], coefs) for places, coefs in again)
    sizes = np.array([len(places) for places, _ in found], dtype=np.int64)
    return Equations(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.zeros(0, dtype=np.int64), *(places for places, _ in found)]),
        np.concatenate([np.zeros(0), *(coefs for _, coefs in found)]),
        np.zeros(len(found)),
    )


class _Kept:
    """The last searches: a table is looked through again with each run, question and earlier release."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._found: OrderedDict[bytes, tuple[tuple[Longs, Floats], ...]] = OrderedDict()

    def get(self, key: bytes) -> tuple[tuple[Longs, Floats], ...] | None:
        with self._lock:
            return self._found.get(key)

    def put(self, key: bytes, found: tuple[tuple[Longs, Floats], ...]) -> None:
        with self._lock:
            self._found[key] = found
            while len(self._found) > self._capacity:
                self._found.popitem(last=False)


SEARCHED = _Kept(256)


def _members(space: Space) -> bytes:
    """What coordinates stand for: the trees, and the members that each group or sum is made of."""
    mark = hashlib.sha256()
    for tree in space.trees:
        mark.update(repr((tree.size, tree.parent.tobytes(), tree.last.tobytes())).encode())
    for extras in space.extras:
        mark.update(repr([extra.terms for extra in extras]).encode())
    return mark.digest()


def joined(first: Equations, second: Equations) -> Equations:
    """Both sets of equations, over the same rows."""
    return Equations(
        np.concatenate([first.indptr, second.indptr[1:] + first.indptr[-1]]),
        np.concatenate([first.indices, second.indices]),
        np.concatenate([first.coefs, second.coefs]),
        np.concatenate([first.rhs, second.rhs]),
    )


def blocks(space: Space, coords: IntArray) -> Iterator[Longs]:
    """Rows of cells that can hang together: of one additive measure, at groups and own members, below the
    same members in hierarchies without an All."""
    usable = space.adds_up(coords) & space.has_contributors(coords)
    label = np.zeros((len(coords), space.columns), dtype=np.int64)
    label[:, 0] = coords[:, 0]
    for column in range(1, space.columns):
        tree = space.trees[column - 1]
        root = np.arange(tree.size)
        for member in range(tree.size):
            if tree.parent[member] >= 0:
                root[member] = root[tree.parent[member]]
        for extra in space.extras[column]:
            if extra.is_group:
                tops = np.unique(root[[member for member, _ in extra.terms or ()]])
                root[np.isin(root, tops)] = tops[0]
        firsts = [extra.terms[0][0] if extra.terms else 0 for extra in space.extras[column]]
        of_number = np.concatenate([root, root[np.array(firsts, dtype=np.int64)]])
        label[:, column] = of_number[coords[:, column]]
    rows = np.flatnonzero(usable)
    _, block = np.unique(label[rows], axis=0, return_inverse=True)
    order = np.argsort(block.reshape(-1), kind="stable")
    edges = np.flatnonzero(np.diff(block.reshape(-1)[order])) + 1
    yield from np.split(rows[order], edges)


def _structure(space: Space, coords: IntArray) -> bytes:
    """What tells blocks of the same shape: the coordinates but for the measure and flat hierarchies' only
    member."""
    parts = []
    for column in range(1, space.columns):
        tree = space.trees[column - 1]
        flat = bool((tree.parent < 0).all())
        same = len(coords) > 0 and bool((coords[:, column] == coords[0, column]).all())
        own = bool((coords[:, column] < tree.size).all())
        parts.append(np.zeros_like(coords[:, column]) if flat and same and own else coords[:, column])
    return np.stack(parts).tobytes()


class Data(Protocol):
    """Random data that the cells of a block can be evaluated for; ``rows`` number its cells."""

    def evaluate(self, rows: Longs, k: int) -> Floats:
        """Values (float64[n, k]) in ``k`` data sets, the same ones whenever ``k`` is."""
        ...

    def independent(self, rows: Longs) -> bool:
        """Whether no combination of the cells vanishes for all data; False also when that is hard to tell."""
        ...

    def vanishes(self, rows: Longs, relation: Floats) -> bool:
        """Whether a combination of cells is zero for all data, in exact arithmetic."""
        ...

    def places(self, rows: Longs) -> Floats:
        """How many places each cell is the sum over."""
        ...


@dataclass(frozen=True, eq=False)
class _Products:
    """Data in which every place weighs the product of its members' weights: no place is known to be empty."""

    space: Space
    coords: IntArray

    def evaluate(self, rows: Longs, k: int) -> Floats:
        return _evaluate(self.space, self.coords[rows], k)

    def independent(self, rows: Longs) -> bool:
        return _independent(self.space, self.coords[rows])

    def vanishes(self, rows: Longs, relation: Floats) -> bool:
        return _vanishes(self.space, self.coords[rows], relation)

    def places(self, rows: Longs) -> Floats:
        return _places(self.space, self.coords[rows])


def finest_of(data: Data, rows: Longs, matrix: sparse.csr_array) -> tuple[sparse.csr_array, Longs]:
    """Relations within a block that hold for all data, and the cells that are no total in them."""
    part = sparse.csr_array(matrix.tocsc()[:, rows])
    whole = np.diff(part.indptr) == np.diff(matrix.indptr)
    part = part[np.flatnonzero(whole & (np.diff(part.indptr) > 0))]
    weights = data.evaluate(np.arange(len(rows)), 2)
    scale = np.abs(part) @ np.abs(weights) + 1
    part = part[np.flatnonzero((np.abs(part @ weights) <= SMALL * scale).all(axis=1))]
    finest = np.ones(len(rows), dtype=np.bool_)
    finest[part.indices[part.data < 0]] = False
    return part, np.flatnonzero(finest)


def _evaluate(space: Space, coords: IntArray, k: int) -> Floats:
    """Cells (float64[n, k]) of ``k`` data sets whose places weigh a random product each."""
    chance = np.random.default_rng(1)
    result = np.ones((len(coords), k))
    for column in range(1, space.columns):
        leaf = chance.standard_normal((space.trees[column - 1].size, k))
        result *= _sums(space, column, leaf)[coords[:, column]]
    return result


def _sums(space: Space, column: int, leaf: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the leaves of each member and group of a column."""
    tree = space.trees[column - 1]
    leaf = np.where((tree.last == np.arange(tree.size))[:, None], leaf, 0)
    running = np.concatenate([np.zeros((1, leaf.shape[1])), np.cumsum(leaf, axis=0)])
    own = running[tree.last + 1] - running[np.arange(tree.size)]
    more = [
        sum((factor * own[member] for member, factor in extra.terms or ()), np.zeros(leaf.shape[1]))
        for extra in space.extras[column]
    ]
    return np.concatenate([own, np.array(more).reshape(len(more), leaf.shape[1])])


def search(data: Data, part: sparse.csr_array, finest: Longs) -> Iterator[tuple[Longs, Floats]]:
    """Relations between the finest cells of a block that its own relations don't imply.

    Raises
    ------
    InternalError
        If one is found that can't be written down exactly.
    """
    known = _among_finest(part, finest)
    known_rank, dependent = _rank(known)
    free = np.setdiff1d(np.arange(len(finest)), dependent)
    if data.independent(finest[free]):
        return
    values = data.evaluate(finest, len(finest) + 8)
    norm = np.linalg.norm(values, axis=1)
    norm[norm == 0] = 1.0
    triangle, pivot = linalg.qr((values / norm[:, None]).T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > SMALL * diagonal[0]).sum())
    if known_rank == len(finest) - rank:
        return
    factors = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    vanishing = np.zeros((len(finest) - rank, len(finest)))
    vanishing[:, pivot[:rank]] = factors.T * norm[pivot[rank:], None] / norm[pivot[:rank]]
    vanishing[np.arange(len(vanishing)), pivot[rank:]] = -1
    directions = _directions(known)
    for relation in _coarse_by_fine(vanishing, data.places(finest)):
        whole = in_whole_numbers(relation)
        if whole is None or not data.vanishes(finest, whole):
            raise InternalError("a relation between cells can't be written down exactly")
        beyond = whole - directions.T @ (directions @ whole)
        length = float(np.linalg.norm(beyond))
        if length > SMALL * float(np.linalg.norm(whole)):
            directions = np.vstack([directions, beyond / length])
            places = np.flatnonzero(whole)
            yield finest[places], whole[places]
        if len(directions) == len(finest) - rank:
            return


def _places(space: Space, coords: IntArray) -> Floats:
    """How many places each cell is the sum over."""
    result = np.ones(len(coords))
    for column in range(1, space.columns):
        result *= _sums(space, column, np.ones((space.trees[column - 1].size, 1)))[coords[:, column], 0]
    return result


def _coarse_by_fine(vanishing: Floats, size: Floats) -> Floats:
    """The same relations, each of them for one cell by smaller ones as far as there are any: a combination
    that begins with whatever cells has large coefficients, in which nothing can be written exactly."""
    left = vanishing.copy()
    done = 0
    for cell in np.argsort(-size, kind="stable"):
        best = done + int(np.abs(left[done:, cell]).argmax())
        if abs(left[best, cell]) <= NOISE:
            continue
        left[[done, best]] = left[[best, done]]
        left[done] /= -left[done, cell]
        others = np.arange(len(left)) != done
        left[others] += np.outer(left[others, cell], left[done])
        left[np.abs(left) <= NOISE] = 0
        done += 1
        if done == len(left):
            break
    return left


def in_whole_numbers(relation: Floats) -> Floats | None:
    """The least multiple of a relation in whole numbers, None if there is no small one."""
    for times in range(1, MOST_TIMES + 1):
        whole: Floats = np.round(relation * times)
        if np.abs(relation * times - whole).max(initial=0.0) <= 1e-4:
            return whole
    return None


def _among_finest(part: sparse.csr_array, finest: Longs) -> Floats:
    """The block's relations with every total replaced by its parts, dense over the finest cells."""
    n = part.shape[1]
    total = part.data < 0
    relation = row_of(part.indptr)
    cell, first = np.unique(part.indices[total], return_index=True)
    chosen = relation[total][first]
    position = np.full(n, -1, dtype=np.int64)
    position[finest] = np.arange(len(finest))
    parts = part[chosen].tocoo()
    positive = parts.data > 0
    step = sparse.csr_array(
        (parts.data[positive], (cell[parts.row[positive]], parts.col[positive])), shape=(n, n)
    )
    start = sparse.csr_array((np.ones(len(finest)), (finest, np.arange(len(finest)))), shape=(n, len(finest)))
    expanded = start
    while True:
        grown = step @ expanded + start
        if abs(grown - expanded).sum() == 0:
            break
        expanded = grown
    left = part @ expanded
    dense = np.asarray(left.toarray(), dtype=np.float64)
    busy: Bools = np.abs(dense).max(axis=1, initial=0) > 0
    return dense[busy]


def _rank(matrix: Floats) -> tuple[int, Longs]:
    """Rank, and as many columns that the others determine."""
    if not matrix.size:
        return 0, np.zeros(0, dtype=np.int64)
    triangle, pivot = linalg.qr(matrix, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > SMALL * max(float(diagonal[0]), 1.0)).sum())
    return rank, pivot[:rank].astype(np.int64)


def _directions(matrix: Floats) -> Floats:
    """An orthonormal basis of what the rows span, in rows."""
    if not matrix.size:
        return np.zeros((0, matrix.shape[1]))
    across, triangle, _ = linalg.qr(matrix.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    result: Floats = across[:, diagonal > SMALL * max(float(diagonal[0]), 1.0)].T
    return result


def _independent(space: Space, coords: IntArray) -> bool:
    """Whether no combination of the cells vanishes for all data; False also when that is hard to tell."""
    if not len(coords):
        return True
    values = _evaluate(space, coords, len(coords))
    values /= np.linalg.norm(values, axis=1)[:, None]
    values /= np.linalg.norm(values, axis=0)
    size = float(np.abs(values).sum(axis=0).max())
    factors, _, failed = linalg.lapack.dgetrf(values, overwrite_a=True)
    if failed:
        return False
    conditioned, _ = linalg.lapack.dgecon(factors, size)
    return bool(conditioned > SINGULAR)


def _vanishes(space: Space, coords: IntArray, relation: Floats) -> bool:
    """Whether the combination is zero in exact arithmetic, over a prime field, for random data sets."""
    chance = np.random.default_rng(2)
    for _ in range(3):
        value = np.ones(len(coords), dtype=object)
        for column in range(1, space.columns):
            tree = space.trees[column - 1]
            leaf = [int(number) for number in chance.integers(1, PRIME, tree.size)]
            own = []
            running = [0]
            for member in range(tree.size):
                running.append(running[-1] + (leaf[member] if tree.last[member] == member else 0))
            own = [running[int(tree.last[member]) + 1] - running[member] for member in range(tree.size)]
            more = [sum(own[member] for member, _ in extra.terms or ()) for extra in space.extras[column]]
            table = np.array([*own, *more], dtype=object) % PRIME
            value = value * table[coords[:, column]] % PRIME
        if int(sum(int(factor) * int(v) for factor, v in zip(relation, value, strict=True))) % PRIME:
            return False
    return True
