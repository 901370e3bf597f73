"""Cellsets: a raw one straight from the cube, its layout, and the masked one that the public may see.

Coordinates
-----------
A cell is a row of ``1 + H`` integers (int32): column 0 the measure, column ``1 + h`` the member in
hierarchy ``h``. Numbers below the size of the cube's own list are its measures and members; larger ones
are the `CalculatedMember`s that the query (or the crawl) has added to that column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import Cube, IntArray, Texts

FloatArray = NDArray[np.float64]


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
    """

    column: int
    key: str
    name: str
    captions: Texts
    terms: tuple[tuple[int, float], ...] | None = None
    format: str | None = None
    decimals: int | None = None
    unit: Texts | None = None

    @property
    def is_group(self) -> bool:
        return self.terms is not None and all(coefficient == 1 for _, coefficient in self.terms)


@dataclass(frozen=True)
class AxisMember:
    """A member as an axis shows it, all public: names, captions, level, parent."""

    hierarchy: str
    unique_name: str
    captions: Texts
    level: str
    depth: int
    parent: str | None


@dataclass(frozen=True)
class Axis:
    """Positions of an axis: tuples of one member for each hierarchy on it, in display order."""

    positions: tuple[tuple[AxisMember, ...], ...]

    @property
    def hierarchies(self) -> tuple[str, ...]:
        return tuple(member.hierarchy for member in self.positions[0]) if self.positions else ()


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
        The first ``n_cells`` rows are the axes' cells; further rows are operands of formulas that are
        not cells of the answer themselves.
    values : float64[N]
        nan where the cell is empty (no facts).
    linear, nonlinear
        What the calculated rows are made of. Every calculated row is in exactly one of the two.
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

    def __post_init__(self) -> None:
        expected = int(np.prod([len(axis.positions) for axis in self.axes], dtype=np.int64))
        if self.n_cells != expected:
            raise ValueError(f"{self.n_cells} cells on axes that span {expected}")
        if self.coords.shape != (len(self.values), 1 + len(self.cube.hierarchies)):
            raise ValueError("coordinates and values differ in shape")


@dataclass(frozen=True)
class CellStyle:
    """How a cell's value is printed: MDX format string, published decimals, unit."""

    format: str
    decimals: int
    unit: Texts


@dataclass(frozen=True, eq=False)
class Layout:
    """A cellset without its numbers: what stands where, and which recorded cell it is.

    ``cell`` (int64[n_cells]) are row numbers in the release's cell table, -1 for a cell that it doesn't
    know. ``style`` (int32[n_cells]) numbers ``styles``.
    """

    axes: tuple[Axis, ...]
    slicer: tuple[AxisMember, ...]
    cell: NDArray[np.int64]
    style: IntArray
    styles: tuple[CellStyle, ...]


class CellStatus(IntEnum):
    """What the public sees of a cell."""

    SHOWN = 0
    EMPTY = 1
    CONFIDENTIAL = 2


@dataclass(frozen=True, eq=False)
class MaskedCellSet:
    """The only cellset that a renderer may take: a hidden cell carries no number at all.

    ``values`` (float64[n_cells]) is nan wherever ``status`` (int8[n_cells], `CellStatus`) is not SHOWN.
    """

    release_id: str
    axes: tuple[Axis, ...]
    slicer: tuple[AxisMember, ...]
    status: NDArray[np.int8]
    values: FloatArray
    style: IntArray
    styles: tuple[CellStyle, ...]
    notes: Mapping[str, str]

    def __post_init__(self) -> None:
        if np.any(np.isfinite(self.values) & (self.status != CellStatus.SHOWN)):
            raise ValueError("a hidden cell carries a number")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis, axis 0 (columns) first."""
        return tuple(len(axis.positions) for axis in self.axes)
