"""Uploaded facts: how they are written, and their rows as texts; what can't be read is told by line."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from charset_normalizer import from_bytes
from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from app.domain.errors import OperatorError, UserError
from app.office.archive import plainly_packed

#: Encodings that a reader may choose; the first is tried first.
ENCODINGS = ("utf-8", "cp1252", "iso8859-15", "utf-16", "cp850", "mac-roman")
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
#: Bytes that a compressed file may unpack to, and how many times its own size; some are always allowed.
LARGEST = 4 << 30
LARGEST_WORKBOOK = 100 << 20
_SWELLS = 200
_FREE_SWELLING = 64 << 20
MOST_COLUMNS = 200
#: Lines that a workbook's sheet can have.
MOST_LINES = 1 << 20
MOST_PROBLEMS = 200
_HEAD = 1 << 18
_LONGEST_FIELD = 1 << 16
_TOO_LONG = f"field larger than field limit ({_LONGEST_FIELD})"
#: Letters of one record, over however many lines a quote that nobody closes makes it go.
_LONGEST_RECORD = 1 << 24
_LONGEST_LINE = 1 << 22
#: What openpyxl raises on files that aren't quite workbooks; it says nothing of any.
_UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError, InvalidFileException, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_TOO_MUCH = "The file unpacks to more than is allowed."

_COMMA_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+")
_POINT_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)\.\d+")


@dataclass(frozen=True)
class Writing:
    """How a file is written: ``kind`` csv, parquet or xlsx; the others matter to csv alone."""

    kind: str
    encoding: str = "utf-8"
    bom: bool = False
    separator: str = ","
    decimal: str = "."


@dataclass(frozen=True)
class Problem:
    """What is wrong at a line of the data (1-based, the names are line 1); ``fatal``: it can't be read."""

    line: int
    column: str
    cause: str
    fatal: bool = False


def detect(path: Path, name: str) -> Writing:
    """How a file is written, judged by its bytes.

    Raises
    ------
    UserError
        If it is of no kind that can be read.
    OperatorError
        If it can't be opened.
    """
    lowered = name.lower()
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise OperatorError(f"File {name} can't be read: {error.strerror}.") from error
    if start == b"PAR1":
        return Writing("parquet")
    if start[:2] == b"PK" and lowered.endswith((".xlsx", ".xlsm")):
        return Writing("xlsx")
    if not lowered.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")):
        raise UserError(
            "Facts are CSV, Parquet or XLSX; this file is none of them by its name and beginning."
        )
    try:
        with _opened(path) as file:
            head = file.read(_HEAD)
            encoding, bom = _encoding(head, file)
    except (OSError, EOFError, zlib.error):
        raise UserError("The file is damaged or isn't what its name says.") from None
    try:
        text = head.decode(encoding, "replace").removeprefix("\ufeff")
    except LookupError:
        encoding, text = "cp1252", head.decode("cp1252", "replace")
    lines = [line[:_LONGEST_FIELD] for line in text.splitlines()[:1000]]
    separator = _separator(lines)
    fields = [item for line in lines[1:] for item in line.replace('"', "").split(separator)]
    commas = sum(1 for item in fields if _COMMA_NUMBER.fullmatch(item.strip()))
    points = sum(1 for item in fields if _POINT_NUMBER.fullmatch(item.strip()))
    return Writing("csv", encoding, bom, separator, "," if commas > points else ".")


def _allowed(path: Path, largest: int = LARGEST, swells: int = _SWELLS) -> int:
    """Bytes, or values, that a compressed file may unpack to."""
    return min(largest, max(_FREE_SWELLING, path.stat().st_size * swells))


