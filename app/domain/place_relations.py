"""Relations that hold because readers know places to be empty, and places that those tell.

Where the West and the North have Mining and Fishing alone, and nobody else has these, the turnover of the
two regions is that of the two activities. With one further place in the West with something in it, the
difference is what it has. Cells are taken as sums over the places that may have something; their
combinations that vanish there, and those that leave a single place, are found by linear algebra.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from app.domain.completeness import SEARCHED, SMALL, blocks, finest_of, in_whole_numbers, search
from app.domain.cube import IntArray
from app.domain.emptiness import MOST_PLACES, Emptiness
from app.domain.equation import Closure, Entries, Floats
from app.domain.errors import InternalError
from app.domain.lattice import Bools, Longs, Space
from app.domain.maxima import columns_of, leaves_of

#: Cells without parts, of one measure, up to which the search is made, and these times places.
MOST_CELLS = 1_000
MOST_ENTRIES = 10_000_000
#: How near the part of a place that cells tell must be to all of it.
TOLD = 1e-9
CHUNK = 2_000


@dataclass(frozen=True, eq=False)
class _AtPlaces:
    """Data with anything at the places that may have something; ``inside`` are the places of each cell."""

    inside: sparse.csr_array

    def evaluate(self, rows: Longs, k: int) -> Floats:
        chance = np.random.default_rng(k)
        result = np.zeros((len(rows), k))
        chosen = self.inside[rows].astype(np.float64)
        for start in range(0, k, CHUNK):
            size = min(CHUNK, k - start)
            result[:, start : start + size] = chosen @ chance.standard_normal((chosen.shape[1], size))
        return result

    def independent(self, rows: Longs) -> bool:
        return len(_basis(self, rows)) == len(rows)

    def vanishes(self, rows: Longs, relation: Floats) -> bool:
        return not np.any(self.inside[rows].astype(np.int64).T @ relation.astype(np.int64))

    def places(self, rows: Longs) -> Floats:
        result: Floats = self.inside[rows].sum(axis=1).astype(np.float64)
        return result


def _basis(data: _AtPlaces, rows: Longs) -> Longs:
    """As many of the rows as are independent (positions among them, rising)."""
    if not len(rows):
        return rows
    values = data.evaluate(rows, len(rows) + 8)
    norm = np.linalg.norm(values, axis=1)
    norm[norm == 0] = 1.0
    triangle, pivot = linalg.qr((values / norm[:, None]).T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    found: Longs = np.sort(pivot[: int((diagonal > SMALL * max(diagonal[0], SMALL)).sum())]).astype(np.int64)
    return found


def place_relations(
    space: Space, closure: Closure, known: Sequence[Emptiness], has_all: Sequence[bool]
) -> Entries | None:
    """What the relations of a closure don't say of its cells, and of places that are no cells yet.

    Searched in the cells of a measure as far as `MOST_CELLS`, `MOST_ENTRIES` and
    `app.domain.emptiness.MOST_PLACES` go; None where nothing is found.

    Raises
    ------
    InternalError
        If a relation is found that can't be written down exactly.
    """
    matrix = closure.equations.matrix(len(closure.coords))
    total = np.zeros(len(closure.coords), dtype=np.bool_)
    total[closure.equations.indices[closure.equations.coefs < 0]] = True
    found: list[tuple[IntArray, Floats, Bools]] = []
    for rows in blocks(space, closure.coords) if known else ():
        coords = closure.coords[rows]
        measure = int(coords[0, 0]) if len(rows) else -1
        columns = columns_of(space, coords, has_all)
        tables = [table for table in known if table.measure in (-1, measure)]
        if len(rows) <= 2 or int((~total[rows]).sum()) > MOST_CELLS:
            continue
        places = _possible(space, columns, tables)
        if places is None:
            continue
        leaves = leaves_of(space, coords, columns, places)
        data = _AtPlaces(leaves.inside)
        part, finest = finest_of(data, rows, matrix)
        if not 2 < len(finest) <= MOST_CELLS or len(finest) * leaves.inside.shape[1] > MOST_ENTRIES:
            continue
        for cells, coefs, place in _searched(data, part, finest):
            named, factors = coords[cells], coefs
            optional = np.zeros(len(cells), dtype=np.bool_)
            if place >= 0:
                boxes = leaves.boxes(np.array([place]))
                named = np.concatenate([named, leaves.coords(space, measure, boxes)])
                optional = np.append(optional, True)
            found.append((named, factors, optional))
    if not found:
        return None
    sizes = [len(named) for named, _, _ in found]
    return Entries(
        relation=np.repeat(np.arange(len(found)), sizes),
        coords=np.concatenate([named for named, _, _ in found]),
        coef=np.concatenate([factors for _, factors, _ in found]),
        optional=np.concatenate([optional for _, _, optional in found]),
        rhs=np.zeros(len(found)),
        completes=np.zeros(len(found), dtype=np.bool_),
    )


def _possible(space: Space, columns: tuple[int, ...], tables: Sequence[Emptiness]) -> IntArray | None:
    """Combinations of the columns' leaves that may have something; None where all may or too many."""
    if not any(set(table.columns) & set(columns) for table in tables):
        return None
    trees = [space.trees[column - 1] for column in columns]
    leaves = [np.flatnonzero(tree.last == np.arange(tree.size)) for tree in trees]
    if np.prod([len(part) for part in leaves], dtype=np.float64) > MOST_PLACES:
        return None
    grid = np.stack([part.reshape(-1) for part in np.meshgrid(*leaves, indexing="ij")], axis=1)
    kept = np.ones(len(grid), dtype=np.bool_)
    for table in tables:
        # Where no cell is at a member of a column, all are at its total.
        at = [grid[:, columns.index(column)] if column in columns else 0 for column in table.columns]
        kept &= table.possible[tuple(at)]
    return None if kept.all() else grid[kept].astype(np.int32)


