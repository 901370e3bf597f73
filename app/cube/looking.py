"""Looking at cells while sets are made: what they hold, or what readers will see of them.

The analyst's sets are chosen and ordered by what the cells hold. A published set may not be: the order of
confidential cells gives them away. So it is made twice. `Candidates` notes the cells that it would look at,
and leaves every position in; they are published with it. Once it is known which of them are confidential,
`AsShown` gives the others, and the set is made of what everybody sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.context import Context
from app.cube.formulas import Leaf, combine, leaves_of, work_out
from app.cube.port import Shown
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray
from app.domain.formula import Formula, Linear, Recompute, is_withheld

Asked = Sequence[tuple[Formula, Context]]
Placed = Callable[[IntArray], IntArray]


@dataclass(frozen=True, eq=False)
class Looked:
    """Values of formulas, float64[n], nan where empty; and which are confidential, bool[n]."""

    values: FloatArray
    hidden: NDArray[np.bool_]


class RecomputedError(Exception):
    """A formula takes a measure over several members again: no cell that could be shown."""


class Look(Protocol):
    """How formulas, each at the members of its context, are looked at."""

    def __call__(self, asked: Asked, columns: int, placed: Placed) -> Looked | None:
        """Their values, None while it isn't known which may be seen."""


def references(asked: Asked, columns: int, placed: Placed) -> IntArray:
    """Cells that formulas refer to, in the order of their leaves: int32[n, columns]."""
    wanted: list[IntArray] = []
    for formula, ctx in asked:
        here = np.array([ctx.current(column) for column in range(columns)], dtype=np.int32)
        for leaf in leaves_of(formula):
            for reference in leaf.terms if isinstance(leaf, Linear) else ():
                cell = here.copy()
                for column, member in reference:
                    cell[column] = member
                wanted.append(cell)
    return placed(np.array(wanted, dtype=np.int32).reshape(len(wanted), columns))


def worked_out(
    asked: Asked, values: FloatArray, columns: int, recomputed: Callable[[Recompute, IntArray], FloatArray]
) -> FloatArray:
    """Values of formulas from those of the cells that they refer to, in the order of `references`."""
    left = iter(values.tolist())
    result = np.empty(len(asked))
    for place, (formula, ctx) in enumerate(asked):

        def of_leaf(leaf: Leaf, ctx: Context = ctx) -> FloatArray:
            if isinstance(leaf, Recompute):
                here = np.array([[ctx.current(column) for column in range(columns)]], dtype=np.int32)
                return recomputed(leaf, here)
            return combine(leaf, np.array([[next(left) for _ in leaf.terms]]))

        result[place] = work_out(formula, 1, of_leaf)[0]
    return result


def covered_by(asked: Asked, hidden: NDArray[np.bool_], recomputing: bool = False) -> NDArray[np.bool_]:
    """Formulas of which one cell, in the order of `references`, is hidden: bool[n].

    ``recomputing``: one that takes a measure over several members again is hidden too.
    """
    masks = iter(hidden.tolist())
    covered = np.zeros(len(asked), dtype=np.bool_)
    for place, (formula, _) in enumerate(asked):
        leaves = list(leaves_of(formula))
        widths = [len(leaf.terms) for leaf in leaves if isinstance(leaf, Linear)]
        covered[place] = any(list(islice(masks, sum(widths)))) or is_withheld(formula)
        covered[place] |= recomputing and len(widths) < len(leaves)
    return covered


def _plain(asked: Asked) -> None:
    for formula, _ in asked:
        if any(isinstance(leaf, Recompute) for leaf in leaves_of(formula)):
            raise RecomputedError


class Candidates:
    """Notes what would be looked at."""

    def __init__(self) -> None:
        self._read: dict[bytes, IntArray] = {}

    def __call__(self, asked: Asked, columns: int, placed: Placed) -> None:
        _plain(asked)
        for cell in references(asked, columns, placed):
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
        return Looked(np.where(covered, math.nan, values), covered)


def _nothing(_leaf: Recompute, here: IntArray) -> FloatArray:
    return np.full(len(here), math.nan)
