"""What the public may see of a cellset: its axes, its layout, and the masked cellset itself.

Nothing here knows the raw `app.domain.cellset`, so that the site can't reach it even by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray, Texts

FloatArray = NDArray[np.float64]


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
    know. ``style`` (int32[n_cells]) numbers ``styles``. ``by_figures``: its members are chosen, ordered or
    ranked by the figures that are shown.
    """

    axes: tuple[Axis, ...]
    slicer: tuple[AxisMember, ...]
    cell: NDArray[np.int64]
    style: IntArray
    styles: tuple[CellStyle, ...]
    by_figures: bool = False


class CellStatus(IntEnum):
    """What the public sees of a cell.

    UNRELEASED is a cell that the release doesn't hold: no sheet shows it, whatever its value. It depends only
    on what was published, so it tells nothing.
    """

    SHOWN = 0
    EMPTY = 1
    CONFIDENTIAL = 2
    UNRELEASED = 3


@dataclass(frozen=True, eq=False)
class MaskedCellSet:
    """The only cellset that a renderer may take: a hidden cell carries no number at all.

    ``values`` (float64[n_cells]) is nan wherever ``status`` (int8[n_cells], `CellStatus`) is not SHOWN.
    ``texts`` are the words that cells of a query's own formulas hold; such a cell is EMPTY of numbers.
    ``by_figures`` is the layout's, and so is ``cell``, which tells one figure met twice from two; it is empty
    for answers to readers' own queries.
    """

    release_id: str
    axes: tuple[Axis, ...]
    slicer: tuple[AxisMember, ...]
    status: NDArray[np.int8]
    values: FloatArray
    style: IntArray
    styles: tuple[CellStyle, ...]
    texts: Mapping[int, str] = field(default_factory=dict)
    by_figures: bool = False
    cell: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if np.any(np.isfinite(self.values) & (self.status != CellStatus.SHOWN)):
            raise ValueError("a hidden cell carries a number")
        if any(self.status[place] != CellStatus.EMPTY for place in self.texts):
            raise ValueError("a hidden cell carries a text")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis, axis 0 (columns) first."""
        return tuple(len(axis.positions) for axis in self.axes)
