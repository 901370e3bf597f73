"""Relations are exactly what an attacker who knows every fact's place could write down."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.completeness import joined, missing_relations
from app.domain.equation import Closure, Equations, close_cells
from app.domain.errors import InternalError
from app.domain.lattice import Space, Tree

PRIME = 2_147_483_647


def reduce(rows, width: int) -> tuple[int, list[list[int]]]:
    """Rank of the first ``width`` columns over a field of 31 bits, and the rows that vanish there."""
    matrix = [[int(value) % PRIME for value in row] for row in rows]
    found = 0
    for column in range(width):
        pivot = next((r for r in range(found, len(matrix)) if matrix[r][column]), None)
        if pivot is None:
            continue
        matrix[found], matrix[pivot] = matrix[pivot], matrix[found]
        inverse = pow(matrix[found][column], -1, PRIME)
        base = [value * inverse % PRIME for value in matrix[found]]
        matrix[found] = base
        for r in range(found + 1, len(matrix)):
            factor = matrix[r][column]
            if factor:
                matrix[r] = [(a - factor * b) % PRIME for a, b in zip(matrix[r], base, strict=True)]
        found += 1
    return found, matrix[found:]


def dependencies(vectors: np.ndarray) -> list[list[int]]:
    """All combinations of rows that vanish whatever the data are."""
    n, width = vectors.shape
    _, zero = reduce(np.hstack([vectors, np.eye(n, dtype=np.int64)]), width)
    return [row[width:] for row in zero]


def tree(parents) -> Tree:
    parent = np.array(parents, dtype=np.int32)
    last = np.arange(len(parent), dtype=np.int32)
    for member in range(len(parent) - 1, 0, -1):
        if parent[member] >= 0:
            last[parent[member]] = max(last[parent[member]], last[member])
    return Tree.of(parent, last)


#: With and without All, flat and deep, an only child.
TREES = {
    "none": [-1, -1],
    "flat": [-1, 0, 0],
    "flat3": [-1, 0, 0, 0],
    "deep": [-1, 0, 1, 1, 0, 4, 4],
    "uneven": [-1, 0, 1, 1, 0],
    "chain": [-1, 0, 1, 1],
}


def make_space(kinds) -> Space:
    trees = [tree(TREES[kind]) for kind in kinds]
    names = [["m"], *([f"{h}.{i}" for i in range(t.size)] for h, t in enumerate(trees))]
    return Space(trees, np.array([True]), names)


def leaves_of(t: Tree, member: int) -> list[int]:
    return [leaf for leaf in range(member, t.last[member] + 1) if t.last[leaf] == leaf]


def vector(space: Space, row, occupied_leaves) -> list[int]:
    """How often each fact's place counts in a cell."""
    weights = []
    for h, t in enumerate(space.trees):
        number = int(row[1 + h])
        terms = ((number, 1.0),) if number < t.size else space.extra(1 + h, number).terms
        weight: dict[int, int] = {}
        for member, factor in terms:
            for leaf in leaves_of(t, member):
                weight[leaf] = weight.get(leaf, 0) + int(factor)
        weights.append(weight)
    return [
        int(np.prod([weight.get(leaf, 0) for weight, leaf in zip(weights, place, strict=True)]))
        for place in occupied_leaves
    ]


def close(space: Space, published, occupied_leaves) -> tuple[Closure, np.ndarray]:
    coords = np.array(published, dtype=np.int32).reshape(-1, space.columns)

    def occupied(rows):
        return np.array([any(vector(space, row, occupied_leaves)) for row in rows], dtype=np.bool_)

    closure = close_cells(space, coords, None, occupied)
    return closure, np.array([vector(space, row, occupied_leaves) for row in closure.coords])


def dense(equations: Equations, n: int) -> np.ndarray:
    matrix = np.zeros((len(equations), n))
    for r in range(len(equations)):
        part = slice(equations.indptr[r], equations.indptr[r + 1])
        matrix[r, equations.indices[part]] = equations.coefs[part]
    return matrix


