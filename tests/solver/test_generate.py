"""Generated instances: what the families promise, on file and in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from solver import InputError, Instance, Status
from solver.__main__ import main
from solver.generate import FAMILIES, generate, parse_shape


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_adds_up_has_sensitive_cells_and_reachable_levels(family: str) -> None:
    instance = generate(family, "3.2x4x3", primaries=5, seed=11)
    assert (instance.status == Status.SENSITIVE).any()
    assert not len(instance.out_of_reach)
    miss = instance.matrix @ instance.value - instance.rhs
    assert (miss == 0).all()
    assert ((instance.status == Status.SHOWN) == (instance.value == 0)).all()


def test_a_hierarchy_puts_every_inner_total_into_the_relations() -> None:
    instance = generate("random", "3.3x4", primaries=2)
    # 1 + 3 + 9 rows and 1 + 4 columns; 4 inner rows add up in each column, each row across.
    assert (instance.n, instance.m) == (13 * 5, 4 * 5 + 13)


def test_linked_tables_share_their_margins() -> None:
    instance = generate("linked", "4x3x2", primaries=3)
    assert instance.n == (5 * 4 + 5 * 3 + 4 * 3) - (5 + 4 + 3) + 1
    assert np.diff(instance.indptr).max() == 5


def test_the_seed_decides_everything() -> None:
    one, same, other = (generate("p-percent", "4.3x5", seed=seed) for seed in (1, 1, 2))
    assert (one.value == same.value).all()
    assert (one.status == same.status).all()
    assert one.value.shape != other.value.shape or (one.value != other.value).any()


def test_the_p_percent_rule_holds_on_every_cell() -> None:
    instance = generate("p-percent", "3x3", percent=10, seed=5)
    protected = instance.protected
    assert (instance.upl[protected] > 0).all()
    assert (instance.status[np.setdiff1d(np.arange(instance.n), protected)] != Status.SENSITIVE).all()


def test_the_command_writes_what_the_function_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "made.jj"
    command = ["generate", "random", str(file), "--shape", "4.2x3", "--primaries", "3", "--seed", "9"]
    assert main(command) == 0
    read, made = Instance.from_jj(file), generate("random", "4.2x3", primaries=3, seed=9)
    assert (read.value == made.value).all()
    assert (read.matrix != made.matrix).nnz == 0
    assert (read.upl == made.upl).all()
    assert "cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("family", "shape", "primaries"),
    [
        ("random", "4xx4", 2),
        ("random", "4x0", 2),
        ("random", "9999x9999x9999", 2),
        ("random", "4x4", 17),
        ("linked", "4x4", 2),
        ("unheard-of", "4x4", 2),
    ],
)
def test_what_makes_no_table_is_refused(family: str, shape: str, primaries: int) -> None:
    with pytest.raises(InputError):
        generate(family, shape, primaries=primaries)


def test_a_tree_has_its_leaves_below_all_its_sums() -> None:
    (tree,) = parse_shape("3.2")
    assert len(tree.parent) == 1 + 3 + 6
    assert (tree.sums.sum(axis=1) == [6, 2, 2, 2, 1, 1, 1, 1, 1, 1]).all()


@pytest.mark.parametrize(
    ("family", "wrong", "told"),
    [
        ("random", {"seed": -4}, "seed is -4"),
        ("random", {"level": -1.0}, "level is -1"),
        ("counts", {"threshold": -1}, "threshold is -1"),
        ("counts", {"threshold": 0}, "threshold is 0"),
        ("p-percent", {"percent": -5.0}, "percent is -5"),
        ("p-percent", {"percent": float("nan")}, "percent is nan"),
        ("novel", {}, "family is 'novel'"),
    ],
)
def test_a_number_that_makes_no_sense_is_told_by_its_name(
    family: str, wrong: dict[str, float], told: str
) -> None:
    with pytest.raises(InputError, match=told) as caught:
        generate(family, "4x4", **wrong)
    assert caught.value.remedy


@pytest.mark.parametrize("family", ["random", "linked"])
def test_without_a_number_of_primaries_one_in_twenty_cells_is_sensitive(family: str) -> None:
    instance = generate(family, "8x6x1" if family == "linked" else "8x6")
    assert (instance.status == Status.SENSITIVE).sum() >= 1
    assert (instance.status == Status.SENSITIVE).sum() <= -(-instance.n // 20)
