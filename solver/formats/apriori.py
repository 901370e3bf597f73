"""A-priori (history) files: what was decided about single cells before.

Each line holds the codes of a cell, a letter, and what the letter needs::

    North;A;s
    North;B;c;25
    South;A;pl;3;5

=========  ==================================================================
letter     meaning
=========  ==================================================================
``u``      sensitive
``s``      safe, whatever the rules say
``p``      protected from suppression: must be shown
``m, ml``  hidden beforehand (an earlier secondary suppression)
``c, w``   cost of hiding the cell
``pl``     lower and upper protection level of a sensitive cell
``ab``     lowest and highest value that every reader knows
=========  ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solver.errors import InputError
from solver.formats.tabular import detect_separator, format_delimited, parse_delimited
from solver.formats.text import Problems, numbered_lines, parse_numbers, read_text

NUMBERS = {"u": 0, "s": 0, "p": 0, "m": 0, "ml": 0, "c": 1, "w": 1, "pl": 2, "ab": 2}
"""How many numbers follow each letter."""


def _numbers(count: int) -> str:
    return f"{count or 'no'} number{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class Apriori:
    """One decision: the cell's codes, the letter, its numbers, and where it was written."""

    codes: tuple[str, ...]
    action: str
    numbers: tuple[float, ...] = ()
    line: int | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if self.action not in NUMBERS:
            raise InputError(
                f"{self.action!r} is no a-priori letter.",
                f"Use one of {', '.join(NUMBERS)}.",
                file=self.file,
                line=self.line,
            )
        if len(self.numbers) != NUMBERS[self.action]:
            raise InputError(
                f"{self.action!r} needs {_numbers(NUMBERS[self.action])} and has {len(self.numbers)}.",
                file=self.file,
                line=self.line,
            )
        if self.action in ("c", "w", "pl") and min(self.numbers) < 0:
            raise InputError(
                f"a number of {self.action!r} is negative.", "Give 0 or more.", file=self.file, line=self.line
            )
        if self.action == "ab" and self.numbers[0] > self.numbers[1]:
            raise InputError(
                "the lowest value is above the highest.", "Swap them.", file=self.file, line=self.line
            )


def parse_apriori(
    text: str,
    *,
    dims: int,
    separator: str | None = None,
    decimal: str | None = None,
    file: str | None = None,
) -> tuple[Apriori, ...]:
    """Read the text of an a-priori file for a table of ``dims`` dimensions.

    Raises
    ------
    MultipleInputError
        Every line with too few fields, an unknown letter or a wrong number.
    """
    problems = Problems(file)
    text = text.removeprefix("\ufeff")
    found: list[Apriori] = []
    for line, content in numbered_lines(text):
        mark = separator or detect_separator(content)
        try:
            record = parse_delimited(content, separator=mark, header=False, file=file)
        except InputError as error:
            problems.add(error.cause, error.remedy, line=line)
            continue
        fields = [column[0].strip() for column in record.columns]
        while len(fields) > dims + 1 and not fields[-1]:
            fields.pop()
        if len(fields) <= dims:
            problems.add(
                f"{len(fields)} field{'s' if len(fields) != 1 else ''}, but {dims} "
                f"code{'s' if dims != 1 else ''} and a letter are needed.",
                f"The separator is read as {mark!r}; name another if that is wrong.",
                line=line,
            )
            continue
        numbers = parse_numbers(fields[dims + 1 :], decimal)
        if (numbers.wrong | numbers.missing).any():
            odd = ", ".join(map(repr, fields[dims + 1 :]))
            problems.add(f"{odd} should be numbers.", "Correct them.", line=line)
            continue
        try:
            letter = fields[dims].lower()
            found.append(
                Apriori(tuple(fields[:dims]), letter, tuple(numbers.value.tolist()), line=line, file=file)
            )
        except InputError as error:
            problems.extend(error)
    problems.stop()
    return tuple(found)


def read_apriori(
    path: str | Path,
    *,
    dims: int,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> tuple[Apriori, ...]:
    """Read an a-priori file; see :func:`parse_apriori`."""
    text = read_text(path, encoding)
    return parse_apriori(text, dims=dims, separator=separator, decimal=decimal, file=str(path))


def write_apriori(entries: Sequence[Apriori], path: str | Path, *, separator: str = ";") -> None:
    """Write an a-priori file that :func:`read_apriori` reads back."""
    lines = []
    for entry in entries:
        fields = [*entry.codes, entry.action, *(repr(x).removesuffix(".0") for x in entry.numbers)]
        lines.append(format_delimited(None, [[field] for field in fields], separator=separator))
    Path(path).write_text("".join(lines), encoding="utf-8")
