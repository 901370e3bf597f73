from io import BytesIO

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment

from app.redteam.tables import TableRow, UnreadableError
from app.redteam.workbook import workbook_leaks

ROWS = [TableRow({}, {}, value, 0, value is None) for value in (5.0, None, 7.0)]


def workbook(*cells: object) -> bytes:
    book = Workbook()
    sheet = book.worksheets[0]
    sheet["A1"], sheet["B1"], sheet.freeze_panes = "Title", "Header", "B2"
    for row, value in enumerate(cells, 2):
        sheet.cell(row, 1, "Place")
        sheet.cell(row, 2, value)
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_a_clean_workbook_tells_nothing() -> None:
    assert list(workbook_leaks(workbook(5, "[c]", 7), ROWS)) == []


@pytest.mark.parametrize("told", [42, "42", "=40+2", 4.2])
def test_anything_with_a_number_in_a_hidden_cells_place_is_a_leak(told: object) -> None:
    (leak,) = workbook_leaks(workbook(5, told, 7), ROWS)
    assert leak.row == 1


def test_what_lies_out_of_sight_is_reported() -> None:
    book = load_workbook(BytesIO(workbook(5, "[c]", 7)))
    book.create_sheet("Raw").sheet_state = "hidden"
    book.worksheets[0].row_dimensions[9].hidden = True
    book.worksheets[0]["A3"].comment = Comment("it was 42", "office")
    stream = BytesIO()
    book.save(stream)
    with pytest.raises(UnreadableError, match=r"hidden sheet Raw.*|hidden rows.*comments"):
        list(workbook_leaks(stream.getvalue(), ROWS))


def test_other_sizes_and_other_files_are_refused() -> None:
    with pytest.raises(UnreadableError, match="2 cells"):
        list(workbook_leaks(workbook(5, 7), ROWS))
    with pytest.raises(UnreadableError, match="no workbook"):
        list(workbook_leaks(b"OBS_VALUE", ROWS))
