"""Raw cellsets, straight from the cube; `app.domain.masked` has what the public may see of them.

Coordinates
-----------
A cell is a row of ``1 + H`` integers (int32): column 0 the measure, column ``1 + h`` the member in
hierarchy ``h``. Numbers below the size of the cube's own list are its measures and members; larger ones
are the `CalculatedMember`s that the query (or the crawl) has added to that column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Cube, IntArray, Texts
from app.domain.masked import Axis, AxisMember, FloatArray

__all__ = [
    "Axis",
    "AxisMember",
    "CalculatedMember",
    "CellSet",
    "Dependencies",
    "FloatArray",
    "Relations",
]


@dataclass(frozen=True)
class CalculatedMember:
    """A member that a formula defines.

    Attributes
    ----------
    column : int
        Coordinate column it belongs to: 0 for a calculated measure, ``1 + h`` for hierarchy ``h``.
    key : str
        The normalised formula: equal formulas are one member wherever they are written.
    name, captions
        How the query calls it.
    terms : tuple of (int, float), or None
        When the value is a fixed linear combination of members of the same column: their numbers
        (own members only, ascending) and coefficients. A *group* has all coefficients 1 and no member
        above another, so it has contributors of its own like any member.
    format, decimals, unit
        How its values are printed; None or empty: as the measure.
    takes_together
        Whether it takes members together by each measure's own aggregator, and doesn't add their values.
    precedence
        Of the members that meet in a cell, the highest one's formula is worked out over the others' values.
    names : tuple of (int, int)
        The calculated members that its formula names, by column and number, and those that theirs name.
    """

    column: int
    key: str
    name: str
    captions: Texts
    terms: tuple[tuple[int, float], ...] | None = None
    format: str | None = None
    decimals: int | None = None
    unit: Texts | None = None
    takes_together: bool = False
    precedence: tuple[Fraction, bool, int] = (Fraction(0), True, 0)
    names: tuple[tuple[int, int], ...] = ()

    @property
    def is_group(self) -> bool:
        return self.terms is not None and all(coefficient == 1 for _, coefficient in self.terms)


@dataclass(frozen=True, eq=False)
class Relations:
    """Linear formulas: ``cell = constant + Σ coef · operand``, in CSR over the rows of a `CellSet`."""

    cell: NDArray[np.int64]
    constant: FloatArray
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    coefs: FloatArray


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Non-linear formulas (ratio, percentage, average, growth …): the cells that each depends on.

    ``kind`` says which, in one word for each cell; CSR over the rows of a `CellSet`.
    """

    cell: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    kind: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CellSet:
    """A raw answer: never leaves the cube adapters, the pipeline and `serve`.

    Attributes
    ----------
    axes : tuple of Axis
        Axis 0 (columns) varies fastest in the cells' order, as in XMLA's CellOrdinal.
    slicer : tuple of AxisMember
    calculated : tuple of CalculatedMember
        In each column, the k-th of that column has number ``size of the column + k``.
    coords : int32[N, 1+H]
        The first ``n_cells`` rows are the axes' cells; the next ``n_read`` are those by which members of the
        axes are chosen or ordered; further rows are operands of formulas.
    values : float64[N]
        nan where the cell is empty (no facts).
    linear, nonlinear
        What the calculated rows are made of. Every calculated row is in exactly one of the two.
    texts : mapping of row to str
        Words that cells hold instead of a value; only the analyst's answers have them.
    """

    cube: Cube
    axes: tuple[Axis, ...]
    slicer: tuple[AxisMember, ...]
    calculated: tuple[CalculatedMember, ...]
    coords: IntArray
    n_cells: int
    values: FloatArray
    linear: Relations
    nonlinear: Dependencies
    texts: Mapping[int, str] = field(default_factory=dict)
    n_read: int = 0

    def __post_init__(self) -> None:
        expected = int(np.prod([len(axis.positions) for axis in self.axes], dtype=np.int64))
        if self.n_cells != expected:
            raise ValueError(f"{self.n_cells} cells on axes that span {expected}")
        if self.coords.shape != (len(self.values), 1 + len(self.cube.hierarchies)):
            raise ValueError("coordinates and values differ in shape")
