"""Looking at cells while sets are made: what they hold, or what readers will see of them.

The analyst's sets are chosen and ordered by what the cells hold. A published set may not be: the order of
confidential cells gives them away. So it is made twice. `Candidates` notes the cells that it would look at,
and leaves every position in; they are published with it. Once it is known which of them are confidential,
`AsShown` gives the others, and the set is made of what everybody sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.basis import Basis
from app.cube.context import Positions
from app.cube.formulas import Leaf, combine, leaves_of, work_out
from app.cube.port import Shown
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray
from app.domain.formula import Formula, Linear, Recompute, is_withheld

Asked = Sequence[tuple[Formula, Positions]]
Placed = Callable[[IntArray], IntArray]


@dataclass(frozen=True, eq=False)
class Looked:
    """Values of formulas, float64[n], nan where empty; which are hidden, bool[n]; what these hang on."""

    values: FloatArray
    hidden: NDArray[np.bool_]
    basis: Basis

    @classmethod
    def of(cls, values: FloatArray, hidden: NDArray[np.bool_], secret: NDArray[np.bool_]) -> Looked:
        """Of values, of which the hidden ones are taken out; ``secret`` ones aren't merely not released."""
        basis = Basis.FIGURES
        if hidden.any():
            basis |= Basis.CONFIDENTIAL if secret.any() else Basis.UNRELEASED
        return cls(np.where(hidden, math.nan, values), hidden, basis)


class RecomputedError(Exception):
    """A formula takes a measure over several members again: no cell that could be shown."""


class Look(Protocol):
    """How formulas, each at its positions, are looked at."""

    def __call__(self, asked: Asked, columns: int, placed: Placed) -> Looked | None:
        """Their values, None while it isn't known which may be seen."""


@dataclass(frozen=True, eq=False)
class _Run:
    """Positions one after another that ask for one formula; ``widths`` are the cells of each linear leaf."""

    formula: Formula
    positions: list[Positions]
    leaves: list[Leaf]

    @property
    def widths(self) -> list[int]:
        return [len(leaf.terms) for leaf in self.leaves if isinstance(leaf, Linear)]

    def __len__(self) -> int:
        return sum(map(len, self.positions))

    def places(self, columns: int) -> IntArray:
        """int32[n, columns]: the members at each position."""
        return np.concatenate([positions.places(columns) for positions in self.positions])


def _runs(asked: Asked) -> Iterator[_Run]:
    for _, run in groupby(asked, key=lambda pair: id(pair[0])):
        pairs = list(run)
        formula = pairs[0][0]
        yield _Run(formula, [positions for _, positions in pairs], list(leaves_of(formula)))


def references(asked: Asked, columns: int, placed: Placed) -> IntArray:
    """Cells that formulas refer to, in the order of their leaves: int32[n, columns]."""
    wanted: list[IntArray] = [np.zeros((0, columns), dtype=np.int32)]
    for run in _runs(asked):
        terms = [term for leaf in run.leaves if isinstance(leaf, Linear) for term in leaf.terms]
        block = np.repeat(run.places(columns)[:, None, :], len(terms), axis=1)
        for place, reference in enumerate(terms):
            for column, member in reference:
                block[:, place, column] = member
        wanted.append(block.reshape(-1, columns))
    return placed(np.concatenate(wanted))


def worked_out(
    asked: Asked, values: FloatArray, columns: int, recomputed: Callable[[Recompute, IntArray], FloatArray]
) -> FloatArray:
    """Values of formulas from those of the cells that they refer to, in the order of `references`."""
    start = 0
    results: list[FloatArray] = [np.zeros(0)]
    for run in _runs(asked):
        n, width = len(run), sum(run.widths)
        table = values[start : start + n * width].reshape(n, width)
        start += n * width
        parts = iter(np.split(table, np.cumsum(run.widths)[:-1], axis=1))

        def of_leaf(leaf: Leaf, run: _Run = run, parts: Iterator[FloatArray] = parts) -> FloatArray:
            if isinstance(leaf, Recompute):
                return recomputed(leaf, run.places(columns))
            return combine(leaf, next(parts))

        results.append(work_out(run.formula, n, of_leaf))
    return np.concatenate(results)


def covered_by(asked: Asked, hidden: NDArray[np.bool_], recomputing: bool = False) -> NDArray[np.bool_]:
    """Formulas of which one cell, in the order of `references`, is hidden: bool[n].

    ``recomputing``: one that takes a measure over several members again is hidden too.
    """
    start = 0
    results: list[NDArray[np.bool_]] = [np.zeros(0, dtype=np.bool_)]
    for run in _runs(asked):
        n, width = len(run), sum(run.widths)
        covered = hidden[start : start + n * width].reshape(n, width).any(axis=1)
        start += n * width
        always = is_withheld(run.formula) or (recomputing and len(run.widths) < len(run.leaves))
        results.append(np.logical_or(covered, always))
    return np.concatenate(results)


def _plain(asked: Asked) -> None:
    for run in _runs(asked):
        if len(run.widths) < len(run.leaves):
            raise RecomputedError


class Candidates:
    """Notes what would be looked at."""

    def __init__(self) -> None:
        self._read: dict[bytes, IntArray] = {}

    def __call__(self, asked: Asked, columns: int, placed: Placed) -> None:
        _plain(asked)
        for cell in np.ascontiguousarray(references(asked, columns, placed)):
            self._read.setdefault(cell.tobytes(), cell)

    def cells(self, columns: int) -> IntArray:
        """Cells that were asked for: int32[n, columns]."""
        return np.array(list(self._read.values()), dtype=np.int32).reshape(len(self._read), columns)


class AsShown:
    """Gives what readers see. A formula of which one cell is hidden is hidden; so is an unknown cell."""

    def __init__(self, shown: Shown) -> None:
        cells = np.ascontiguousarray(shown.coords, dtype=np.int32)
        known = zip(shown.values.tolist(), shown.hidden.tolist(), strict=True)
        self._known = dict(zip(map(bytes, cells), known, strict=True))

    def __call__(self, asked: Asked, columns: int, placed: Placed) -> Looked:
        _plain(asked)
        cells = references(asked, columns, placed)
        found = [self._known.get(cell.tobytes(), (math.nan, True)) for cell in cells]
        seen = np.array([math.nan if hidden else value for value, hidden in found])
        values = worked_out(asked, seen, columns, _nothing)
        covered = covered_by(asked, np.array([hidden for _, hidden in found], dtype=np.bool_))
        return Looked.of(values, covered, covered)


def _nothing(_leaf: Recompute, here: IntArray) -> FloatArray:
    return np.full(len(here), math.nan)
