"""Reading a spreadsheet download: its cells stand in the order of the tidy CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from zipfile import BadZipFile

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from app.redteam.pages import PageLeak
from app.redteam.tables import TableRow, UnreadableError


def workbook_leaks(content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Hidden cells that a workbook tells: anything but a text without digits in their place.

    Raises
    ------
    UnreadableError
        It is no workbook, or its table has another size than the CSV.
    """
    try:
        book = load_workbook(BytesIO(content))
    except (BadZipFile, InvalidFileException, KeyError) as error:
        raise UnreadableError(f"no workbook: {error}") from error
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
