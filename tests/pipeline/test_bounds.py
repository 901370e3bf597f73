"""Bounds of measures that don't add up hold for every data set and tie a whole to its parts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.domain.bounds import bounds_of
from app.domain.lattice import Space
from tests.pipeline.test_equation import TREES, leaves_of, tree

KINDS = ("distinct-count", "max", "median", "min")


@given(
    st.sampled_from(["flat", "deep", "uneven", "chain"]),
    st.sampled_from(KINDS),
    st.data(),
)
def test_bounds_hold_and_slacks_are_never_negative(shape: str, kind: str, data: st.DataObject) -> None:
    place = tree(TREES[shape])
    space = Space([place], np.array([False]), [["m"], [str(i) for i in range(place.size)]])
    owners = data.draw(
        st.lists(st.tuples(st.sampled_from(leaves_of(place, 0)), st.integers(1, 4)), min_size=1, max_size=12)
    )
    members = sorted(data.draw(st.sets(st.integers(0, place.size - 1), min_size=1)))

    def value(member: int) -> float:
        inside = [owner for leaf, owner in owners if leaf in leaves_of(place, member)]
        if not inside:
            return float("nan")
        if kind == "median":
            return float(np.median(inside))
        return float({"distinct-count": len(set(inside)), "max": max(inside), "min": min(inside)}[kind])

    coords = np.array([[0, member] for member in members], dtype=np.int32).reshape(-1, 2)
    values = np.array([value(member) for member in members])
    bounds = bounds_of(space, coords, values, (kind,))
    assert (bounds.slack >= 0).all()
    everything = np.concatenate([np.nan_to_num(values), bounds.slack])
    equations = bounds.equations
    for number in range(len(equations)):
        part = slice(equations.indptr[number], equations.indptr[number + 1])
        assert everything[equations.indices[part]] @ equations.coefs[part] == 0
    nested = [
        (a, b)
        for a in range(len(members))
        for b in range(len(members))
        if place.parent[members[b]] == members[a] and not np.isnan(values[[a, b]]).any()
    ]
    tied = {
        frozenset(equations.indices[equations.indptr[i] : equations.indptr[i + 1]].tolist())
        for i in range(len(equations))
    }
    # A median above one part's and below another's tells neither.
    assert kind == "median" or all(any({a, b} <= cells for cells in tied) for a, b in nested)
