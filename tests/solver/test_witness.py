"""Movements that are named as proofs: they are believed only as far as the relations bear them out."""

from __future__ import annotations

import numpy as np
import pytest
from brute import random_instance
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solver import audit, solve
from solver.audit import Exposure, find_exposures
from solver.entries import row_of
from solver.generate import generate
from solver.instance import Instance, Status

SEEDS = st.integers(0, 10**6)


def told(exposures: tuple[Exposure, ...]) -> set[tuple[int, str]]:
    return {(exposure.cell, exposure.attacker) for exposure in exposures}


def kernel(instance: Instance, generator: np.random.Generator, count: int) -> np.ndarray:
    """Movements that respect every relation: random ones of the null space."""
    dense = instance.matrix.toarray()
    _, _, right = np.linalg.svd(dense)
    space = right[np.linalg.matrix_rank(dense) :]
    return generator.normal(size=(count, len(space))) @ space * 30.0


def in_any_order(matrix: sparse.csr_array, generator: np.random.Generator) -> sparse.csr_array:
    """The same matrix, the entries of each row in any order."""
    row = row_of(matrix.indptr)
    order = np.lexsort((generator.random(matrix.nnz), row))
    return sparse.csr_array((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(0, 5), st.floats(0, 1))
def test_the_verdict_is_the_full_audits_whatever_movements_are_named(
    seed: int, count: int, share: float
) -> None:
    instance = random_instance(seed)
    generator = np.random.default_rng(seed)
    hidden = instance.always_hidden | (generator.random(instance.n) < share)
    sound = kernel(instance, generator, count)
    sound[:, ~hidden] *= generator.random() < 0.5
    nonsense = generator.normal(size=(count, instance.n)) * 1e6
    named = in_any_order(sparse.csr_array(np.vstack([sound, nonsense])), generator)
    found = find_exposures(instance, hidden, named)
    wanted = audit(instance, hidden)
    assert told(found) == told(wanted.exposures)


@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_a_movement_that_breaks_a_relation_proves_nothing(seed: int) -> None:
    instance = random_instance(seed)
    hidden = instance.always_hidden
    lies = np.zeros((len(instance.protected), instance.n))
    lies[np.arange(len(lies)), instance.protected] = instance.upl[instance.protected] * 2 + 1
    found = find_exposures(instance, hidden, sparse.csr_array(lies))
    assert told(found) == told(audit(instance, hidden).exposures)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.floats(-16, -11), st.sampled_from([np.inf, 1e9, 1e12]))
def test_rounding_in_a_movement_proves_nothing_however_far_the_movement_goes_on(
    seed: int, magnitude: float, room: float
) -> None:
    """A cell without bounds may move for ever, and takes a hair of a cell with it that can't move."""
    generator = np.random.default_rng(seed)
    relations = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 3.0, 1.0, -1.0]])
    instance = Instance.from_arrays(
        np.zeros(4),
        relations,
        status=["u"] * 4,
        lower_bound=[-room] * 4,
        upper_bound=[room] * 4,
        upl=[1.0] * 4,
    )
    moves = np.zeros((5, 4))
    moves[:, 0] = generator.normal(size=5) * 30.0
    moves[:, 1:] = generator.normal(size=(5, 3)) * 10.0**magnitude
    hidden = np.ones(4, dtype=np.bool_)
    found = find_exposures(instance, hidden, sparse.csr_array(moves))
    assert told(found) == told(audit(instance, hidden).exposures) == {(1, "outsider")}


@pytest.mark.parametrize("shape", ["3x3x3x3x3", "20x10x5"])
def test_tables_of_many_cells_are_protected_by_small_neighbourhoods(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.heuristics.lp.LARGE", 500)
    instance = generate("random", shape, primaries=12, level=0.05, seed=3)
    assert instance.n > 1000
    found = solve(instance, method="lp")
    assert find_exposures(instance, found.hidden) == ()
    assert not (found.hidden & (instance.status == Status.SHOWN)).any()
