"""What is told of maxima is what every assignment of values to leaves has in common."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.lattice import Space
from app.domain.maxima import columns_of, intervals, leaves_of, set_hashes, tell, tellers
from tests.pipeline.test_equation import TREES, leaves_of_all, tree, vector

#: Values of leaves: those of the data lie inside, so that the ends stand for no bound.
LEAST, MOST = 0, 5


def space_of(kinds: tuple[str, ...]) -> Space:
    trees = [tree(TREES[kind]) for kind in kinds]
    names = [["m"], *([f"{h}.{i}" for i in range(t.size)] for h, t in enumerate(trees))]
    space = Space(trees, np.array([False]), names)
    for h, t in enumerate(trees):
        # A group, and one that names a member twice.
        leaves = leaves_of_all(t)
        space.number(1 + h, [(leaves[0], 1.0), (leaves[-1], 1.0)], "", is_formula=True)
        space.number(1 + h, [(0, 1.0), (leaves[0], 1.0)], "", is_formula=True)
    return space


@settings(max_examples=300)
@given(
    st.sampled_from([("deep",), ("flat3",), ("none", "flat"), ("flat", "flat"), ("chain", "flat3")]),
    st.data(),
)
def test_intervals_are_what_all_assignments_have_in_common(
    kinds: tuple[str, ...], data: st.DataObject
) -> None:
    space = space_of(kinds)
    everywhere = list(product(*(leaves_of_all(t) for t in space.trees)))
    places = sorted(data.draw(st.sets(st.sampled_from(everywhere), min_size=1, max_size=4)))
    amounts = data.draw(
        st.lists(st.integers(LEAST + 1, MOST - 1), min_size=len(places), max_size=len(places))
    )
    rows = data.draw(
        st.lists(
            st.tuples(*(st.integers(0, int(size) - 1) for size in space.sizes[1:])), min_size=1, max_size=6
        )
    )
    coords = np.array([(0, *row) for row in rows], dtype=np.int32)
    within = np.array([vector(space, row, places) for row in coords]) > 0
    coords, within = coords[within.any(axis=1)], within[within.any(axis=1)]
    n = len(coords)
    if not n:
        return
    marks = st.lists(st.booleans(), min_size=n, max_size=n)
    shown, attained = np.array(data.draw(marks)), np.array(data.draw(marks))
    value = np.array(
        [max(a for a, here in zip(amounts, row, strict=True) if here) for row in within], dtype=float
    )
    value = np.where(attained, value, value + 0.5)
    columns = columns_of(space, coords, [len(np.flatnonzero(t.parent < 0)) == 1 for t in space.trees])
    facts = np.array(places, dtype=np.int32).reshape(len(places), -1)[:, [c - 1 for c in columns]]
    leaves = leaves_of(space, coords, columns, facts)
    told = tell(leaves.inside, value, shown, attained)
    lower, upper = intervals(told, leaves.inside, value, np.arange(n))

    grid = np.array(list(product(range(LEAST, MOST + 1), repeat=len(places))))
    largest = np.stack([np.where(row, grid, LEAST - 1).max(axis=1) for row in within], axis=1)
    fits = np.where(attained, largest == value, largest <= value)[:, shown].all(axis=1)
    assert fits.any()
    np.testing.assert_array_equal(largest[fits].min(axis=0), np.maximum(lower, LEAST))
    np.testing.assert_array_equal(largest[fits].max(axis=0), np.floor(np.minimum(upper, MOST)))

    # Equal sets of leaves, and no others, have equal hashes; each is made of its boxes.
    hashes = set_hashes(leaves.inside)
    for one, other in product(range(n), repeat=2):
        assert (hashes[one] == hashes[other]) == bool((within[one] == within[other]).all())
    for row in range(n):
        mine = np.sort(leaves.inside.indices[leaves.inside.indptr[row] : leaves.inside.indptr[row + 1]])
        boxes = leaves.coords(space, 0, leaves.boxes(mine.astype(np.int64)))
        again = np.array([vector(space, box, places) for box in boxes]).max(axis=0) > 0
        np.testing.assert_array_equal(again, within[row])
    target, cell = tellers(told, leaves.inside, np.arange(n))
    assert (value[cell] <= value[target]).all()
