"""What earlier releases made known, and what that means for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.completeness import joined
from app.domain.crawled import CubeCells
from app.domain.cube import Cube, IntArray
from app.domain.equation import Equations, Floats
from app.domain.lattice import Bools


@dataclass(frozen=True, eq=False)
class FactRows:
    """The facts that a release was made from, as far as it takes to tell later who changed.

    Attributes
    ----------
    cube : Cube
        Whose members ``leaf`` numbers.
    leaf : tuple of int32[n]
        By hierarchy.
    amounts : tuple of float64[n]
        By measure: what the row brings, times its weight.
    who : uint64[n] or None
        A hash of the contributor's name; None when the facts don't name any.
    """

    cube: Cube
    leaf: tuple[IntArray, ...]
    amounts: tuple[Floats, ...]
    who: NDArray[np.uint64] | None

    def __post_init__(self) -> None:
        sizes = {len(column) for column in self.leaf} | {len(column) for column in self.amounts}
        if self.who is not None:
            sizes.add(len(self.who))
        if len(sizes) > 1:
            raise ValueError("columns of facts differ in length")

    @property
    def size(self) -> int:
        return len(self.amounts[0]) if self.amounts else 0


@dataclass(frozen=True, eq=False)
class ShownCells:
    """The cells of one cube under an earlier release: n rows, as in its `CubeCells`.

    ``hidden`` is its pattern; ``lpl``, ``upl``, ``spl`` (float64[n]) are what it promised.
    """

    release_id: str
    cells: CubeCells
    hidden: Bools
    lpl: Floats
    upl: Floats
    spl: Floats

    def __post_init__(self) -> None:
        n = len(self.cells)
        if not (len(self.hidden) == len(self.lpl) == len(self.upl) == len(self.spl) == n):
            raise ValueError("columns of shown cells differ in length")

    @property
    def known(self) -> Bools:
        """bool[n]: cells whose values readers saw, or operands of ratios that they saw."""
        result = ~self.hidden
        result[self.cells.n_given :] = False
        return result


@dataclass(frozen=True, eq=False)
class Behind:
    """Cells behind those of a cube's table, e behind its n, and relations over both.

    They are cells of earlier data that no reader saw, changes between releases that concern too few
    contributors, and what is left of cells less others (`app.domain.rests`). Nobody is shown any of them.

    Attributes
    ----------
    value, lower, lpl, upl, spl : float64[e]
    names : tuple of str
    equations : Equations
        Columns below n are rows of the table.
    """

    value: Floats
    lower: Floats
    lpl: Floats
    upl: Floats
    spl: Floats
    names: tuple[str, ...]
    equations: Equations

    def __post_init__(self) -> None:
        if (
            len({len(self.names), *(len(c) for c in (self.value, self.lower, self.lpl, self.upl, self.spl))})
            > 1
        ):
            raise ValueError("columns of cells behind a table differ in length")

    def __len__(self) -> int:
        return len(self.names)

    def and_more(self, other: Behind, n: int) -> Behind:
        """Both, the other's cells last, behind a table of ``n`` cells."""
        theirs = other.equations
        shifted = np.where(theirs.indices >= n, theirs.indices + len(self), theirs.indices)
        columns = ("value", "lower", "lpl", "upl", "spl")
        value, lower, lpl, upl, spl = (
            np.concatenate([getattr(self, column), getattr(other, column)]) for column in columns
        )
        names = (*self.names, *other.names)
        relations = joined(self.equations, replace(theirs, indices=shifted))
        return Behind(value, lower, lpl, upl, spl, names, relations)


def row_hashes(columns: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """A hash of each row; other rows meet it with a chance of 2**-64."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        whole = column.dtype != np.float64
        # Both zeros of a double are one number.
        number: NDArray[Any] = column.astype(np.int64) if whole else column.astype(np.float64) + 0.0
        bits: NDArray[np.uint64] = number.view(np.uint64)
        # The finaliser of splitmix64: every bit of the column reaches every bit of the key.
        key = (key ^ bits) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key
