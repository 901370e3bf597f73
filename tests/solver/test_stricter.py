"""Levels missed by less than a search can tell: the pattern found is mended, not thrown away."""

from __future__ import annotations

import numpy as np
import pytest
from shared import instance_file

from solver import Instance, audit, solve
from solver.stricter import repaired, with_higher_levels

_SIDE, _ROOM = 4, 1_000_000


def _nearly(excess: float) -> Instance:
    """A table whose only light company of a sensitive cell falls short of its level by `excess`."""
    values = np.zeros((_SIDE + 1, _SIDE + 1))
    values[:-1, :-1] = np.random.default_rng(1).integers(2 * _ROOM, 9 * _ROOM, (_SIDE, _SIDE))
    values[-1, :-1] = values[:-1, :-1].sum(axis=0)
    values[:, -1] = values[:, :-1].sum(axis=1)
    cell = np.arange(values.size).reshape(values.shape)
    relations = []
    for line in [*cell, *cell.T]:
        relation = np.zeros(values.size)
        relation[line] = [1.0] * _SIDE + [-1.0]
        relations.append(relation)
    value = values.ravel()
    light = [cell[0, 1], cell[1, 0], cell[1, 1]]
    weight, lower, upper = np.full(value.size, 50.0), np.zeros(value.size), 3 * value
    weight[light], lower[light], upper[light] = 1.0, value[light] - _ROOM, value[light] + _ROOM
    status, lpl, upl = np.full(value.size, "s"), np.zeros(value.size), np.zeros(value.size)
    status[0], lpl[0], upl[0] = "u", 1000.0, _ROOM + excess
    return Instance.from_arrays(
        value,
        np.array(relations),
        status=status,
        weight=weight,
        lower_bound=lower,
        upper_bound=upper,
        lpl=lpl,
        upl=upl,
    )


@pytest.mark.parametrize("excess", [0.9, 0.4, 0.1])
def test_a_pattern_that_falls_short_by_a_little_is_mended(excess: float) -> None:
    instance = _nearly(excess)
    hidden = np.zeros(instance.n, dtype=np.bool_)
    hidden[[0, 1, _SIDE + 1, _SIDE + 2]] = True
    cells = np.array([exposure.cell for exposure in audit(instance, hidden).exposures])
    assert cells.tolist() == [0]
    found = repaired(with_higher_levels(instance, cells), hidden, cells)
    assert found is not None
    pattern, _ = found
    assert (pattern >= hidden).all()
    assert audit(instance, pattern).ok


@pytest.mark.parametrize("method", ["exact", "auto", "lp", "shortest-path"])
def test_every_answer_meets_a_level_that_the_light_cells_nearly_meet(method: str) -> None:
    instance = _nearly(0.4)
    solution = solve(instance, method)
    assert audit(instance, solution.hidden).ok
    assert solution.cost > 3
    assert solution.lower_bound <= solution.cost


def test_clean_up_leaves_nothing_for_the_audit_to_find() -> None:
    # A movement of a million that moved a shut cell by a millionth was taken for one that spares it.
    solution = solve(Instance.from_jj(instance_file("rta_pizza_datatest1_4d")), "light")
    assert solution.statistics["repairs"] == 0
