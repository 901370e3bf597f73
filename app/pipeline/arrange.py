"""arrange: axes whose members are chosen or ordered by values, made of the values that are shown.

Every cell that such a choice reads is published as far as readers are concerned: the rules, the solver and
the audit have dealt with it. What is made here is a function of what those cells show, so it tells a reader
nothing that they don't.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from app.cube.port import CubeServer, Shown
from app.domain.cellset import Axis, CellSet
from app.domain.crawled import Address, Crawl, Pending
from app.domain.errors import InternalError
from app.domain.lattice import Bools, Longs
from app.domain.masked import CellStatus, Layout
from app.domain.publication import Publication
from app.domain.release import Release
from app.mdx import Query, parse, substitute


def arrange(
    publication: Publication, crawl: Crawl, release: Release, servers: Mapping[str, CubeServer]
) -> tuple[Release, Mapping[Address, Layout]]:
    """The release with its ranks, and all layouts with their axes as readers get them.

    Raises
    ------
    InternalError
        If a cube answers otherwise than during the crawl.
    """
    if not crawl.pending:
        return release, crawl.layouts
    layouts = dict(crawl.layouts)
    status, values = release.status.copy(), release.values.copy()
    told: dict[int, float] = {}
    for address, pending in crawl.pending.items():
        layout = crawl.layouts[address]
        # Whatever isn't told below stays hidden.
        status[layout.cell[pending.ranks]] = CellStatus.CONFIDENTIAL
        values[layout.cell[pending.ranks]] = np.nan
    for address, pending in crawl.pending.items():
        server = servers[crawl.cube_of[address[:2]]]
        answer = server.arrange(_query(publication, address), _shown(pending, release))
        layouts[address], place = _arranged(crawl.layouts[address], answer)
        if pending.ranks.any():
            _tell(layouts[address], pending.ranks[place], answer, told)
    rows = np.array(list(told), dtype=np.int64)
    ranks = np.array(list(told.values()))
    status[rows] = np.where(np.isnan(ranks), CellStatus.CONFIDENTIAL, CellStatus.SHOWN)
    values[rows] = ranks
    return replace(release, status=status, values=values), layouts


def _query(publication: Publication, address: Address) -> Query:
    sheet_id, query_id, choice = address
    sheet = next(sheet for sheet in publication.sheets() if sheet.id == sheet_id)
    query = next(query for query in sheet.queries if query.id == query_id)
    tree = parse(query.mdx, query.at.file, query.at.line)
    names = [parameter.name for parameter in sheet.parameters]
    return substitute(tree, dict(zip(names, choice, strict=True)))


def _shown(pending: Pending, release: Release) -> Shown:
    hidden = np.isin(release.status[pending.cell], (CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED))
    return Shown(pending.coords, release.values[pending.cell], hidden)


def _arranged(layout: Layout, answer: CellSet) -> tuple[Layout, Longs]:
    """The layout with the positions of an answer, and which of its cells each cell was."""
    picks = [_picks(all_of, some) for all_of, some in zip(layout.axes, answer.axes, strict=True)]
    shape = [len(axis.positions) for axis in layout.axes][::-1]
    place = np.arange(len(layout.cell), dtype=np.int64).reshape(shape)
    for number, pick in enumerate(picks):
        place = np.take(place, pick, axis=len(picks) - 1 - number)
    place = place.ravel()
    cell, style = layout.cell[place], layout.style[place]
    made = replace(layout, axes=answer.axes, cell=cell, style=style, by_figures=True)
    return made, place


def _picks(candidates: Axis, chosen: Axis) -> list[int]:
    known: dict[tuple[str, ...], int] = {}
    for number, position in enumerate(candidates.positions):
        known.setdefault(tuple(member.unique_name for member in position), number)
    try:
        return [known[tuple(member.unique_name for member in position)] for position in chosen.positions]
    except KeyError:
        raise InternalError("an axis has a member that was no candidate") from None


def _tell(layout: Layout, ranks: Bools, answer: CellSet, told: dict[int, float]) -> None:
    """Note the ranks of an answer by row, nan where withheld; so is one that two answers give differently."""
    kinds = zip(answer.nonlinear.cell.tolist(), answer.nonlinear.kind, strict=True)
    withheld = {bytes(answer.coords[row]) for row, kind in kinds if kind == "rank"}
    for place in np.flatnonzero(ranks).tolist():
        value = math.nan if bytes(answer.coords[place]) in withheld else float(answer.values[place])
        row = int(layout.cell[place])
        told[row] = value if told.get(row, value) == value else math.nan
