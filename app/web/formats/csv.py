"""Tidy CSV: a row for each cell, coded and captioned, with the observation's status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain.cube import text_in
from app.domain.masked import CellStatus
from app.domain.numbers import plain_number
from app.domain.observations import Block
from app.web.formats.download import Download
from app.web.tables import caption

MEDIA_TYPE = "text/csv; charset=utf-8; header=present"

#: Name of the column of the figures.
VALUE = "OBS_VALUE"
_CLOSING = (VALUE, "OBS_STATUS", "CONF_STATUS", "UNIT")

#: OBS_STATUS and CONF_STATUS of SDMX for each status of a cell.
SDMX_STATUS = {
    int(CellStatus.SHOWN): ("A", "F"),
    int(CellStatus.EMPTY): ("M", "F"),
    int(CellStatus.CONFIDENTIAL): ("Q", "C"),
    int(CellStatus.UNRELEASED): ("O", ""),
}

#: Cells that are written at once: what memory holds of a long list.
BLOCK = 4096
_QUOTED = re.compile(r'[",\r\n]')
#: What a spreadsheet takes for a formula; a caption as "+65" or "-5 to 0" is none.
_FORMULA = re.compile(r"[=@\t\r]|[+-].*[=(|!]", re.DOTALL)

Texts = NDArray[np.object_]


def header(download: Download) -> list[str]:
    """Column names: unique name and caption of each hierarchy, then the observation's.

    A caption that is another column's name as well is told apart by the hierarchy's.
    """
    hierarchies = [column.hierarchy for column in download.cells.columns]
    captions = [download.hierarchy_caption(hierarchy).strip("[]") for hierarchy in hierarchies]
    columns = []
    for hierarchy, text in zip(hierarchies, captions, strict=True):
        clear = captions.count(text) == 1 and text not in (*hierarchies, *_CLOSING)
        columns += [hierarchy, text if clear else f"{text} {hierarchy}"]
    return [*columns, *_CLOSING]


def figures(block: Block) -> list[str]:
    """The cells' values in digits, empty where there is none to show."""
    return [
        plain_number(value) if status == CellStatus.SHOWN else ""
        for value, status in zip(block.values.tolist(), block.status.tolist(), strict=True)
    ]


def line(fields: Sequence[str]) -> str:
    """A row's fields, quoted where they must be (RFC 4180).

    A text that a spreadsheet would work out as a formula gets an apostrophe in front: captions come from
    data, and whoever opens the file runs nothing that stands there (CWE-1236).
    """
    return ",".join(_written(field) for field in fields)


def _written(field: str) -> str:
    text = f"'{field}" if _FORMULA.match(field) else field
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def rows(
    download: Download,
    members: Sequence[Sequence[Sequence[str]]],
    closing: Sequence[Sequence[str]],
    opening: str = "",
) -> Iterator[bytes]:
    """Rows block by block: the fields of each column's member, the figure, the statuses, those of the style.

    Parameters
    ----------
    members
        For each column the fields of each of its members.
    closing
        The last fields, for each style.
    opening : str
        How every row begins.
    """
    opened: list[Texts] = [np.array([line(fields) for fields in column], object) for column in members]
    styles = max(len(closing), 1)
    ends = [line([*SDMX_STATUS[status], *fields]) for status in SDMX_STATUS for fields in closing or [()]]
    closed: Texts = np.array(ends, object)
    for block in download.blocks(BLOCK):
        parts = [
            texts[codes].tolist() for texts, codes in zip(opened, block.members, strict=True) if len(texts)
        ]
        parts += [figures(block), closed[block.status * styles + block.style].tolist()]
        yield "".join([opening + ",".join(row) + "\r\n" for row in zip(*parts, strict=True)]).encode()


def parts(download: Download) -> Iterator[bytes]:
    """The file, UTF-8, CRLF line ends (RFC 4180)."""
    yield (line(header(download)) + "\r\n").encode()
    language = download.language
    members = [
        [(member.unique_name, caption(member, language)) for member in column.members]
        for column in download.cells.columns
    ]
    yield from rows(download, members, [(text_in(style.unit, language),) for style in download.cells.styles])
