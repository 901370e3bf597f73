"""crawl: every cell that any visitor can make appear, and every relation between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cellset import CellSet
from app.domain.crawled import Address, Crawl, Pending
from app.domain.cube import IntArray
from app.domain.errors import Mistake, UserError
from app.domain.masked import AxisMember, CellStyle, Layout
from app.domain.progress import ProgressCallback, StepProgress
from app.domain.publication import Publication
from app.domain.styles import cell_styles
from app.mdx import parse, substitute
from app.pipeline.cell_table import CellTable
from app.pipeline.earlier import NO_PAST, Past
from app.pipeline.members import choices_of
from app.pipeline.same_facts import same_facts

#: From here on a double doesn't hold every whole number.
EXACT = 2.0**53
#: In queries that may leave out members without facts.
LEAVES_OUT = re.compile("empty|exists|filter", re.IGNORECASE)


def crawl(
    publication: Publication,
    servers: Mapping[str, CubeServer],
    progress: ProgressCallback | None = None,
    past: Past = NO_PAST,
    exact: bool = True,
) -> Crawl:
    """Run every query of every sheet for every choice of its parameters.

    Cells that readers remember from earlier releases are taken in as cells that no sheet shows. ``exact``: a
    cell whose digits a double doesn't hold is a mistake. To be asked of what is to be released alone: whoever
    may try one factor after another learns from it how large a cell is.

    Raises
    ------
    UserError
        With every query that can't be answered.
    OperatorError
        If the data changed meanwhile.
    """
    mistakes: list[Mistake] = list(same_facts(publication, servers))
    sets = {cube.name: [item.formula for item in cube.named_sets] for cube in publication.cubes}
    zeros = not publication.confidentiality.hide_zeros
    tables = {name: CellTable(server, past.shown.get(name, ()), zeros) for name, server in servers.items()}
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
            name = tree.cube_name
            cube_of[sheet.id, query.id] = name
            table = tables[name]
            complete = not LEAVES_OUT.search(" ".join((query.mdx, *sets.get(name, ()))))
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
                style = style[: cellset.n_cells]
                if exact and _too_large(cellset, decimals):
                    at = query.at
                    cause = "A cell is too large to be published exactly with its decimals."
                    remedy = "Give its measure in a larger unit."
                    mistakes.append(Mistake(at.file, at.line, at.column, cause, remedy))
                    break
                start = table.add(cellset, decimals, complete)
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
    pending = {
        address: Pending(
            coords=cellset.coords[cellset.n_cells :][: cellset.n_read],
            cell=finished[name][1][start + cellset.n_cells :][: cellset.n_read] + offsets[name],
            ranks=_ranks(cellset),
        )
        for address, name, start, cellset, _, _ in placed
        if cellset.n_read
    }
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
    return Crawl(tuple(cells for cells, _ in finished.values()), layouts, choices, cube_of, pending)


def _ranks(cellset: CellSet) -> NDArray[np.bool_]:
    """Cells of an answer that tell a rank."""
    kinds = np.array([kind == "rank" for kind in cellset.nonlinear.kind], dtype=np.bool_)
    found = np.zeros(len(cellset.coords), dtype=np.bool_)
    found[cellset.nonlinear.cell[kinds]] = True
    # A cell that stands in two places is told of once.
    same = {bytes(cell) for cell in cellset.coords[found]}
    return np.array([bytes(cell) in same for cell in cellset.coords[: cellset.n_cells]], dtype=np.bool_)


def _too_large(cellset: CellSet, decimals: NDArray[np.int8]) -> bool:
    """Whether a double holds the digits of some cell no more."""
    units = np.abs(cellset.values[: len(decimals)]) * 10.0**decimals
    return bool(np.nanmax(units, initial=0.0) >= EXACT)
