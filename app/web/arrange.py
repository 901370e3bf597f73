"""Pivoting and sorting of masked cells: they move, nothing is computed from them.

An order made from hidden values would tell them, so hidden cells always come last, in their own order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from app.domain.masked import Axis, AxisMember, CellStatus, MaskedCellSet
from app.web.refusals import RefusalError
from app.web.tables import grid_of


@dataclass(frozen=True)
class Arrangement:
    """How a reader wants a table: hierarchies by number in rows and columns, and the column to sort by.

    ``rows`` and ``columns`` None mean as published. Hierarchies are numbered as `numbered` lists them.
    ``sort`` is a column's number from 1, negative for descending; 0 doesn't sort.
    """

    rows: tuple[int, ...] | None = None
    columns: tuple[int, ...] | None = None
    sort: int = 0

    def fields(self, query: str) -> list[tuple[str, str]]:
        """What an address says of it."""
        said = []
        if self.rows is not None and self.columns is not None:
            places = ("-".join(map(str, self.rows)), "-".join(map(str, self.columns)))
            said.append((f"pivot.{query}", "~".join(places)))
        if self.sort:
            said.append((f"sort.{query}", str(self.sort)))
        return said


def read_arrangement(fields: Mapping[str, str], query: str) -> Arrangement:
    """The arrangement that an address asks for; `RefusalError` 400 when it can't be read."""
    try:
        sort = int(fields.get(f"sort.{query}") or "0")
        pivot = fields.get(f"pivot.{query}", "")
        if not pivot:
            return Arrangement(sort=sort)
        rows, columns = ([int(part) for part in side.split("-") if part] for side in pivot.split("~"))
    except ValueError:
        raise RefusalError(400) from None
    return Arrangement(tuple(rows), tuple(columns), sort)


def numbered(masked: MaskedCellSet) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Hierarchies of the rows and of the columns as published; together they give the numbers."""
    rows = tuple(h for axis in reversed(masked.axes[1:]) for h in axis.hierarchies)
    return rows, masked.axes[0].hierarchies if masked.axes else ()


def can_pivot(masked: MaskedCellSet) -> bool:
    """Whether every member meets every other, so that hierarchies can move without leaving gaps."""
    grid = grid_of(masked)
    return all(_is_product(side) for side in (grid.rows, grid.columns)) and bool(len(grid.rows))


def arrange(masked: MaskedCellSet, wanted: Arrangement) -> MaskedCellSet:
    """The same cells in another order.

    Raises
    ------
    RefusalError
        400 when the hierarchies or the column don't exist, or the table can't be pivoted.
    """
    if wanted.rows is not None and wanted.columns is not None:
        masked = _pivot(masked, wanted.rows, wanted.columns)
    if wanted.sort:
        masked = _sort(masked, abs(wanted.sort) - 1, wanted.sort < 0)
    return masked


def _pivot(masked: MaskedCellSet, rows: tuple[int, ...], columns: tuple[int, ...]) -> MaskedCellSet:
    below, above = numbered(masked)
    if sorted(rows + columns) != list(range(len(below) + len(above))) or not can_pivot(masked):
        raise RefusalError(400)
    grid = grid_of(masked)
    members = [*_distinct(grid.rows), *_distinct(grid.columns)]
    shape = [len(found) for found in members]
    order = np.arange(masked.status.size).reshape(shape).transpose([*rows, *columns]).reshape(-1)
    axes = (_axis([members[k] for k in columns]), _axis([members[k] for k in rows]))
    return _reorder(masked, axes, order)


def _sort(masked: MaskedCellSet, column: int, descending: bool) -> MaskedCellSet:
    grid = grid_of(masked)
    if column >= len(grid.columns):
        raise RefusalError(400)
    shown = grid.status[:, column] == CellStatus.SHOWN
    figures = np.where(shown, -grid.values[:, column] if descending else grid.values[:, column], np.inf)
    rows = _sorted_branches(grid.rows, figures)
    width = len(grid.columns)
    order = (np.asarray(rows, dtype=np.int64)[:, None] * width + np.arange(width)).reshape(-1)
    return _reorder(masked, (Axis(grid.columns), Axis(tuple(grid.rows[row] for row in rows))), order)


def _sorted_branches(
    rows: tuple[tuple[AxisMember, ...], ...], figures: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[int]:
    """Row numbers with siblings in order, each followed by its branch, groups of rows staying together."""
    if not rows or not rows[0]:
        return list(range(len(rows)))
    roots: list[int] = []
    children: dict[int, list[int]] = {}
    trail: list[int] = []
    present = {(_group(position), position[-1].unique_name) for position in rows}
    for row, position in enumerate(rows):
        group, member = _group(position), position[-1]
        while trail:
            above = rows[trail[-1]]
            astray = member.parent != above[-1].unique_name and (group, member.parent) in present
            if _group(above) == group and above[-1].depth < member.depth and not astray:
                break
            trail.pop()
        (children.setdefault(trail[-1], []) if trail else roots).append(row)
        trail.append(row)
    order: list[int] = []
    waiting = _in_order(roots, rows, figures)[::-1]
    while waiting:
        row = waiting.pop()
        order.append(row)
        waiting += _in_order(children.get(row, []), rows, figures)[::-1]
    return order


def _group(position: tuple[AxisMember, ...]) -> tuple[str, ...]:
    return tuple(member.unique_name for member in position[:-1])


def _in_order(
    siblings: list[int],
    rows: tuple[tuple[AxisMember, ...], ...],
    figures: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> list[int]:
    """Rows by figure within each run of one group and level; runs stay where they are."""
    runs = groupby(siblings, key=lambda row: (_group(rows[row]), rows[row][-1].depth))
    return [row for _, run in runs for row in sorted(run, key=lambda row: float(figures[row]))]


def _reorder(
    masked: MaskedCellSet, axes: tuple[Axis, Axis], order: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> MaskedCellSet:
    return replace(
        masked,
        axes=axes,
        status=masked.status[order],
        values=masked.values[order],
        style=masked.style[order],
    )


def _distinct(positions: tuple[tuple[AxisMember, ...], ...]) -> list[list[AxisMember]]:
    """The members of each hierarchy, in order of appearance."""
    width = len(positions[0]) if positions else 0
    return [list({p[k].unique_name: p[k] for p in positions}.values()) for k in range(width)]


def _is_product(positions: tuple[tuple[AxisMember, ...], ...]) -> bool:
    members = _distinct(positions)
    names = [tuple(member.unique_name for member in position) for position in positions]
    whole = _axis(members).positions if members else ((),)
    return names == [tuple(member.unique_name for member in position) for position in whole]


def _axis(members: list[list[AxisMember]]) -> Axis:
    positions: list[tuple[AxisMember, ...]] = [()]
    for found in members:
        positions = [(*before, member) for before in positions for member in found]
    return Axis(tuple(positions))
