"""Reading a spreadsheet download: its cells stand in the order of the tidy CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from zipfile import BadZipFile

from openpyxl import Workbook, load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from app.redteam.report import PageLeak
from app.redteam.tables import TableRow, UnreadableError


def workbook_leaks(content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Hidden cells that a workbook tells: anything but a text without digits in their place.

    Raises
    ------
    UnreadableError
        It is no workbook, holds more than a screen shows, or its table has another size than the CSV.
    """
    try:
        book = load_workbook(BytesIO(content))
    except (BadZipFile, InvalidFileException, KeyError) as error:
        raise UnreadableError(f"no workbook: {error}") from error
    if aside := list(_aside(book)):
        raise UnreadableError(f"a workbook that holds more than it shows: {', '.join(aside)}")
    sheet = book.worksheets[0]
    first = int("".join(filter(str.isdigit, sheet.freeze_panes or "A1")))
    cells = [
        cell.value
        for line in sheet.iter_rows(min_row=first, min_col=2)
        for cell in line
        if cell.value is not None
    ]
    if len(cells) != len(rows):
        raise UnreadableError(f"a table of {len(cells)} cells where the CSV has {len(rows)}")
    for number, (cell, row) in enumerate(zip(cells, rows, strict=True)):
        if row.hidden and not isinstance(cell, str):
            value = float(cell) if isinstance(cell, (int, float)) else float("nan")
            yield PageLeak(number, "in the page", value, value)
        elif row.hidden and any(c.isdigit() for c in str(cell)):
            yield PageLeak(number, "in the page", float("nan"), float("nan"))


def _aside(book: Workbook) -> Iterator[str]:
    """Places in which a number may lie out of sight, besides hidden cells' own."""
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            yield f"hidden sheet {sheet.title}"
        sizes = (*sheet.row_dimensions.values(), *sheet.column_dimensions.values())
        if any(size.hidden for size in sizes):
            yield f"hidden rows or columns in {sheet.title}"
        if any(cell.comment for line in sheet.iter_rows() for cell in line):
            yield f"comments in {sheet.title}"
    if book.defined_names:
        yield "defined names"
