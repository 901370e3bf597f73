"""Text tables: delimited files, and tables of cells in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from solver.errors import InputError
from solver.formats.text import Numbers, Problems, did_you_mean, parse_numbers, read_text
from solver.table import EMPTY, CellTable

# A quoted field may be as long as its file; the reader's own limit is there against unclosed quotes, which
# it tells of anyway.
csv.field_size_limit(2**31 - 1)

SEPARATORS = (";", ",", "\t", "|")
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
STATUS_LETTERS: Mapping[str, str] = {
    "S": "s",
    "U": "u",
    "P": "z",
    "Z": "z",
    "X": "x",
    "M": "x",
    "TRUE": "u",
    "FALSE": "s",
}
"""Status marks in a file and the status each means; upper and lower case are one."""


@dataclass(frozen=True)
class DelimitedText:
    """A delimited text file as columns of text, with the line on which each record begins."""

    header: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    separator: str
    file: str | None = None

    def column(self, name: str) -> tuple[str, ...]:
        """The column of that name.

        Raises
        ------
        InputError
            If there is none; the columns that there are get named.
        """
        if name not in self.header:
            raise InputError(
                f"column {name} not found; columns are {', '.join(self.header)}.",
                did_you_mean(name, self.header) or "Correct the name.",
                file=self.file,
            )
        return self.columns[self.header.index(name)]


def detect_separator(line: str) -> str:
    """The separator that occurs most often in the line outside of quotes."""
    outside = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def parse_delimited(
    text: str,
    *,
    separator: str | None = None,
    header: bool | Sequence[str] = True,
    file: str | None = None,
) -> DelimitedText:
    """Read delimited text: fields may be quoted, a quote inside is doubled; separators behind the last
    field, as some programs write them, don't count.

    Parameters
    ----------
    separator
        Left out, it is the one of ``; , tab |`` that the first line has most of.
    header
        Whether the first line names the columns, or their names if no line does.

    Raises
    ------
    MultipleInputError
        A record whose number of fields differs from the header's, a column name that occurs twice,
        a quote that does not end; each with its line.
    """
    problems = Problems(file)
    text = text.removeprefix("\ufeff")
    begin = 1
    if separator is None and (told := _SEPARATOR_LINE.match(text)):
        # Spreadsheets say so on a first line of its own.
        separator, begin = told.group(1), 2
        text = text[told.end() :]
    mark = detect_separator(text.split("\n", 1)[0]) if separator is None else separator
    if len(mark) != 1 or mark in '"\r\n':
        raise InputError(f"the separator is {mark!r}.", "Name a single character.", file=file)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    records: list[list[str]] = []
    lines: list[int] = []
    skipped = begin
    try:
        for record in reader:
            if any(field.strip() for field in record) or len(record) > 1:
                records.append(record)
                lines.append(begin)
            begin = reader.line_num + skipped
    except csv.Error as error:
        problems.add(f"{error}.", "Double each quote inside a quoted field and close it.", line=begin)
        problems.stop()
    if header is True:
        if not records:
            problems.add("the file is empty.", "Its first line names the columns.", line=1)
            problems.stop()
        names = tuple(name.strip() for name in records.pop(0))
        while len(names) > 1 and not names[-1]:
            names = names[:-1]
        top = lines.pop(0)
    else:
        width = len(records[0]) if records else 0
        names = tuple(header) if header is not False else tuple(str(i + 1) for i in range(width))
        top = 1
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.add(f"column {name!r} occurs twice.", "Give each column its own name.", line=top)
    for record, line in zip(records, lines, strict=True):
        # Separators behind the last field of a line mean nothing.
        while len(record) > len(names) and not record[-1].strip():
            record.pop()
        if len(record) != len(names):
            fields = f"{len(record)} field{'s' if len(record) != 1 else ''}"
            problems.add(
                f"line {line} has {fields}, header has {len(names)}.",
                f"Quote a field that contains {mark!r}.",
                line=line,
            )
    problems.stop()
    columns = tuple(zip(*records, strict=True)) if records else tuple(() for _ in names)
    return DelimitedText(names, columns, tuple(lines), mark, file)


def read_delimited(
    path: str | Path,
    *,
    separator: str | None = None,
    header: bool | Sequence[str] = True,
    encoding: str | None = None,
) -> DelimitedText:
    """Read a delimited file; see :func:`parse_delimited`."""
    return parse_delimited(read_text(path, encoding), separator=separator, header=header, file=str(path))


def format_delimited(
    header: Sequence[str] | None, columns: Sequence[Sequence[object]], *, separator: str = ";"
) -> str:
    """Delimited text that :func:`parse_delimited` reads back; fields are quoted where they must be."""
    special = re.compile(f'[{re.escape(separator)}"\r\n]')

    def quoted(field: object) -> str:
        text = str(field)
        return '"' + text.replace('"', '""') + '"' if special.search(text) else text

    rows = zip(*columns, strict=True)
    listed = [header, *rows] if header is not None else [*rows]
    return "".join(separator.join(map(quoted, row)) + "\n" for row in listed)


def _numbers(table: DelimitedText, name: str, decimal: str | None, problems: Problems) -> Numbers:
    numbers = parse_numbers(table.column(name), decimal)
    texts = table.column(name)
    for row in np.flatnonzero(numbers.wrong).tolist():
        problems.add(
            f"{name} is {texts[row]!r}, which is no number with a decimal "
            f"{'comma' if numbers.decimal == ',' else 'point'}.",
            _remedy(texts[row]),
            line=table.lines[row],
        )
    return numbers


def _remedy(text: str) -> str:
    """What to do about a text that is no number."""
    if re.fullmatch(r"[\s.,+-]*\d[\d\s.,+-]*", text):
        return (
            "Write digits without a separator of thousands, with the same decimal mark in the whole column."
        )
    return "Write digits; nothing, a point, a dash or NA where the number is missing."


def _statuses(
    table: DelimitedText, name: str, letters: Mapping[str, str], problems: Problems
) -> tuple[list[str], list[bool]]:
    texts = [text.strip() for text in table.column(name)]
    known = {mark.upper(): status for mark, status in letters.items()}
    seen = {text.upper() for text in texts if text.upper() in known}
    boolean = {"TRUE", "FALSE"}
    need = "TRUE or FALSE" if seen and seen <= boolean else ", ".join(m for m in known if m not in boolean)
    right = [text.upper() in known for text in texts]
    for row, (text, ok) in enumerate(zip(texts, right, strict=True)):
        if not ok:
            told = "empty" if not text else repr(text)
            problems.add(f"{name} is {told}; need {need}.", line=table.lines[row])
    return [known.get(text.upper(), "s") for text in texts], right


def scan_table(
    table: DelimitedText,
    *,
    dims: Sequence[str],
    value: str,
    count: str | None = None,
    status: str | None = None,
    top: Sequence[str] = (),
    cost: str | None = None,
    lpl: str | None = None,
    upl: str | None = None,
    decimal: str | None = None,
    letters: Mapping[str, str] = STATUS_LETTERS,
) -> tuple[CellTable, tuple[InputError, ...]]:
    """Make a table of cells out of text columns, as far as possible.

    A cell whose frequency is missing and whose value is 0 or missing is empty; a missing frequency never
    becomes 1. See :func:`read_table` for the parameters.

    Returns
    -------
    The cells whose lines are right, and all mistakes of the others.
    """
    problems = Problems(table.file)
    columns = {"value": value, "frequency": count, "status": status, "cost": cost, "lpl": lpl, "upl": upl}
    wanted = [("dimension", dim) for dim in dims] + [(f"top {i + 1}", t) for i, t in enumerate(top)]
    absent = False
    for role, name in [*wanted, *columns.items()]:
        if name is not None and name not in table.header:
            cause = f"{role} column {name} not found; columns are {', '.join(table.header)}."
            problems.add(cause, did_you_mean(name, table.header))
            absent = True
    have = {role: name if name in table.header else None for role, name in columns.items()}
    listed = [dim for dim in dims if dim in table.header]
    n = len(table.lines)
    good = np.ones(n, dtype=np.bool_)
    codes = tuple(tuple(code.strip() for code in table.column(dim)) for dim in listed)
    names = [" × ".join(row) for row in zip(*codes, strict=True)] if codes else [""] * n
    numbers: dict[str, Numbers] = {}
    for role in ("value", "frequency", "cost", "lpl", "upl"):
        if (name := have[role]) is not None:
            numbers[role] = _numbers(table, name, decimal, problems)
            good &= ~numbers[role].wrong
    tops = [_numbers(table, name, decimal, problems) for name in top if name in table.header]
    for column in tops:
        good &= ~column.wrong
    states = ["s"] * n
    if (name := have["status"]) is not None:
        states, right = _statuses(table, name, letters, problems)
        good &= np.array(right, dtype=np.bool_)
    if "value" in numbers:
        good &= _fill_missing(numbers, states, names, table, problems)
    seen: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(zip(*codes, strict=True)):
        if key in seen and not absent:
            first = f"line {table.lines[seen[key]]}"
            problems.add(f"cell {names[row]} is on {first} already.", "Keep one.", line=table.lines[row])
            good[row] = False
        seen.setdefault(key, row)
    rows = np.flatnonzero(good)
    pick = rows.tolist()

    def column_of(role: str) -> NDArray[np.float64] | None:
        return numbers[role].value[rows] if role in numbers else None

    frequency = column_of("frequency")
    cells = CellTable(
        dims=tuple(listed),
        codes=tuple(tuple(column[row] for row in pick) for column in codes),
        value=numbers["value"].value[rows] if "value" in numbers else np.zeros(len(rows)),
        decimals=tuple(numbers["value"].decimals[row] for row in pick) if "value" in numbers else None,
        count=None if frequency is None else frequency.astype(np.int64),
        status=tuple(states[row] for row in pick),
        top=np.column_stack([t.value for t in tops])[rows] if tops else None,
        weight=column_of("cost"),
        lpl=column_of("lpl"),
        upl=column_of("upl"),
        lines=tuple(table.lines[row] for row in pick),
        file=table.file,
    )
    ordered = sorted(problems.found, key=lambda error: error.line or 0)
    return cells, tuple(ordered)


def _fill_missing(
    numbers: Mapping[str, Numbers],
    states: list[str],
    names: Sequence[str],
    table: DelimitedText,
    problems: Problems,
) -> NDArray[np.bool_]:
    """Decide what a missing value or frequency means; changes ``states`` of empty cells."""
    value = numbers["value"]
    good = np.ones(len(states), dtype=np.bool_)
    frequency = numbers.get("frequency")
    unsafe = np.array([state == "u" for state in states], dtype=np.bool_)
    nothing = value.missing | ((value.value == 0) & ~value.wrong)
    if frequency is None:
        nobody, unknown = value.missing, np.zeros(len(states), dtype=np.bool_)
    else:
        nobody = frequency.missing | ((frequency.value == 0) & ~frequency.wrong)
        unknown = frequency.missing
        fractional = frequency.value != np.floor(frequency.value)
        for row in np.flatnonzero(fractional | (frequency.value < 0)).tolist():
            problems.add(
                f"{names[row]} has frequency {frequency.decimals[row]}.",
                "Give a whole number of contributors.",
                line=table.lines[row],
            )
            good[row] = False
    cases = (
        (nobody & value.missing & unsafe, "has no value and no frequency but status unsafe."),
        (value.missing & ~nobody, "has contributors but no value."),
        (unknown & ~nothing, "has a value but no frequency."),
    )
    for mask, cause in cases:
        for row in np.flatnonzero(mask & good).tolist():
            problems.add(f"{names[row]} {cause}", "Complete or drop the line.", line=table.lines[row])
            good[row] = False
    empty = nobody & nothing & ~unsafe
    for row in np.flatnonzero(empty & good).tolist():
        states[row] = EMPTY
    return good


def read_table(
    path: str | Path,
    *,
    dims: Sequence[str],
    value: str,
    count: str | None = None,
    status: str | None = None,
    top: Sequence[str] = (),
    cost: str | None = None,
    lpl: str | None = None,
    upl: str | None = None,
    decimal: str | None = None,
    letters: Mapping[str, str] = STATUS_LETTERS,
    separator: str | None = None,
    header: bool | Sequence[str] = True,
    encoding: str | None = None,
) -> CellTable:
    """Read a table of cells, one a line.

    Parameters
    ----------
    dims, value, count, status, top, cost, lpl, upl
        Names of the columns; all but the first two may be left out.
    decimal
        ``"."`` or ``","``; left out, a column with commas and no points has decimal commas.
    letters
        What each status mark means: s, u, z (must be shown), x (hidden beforehand).

    Raises
    ------
    MultipleInputError
        Every mistake of the file in one go, with its line.
    """
    text = read_delimited(path, separator=separator, header=header, encoding=encoding)
    cells, mistakes = scan_table(
        text,
        dims=dims,
        value=value,
        count=count,
        status=status,
        top=top,
        cost=cost,
        lpl=lpl,
        upl=upl,
        decimal=decimal,
        letters=letters,
    )
    problems = Problems(str(path), list(mistakes))
    problems.stop()
    return cells


def write_table(table: CellTable, path: str | Path, *, separator: str = ";", decimal: str = ".") -> None:
    """Write a table of cells so that :func:`read_table` reads it back: dimensions, value, freq, top1…,
    cost, lpl, upl, status, as far as the table has them."""

    def numbers(column: NDArray[np.float64]) -> list[str]:
        return [np.format_float_positional(x, trim="-").replace(".", decimal) for x in column]

    header, columns = list(table.dims), [list(column) for column in table.codes]
    exact = table.decimals
    header.append("value")
    columns.append(numbers(table.value) if exact is None else [d.replace(".", decimal) for d in exact])
    if table.count is not None:
        header.append("freq")
        columns.append([str(c) for c in table.count])
    if table.top is not None:
        header += [f"top{j + 1}" for j in range(table.top.shape[1])]
        columns += [numbers(table.top[:, j]) for j in range(table.top.shape[1])]
    for name, column in {"cost": table.weight, "lpl": table.lpl, "upl": table.upl}.items():
        if column is not None:
            header.append(name)
            columns.append(numbers(column))
    header.append("status")
    columns.append(["S" if s == EMPTY else {"z": "P"}.get(s, s.upper()) for s in table.status])
    Path(path).write_text(format_delimited(header, columns, separator=separator), encoding="utf-8")
