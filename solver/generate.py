"""Families of test instances: ``python -m solver generate FAMILY OUTPUT``.

A shape is one tree per dimension, with ``x`` between dimensions and ``.`` between levels: ``50x20`` is a
flat table of 50 × 20 inner cells, ``4.4.4x30`` has one hierarchy of three levels with four branches each.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.arguments import as_number, choice, whole
from solver.errors import InputError
from solver.formats.jj import format_jj, write_jj
from solver.instance import BoolArray, FloatArray, Instance, IntArray, Status

FAMILIES = ("random", "counts", "p-percent", "linked")
_MOST_CELLS = 20_000_000
# One of so many inner cells is sensitive, where nobody says how many are.
_EACH = 20


@dataclass(frozen=True, eq=False)
class Tree:
    """One dimension: its nodes, each after its parent; node 0 is the total.

    Attributes
    ----------
    parent : int64[k]
        -1 for the total.
    """

    parent: IntArray

    @classmethod
    def of(cls, branches: tuple[int, ...]) -> Tree:
        """A tree whose nodes of each level have so many children."""
        parent, level = [-1], [0]
        for count in branches:
            children: list[int] = []
            for node in level:
                children += range(len(parent), len(parent) + count)
                parent += [node] * count
            level = children
        return cls(np.array(parent, dtype=np.int64))

    @property
    def leaves(self) -> IntArray:
        """Nodes without children."""
        return np.setdiff1d(np.arange(len(self.parent)), self.parent)

    @property
    def sums(self) -> FloatArray:
        """Which leaves each node adds up (0/1, float64[k, leaves])."""
        leaves = self.leaves
        result = np.zeros((len(self.parent), len(leaves)))
        result[leaves, np.arange(len(leaves))] = 1.0
        for node in range(len(self.parent) - 1, 0, -1):
            result[self.parent[node]] += result[node]
        return result


def parse_shape(text: str) -> tuple[Tree, ...]:
    """The trees of a shape such as ``4.4x30``.

    Raises
    ------
    InputError
        It is no shape, or one of too many cells.
    """
    try:
        branches = [tuple(int(count) for count in part.split(".")) for part in text.split("x")]
    except ValueError:
        branches = []
    if not branches or any(count < 1 for part in branches for count in part):
        raise InputError(f"{text!r} is no shape.", "Write it like 50x20 or 4.4.4x30.")
    if float(np.prod([float(np.prod(part)) for part in branches])) > _MOST_CELLS:
        raise InputError(f"a table of shape {text} has too many cells.", "Make it smaller.")
    return tuple(Tree.of(part) for part in branches)


def generate(
    family: str,
    shape: str,
    *,
    primaries: int | None = None,
    level: float = 0.15,
    threshold: int = 4,
    percent: float = 15.0,
    unit_weights: bool = False,
    seed: int = 0,
) -> Instance:
    """An instance of a family.

    Parameters
    ----------
    family
        "random": uniform values, so many `primaries` among the inner cells (default, one of 20), levels a
        part `level` of the value. "counts": few units per cell, below the `threshold` is sensitive.
        "p-percent": skewed contributions, the p% rule with p = `percent`. "linked": the two-dimensional
        margins of a random table of three dimensions, linked by what they share.
    shape
        See :func:`parse_shape`.
    unit_weights
        Every cell costs 1 instead of its value.
    seed
        The same seed gives the same instance.

    Raises
    ------
    InputError
        Unknown family, or a shape or number that does not fit it.
    """
    choice(family, "family", FAMILIES)
    trees = parse_shape(shape)
    generator = np.random.default_rng(whole(seed, "seed", 0))
    as_number(level, "level", 0.0, "Give a part of the value, such as 0.15.", finite=True)
    as_number(percent, "percent", 0.0, "Give the p of the p% rule, such as 15.", finite=True)
    whole(threshold, "threshold", 1)
    if family == "linked" and len(trees) != 3:
        raise InputError("linked tables need a shape of three dimensions.", "Write it like 10x8x6.")
    if family == "counts":
        draft = _counts(trees, threshold, generator)
    elif family == "p-percent":
        draft = _p_percent(trees, percent, generator)
    else:
        draft = _random(trees, primaries, level, generator, margins=family == "linked")
    return _instance(trees, draft, unit_weights)


def side_by_side(*tables: Instance) -> Instance:
    """Tables of this module as one instance, with nothing to link them."""

    def joined(key: str) -> FloatArray:
        return np.concatenate([getattr(table, key) for table in tables])

    return Instance.from_arrays(
        joined("value"),
        sparse.csr_array(sparse.block_diag([table.matrix for table in tables], format="csr")),
        status=joined("status"),
        weight=joined("weight"),
        lower_bound=joined("lower_bound"),
        upper_bound=joined("upper_bound"),
        lpl=joined("lpl"),
        upl=joined("upl"),
    )


@dataclass(frozen=True, eq=False)
class _Draft:
    """Per cell of the full table (product order): value, sensitive, levels, and whether it exists."""

    value: FloatArray
    sensitive: BoolArray
    lower: FloatArray
    upper: FloatArray
    exists: BoolArray


def _add_up(trees: tuple[Tree, ...], inner: FloatArray) -> FloatArray:
    for axis, tree in enumerate(trees):
        inner = np.moveaxis(np.tensordot(tree.sums, inner, axes=(1, axis)), 0, axis)
    return inner


def _random(
    trees: tuple[Tree, ...],
    primaries: int | None,
    level: float,
    generator: np.random.Generator,
    margins: bool,
) -> _Draft:
    shape = tuple(len(tree.leaves) for tree in trees)
    value = _add_up(trees, generator.integers(1, 1001, shape).astype(np.float64))
    exists = np.ones(value.shape, dtype=np.bool_)
    lowest = np.ones(value.shape, dtype=np.bool_)
    if margins:
        at_total = sum(np.indices(value.shape) == 0)
        exists, lowest = at_total >= 1, at_total == 1
    for axis, tree in enumerate(trees):
        inner = np.zeros(len(tree.parent), dtype=np.bool_)
        inner[tree.leaves] = True
        inner[0] |= margins
        lowest &= inner.reshape([-1 if k == axis else 1 for k in range(len(trees))])
    candidates = np.flatnonzero(lowest)
    if not len(candidates):
        raise InputError("the table has no inner cells.", "Give a larger shape.")
    if primaries is None:
        primaries = -(-len(candidates) // _EACH)
    if not 0 < whole(primaries, "primaries", 0) <= len(candidates):
        raise InputError(
            f"{primaries} primaries do not fit {len(candidates)} inner cells.",
            f"Ask for 1 to {len(candidates)} (primaries).",
        )
    sensitive = np.zeros(value.size, dtype=np.bool_)
    sensitive[generator.choice(candidates, primaries, replace=False)] = True
    marked = sensitive.reshape(value.shape)
    levels = np.where(marked, np.ceil(level * value), 0.0)
    return _Draft(value, marked, np.minimum(levels, value), levels, exists)


def _counts(trees: tuple[Tree, ...], threshold: int, generator: np.random.Generator) -> _Draft:
    shape = tuple(len(tree.leaves) for tree in trees)
    inner = generator.poisson(generator.gamma(0.8, 8.0 * threshold / 4, shape)).astype(np.float64)
    value = _add_up(trees, inner)
    sensitive = (value > 0) & (value < threshold)
    lower, upper = np.where(sensitive, value - 1, 0.0), np.where(sensitive, threshold - value, 0.0)
    return _Draft(value, sensitive, lower, upper, np.ones(value.shape, dtype=np.bool_))


def _p_percent(trees: tuple[Tree, ...], percent: float, generator: np.random.Generator) -> _Draft:
    shape = tuple(len(tree.leaves) for tree in trees)
    count = generator.poisson(3.0, shape)
    most = int(count.max())
    parts = np.ceil(generator.lognormal(3.0, 1.2, (*shape, most)))
    parts = np.where(np.arange(most) < count[..., None], parts, 0.0)
    value = _add_up(trees, parts.sum(axis=-1))
    top = -np.sort(-parts, axis=-1)[..., :2]
    if most < 2:
        top = np.concatenate([top, np.zeros((*shape, 2 - most))], axis=-1)
    for axis, tree in enumerate(trees):
        groups = [np.flatnonzero(row) for row in tree.sums]
        merged = [
            -np.sort(-np.concatenate([np.take(top, group, axis)[..., k] for k in (0, 1)], axis), axis=axis)
            for group in groups
        ]
        top = np.stack([np.stack([np.take(two, k, axis) for two in merged], axis) for k in (0, 1)], axis=-1)
    largest, second = top[..., 0], top[..., 1]
    missing = percent / 100 * largest - (value - largest - second)
    sensitive = (value > 0) & (missing > 0)
    levels = np.where(sensitive, np.ceil(np.maximum(missing, 0.0)), 0.0)
    return _Draft(value, sensitive, np.minimum(levels, value), levels, np.ones(value.shape, dtype=np.bool_))


def _instance(trees: tuple[Tree, ...], draft: _Draft, unit_weights: bool) -> Instance:
    exists = draft.exists.ravel()
    number = np.cumsum(exists) - 1
    relations = _relations(trees, draft.value.shape, exists, number)
    value = draft.value.ravel()[exists]
    sensitive = draft.sensitive.ravel()[exists]
    status = np.where(sensitive, Status.SENSITIVE, np.where(value > 0, Status.FREE, Status.SHOWN))
    return Instance.from_arrays(
        value,
        relations,
        status=status,
        weight=np.ones(len(value)) if unit_weights else np.maximum(value, 1.0),
        upper_bound=np.full(len(value), 2.0 * value.max()),
        lpl=draft.lower.ravel()[exists],
        upl=draft.upper.ravel()[exists],
    )


def _relations(
    trees: tuple[Tree, ...], shape: tuple[int, ...], exists: BoolArray, number: IntArray
) -> sparse.csr_array:
    """total − Σ parts = 0 for every dimension, node with children and place in the others."""
    cells = np.arange(exists.size).reshape(shape)
    rows, columns, coefs = [], [], []
    count = 0
    for axis, tree in enumerate(trees):
        along = np.moveaxis(cells, axis, 0).reshape(shape[axis], -1)
        for node in np.unique(tree.parent[1:]).tolist():
            children = np.flatnonzero(tree.parent == node)
            whole = exists[along[np.concatenate([[node], children])]].all(axis=0)
            members = along[np.concatenate([[node], children])][:, whole]
            width = members.shape[1]
            rows.append(np.tile(np.arange(count, count + width), len(children) + 1))
            columns.append(number[members].ravel())
            coefs.append(np.concatenate([np.ones(width), -np.ones(width * len(children))]))
            count += width
    parts = (np.concatenate(coefs), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(parts, shape=(count, int(exists.sum())))


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `generate`."""
    add = parser.add_argument
    add("family", choices=FAMILIES, help="kind of the table and of its rules")
    add("output", help="a .jj file, or - for standard output")
    add("--shape", required=True, help="like 50x20, or 4.4.4x30 with a hierarchy")
    add(
        "--primaries",
        type=int,
        help="how many sensitive cells (random, linked; default: one of 20 inner cells)",
    )
    add(
        "--level",
        type=float,
        default=0.15,
        help="protection level as a part of the value (default: %(default)s)",
    )
    add("--threshold", type=int, default=4, help="of counts (default: %(default)s)")
    add("--percent", type=float, default=15.0, help="of the p%% rule (default: %(default)s)")
    add("--unit-weights", action="store_true", help="every cell costs 1 (default: its value)")
    add("--seed", type=int, default=0, help="of what is drawn at random (default: %(default)s)")


def run_generate(options: argparse.Namespace) -> int:
    """Write an instance; the exit code."""
    instance = generate(
        options.family,
        options.shape,
        primaries=options.primaries,
        level=options.level,
        threshold=options.threshold,
        percent=options.percent,
        unit_weights=options.unit_weights,
        seed=options.seed,
    )
    if options.output == "-":
        sys.stdout.write(format_jj(instance))
    else:
        write_jj(instance, options.output)
        print(f"{options.output}: {instance.n} cells, {instance.m} relations")
    return 0
