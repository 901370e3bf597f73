"""A sheet's table as the last run left it: each cell with its state, for the office's eyes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.crawled import Crawl, CubeCells
from app.domain.cube import text_in
from app.domain.errors import UserError
from app.domain.lattice import Bools
from app.domain.masked import Axis, AxisMember, Layout
from app.domain.numbers import format_value
from app.domain.primary import CubePrimaries, PrimaryResult
from app.pipeline.suppress import Suppression

#: States of a cell for the office's eyes.
STATES = ("shown", "empty", "sensitive", "secondary", "known")
MOST_ROWS, MOST_COLUMNS = 300, 60


@dataclass(frozen=True)
class StateCell:
    """A cell of a table: its key, what it holds, and one of `STATES`."""

    key: str
    text: str
    state: str


@dataclass(frozen=True)
class StateTable:
    """A query's table; ``choices`` are those of the sheet's parameters by unique name, as asked or the first.

    ``more`` counts the rows and columns that are left out.
    """

    queries: tuple[str, ...]
    query: str
    choices: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[StateCell, ...]], ...]
    more: tuple[int, int]


def codes(cells: CubeCells, verdicts: CubePrimaries, hidden: Bools) -> NDArray[np.int8]:
    """The state of each published cell of a cube (int8[n]), as a place in `STATES`."""
    n = cells.n_published
    code = np.zeros(n, dtype=np.int8)
    code[np.isnan(cells.values[:n])] = STATES.index("empty")
    code[hidden[:n]] = STATES.index("secondary")
    code[hidden[:n] & verdicts.sensitive[:n]] = STATES.index("sensitive")
    code[hidden[:n] & verdicts.known[:n]] = STATES.index("known")
    return code


def state_table(
    crawl: Crawl,
    primaries: PrimaryResult,
    suppression: Suppression,
    sheet: str,
    query: str,
    choices: tuple[str, ...],
    language: str,
) -> StateTable:
    """The table of a sheet's query for some choices; the first where one is none.

    Raises
    ------
    UserError
        If the last run has no such sheet.
    """
    queries = tuple(dict.fromkeys(name for where, name, _choice in crawl.layouts if where == sheet))
    if not queries:
        raise UserError(f"There is no sheet {sheet}.")
    chosen = query if query in queries else queries[0]
    offered = crawl.choices.get(sheet, ())
    wanted = tuple(
        next((m.unique_name for m in members if place < len(choices) and m.unique_name == choices[place]), "")
        or members[0].unique_name
        for place, members in enumerate(offered)
    )
    layout = crawl.layouts[sheet, chosen, wanted]
    axes = [*layout.axes, *([Axis(((),))] * (2 - len(layout.axes)))]
    across, down = axes[0].positions, axes[1].positions
    # What stands on further axes is left to the first of its positions.
    places = np.arange(len(layout.cell)).reshape([len(axis.positions) for axis in axes][::-1])
    grid = places.reshape(-1, len(down), len(across))[0]
    told = _Told(crawl, primaries, suppression)
    width, height = min(len(across), MOST_COLUMNS), min(len(down), MOST_ROWS)
    rows = tuple(
        (
            _named(down[row], language),
            tuple(told.cell(layout, int(place), language) for place in grid[row, :width]),
        )
        for row in range(height)
    )
    columns = tuple(_named(position, language) for position in across[:width])
    return StateTable(queries, chosen, wanted, columns, rows, (len(down) - height, len(across) - width))


class _Told:
    """Cells by their row in the release."""

    def __init__(self, crawl: Crawl, primaries: PrimaryResult, suppression: Suppression) -> None:
        self._cubes = crawl.cubes
        self._starts = np.cumsum([0, *(cells.n_published for cells in crawl.cubes)])
        self._codes = [
            codes(cells, verdicts, hidden)
            for cells, verdicts, hidden in zip(crawl.cubes, primaries.cubes, suppression.hidden, strict=True)
        ]

    def cell(self, layout: Layout, place: int, language: str) -> StateCell:
        """The cell at a place of a layout."""
        row = int(layout.cell[place])
        if row < 0:
            return StateCell("", "", "empty")
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        cells, own = self._cubes[number], row - int(self._starts[number])
        state = STATES[self._codes[number][own]]
        value = float(cells.values[own])
        style = layout.styles[int(layout.style[place])]
        text = "" if np.isnan(value) else format_value(value, style, language)
        return StateCell(cells.keys(np.array([own]))[0], text, state)


def _named(position: tuple[AxisMember, ...], language: str) -> str:
    return " · ".join(text_in(member.captions, language) or member.unique_name for member in position)
