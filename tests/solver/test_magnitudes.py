"""Values of very different size beside each other: floating point gives up, the solver doesn't."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from solver import InfeasibleError, InputError, Instance, protect, solve
from solver.rules import Dominance, PPercent, Threshold

Frame = dict[str, list[object]]


def mixed_frame(seed: int) -> tuple[Frame, list[str], bool]:
    """Records of two or three dimensions, of amounts from units to millions of millions."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(2, 4))
    shape = tuple(rng.integers(2, 6, dims))
    n = int(np.prod(shape) * rng.uniform(1, 4))
    spread = rng.choice([1, 3, 6, 9])
    value = np.minimum(np.rint(np.exp(rng.normal(2, spread, n))) + rng.integers(0, 2), 1e13)
    kind = rng.integers(3)
    if kind == 1:
        value = value / 100
    frame: Frame = {f"d{i}": [str(x) for x in rng.integers(0, size, n)] for i, size in enumerate(shape)}
    if kind == 2:
        value = value * rng.choice([1, 1, 1, -1], n)
    return {**frame, "v": value.tolist()}, [f"d{i}" for i in range(dims)], bool(kind == 2)


# On the first the simplex ended without a status.
@pytest.mark.parametrize("seed", [13, 26])
def test_mixed_magnitudes_are_protected(seed: int) -> None:
    frame, dims, losses = mixed_frame(seed)
    rules = [[Threshold(3), PPercent(10)], [Dominance(1, 80)], [Threshold(2)]][seed % 3]
    result = protect(frame, dims, {}, "v", rules, negative_values=losses, seed=seed)
    assert result.audit.ok
    assert too_close(result.problem.instance, np.asarray(result.solution.hidden)) == []


def too_close(instance: Instance, hidden: np.ndarray) -> list[str]:
    """Cells that a linear program of another make doesn't get as far from their values as they must be."""
    cells = np.flatnonzero(hidden)
    shape = (len(instance.rhs), instance.n)
    relations = sparse.csr_array((instance.coefs, instance.indices, instance.indptr), shape=shape)[:, cells]
    low = np.maximum(instance.lower_bound[cells] - instance.value[cells], -1e30)
    high = np.minimum(instance.upper_bound[cells] - instance.value[cells], 1e30)
    found = []
    for k, cell in enumerate(cells.tolist()):
        for side, level in ((-1, instance.lpl[cell]), (1, instance.upl[cell])):
            if level <= 0:
                continue
            # In units of the level, and no farther than its hundred thousandfold: less is still a proof.
            bounds = np.stack([np.clip(low / level, -1e5, 0), np.clip(high / level, 0, 1e5)], axis=1)
            cost = np.where(np.arange(len(cells)) == k, -side, 0)
            reached = linprog(
                cost, A_eq=relations, b_eq=np.zeros(relations.shape[0]), bounds=bounds, method="highs"
            )
            if reached.status != 0 or -reached.fun < 1 - 1e-6:
                found.append(f"{instance.name(cell)} {side:+d}")
    return found


@pytest.mark.parametrize("method", ["exact", "auto", "lp"])
def test_a_relation_that_nothing_can_meet_is_infeasible(method: str) -> None:
    """Its cut has no column, which left HiGHS without a status."""
    inf = np.inf
    relations = [
        [0.015625, 512.0, 0.125, 64.0, 0, 0],
        [-3.0, 0, 0.03125, -6.0, 0, 0],
        [-0.00390625, -0.001953125, 16.0, 256.0, 256.0, -64.0],
    ]
    instance = Instance.from_arrays(
        [12616466432.0, 8388608.0, 3670016.0, 14680064.0, 88.0, 2048.0],
        relations,
        rhs=[5432082432.0, -37937364992.0, 3767408640.0],
        status=list("sssuus"),
        lower_bound=[12603849965.568, 8388608.0, 3669016.0, 0.0, -912.0, 1024.0],
        upper_bound=[12629082898.432, 8396996.608, inf, inf, 176.0, 3072.0],
        lpl=[0, 0, 0, 14680064.0, 0, 0],
        upl=[0, 0, 0, 7340032.0, 8.8, 0],
    )
    with pytest.raises(InfeasibleError, match="cell 3"):
        solve(instance, method)


@pytest.mark.parametrize("size", [1e101, 1e300])
@pytest.mark.parametrize("what", ["value", "weight"])
def test_what_no_sum_of_doubles_holds_is_refused(size: float, what: str) -> None:
    value = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [5.0, 7.0, 12.0]]) * (size if what == "value" else 1)
    relations = np.zeros((6, 9))
    for k, line in enumerate(([0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8])):
        relations[k, line] = (1, 1, -1)
    weight, status = np.full(9, size if what == "weight" else 1.0), list("usssssssz")
    with pytest.raises(InputError, match=f"{what} is beyond 1e100"):
        Instance.from_arrays(value.ravel(), relations, status=status, weight=weight, tolerance=1e295)
    frame: Frame = {"a": ["x", "y"], "b": ["x", "y"], "v": [size, 2.0]}
    with pytest.raises(InputError):
        protect(frame, ["a", "b"], {}, "v", [Dominance(1, 80)])