class _Unpacked(gzip.GzipFile):
    """A compressed file that is read no further than it may swell."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._left = _allowed(path)

    def read(self, size: int | None = -1) -> bytes:
        return self._counted(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._counted(super().read1(size))

    def _counted(self, body: bytes) -> bytes:
        self._left -= len(body)
        if self._left < 0:
            raise UserError(_TOO_MUCH)
        return body


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return _Unpacked(path) if packed else path.open("rb")  # type: ignore[return-value]


def _encoding(head: bytes, rest: IO[bytes]) -> tuple[str, bool]:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if head.startswith(mark):
            return encoding, True
    if head[1::2].count(0) > len(head) // 4:
        return "utf-16", False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        body = head
        while body:
            decoder.decode(body)
            body = rest.read(1 << 20)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        best = from_bytes(head[: 1 << 16], cp_isolation=[*ENCODINGS[1:3], *ENCODINGS[4:]]).best()
        return (best.encoding.replace("_", "-") if best is not None else "cp1252"), False
    return "utf-8", False


def _separator(lines: Sequence[str]) -> str:
    """The one that cuts the first lines into the same number of fields, and the most of them."""

    def merit(separator: str) -> tuple[bool, int]:
        try:
            counts = Counter(len(row) for row in csv.reader(lines[:50], delimiter=separator))
        except csv.Error:
            return False, 0
        width, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        return width > 1 and times >= 0.8 * min(len(lines), 50), width

    return max(SEPARATORS.values(), key=merit)


# ---------------------------------------------------------------------- reading


@dataclass
class Rows:
    """Rows as texts, numbers with a point; ``problems`` grow while they are read."""

    names: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]
    problems: list[Problem] = field(default_factory=list)
    left_out: int = 0

    def tell(self, line: int, column: str, cause: str, fatal: bool = False) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(line, column, cause, fatal))
        else:
            self.left_out += 1


def read_rows(path: Path, writing: Writing) -> Rows:
    """The rows of a file, which are read as they are asked for.

    Raises
    ------
    UserError
        If not even its columns can be read.
    """
    if writing.kind == "parquet":
        return _read_parquet(path)
    if writing.kind == "xlsx":
        return _read_workbook(path)
    return _read_csv(path, writing)


def _read_csv(path: Path, writing: Writing) -> Rows:
    if writing.encoding not in ENCODINGS:
        raise UserError("There is no such encoding.")
    letters = 0

    def counted(lines: Iterator[str]) -> Iterator[str]:
        nonlocal letters
        for line in lines:
            letters += len(line)
            if letters > _LONGEST_RECORD:
                raise csv.Error(_TOO_LONG)
            yield line

    try:
        lines = counted(_text_lines(path, writing.encoding))
        reader = csv.reader(lines, delimiter=writing.separator)
        names = _checked_names([name.strip() for name in next(reader, [])])
    except (csv.Error, LookupError, OSError, EOFError, zlib.error):
        raise UserError("The first line doesn't name the columns.") from None
    found = Rows(names, iter(()))

    def rows() -> Iterator[tuple[int, list[str]]]:
        nonlocal letters
        while True:
            letters = 0
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                found.tell(reader.line_num, "", f"The line can't be read: {error}.", True)
                return
            except (OSError, EOFError, zlib.error):
                found.tell(reader.line_num, "", "The file ends in the middle, or is damaged.", True)
                return
            line = reader.line_num
            if not any(row):
                continue
            if max(map(len, row)) > _LONGEST_FIELD:
                # The csv module's own limit is everybody's in this process, the solver's too.
                found.tell(line, "", f"The line can't be read: {_TOO_LONG}.", True)
                return
            if len(row) != len(names):
                found.tell(
                    line, "", f"The line has {len(row)} fields, but there are {len(names)} columns.", True
                )
                continue
            if any("\ufffd" in item for item in row):
                where = next(name for name, item in zip(names, row, strict=True) if "\ufffd" in item)
                found.tell(line, where, f"A letter can't be read as {writing.encoding}.", True)
            yield line, [_plain(item.strip(), writing.decimal) for item in row]

    found.rows = rows()
    return found


def _text_lines(path: Path, encoding: str) -> Iterator[str]:
    if encoding == "utf-16":
        with _opened(path) as file:
            # Python reads it so only where a mark says which byte comes first.
            encoding = encoding if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-16-le"
    with _opened(path) as file, TextIOWrapper(file, encoding, errors="replace", newline="") as text:
        start = "\ufeff"
        while line := text.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise UserError("A line is longer than any that holds data.")
            yield line.removeprefix(start).replace("\0", "\ufffd")
            start = ""


def _plain(text: str, decimal: str) -> str:
    """A number with a decimal comma gets a point; anything else stays."""
    if decimal == "," and ("," in text or "." in text):
        if _COMMA_NUMBER.fullmatch(text):
            return text.replace(".", "").replace(",", ".")
        if re.fullmatch(r"[-+]?\d{1,3}(?:\.\d{3})+", text):
            return text.replace(".", "")
    elif decimal == "." and "," in text and re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        return text.replace(",", "")
    return text


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if not names or not all(names):
        raise UserError("The first line doesn't name every column.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"The first line names {', '.join(twice)[:200]} twice.")
    if len(names) > MOST_COLUMNS:
        raise UserError(f"There are more than {MOST_COLUMNS} columns.")
    if any("\ufffd" in name or not name.isprintable() or len(name) > 100 for name in names):
        raise UserError("A column's name holds a letter that can't be read, or is very long.")
    return tuple(names)


def _read_parquet(path: Path) -> Rows:
    """Every value as a text; texts are read once for all lines that have them.

    A few bytes of a file say that a long text stands in every line, or one number in a thousand million.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema, told = file.schema_arrow, file.metadata
        names = _checked_names(list(schema.names))
        size = sum(told.row_group(number).total_byte_size for number in range(told.num_row_groups))
        if size > _allowed(path) or told.num_rows * len(names) > _allowed(path, swells=_SWELLS // 10):
            raise UserError(_TOO_MUCH)
        usable = [column.name for column in schema if _is_flat(column.type)]
        file = pq.ParquetFile(path, read_dictionary=usable)
    except (pa.ArrowException, OSError):
        raise UserError("The file is damaged or isn't what its name says.") from None

    def rows() -> Iterator[tuple[int, list[str]]]:
        line = 1
        try:
            for batch in file.iter_batches(20_000, columns=usable):
                given = {name: _texts_of(batch.column(name)) for name in usable}
                nothing = [""] * batch.num_rows
                for row in zip(*(given.get(name, nothing) for name in names), strict=True):
                    line += 1
                    yield line, list(row)
        except csv.Error as error:
            found.tell(line, "", f"The line can't be read: {error}.", True)
        except (pa.ArrowException, OSError, ValueError, OverflowError):
            found.tell(line, "", "The file ends in the middle, or is damaged.", True)

    found = Rows(names, rows())
    for name in names:
        if name not in usable:
            found.tell(1, name, "The column holds lists or the like: it is read as empty.")
    return found


def _is_flat(kind: pa.DataType) -> bool:
    """Whether a column has one value in each line, of a length that can be one."""
    width = kind.byte_width if pa.types.is_fixed_size_binary(kind) else 0
    return not pa.types.is_nested(kind) and width <= _LONGEST_FIELD


def _texts_of(column: pa.Array) -> list[str]:
    if not pa.types.is_dictionary(column.type):
        return [_said(value) for value in column.to_pylist()]
    words = [_said(value) for value in column.dictionary.to_pylist()]
    if max(map(len, words), default=0) > _LONGEST_FIELD:
        raise csv.Error(_TOO_LONG)
    return ["" if place is None else words[place] for place in column.indices.to_pylist()]


def _read_workbook(path: Path) -> Rows:
    """The first sheet; what its cells show last, never a formula."""
    try:
        if path.stat().st_size > LARGEST_WORKBOOK:
            raise UserError("A workbook this large can't be read. Save it as CSV or Parquet.")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _allowed(path, LARGEST // 8):
                raise UserError(_TOO_MUCH)
            if not all(map(plainly_packed, entries)):
                raise zipfile.BadZipFile
        book = load_workbook(BytesIO(path.read_bytes()), read_only=True, data_only=True)
        sheet = book.worksheets[0]
        # A row is as wide as its own cells: as wide as the sheet says, one stray cell makes it endless.
        sheet.reset_dimensions()
        lines = sheet.iter_rows(max_row=MOST_LINES, values_only=True)
        names = _checked_names([_said(value) for value in _trimmed(next(lines, ()))])
    except _UNREADABLE:
        raise UserError("The file is damaged or isn't what its name says.") from None

    def rows() -> Iterator[tuple[int, list[str]]]:
        line = 1
        try:
            for row in lines:
                line += 1
                values = [_said(value) for value in row]
                if not any(values):
                    continue
                if any(values[len(names) :]):
                    cause = f"The line has more fields than there are columns: {len(names)}."
                    found.tell(line, "", cause, True)
                    continue
                yield line, [*values, *[""] * len(names)][: len(names)]
        except _UNREADABLE:
            found.tell(line, "", "The file ends in the middle, or is damaged.", True)

    found = Rows(names, rows())
    return found


def _trimmed(row: Iterable[Any]) -> list[Any]:
    values = list(row)
    while values and values[-1] in (None, ""):
        values.pop()
    return values


def _said(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return (
            ""
            if value != value
            else str(int(value))
            if value.is_integer() and abs(value) < 1e15
            else repr(value)
        )
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == datetime.min.time() else value.isoformat()
    return value.isoformat() if isinstance(value, date) else str(value).strip()


def normalise(path: Path, writing: Writing, into: Path) -> None:
    """Write a file as the cube engine reads it: CSV in UTF-8 with commas and points.

    Raises
    ------
    UserError
        If a line can't be read.
    """
    found = read_rows(path, writing)
    with into.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(found.names)
        for _line, row in found.rows:
            writer.writerow(row)
    fatal = [problem for problem in found.problems if problem.fatal]
    if fatal:
        raise UserError(f"Line {fatal[0].line}: {fatal[0].cause}")
