"""explore: one query on a raw cube, for the analyst's eyes only."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.cube.port import CubeServer
from app.cube.properties import axis_properties
from app.domain.errors import UserError
from app.domain.masked import Axis, AxisMember, FloatArray
from app.domain.numbers import format_text
from app.domain.publication import CubeDefinition
from app.domain.styles import cell_styles
from app.mdx.tree import Query

Properties = tuple[tuple[Mapping[str, str | None], ...], ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """A raw answer, ready to print.

    Attributes
    ----------
    cube, language : str
    slicer : tuple of AxisMember
    axes : tuple of Axis
        Axis 0 varies fastest in the cells' order.
    properties
        For each axis, position and member: what DIMENSION PROPERTIES asked for.
    values : float64[n]
        nan where the cell is empty.
    texts : tuple of str
        The values as their format strings print them.
    words : frozenset of int
        Cells that hold a text instead of a value.
    """

    cube: str
    language: str
    slicer: tuple[AxisMember, ...]
    axes: tuple[Axis, ...]
    properties: tuple[Properties, ...]
    values: FloatArray
    texts: tuple[str, ...]
    words: frozenset[int] = frozenset()


def cube_asked(cubes: Sequence[CubeDefinition], query: Query) -> CubeDefinition:
    """The cube that a query is about.

    Raises
    ------
    UserError
        When there is no such cube.
    """
    name = query.cube_name
    known = {cube.name.lower(): cube for cube in cubes}
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), list(known), 3, 0.0)
        hint = f"There is {', '.join(known[item].name for item in near)}." if near else ""
        raise UserError(query.source.mistake(query.cube_asked.at, f"There is no cube {name}.", hint))
    return known[name.lower()]


def explore(server: CubeServer, query: Query, language: str) -> Answer:
    """The raw answer to a query, with values as their format strings print them.

    Raises
    ------
    UserError
        With its position in the query.
    """
    cellset = server.explore(query)
    style, styles = cell_styles(cellset)
    values = cellset.values[: cellset.n_cells]
    texts = tuple(
        cellset.texts.get(place) or format_text(value, styles[number].format, language)
        for place, (value, number) in enumerate(zip(values.tolist(), style.tolist(), strict=True))
    )
    properties = tuple(
        axis_properties(cellset.cube, asked, axis.positions, query.source)
        for asked, axis in zip(query.axes, cellset.axes, strict=True)
    )
    words = frozenset(cellset.texts)
    return Answer(cellset.cube.name, language, cellset.slicer, cellset.axes, properties, values, texts, words)
