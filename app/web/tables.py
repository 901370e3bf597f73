"""A masked cellset as a table of a statistical yearbook.

Columns carry nested headers, one row for each hierarchy. Rows carry the last hierarchy in the stub,
indented by its level, and the outer ones as headings of groups of rows. Further axes are outer rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np

from app.domain.cube import Hierarchy, Level, Texts, text_in
from app.domain.masked import AxisMember, CellStatus, MaskedCellSet
from app.domain.numbers import format_value
from app.domain.patience import Patience

#: Unique name of the hierarchy of measures.
MEASURES = "[Measures]"

#: States of cells, as templates know them.
STATES = {
    int(CellStatus.SHOWN): "shown",
    int(CellStatus.EMPTY): "empty",
    int(CellStatus.CONFIDENTIAL): "hidden",
    int(CellStatus.UNRELEASED): "unreleased",
}
#: What stands in the place of a figure.
SIGNS = {
    int(CellStatus.EMPTY): "–",
    int(CellStatus.CONFIDENTIAL): "[c]",
    int(CellStatus.UNRELEASED): "[x]",
}


def signs_of(masked: MaskedCellSet, words: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The signs of figures that aren't shown, as far as they are there, with what they mean."""
    told = ((CellStatus.CONFIDENTIAL, "hidden"), (CellStatus.UNRELEASED, "unreleased"))
    return tuple((SIGNS[status], words[word]) for status, word in told if np.any(masked.status == status))


@dataclass(frozen=True)
class Toggle:
    """A link that opens or closes a member's branch; ``text`` says so, ``is_open`` is how it is now."""

    address: str
    text: str
    is_open: bool


@dataclass(frozen=True)
class Sorter:
    """A link that sorts the rows by a column; ``text`` says how, ``order`` how they are now (ARIA's word)."""

    address: str
    text: str
    order: str = ""


@dataclass(frozen=True)
class Header:
    """A header cell; ``unit`` is said under it when the columns' or rows' units differ."""

    text: str
    span: int = 1
    depth: int = 0
    unit: str = ""
    toggle: Toggle | None = None
    sorter: Sorter | None = None


@dataclass(frozen=True)
class Cell:
    """A cell as printed; ``state`` as in `STATES`, and only what is shown has a text."""

    state: str
    text: str = ""


@dataclass(frozen=True)
class Row:
    """``here`` is the column of the cell that the address points at, -1 in all other rows."""

    header: Header
    cells: tuple[Cell, ...]
    here: int = -1


@dataclass(frozen=True)
class Group:
    """Rows under one heading of the outer hierarchies (empty when there is none)."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    """What a page prints of one query.

    ``stub`` names the hierarchies of the rows, ``head`` are the header rows over the columns with the
    name of each one's hierarchy.
    """

    stub: str
    head: tuple[tuple[Header, ...], ...]
    spanners: tuple[str, ...]
    groups: tuple[Group, ...]
    unit: str
    columns: int
    hidden: int
    empty: int
    unreleased: int

    @property
    def has_toggles(self) -> bool:
        """Whether a row can be opened or closed, so that all rows leave room for that."""
        return any(row.header.toggle for group in self.groups for row in group.rows)


@dataclass(frozen=True, eq=False)
class Grid:
    """A masked cellset as rows × columns of tuples, whatever its number of axes.

    ``values`` and ``status`` and ``style`` have shape (rows, columns).
    """

    rows: tuple[tuple[AxisMember, ...], ...]
    columns: tuple[tuple[AxisMember, ...], ...]
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    status: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    style: np.ndarray[tuple[int, int], np.dtype[np.int32]]


def grid_of(masked: MaskedCellSet) -> Grid:
    """Fold the axes: axis 0 into columns, all others into rows, the last axis outermost."""
    axes = [axis.positions for axis in masked.axes]
    columns = axes[0] if axes else ((),)
    rows = tuple(
        tuple(member for position in positions for member in position)
        for positions in product(*reversed(axes[1:]))
    )
    shape = (len(rows), len(columns))
    return Grid(
        rows,
        columns,
        masked.values.reshape(shape),
        masked.status.reshape(shape),
        masked.style.reshape(shape),
    )


def caption(member: AxisMember, language: str) -> str:
    """A member's caption."""
    return text_in(member.captions, language) or member.unique_name


def branches(rows: Sequence[tuple[AxisMember, ...]]) -> list[int]:
    """For each row the number of the row that it lies under, -1 for none.

    A row lies under the last one above that holds its member, or may do so: of a member whose parent isn't
    in the group, ancestors further up aren't known.
    """
    found: list[int] = []
    trail: list[int] = []
    groups = [tuple(member.unique_name for member in position[:-1]) for position in rows]
    present = {(group, p[-1].unique_name) for group, p in zip(groups, rows, strict=True) if p}
    for row, (group, position) in enumerate(zip(groups, rows, strict=True)):
        while trail and not _holds(rows[trail[-1]], groups[trail[-1]], position, group, present):
            trail.pop()
        found.append(trail[-1] if trail else -1)
        trail.append(row)
    return found


def _holds(
    above: tuple[AxisMember, ...],
    group_above: tuple[str, ...],
    position: tuple[AxisMember, ...],
    group: tuple[str, ...],
    present: set[tuple[tuple[str, ...], str]],
) -> bool:
    if group_above != group or not position or above[-1].depth >= position[-1].depth:
        return False
    holder, member = above[-1], position[-1]
    if holder.unique_name == member.parent or _is_all(holder):
        return True
    # Nobody else of the level above holds it; of levels further up, whoever stands there may.
    next_above = member.parent is not None and holder.depth == member.depth - 1
    return not next_above and (group, member.parent) not in present


