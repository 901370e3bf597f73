"""How the cells of an answer are printed: by their measure, or by a calculated member that says otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.domain.cellset import CalculatedMember, CellSet
from app.domain.cube import Cube, IntArray
from app.domain.masked import CellStyle
from app.domain.numbers import decimals_format, format_decimals

#: Digits of a calculated measure whose author states none.
DEFAULT_DECIMALS = 2


def cell_styles(cellset: CellSet) -> tuple[IntArray, tuple[CellStyle, ...]]:
    """Style number of each cell of the answer and of those that its axes hang on, and the styles."""
    return styles_at(cellset.cube, cellset.coords[: cellset.n_cells + cellset.n_read], cellset.calculated)


def styles_at(
    cube: Cube, coords: IntArray, members: Sequence[CalculatedMember]
) -> tuple[IntArray, tuple[CellStyle, ...]]:
    """Style number of each cell (int32[n, 1+H], calculated members as in a `CellSet`), and the styles.

    A calculated measure prints its own way, then a calculated member of a hierarchy that states how, then
    the measure.
    """
    own = np.array([len(cube.measures), *(h.size for h in cube.hierarchies)])
    by_column: dict[int, list[CalculatedMember]] = {}
    for member in members:
        by_column.setdefault(member.column, []).append(member)
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
        styles.append(style_of(cube, kind[0], calculated))
    distinct = list(dict.fromkeys(map(_style_key, styles)))
    number = {key: place for place, key in enumerate(distinct)}
    renumber = np.array([number[_style_key(item)] for item in styles], dtype=np.int32)
    chosen = {number[_style_key(item)]: item for item in styles}
    return renumber[style.reshape(-1)], tuple(chosen[place] for place in range(len(distinct)))


def _style_key(style: CellStyle) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    return style.format, style.decimals, tuple(sorted(style.unit.items()))


def style_of(cube: Cube, measure: int, calculated: list[CalculatedMember]) -> CellStyle:
    """How cells of a measure (its number) print, given the calculated members that they stand at."""
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
            form = decimals_format(decimals)
        elif member.column == 0 and own is None and not form:
            decimals = DEFAULT_DECIMALS
            form = decimals_format(decimals)
        if member.unit:
            unit = member.unit
    if decimals is None:
        decimals = DEFAULT_DECIMALS
    return CellStyle(form or "#,##0.00", decimals, unit)