def check(space: Space, published, occupied_leaves) -> None:
    closure, vectors = close(space, published, occupied_leaves)
    more = missing_relations(space, closure.coords, closure.equations)
    relations = dense(joined(closure.equations, more), len(vectors))
    assert not (relations @ vectors).any(), "a relation doesn't hold for every possible data set"
    # A published cell without facts is a zero that everyone knows, and so is every place inside it.
    empty = ~vectors.any(axis=1)
    places = list(product(*(leaves_of_all(t) for t in space.trees)))
    everywhere = np.array([vector(space, row, places) for row in closure.coords])
    everywhere[:, everywhere[: closure.n_published][empty[: closure.n_published]].any(axis=0)] = 0
    relations = np.vstack([relations, np.eye(len(vectors))[empty]])
    n = len(vectors)
    known, _ = reduce(relations, n)
    with_attacker, _ = reduce([*relations.tolist(), *dependencies(everywhere)], n)
    assert with_attacker == known, "an attacker knows a relation that the system doesn't"


@st.composite
def publications(draw, tables_only):
    kinds = draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3))
    space = make_space(kinds)
    places = list(product(*(leaves_of_all(t) for t in space.trees)))
    empty = draw(st.sets(st.sampled_from(places), max_size=len(places) // 3)) if len(places) > 2 else set()
    occupied = [place for place in places if place not in empty]
    columns = [list(range(t.size)) for t in space.trees]
    for h, t in enumerate(space.trees):
        if draw(st.booleans()):
            leaves = leaves_of_all(t)
            members = sorted(draw(st.sets(st.sampled_from(leaves), min_size=1)))
            factors = draw(st.sampled_from([(1,), (1, -1), (2, 1)]))
            terms = [(m, float(factors[i % len(factors)])) for i, m in enumerate(members)]
            columns[h].append(space.number(1 + h, terms, ""))
    rows: set[tuple[int, ...]] = set()
    for _ in range(draw(st.integers(1, 3))):
        sides = [sorted(draw(st.sets(st.sampled_from(c), min_size=1))) for c in columns]
        if tables_only:
            rows.update((0, *place) for place in product(*sides))
        else:
            rows.add((0, *(side[0] for side in sides)))
            rows.update((0, *draw(st.tuples(*(st.sampled_from(c) for c in columns)))) for _ in range(4))
    return space, sorted(rows), occupied


def leaves_of_all(t: Tree) -> list[int]:
    return [leaf for leaf in range(t.size) if t.last[leaf] == leaf]


@settings(max_examples=300, deadline=None)
@given(publications(tables_only=True))
def test_tables_leave_no_relation_out(case):
    check(*case)


@settings(max_examples=300, deadline=None)
@given(publications(tables_only=False))
def test_scattered_cells_leave_no_relation_out(case):
    check(*case)


def test_an_empty_weighted_sum_tells_that_its_places_are_empty():
    """Twice nothing is nothing: the total of that line is its only other place."""
    space = make_space(["flat", "uneven"])
    assert space.number(1, [(2, 2.0)], "") == 3
    assert space.number(2, [(3, 1.0), (4, 1.0)], "") == 5
    published = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 5), (0, 3, 2)]
    check(space, published, [(1, 2), (1, 4), (2, 3), (2, 4)])


def test_blocks_that_share_no_line_are_tied_too():
    """A cube of eight places cut into three bars and two blocks, and shown with its total."""
    space = make_space(["flat", "flat", "flat"])
    cut = [(0, 0, 1, 2), (0, 2, 0, 1), (0, 1, 2, 0), (0, 1, 1, 1), (0, 2, 2, 2)]
    places = list(product(*(leaves_of_all(t) for t in space.trees)))
    check(space, [(0, 0, 0, 0), *cut], places)
    closure, _ = close(space, [(0, 0, 0, 0), *cut], places)
    assert len(missing_relations(space, closure.coords, closure.equations)) == 1


def test_relations_of_scattered_cells_are_written_in_small_numbers():
    """By whatever cells come first, the same relations take up to eleven times a cell, and ninetieths."""
    space = make_space(["flat3", "deep", "flat3", "flat"])
    everything = np.array([(0, *place) for place in product(*(range(t.size) for t in space.trees))])
    chosen = np.random.default_rng(9).choice(len(everything), 170, replace=False)
    none = Equations(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    more = missing_relations(space, everything[chosen].astype(np.int32), none)
    vectors = np.array(
        [
            vector(space, row, list(product(*(leaves_of_all(t) for t in space.trees))))
            for row in everything[chosen]
        ]
    )
    assert not (dense(more, len(chosen)) @ vectors).any()
    assert len(more) == len(chosen) - np.linalg.matrix_rank(vectors)
    assert np.abs(more.coefs).max() <= 2


def test_a_cell_listed_twice_is_our_fault():
    with pytest.raises(InternalError):
        close(make_space(["flat"]), [(0, 0), (0, 0)], [(1,), (2,)])
