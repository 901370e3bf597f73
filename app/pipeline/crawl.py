"""crawl: every cell that any visitor can make appear, and every relation between them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cellset import CalculatedMember, CellSet
from app.domain.crawled import Address, Crawl
from app.domain.cube import Cube, IntArray
from app.domain.errors import Mistake, UserError
from app.domain.masked import AxisMember, CellStyle, Layout
from app.domain.numbers import format_decimals
from app.domain.progress import ProgressCallback, StepProgress
from app.domain.publication import Publication
from app.mdx import parse, substitute
from app.pipeline.cell_table import CellTable
from app.pipeline.define_sheet import cube_name
from app.pipeline.members import choices_of

#: Digits of a calculated measure whose author states none.
DEFAULT_DECIMALS = 2
#: From here on a double doesn't hold every whole number.
EXACT = 2.0**53


def crawl(
    publication: Publication,
    servers: Mapping[str, CubeServer],
    progress: ProgressCallback | None = None,
) -> Crawl:
    """Run every query of every sheet for every choice of its parameters.

    Raises
    ------
    UserError
        With every query that can't be answered.
    OperatorError
        If the data changed meanwhile.
    """
    tables = {name: CellTable(server) for name, server in servers.items()}
    mistakes: list[Mistake] = []
    choices: dict[str, tuple[tuple[AxisMember, ...], ...]] = {}
    sheets = list(publication.sheets())
    for sheet in sheets:
        choices[sheet.id] = choices_of(sheet, servers, mistakes) or ()
    if mistakes:
        raise UserError(mistakes)
    cube_of: dict[tuple[str, str], str] = {}
    placed: list[tuple[Address, str, int, CellSet, IntArray, tuple[CellStyle, ...]]] = []
    total = sum(len(sheet.queries) * int(np.prod([len(c) for c in choices[sheet.id]])) for sheet in sheets)
    done = 0
    for sheet in sheets:
        for query in sheet.queries:
            tree = parse(query.mdx, query.at.file, query.at.line)
            name = cube_name(tree)
            cube_of[sheet.id, query.id] = name
            table = tables[name]
            for chosen in product(*choices[sheet.id]):
                choice = tuple(member.unique_name for member in chosen)
                names = [parameter.name for parameter in sheet.parameters]
                try:
                    cellset = table.server.execute(substitute(tree, dict(zip(names, choice, strict=True))))
                except UserError as error:
                    mistakes.extend(error.mistakes)
                    break
                style, styles = cell_styles(cellset)
                decimals = np.array([item.decimals for item in styles], dtype=np.int8)[style]
                if _too_large(cellset, decimals):
                    at = query.at
                    cause = "A cell is too large to be published exactly with its decimals."
                    remedy = "Give its measure in a larger unit."
                    mistakes.append(Mistake(at.file, at.line, at.column, cause, remedy))
                    break
                start = table.add(cellset, decimals)
                placed.append(((sheet.id, query.id, choice), name, start, cellset, style, styles))
                done += 1
                if progress is not None:
                    progress(StepProgress("crawl", done, total, sheet.id))
    if mistakes:
        raise UserError(mistakes)
    finished = {name: table.finish() for name, table in tables.items() if name in cube_of.values()}
    offsets = dict(
        zip(finished, np.cumsum([0, *(c.n_published for c, _ in finished.values())]), strict=False)
    )
    layouts = {
        address: Layout(
            axes=cellset.axes,
            slicer=cellset.slicer,
            cell=finished[name][1][start : start + cellset.n_cells] + offsets[name],
            style=style,
            styles=styles,
        )
        for address, name, start, cellset, style, styles in placed
    }
    return Crawl(tuple(cells for cells, _ in finished.values()), layouts, choices, cube_of)


def cell_styles(cellset: CellSet) -> tuple[IntArray, tuple[CellStyle, ...]]:
    """Style number of each cell of the answer, and the styles.

    A calculated measure prints its own way, then a calculated member of a hierarchy that states how, then
    the measure.
    """
    cube = cellset.cube
    own = np.array([len(cube.measures), *(h.size for h in cube.hierarchies)])
    by_column: dict[int, list[CalculatedMember]] = {}
    for member in cellset.calculated:
        by_column.setdefault(member.column, []).append(member)
    coords = cellset.coords[: cellset.n_cells]
    marks = np.zeros((len(coords), 1 + len(by_column)), dtype=np.int32)
    marks[:, 0] = coords[:, 0]
    columns = sorted(by_column)
    for place, column in enumerate(columns, 1):
        marks[:, place] = np.maximum(coords[:, column] - own[column] + 1, 0)
    kinds, style = np.unique(marks, axis=0, return_inverse=True)
    styles = []
    for kind in kinds.tolist():
        calculated = [
            by_column[column][mark - 1] for column, mark in zip(columns, kind[1:], strict=True) if mark
        ]
        styles.append(_style(cube, kind[0], calculated))
    distinct = list(dict.fromkeys(map(_style_key, styles)))
    number = {key: place for place, key in enumerate(distinct)}
    renumber = np.array([number[_style_key(item)] for item in styles], dtype=np.int32)
    chosen = {number[_style_key(item)]: item for item in styles}
    return renumber[style.reshape(-1)], tuple(chosen[place] for place in range(len(distinct)))


def _too_large(cellset: CellSet, decimals: NDArray[np.int8]) -> bool:
    """Whether a double holds the digits of some cell no more."""
    units = np.abs(cellset.values[: cellset.n_cells]) * 10.0**decimals
    return bool(np.nanmax(units, initial=0.0) >= EXACT)


def _style_key(style: CellStyle) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    return style.format, style.decimals, tuple(sorted(style.unit.items()))


def _style(cube: Cube, measure: int, calculated: list[CalculatedMember]) -> CellStyle:
    own = cube.measures[measure] if measure < len(cube.measures) else None
    form = own.format if own else ""
    decimals = own.decimals if own else None
    unit = own.unit if own else {}
    for member in sorted(calculated, key=lambda item: -item.column):
        if member.format:
            form = member.format
            decimals = member.decimals if member.decimals is not None else format_decimals(member.format)
        elif member.decimals is not None:
            decimals = member.decimals
            form = "#,##0" + ("." + "0" * decimals if decimals else "")
        elif member.column == 0 and own is None and not form:
            terms = [cube.measures[number] for number, _ in member.terms or ()]
            decimals = max((item.decimals for item in terms), default=DEFAULT_DECIMALS)
            form = "#,##0" + ("." + "0" * decimals if decimals else "")
        if member.unit:
            unit = member.unit
    if decimals is None:
        decimals = DEFAULT_DECIMALS
    return CellStyle(form or "#,##0.00", decimals, unit)
