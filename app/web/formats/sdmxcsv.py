"""SDMX-CSV 2.0 (https://github.com/sdmx-twg/sdmx-csv): a row for each observation, codes only."""

from __future__ import annotations

from collections.abc import Iterator

from app.domain.cube import text_in
from app.web.formats import csv, sdmx
from app.web.formats.download import Download

MEDIA_TYPE = "application/vnd.sdmx.data+csv; version=2.0.0; labels=id; charset=utf-8"


def parts(download: Download) -> Iterator[bytes]:
    """The file; a hidden cell has no OBS_VALUE, and Q and C as statuses, or O and none if not released."""
    dimensions = sdmx.dimensions(download)
    names = [
        *("STRUCTURE", "STRUCTURE_ID", "ACTION"),
        *(dimension.id for dimension in dimensions),
        *(sdmx.VALUE, sdmx.STATUS, sdmx.CONFIDENTIALITY, sdmx.UNIT, sdmx.DECIMALS),
    ]
    yield (csv.line(names) + "\r\n").encode()
    opening = csv.line(("dataflow", sdmx.structure(download), "I")) + ","
    codes = [[(dimension.codes[name],) for name in dimension.members] for dimension in dimensions]
    closing = [(text_in(s.unit, download.language), str(s.decimals)) for s in download.cells.styles]
    yield from csv.rows(download, codes, closing, opening)