#: Cells (rows of a block), coefficients, and the place that they tell (-1: none), which has the last one.
_Found = tuple[Longs, Floats, int]


def _searched(data: _AtPlaces, part: sparse.csr_array, finest: Longs) -> Iterator[_Found]:
    inside = data.inside
    key = hashlib.sha256(b"places")
    for said in (inside.indptr, inside.indices, part.indptr, part.indices, part.data, finest):
        key.update(np.ascontiguousarray(said).tobytes())
    relations = SEARCHED.get(key.digest())
    if relations is None:
        relations = tuple(search(data, part, finest))
        SEARCHED.put(key.digest(), relations)
    yield from ((cells, coefs, -1) for cells, coefs in relations)
    key.update(b"told")
    told = SEARCHED.get(key.digest())
    if told is None:
        told = tuple(_told(data, finest))
        SEARCHED.put(key.digest(), told)
    for cells, coefs in told:
        yield cells[:-1], coefs, int(cells[-1])


def _told(data: _AtPlaces, finest: Longs) -> Iterator[tuple[Longs, Floats]]:
    """Places that a combination of cells tells and no cell is: the cells and, last, the place."""
    cells = finest[_basis(data, finest)]
    sums = sparse.csc_array(data.inside[cells].astype(np.float64))
    gram = linalg.cho_factor((sums @ sums.T).toarray())
    size = np.diff(data.inside.indptr)
    alone = np.zeros(data.inside.shape[1], dtype=np.bool_)
    alone[data.inside.indices[data.inside.indptr[:-1][size == 1]]] = True
    for start in range(0, sums.shape[1], CHUNK):
        here = sums[:, start : start + CHUNK].toarray()
        factors = linalg.cho_solve(gram, here)
        share = (here * factors).sum(axis=0)
        for place in np.flatnonzero((share > 1 - TOLD) & ~alone[start : start + CHUNK]).tolist():
            whole = in_whole_numbers(np.append(factors[:, place], -1.0))
            used = np.flatnonzero(factors[:, place] if whole is None else whole[:-1])
            if whole is None or not _is_told(data, cells[used], whole[np.append(used, -1)], start + place):
                raise InternalError("a place that cells tell can't be written down exactly")
            yield np.append(cells[used], start + place), whole[np.append(used, -1)]


def _is_told(data: _AtPlaces, cells: Longs, coefs: Floats, place: int) -> bool:
    """Whether a combination of cells is so many times a place (the last of its coefficients), exactly."""
    left = data.inside[cells].astype(np.int64).T @ coefs[:-1].astype(np.int64)
    left[place] += int(coefs[-1])
    return not left.any()
