"""XLSX: the table as printed, numbers as numbers, with a sheet that says what it is.

A hidden cell is the text ``[c]``, or ``[x]`` if it isn't released. There are no formulas, hidden rows or
number formats that print another thing than the cell holds, and the same cells give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from openpyxl import Workbook
from openpyxl.cell.cell import Cell as SheetCell
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.xml.functions import tostring

from app.domain.masked import CellStatus, CellStyle
from app.domain.numbers import percent_scale
from app.domain.texts import printable
from app.web.formats.download import TableDownload
from app.web.language import day_or_month, long_date
from app.web.tables import SIGNS, Table, grid_of, signs_of

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_RULE = Side(style="medium")
_THIN = Side(style="thin", color="FF9AA5A6")
_HATCH = PatternFill("lightTrellis", fgColor="FFB9C6C6")
_MUTED = Font(color="FF556366")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_WIDEST = 44


def parts(download: TableDownload) -> Iterator[bytes]:
    """The workbook: the table on its first sheet, what it is on its second."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = _sheet_name(download.words["table"])
    _write_table(sheet, download)
    _write_about(book.create_sheet(_sheet_name(download.words["about"])), download)
    released = download.released.replace(tzinfo=None)
    book.properties.creator = printable(download.publisher)
    book.properties.title = printable(download.title)
    book.properties.created = released
    yield _repack(book, released)


def _write_table(sheet: Worksheet, download: TableDownload) -> None:
    table = download.table
    _put(sheet, 1, 1, " ".join(filter(None, [download.number, download.title]))).font = Font(
        bold=True, size=14
    )
    row = 2
    for name, member in download.context:
        _put(sheet, row, 1, f"{name}: {member}" if name else member).font = _MUTED
        row += 1
    if table.unit:
        _put(sheet, row, 1, f"{download.words['unit']}: {table.unit}").font = _MUTED
        row += 1
    first = row + 1
    row = _write_head(sheet, table, first)
    sheet.freeze_panes = f"B{row}"
    row = _write_body(sheet, table, download, row)
    row += 1
    for sign, meaning in _symbols(download):
        _put(sheet, row, 1, f"{sign} {meaning}").font = _MUTED
        row += 1
    names = [line.header.text for group in table.groups for line in group.rows]
    sheet.column_dimensions["A"].width = min(_WIDEST, 4 + max((len(name) for name in names), default=8))
    for column in range(2, table.columns + 2):
        sheet.column_dimensions[get_column_letter(column)].width = 15


def _write_head(sheet: Worksheet, table: Table, row: int) -> int:
    for line in table.head:
        column = 2
        for header in line:
            text = f"{header.text}\n{header.unit}" if header.unit else header.text
            cell = _put(sheet, row, column, text)
            cell.font = Font(bold=True)
            several = header.span > 1
            cell.alignment = Alignment("left" if several else "right", "bottom", wrap_text=True)
            if several:
                sheet.merge_cells(
                    start_row=row, end_row=row, start_column=column, end_column=column + header.span - 1
                )
            column += header.span
        row += 1
    _put(sheet, row - 1, 1, table.stub).font = _MUTED
    for column in range(1, table.columns + 2):
        sheet.cell(row - 1, column).border = Border(bottom=_THIN)
    return row


def _write_body(sheet: Worksheet, table: Table, download: TableDownload, row: int) -> int:
    grid = grid_of(download.masked)
    values, status, style = grid.values.tolist(), grid.status.tolist(), grid.style.tolist()
    formats = [_number_format(cell_style) for cell_style in download.masked.styles]
    right, index = Alignment("right"), 0
    for group in table.groups:
        if group.heading:
            _put(sheet, row, 1, group.heading).font = Font(bold=True)
            row += 1
        for line in group.rows:
            download.patience.check()
            name = f"{line.header.text} ({line.header.unit})" if line.header.unit else line.header.text
            _put(sheet, row, 1, name).alignment = Alignment(indent=line.header.depth)
            for column, (figure, state, number) in enumerate(
                zip(values[index], status[index], style[index], strict=True), 2
            ):
                if state == CellStatus.SHOWN:
                    sheet.cell(row, column, figure).number_format = formats[number]
                else:
                    sign = _put(sheet, row, column, SIGNS[state])
                    sign.alignment = right
                    if state != CellStatus.EMPTY:
                        sign.fill = _HATCH
            index += 1
            row += 1
    for column in range(1, table.columns + 2):
        sheet.cell(row - 1, column).border = Border(bottom=_RULE)
    return row


def _write_about(sheet: Worksheet, download: TableDownload) -> None:
    words = download.words
    facts = [
        (words["title"], download.title),
        (words["publisher"], download.publisher),
        (words["released"], long_date(download.released, download.language)),
        (words["next release"], day_or_month(download.next_release, download.language)),
        (words["contact"], "\n".join(download.contact_parts)),
        (words["release"], download.masked.release_id),
        (words["address"], download.address),
        (words["notes"], download.notes),
        *_symbols(download),
    ]
    for row, (name, text) in enumerate(((name, text) for name, text in facts if text), 1):
        _put(sheet, row, 1, name).font = Font(bold=True)
        _put(sheet, row, 2, text).alignment = Alignment(wrap_text=True, vertical="top")
    sheet.column_dimensions["A"].width = 20
    sheet.column_dimensions["B"].width = 90


def _symbols(download: TableDownload) -> Iterator[tuple[str, str]]:
    """The signs that the table has with what they mean."""
    yield from signs_of(download.masked, download.words)
    if download.table.empty:
        yield SIGNS[CellStatus.EMPTY], download.words["empty"]


def _put(sheet: Worksheet, row: int, column: int, text: str) -> SheetCell:
    """Text that stays text, whatever it starts with."""
    cell = sheet.cell(row, column)
    assert isinstance(cell, SheetCell)
    cell.value = printable(text)
    cell.data_type = "s"
    return cell


def _number_format(style: CellStyle) -> str:
    percent = percent_scale(style)
    digits = max(style.decimals - percent, 0)
    grouped = "#,##0" if "," in style.format or not style.format else "0"
    return grouped + (f".{'0' * digits}" if digits else "") + ("%" if percent else "")


def _sheet_name(text: str) -> str:
    return "".join(c for c in text if c not in r"[]:*?/\ ".strip())[:31]


def _repack(book: Workbook, released: datetime) -> bytes:
    """Without the time of writing, which openpyxl puts into the archive."""
    raw, packed = BytesIO(), BytesIO()
    book.save(raw)
    book.properties.modified = released
    with ZipFile(raw) as source, ZipFile(packed, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            entry = ZipInfo(name, _EPOCH)
            entry.compress_type = ZIP_DEFLATED
            core = name == "docProps/core.xml"
            target.writestr(entry, tostring(book.properties.to_tree()) if core else source.read(name))
    return packed.getvalue()
