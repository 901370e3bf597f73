"""SDMX-CSV 2.0 (https://github.com/sdmx-twg/sdmx-csv): a row for each observation, codes only."""

from __future__ import annotations

import csv
from io import StringIO

from app.domain.cube import text_in
from app.domain.masked import CellStatus
from app.domain.numbers import plain_number
from app.web.formats import sdmx
from app.web.formats.csv import SDMX_STATUS
from app.web.formats.download import Download, members_of_cells

MEDIA_TYPE = "application/vnd.sdmx.data+csv; version=2.0.0; labels=id; charset=utf-8"


def write(download: Download) -> bytes:
    """The file; a hidden cell has no OBS_VALUE, OBS_STATUS Q and CONF_STATUS C."""
    masked = download.masked
    dimensions = sdmx.dimensions(download)
    opening = ("dataflow", sdmx.structure(download), "I")
    closing = [(text_in(style.unit, download.language), style.decimals) for style in masked.styles]
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(
        [
            *("STRUCTURE", "STRUCTURE_ID", "ACTION"),
            *(dimension.id for dimension in dimensions),
            *(sdmx.VALUE, sdmx.STATUS, sdmx.CONFIDENTIALITY, sdmx.UNIT, sdmx.DECIMALS),
        ]
    )
    for members, status, value, style in zip(
        members_of_cells(masked),
        masked.status.tolist(),
        masked.values.tolist(),
        masked.style.tolist(),
        strict=True,
    ):
        codes = [
            dimension.codes[member.unique_name] for dimension, member in zip(dimensions, members, strict=True)
        ]
        number = plain_number(value) if status == CellStatus.SHOWN else ""
        writer.writerow([*opening, *codes, number, *SDMX_STATUS[status], *closing[style]])
    return text.getvalue().encode()