def _is_all(member: AxisMember) -> bool:
    return member.depth == 0 and member.level.endswith(".[(All)]")


def nesting(rows: Sequence[tuple[AxisMember, ...]]) -> list[int]:
    """How many rows each row lies under, by `branches`."""
    depths: list[int] = []
    for above in branches(rows):
        depths.append(depths[above] + 1 if above >= 0 else 0)
    return depths


def level_text(hierarchy: Hierarchy, level: Level, language: str) -> str:
    """What a level is called; the only one below the whole goes by its hierarchy's name if it has none."""
    nameless = set(level.captions.values()) <= {level.name}
    own = text_in(hierarchy.captions, language)
    if nameless and own and len(hierarchy.levels) == 1 + hierarchy.has_all:
        return own
    return text_in(level.captions, language) or level.name


def lay_out(
    masked: MaskedCellSet,
    hierarchies: Mapping[str, Texts],
    language: str,
    toggles: Mapping[str, Toggle] | None = None,
    here: tuple[int, int] | None = None,
    depths: Sequence[int] | None = None,
    patience: Patience | None = None,
) -> Table:
    """The table of a masked cellset in a language.

    ``toggles`` are by unique name of the member; ``here`` is the row and column that is pointed at;
    ``depths`` is the `nesting` of the rows when they are a part of a larger table;
    ``patience`` is asked at every row.
    """
    toggles = toggles or {}
    grid = grid_of(masked)
    units = _Units(masked, grid, language)
    cells = _cells(masked, grid, language, patience or Patience())
    depths = nesting(grid.rows) if depths is None else depths
    rows = [
        (
            " · ".join(caption(member, language) for member in position[:-1]),
            Row(
                Header(
                    caption(position[-1], language) if position else "",
                    depth=depths[index],
                    unit=units.row[index],
                    toggle=toggles.get(position[-1].unique_name) if position else None,
                ),
                cells[index],
                here[1] if here is not None and here[0] == index else -1,
            ),
        )
        for index, position in enumerate(grid.rows)
    ]
    return Table(
        stub=" · ".join(filter(None, _names(grid.rows, hierarchies, language))),
        head=_head(grid.columns, units.column, language, toggles),
        spanners=tuple(_names(grid.columns, hierarchies, language)),
        groups=tuple(
            Group(heading, tuple(row for _, row in members))
            for heading, members in groupby(rows, key=lambda pair: pair[0])
        ),
        unit=units.table,
        columns=len(grid.columns),
        hidden=int(np.count_nonzero(masked.status == CellStatus.CONFIDENTIAL)),
        empty=int(np.count_nonzero(masked.status == CellStatus.EMPTY)),
        unreleased=int(np.count_nonzero(masked.status == CellStatus.UNRELEASED)),
    )


def _cells(masked: MaskedCellSet, grid: Grid, language: str, patience: Patience) -> list[tuple[Cell, ...]]:
    states = {status: Cell(STATES[status]) for status in SIGNS}
    styles = masked.styles
    rows = []
    for values, statuses, numbers in zip(
        grid.values.tolist(), grid.status.tolist(), grid.style.tolist(), strict=True
    ):
        patience.check()
        rows.append(
            tuple(
                states.get(status) or Cell("shown", format_value(value, styles[style], language))
                for value, status, style in zip(values, statuses, numbers, strict=True)
            )
        )
    return rows


def _head(
    columns: tuple[tuple[AxisMember, ...], ...],
    units: tuple[str, ...],
    language: str,
    toggles: Mapping[str, Toggle],
) -> tuple[tuple[Header, ...], ...]:
    hierarchies = [member.hierarchy for member in columns[0]] if columns else []
    speaking = hierarchies.index(MEASURES) if MEASURES in hierarchies else len(hierarchies) - 1
    head = []
    for level in range(len(hierarchies)):
        runs: list[list[int]] = []
        for index, position in enumerate(columns):
            same = index > 0 and columns[index - 1][: level + 1] == position[: level + 1]
            if same and level < len(hierarchies) - 1:
                runs[-1].append(index)
            else:
                runs.append([index])
        head.append(
            tuple(
                Header(
                    caption(columns[run[0]][level], language),
                    span=len(run),
                    unit=units[run[0]] if level == speaking else "",
                    toggle=toggles.get(columns[run[0]][level].unique_name),
                )
                for run in runs
            )
        )
    return tuple(head)


def _names(
    positions: tuple[tuple[AxisMember, ...], ...], hierarchies: Mapping[str, Texts], language: str
) -> Iterable[str]:
    if not positions:
        return []
    return [text_in(hierarchies.get(member.hierarchy, {}), language) for member in positions[0]]


class _Units:
    """Where units are said: once for the table, else by column, else by row, else nowhere needed."""

    def __init__(self, masked: MaskedCellSet, grid: Grid, language: str) -> None:
        names = [text_in(style.unit, language) for style in masked.styles]
        numbers = np.array([names.index(name) for name in names] or [0], dtype=np.int32)
        unit = numbers[grid.style] if grid.style.size else np.zeros(grid.style.shape, dtype=np.int32)
        self.table = ""
        self.column: tuple[str, ...] = ("",) * len(grid.columns)
        self.row: tuple[str, ...] = ("",) * len(grid.rows)
        if not unit.size:
            return
        if np.all(unit == unit.flat[0]):
            self.table = names[unit.flat[0]]
        elif np.all(unit == unit[:1]):
            self.column = tuple(names[number] for number in unit[0])
        else:
            self.row = tuple(" / ".join(dict.fromkeys(names[n] for n in row)) for row in unit)
