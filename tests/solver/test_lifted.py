"""Lifted covers cut off no pattern that meets their requirement, but points that it does not."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.lifted import lifted_cover


@settings(max_examples=400, deadline=None)
@given(
    coefs=st.lists(st.integers(0, 12), min_size=1, max_size=8),
    share=st.floats(0.05, 1.0),
    seed=st.integers(0, 10_000),
)
def test_no_pattern_that_meets_the_requirement_is_cut_off(coefs: list[int], share: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    c = np.array(coefs, dtype=np.float64)
    level = share * c.sum()
    forced = generator.random(len(c)) < 0.2
    x = np.where(forced, 1.0, np.round(generator.random(len(c)), 1))
    if level <= 0:
        return
    cut = lifted_cover(c, level, forced, x, 1e-6)
    if cut is None:
        return
    assert cut.violation(x) > 0
    for pattern in product((0.0, 1.0), repeat=len(c)):
        hidden = np.maximum(pattern, forced)
        if c @ hidden >= level:
            assert cut.violation(hidden) <= 1e-9


def test_two_of_three_alike_are_needed() -> None:
    # Each gives 3 of 5: the requirement itself allows 5/9 of each, and two of them are needed.
    c, x = np.array([3.0, 3.0, 3.0]), np.full(3, 0.6)
    cut = lifted_cover(c, 5.0, np.zeros(3, dtype=np.bool_), x, 1e-6)
    assert cut is not None
    assert np.allclose(cut.coefs, 0.5)
    assert np.isclose(cut.violation(x), 0.1)
