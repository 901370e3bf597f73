"""Reading further downloads: figures that stand in the order of the tidy CSV, and drawings."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO, StringIO

import pyarrow as pa
from lxml import etree
from pyarrow import parquet as pq

from app.redteam.pages import parse_page, read_block
from app.redteam.report import PageLeak
from app.redteam.tables import TableRow, UnreadableError

Figures = list[float | None]

#: A chart or map as a file, and a table for other people's pages.
DRAWING, FRAGMENT = "svg", "html"
#: Share of a figure by which two documents may differ on it.
_SAME = 1e-9


def export_leaks(kind: str, content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Hidden cells that a download tells.

    Raises
    ------
    UnreadableError
        It can't be read, holds more than its cells, or says another thing than the CSV does.
    """
    if kind == DRAWING:
        yield from _drawing_leaks(content, rows)
        return
    if kind == FRAGMENT:
        yield from _page_leaks(content, rows)
        return
    figures = READERS[kind](content)
    if len(figures) != len(rows):
        raise UnreadableError(f"{len(figures)} cells where the CSV has {len(rows)}")
    told = []
    for number, (figure, row) in enumerate(zip(figures, rows, strict=True)):
        if row.hidden and figure is not None:
            told.append(PageLeak(number, "in the page", figure, figure))
        elif not row.hidden and not _same(figure, row.value):
            raise UnreadableError("a figure that isn't the CSV's")
    yield from told


def _drawing_leaks(content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    try:
        drawing = etree.fromstring(content, etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"no SVG: {error}") from error
    if etree.QName(drawing).localname != "svg":
        raise UnreadableError("no SVG: another root")
    # Marks are told from one another as on a page.
    yield from _page_leaks(content, rows)


def _page_leaks(content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    leaks, trouble = read_block(parse_page(content.decode()), rows)
    yield from leaks
    if trouble:
        raise UnreadableError(trouble)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_SAME)


def _parquet(content: bytes) -> Figures:
    try:
        file = pq.ParquetFile(BytesIO(content))
        column: Figures = file.read().column("OBS_VALUE").to_pylist()
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        raise UnreadableError(f"no Parquet table: {error}") from error
    shown = [value for value in column if value is not None]
    place = file.schema_arrow.get_field_index("OBS_VALUE")
    for group in range(file.metadata.num_row_groups):
        told = file.metadata.row_group(group).column(place).statistics
        if told is not None and told.has_min_max and not {told.min, told.max} <= set(shown):
            raise UnreadableError("a smallest or largest figure that no cell shows")
    return column


def _sdmx_csv(content: bytes) -> Figures:
    try:
        lines = list(csv.DictReader(StringIO(content.decode()), strict=True))
        figures = [float(line["OBS_VALUE"]) if line["OBS_VALUE"] else None for line in lines]
        told = [line["CONF_STATUS"] == "C" and line["OBS_STATUS"] != "Q" for line in lines]
    except (ValueError, KeyError, csv.Error) as error:
        raise UnreadableError(f"no SDMX-CSV: {error}") from error
    if any(told):
        raise UnreadableError("a hidden cell with another status than Q")
    return figures


def _sdmx_json(content: bytes) -> Figures:
    try:
        (dataset,) = json.loads(content)["data"]["dataSets"]
        return [None if seen[0] is None else float(seen[0]) for seen in dataset["observations"].values()]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableError(f"no SDMX-JSON data message: {error}") from error


def _px(content: bytes) -> Figures:
    try:
        _, _, data = content.decode().replace("\r", "").partition("\nDATA=\n")
        signs = data.rstrip().removesuffix(";").split()
        if set(signs) == {'"."'}:
            return []
        return [None if sign in ('".."', '"-"') else float(sign) for sign in signs]
    except ValueError as error:
        raise UnreadableError(f"no PX file: {error}") from error


#: How each kind of download is read, by the name that the catalogue gives it.
READERS: Mapping[str, Callable[[bytes], Figures]] = {
    "parquet": _parquet,
    "sdmx-csv": _sdmx_csv,
    "sdmx-json": _sdmx_json,
    "px": _px,
}
