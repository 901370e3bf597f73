"""Masked cells one after the other: what lists of cells are written from, whatever shape the table had.

Nothing is kept for each cell but what a `MaskedCellSet` keeps anyway: which member a cell stands under
follows from its number. So a list of a million cells can be written block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import IntArray
from app.domain.masked import AxisMember, CellStatus, CellStyle, FloatArray, MaskedCellSet

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """The members that cells stand under in one hierarchy.

    ``members`` are those that occur, each once, in order of appearance. ``codes`` (int32) says which of
    them holds at a position, and a position holds for ``stride`` cells in a row; after the last position
    comes the first again.
    """

    hierarchy: str
    members: tuple[AxisMember, ...]
    codes: IntArray
    stride: int

    def at(self, rows: Rows) -> IntArray:
        """Numbers of the members of some cells."""
        found: IntArray = self.codes[(rows // self.stride) % len(self.codes)]
        return found


@dataclass(frozen=True, eq=False)
class Block:
    """Some cells: numbers of members by column (int32[n] each), and what a `MaskedCellSet` says of them."""

    members: tuple[IntArray, ...]
    status: NDArray[np.int8]
    values: FloatArray
    style: IntArray


@dataclass(frozen=True, eq=False)
class Observations:
    """Masked cells in order.

    ``status``, ``values`` and ``style`` are as in `MaskedCellSet`, and a hidden cell carries no number.
    """

    release_id: str
    columns: tuple[Column, ...]
    status: NDArray[np.int8]
    values: FloatArray
    style: IntArray
    styles: tuple[CellStyle, ...]

    def __post_init__(self) -> None:
        if not (len(self.status) == len(self.values) == len(self.style)):
            raise ValueError("columns of observations differ in length")
        if np.any(np.isfinite(self.values) & (self.status != CellStatus.SHOWN)):
            raise ValueError("a hidden cell carries a number")

    def __len__(self) -> int:
        return len(self.status)

    @property
    def column(self) -> Mapping[str, Column]:
        """Columns by the unique name of their hierarchy."""
        return {column.hierarchy: column for column in self.columns}

    def blocks(self, size: int) -> Iterator[Block]:
        """All cells, ``size`` at a time."""
        for first in range(0, len(self), size):
            yield self.block(first, min(first + size, len(self)))

    def block(self, first: int, end: int) -> Block:
        """The cells from ``first`` up to and without ``end``."""
        rows = np.arange(first, end, dtype=np.int64)
        members = tuple(column.at(rows) for column in self.columns)
        return Block(members, self.status[first:end], self.values[first:end], self.style[first:end])

    def first_styles(self, hierarchy: str, size: int) -> dict[str, CellStyle]:
        """The style of the first cell under each member of a hierarchy; looks at ``size`` cells at a time."""
        place = next((k for k, column in enumerate(self.columns) if column.hierarchy == hierarchy), None)
        found: dict[str, CellStyle] = {}
        if place is None:
            return found
        members = self.columns[place].members
        for block in self.blocks(size):
            codes, first = np.unique(block.members[place], return_index=True)
            for code, row in zip(codes.tolist(), first.tolist(), strict=True):
                found.setdefault(members[code].unique_name, self.styles[block.style[row]])
        return found

    def select(self, rows: Rows) -> Observations:
        """These cells in this order, with the members that occur in them and no others."""
        return Observations(
            self.release_id,
            tuple(_occurring(column, column.at(rows)) for column in self.columns),
            self.status[rows],
            self.values[rows],
            self.style[rows],
            self.styles,
        )


def observations_of(masked: MaskedCellSet) -> Observations:
    """The cells of a table: hierarchies of its axes from the outermost, then those of the slicer."""
    columns: list[Column] = []
    stride = masked.status.size
    for axis in reversed(masked.axes):
        stride //= max(len(axis.positions), 1)
        for place, hierarchy in enumerate(axis.hierarchies):
            numbers: dict[str, int] = {}
            members: list[AxisMember] = []
            codes = np.empty(len(axis.positions), np.int32)
            for number, position in enumerate(axis.positions):
                member = position[place]
                code = numbers.setdefault(member.unique_name, len(members))
                if code == len(members):
                    members.append(member)
                codes[number] = code
            columns.append(Column(hierarchy, tuple(members), codes, max(stride, 1)))
    columns += [
        Column(member.hierarchy, (member,), np.zeros(1, np.int32), max(masked.status.size, 1))
        for member in masked.slicer
    ]
    return Observations(
        masked.release_id, tuple(columns), masked.status, masked.values, masked.style, masked.styles
    )


def _occurring(column: Column, codes: IntArray) -> Column:
    used, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(used), np.int32)
    place[order] = np.arange(len(used), dtype=np.int32)
    members = tuple(column.members[number] for number in used[order])
    return Column(column.hierarchy, members, place[numbers].reshape(-1), 1)
