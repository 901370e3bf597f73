"""Tidy CSV: a row for each cell, coded and captioned, with the observation's status."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from app.domain.cube import text_in
from app.domain.masked import CellStatus
from app.domain.numbers import plain_number
from app.web.formats.download import Download, members_of_cells
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
}


def header(download: Download) -> list[str]:
    """Column names: unique name and caption of each hierarchy, then the observation's.

    A caption that is another column's name as well is told apart by the hierarchy's.
    """
    hierarchies = download.hierarchies()
    captions = [download.hierarchy_caption(hierarchy).strip("[]") for hierarchy in hierarchies]
    columns = []
    for hierarchy, text in zip(hierarchies, captions, strict=True):
        clear = captions.count(text) == 1 and text not in (*hierarchies, *_CLOSING)
        columns += [hierarchy, text if clear else f"{text} {hierarchy}"]
    return [*columns, *_CLOSING]


def rows(download: Download) -> Iterator[list[str]]:
    """One row for each cell."""
    masked = download.masked
    units = [text_in(style.unit, download.language) for style in masked.styles]
    for members, status, value, style in zip(
        members_of_cells(masked),
        masked.status.tolist(),
        masked.values.tolist(),
        masked.style.tolist(),
        strict=True,
    ):
        row = []
        for member in members:
            row += [member.unique_name, caption(member, download.language)]
        number = plain_number(value) if status == CellStatus.SHOWN else ""
        yield [*row, number, *SDMX_STATUS[status], units[style]]


def write(download: Download) -> bytes:
    """The file, UTF-8, CRLF line ends (RFC 4180)."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(header(download))
    writer.writerows(rows(download))
    return text.getvalue().encode()
