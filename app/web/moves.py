"""The moves that a table's masked cells can make: leaving members out, turning, folding, sorting.

Each takes a masked cellset of two axes, columns and rows, and gives another.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from app.domain.masked import Axis, AxisMember, CellStatus, MaskedCellSet
from app.web.language import marked as _
from app.web.refusals import RefusalError
from app.web.tables import branches, grid_of

NO_COLUMN = _("The table has no column %(number)s to sort by.")
Positions = tuple[tuple[AxisMember, ...], ...]
Order = NDArray[np.int64]


def flat(masked: MaskedCellSet) -> MaskedCellSet:
    """The same cells on two axes."""
    if len(masked.axes) == 2:
        return masked
    grid = grid_of(masked)
    return replace(masked, axes=(Axis(grid.columns), Axis(grid.rows)))


def keep(table: MaskedCellSet, hierarchy: str, names: frozenset[str]) -> MaskedCellSet:
    """The cells whose member of a hierarchy has one of these unique names."""
    kept = []
    for axis in table.axes:
        if hierarchy in axis.hierarchies:
            column = axis.hierarchies.index(hierarchy)
            kept.append([n for n, p in enumerate(axis.positions) if p[column].unique_name in names])
        else:
            kept.append(list(range(len(axis.positions))))
    return take(table, kept[1], kept[0])


def take(table: MaskedCellSet, rows: list[int], columns: list[int]) -> MaskedCellSet:
    """These rows and columns, in this order."""
    across, down = table.axes
    order = np.asarray(rows, np.int64)[:, None] * len(across.positions) + np.asarray(columns, np.int64)
    axes = (
        Axis(tuple(across.positions[column] for column in columns)),
        Axis(tuple(down.positions[row] for row in rows)),
    )
    return _reorder(table, axes, order.reshape(-1))


def without_empty(table: MaskedCellSet) -> MaskedCellSet:
    """Without the rows and columns in which there is nothing to count; the table as it is if that is all.

    A hidden cell is never empty, nor is one that wasn't released: what they hold decides nothing.
    """
    grid = grid_of(table)
    held = grid.status != CellStatus.EMPTY
    rows, columns = (np.flatnonzero(held.any(axis=axis)).tolist() for axis in (1, 0))
    if not rows or (len(rows), len(columns)) == held.shape:
        return table
    return take(table, rows, columns)


def pivot(
    table: MaskedCellSet,
    n_rows: int,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    fixed: tuple[int, ...],
) -> MaskedCellSet:
    """Other hierarchies down and across; of each fixed one, the first member holds for the whole table.

    ``n_rows`` are the hierarchies that are down now: they have the numbers below it.
    """
    across, down = (axis.positions for axis in table.axes)
    if not across or not down:
        return table
    members = [*distinct(down), *distinct(across)]
    assert len(down[0]) == n_rows
    numbers = np.arange(table.status.size, dtype=np.int64).reshape([len(found) for found in members])
    order = numbers.transpose([*fixed, *rows, *columns])[(0,) * len(fixed)].reshape(-1)
    axes = (_axis([members[k] for k in columns]), _axis([members[k] for k in rows]))
    turned = _reorder(table, axes, order)
    return replace(turned, slicer=(*(members[k][0] for k in fixed), *table.slicer))


def sort(table: MaskedCellSet, column: int, descending: bool) -> MaskedCellSet:
    """Siblings in the order of a column's shown figures.

    Raises
    ------
    RefusalError
        400 when there is no such column.
    """
    grid = grid_of(table)
    if column >= len(grid.columns):
        raise RefusalError(400, NO_COLUMN, number=str(column + 1))
    shown = grid.status[:, column] == CellStatus.SHOWN
    figures = np.where(shown, -grid.values[:, column] if descending else grid.values[:, column], np.inf)
    return take(table, _sorted_branches(grid.rows, figures), list(range(len(grid.columns))))


def _sorted_branches(rows: Positions, figures: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """Row numbers with siblings in order, each followed by its branch, groups of rows staying together."""
    if not rows or not rows[0]:
        return list(range(len(rows)))
    children: dict[int, list[int]] = {}
    for row, above in enumerate(branches(rows)):
        children.setdefault(above, []).append(row)
    order: list[int] = []
    waiting = _in_order(children[-1], rows, figures)[::-1]
    while waiting:
        row = waiting.pop()
        order.append(row)
        waiting += _in_order(children.get(row, []), rows, figures)[::-1]
    return order


def _group(position: tuple[AxisMember, ...]) -> tuple[str, ...]:
    return tuple(member.unique_name for member in position[:-1])


def _in_order(
    siblings: list[int], rows: Positions, figures: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[int]:
    """Rows by figure within each run of one group and level; runs stay where they are."""
    runs = groupby(siblings, key=lambda row: (_group(rows[row]), rows[row][-1].depth))
    return [row for _, run in runs for row in sorted(run, key=lambda row: float(figures[row]))]


def _reorder(table: MaskedCellSet, axes: tuple[Axis, Axis], order: Order) -> MaskedCellSet:
    return replace(
        table,
        axes=axes,
        status=table.status[order],
        values=table.values[order],
        style=table.style[order],
        cell=table.cell[order] if len(table.cell) else table.cell,
    )


def distinct(positions: Positions) -> list[list[AxisMember]]:
    """The members of each hierarchy, in order of appearance."""
    width = len(positions[0]) if positions else 0
    return [list({p[k].unique_name: p[k] for p in positions}.values()) for k in range(width)]


def is_whole(positions: Positions) -> bool:
    """Whether every member meets every other, in order."""
    members = distinct(positions)
    names = [tuple(member.unique_name for member in position) for position in positions]
    whole = _axis(members).positions if members else ((),)
    return names == [tuple(member.unique_name for member in position) for position in whole]


def _axis(members: list[list[AxisMember]]) -> Axis:
    positions: list[tuple[AxisMember, ...]] = [()]
    for found in members:
        positions = [(*before, member) for before in positions for member in found]
    return Axis(tuple(positions))
