"""Files of facts that are small and say that they are large, and workbooks that are none quite."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from app.domain.errors import UserError
from app.office.intake import ENCODINGS, detect
from app.office.survey import Survey, survey

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def looked_at(path: Path) -> Survey:
    return survey(path, detect(path, path.name))


def test_one_number_in_a_hundred_million_lines_is_too_much(tmp_path: Path) -> None:
    place = tmp_path / "facts.parquet"
    schema = pa.schema([("a", pa.int64())])
    ones = pa.table({"a": np.ones(10_000_000, dtype=np.int64)}, schema)
    with pq.ParquetWriter(place, schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(ones, row_group_size=len(ones))
    assert place.stat().st_size < 1 << 20
    with pytest.raises(UserError, match="unpacks to more"):
        looked_at(place)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()], ids=str)
def test_a_long_text_in_every_line_is_read_once(tmp_path: Path, kind: pa.DataType, compression: str) -> None:
    """Written out for all lines it would take 200 GB."""
    place = tmp_path / "facts.parquet"
    words = pa.array(["z" * 10_000_000], kind)
    long = pa.DictionaryArray.from_arrays(np.zeros(20_000, dtype=np.int32), words)
    pq.write_table(pa.table({"a": np.arange(20_000), "b": long}), place, compression=compression)
    found = looked_at(place)
    assert found.rows == 0
    assert [problem.fatal for problem in found.problems] == [True, True]
    assert "field larger than" in found.problems[0].cause


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["a"], ["b"]]),
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
        pa.array([b"x" * 70_000] * 2, pa.binary(70_000)),
    ],
    ids=["list", "struct", "map", "wide"],
)
def test_a_column_of_lists_is_told_of_and_left_aside(tmp_path: Path, column: pa.Array) -> None:
    place = tmp_path / "facts.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": column}), place)
    found = looked_at(place)
    assert (found.rows, found.columns[1].missing) == (2, 2)
    assert any(problem.column == "b" and "lists" in problem.cause for problem in found.problems)


def test_texts_that_are_shared_stand_in_their_lines(tmp_path: Path) -> None:
    place = tmp_path / "facts.parquet"
    words = ["x", None, "", " y ", "x"]
    pq.write_table(pa.table({"a": words, "b": pa.array(words).dictionary_encode(), "c": range(5)}), place)
    found = looked_at(place)
    assert [row[:2] for row in found.sample] == [("x", "x"), ("", ""), ("", ""), ("y", "y"), ("x", "x")]


def test_utf_16_needs_no_mark_to_be_known(tmp_path: Path) -> None:
    place = tmp_path / "facts.csv"
    place.write_bytes("town,turnover\nCórdoba,12\n".encode("utf-16-le"))
    assert detect(place, place.name).encoding == "utf-16"
    assert looked_at(place).sample == (("Córdoba", "12"),)


@pytest.mark.parametrize("chosen", ENCODINGS)
@pytest.mark.parametrize("written", [*ENCODINGS, "utf-16-be", "utf-32", "utf-7"])
@pytest.mark.parametrize("cut", [0, 1])
def test_any_encoding_may_be_chosen_for_any_file(tmp_path: Path, chosen: str, written: str, cut: int) -> None:
    place = tmp_path / "facts.csv"
    body = "town,turnover\nMérida,12\n".encode(written, "replace")
    place.write_bytes(body[: len(body) - cut])
    with suppress(UserError):
        survey(place, replace(detect(place, place.name), encoding=chosen))


def stray(where: str) -> Callable[[Workbook], None]:
    def fill(book: Workbook) -> None:
        book.active.append(["a", "b"])
        book.active.append([1, 2])
        book.active[where] = "stray"

    return fill


def saved(path: Path, fill: Callable[[Workbook], None]) -> Path:
    book = Workbook()
    fill(book)
    book.save(path)
    return path


@pytest.mark.parametrize(("where", "told"), [("XFD1048576", "more fields"), ("XFD3", "more fields")])
def test_a_cell_far_from_the_others_is_one_cell(tmp_path: Path, where: str, told: str) -> None:
    """Read as wide as the sheet and as long, it would be 17 thousand million."""
    found = looked_at(saved(tmp_path / "facts.xlsx", stray(where)))
    assert found.rows == 1
    assert told in found.problems[0].cause


def charts_alone(book: Workbook) -> None:
    book.remove(book.active)
    book.create_chartsheet("Chart")


def test_a_workbook_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="damaged"):
        looked_at(saved(tmp_path / "facts.xlsx", charts_alone))


CELLS = (
    '<c r="A2" t="d"><v>rubbish</v></c>', '<c r="A2" t="s"><v>999</v></c>', '<c r="A2"><v>1e999</v></c>',
    '<c r="A2"><v>abc</v></c>', '<c r="??"><v>1</v></c>', '<c r="ZZZZZZZZ2"><v>1</v></c>',
    '<c r="A2" t="b"><v>x</v></c>', '<c r="A2" s="1"><v>1e300</v></c>', '<c r="A2" s="-1"><v>1</v></c>',
    '<c><v>1</v></c>', '<c r="A0"><v>1</v></c>', '<c r="A2" t="odd"><v>1</v></c>', "<c/>",
    '</row><row r="x"><c r="A2"><v>1</v></c>', '</row><row r="1000000000"><c r="A1000000000"><v>1</v></c>',
    '</row><row r="-5"><c r="A2"><v>1</v></c>',
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_what_no_spreadsheet_writes_is_told_and_breaks_nothing(tmp_path: Path, cell: str) -> None:
    place = saved(tmp_path / "facts.xlsx", stray("A3"))
    sheet = f'<worksheet xmlns="{SHEET}"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c>'
    sheet += f'</row><row r="2">{cell}</row></sheetData></worksheet>'
    body = place.read_bytes()
    with zipfile.ZipFile(BytesIO(body)) as old, zipfile.ZipFile(place, "w") as new:
        for name in old.namelist():
            new.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else old.read(name))
    found = looked_at(place)
    assert found.rows <= 1
    assert [column.name for column in found.columns] == ["a"]


@pytest.mark.parametrize(
    "text",
    ["a;b\n1;" + "x" * 70_000 + "\n", 'a;b\n1;"' + "y\n" * 9_000_000],
    ids=["a long field", "a quote that nobody closes"],
)
def test_a_field_of_a_text_ends_somewhere(tmp_path: Path, text: str) -> None:
    place = tmp_path / "facts.csv"
    place.write_text(text, "utf-8")
    before = csv.field_size_limit()
    found = looked_at(place)
    assert all(problem.fatal for problem in found.problems)
    assert any("field larger than" in problem.cause for problem in found.problems)
    # The limit of the csv module holds for everybody in the process.
    assert csv.field_size_limit() == before
