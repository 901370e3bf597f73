"""What the text formats share: decoding, finding files, numbers, and telling all mistakes at once."""

from __future__ import annotations

import codecs
import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arguments import as_path
from solver.discreet import Discreet
from solver.errors import InputError, MultipleInputError

MISSING_NUMBERS = frozenset(("", ".", "-", "NA"))
"""Marks of a missing number: nothing, SAS's point, a dash, R's NA."""

_NUMBER = {
    ".": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?"),
}
# Of marks that begin alike the longer ones come first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass
class Problems:
    """Mistakes found so far in one file; raised together."""

    file: str | None = None
    found: list[InputError] = field(default_factory=list)

    def add(self, cause: str, remedy: str = "", *, line: int | None = None, cell: str | None = None) -> None:
        """Note one mistake."""
        self.found.append(InputError(cause, remedy, file=self.file, line=line, cell=cell))

    def extend(self, error: InputError) -> None:
        """Note a mistake, or several, that were raised elsewhere."""
        self.found.extend(error.problems if isinstance(error, MultipleInputError) else (error,))

    def stop(self) -> None:
        """Raise what was found, if anything.

        Raises
        ------
        MultipleInputError
        """
        if self.found:
            raise MultipleInputError(self.found)


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """The text of a file without its byte order mark; UTF-8, or UTF-16 or UTF-32 if it is so marked.

    Raises
    ------
    InputError
        If the file can't be read or isn't in that encoding; the line is named.
    """
    place = as_path(path, "a file")
    file = str(place)
    try:
        raw = place.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}.", "Check name and permissions.", file=file
        ) from None
    guess = encoding or next((name for mark, name in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(guess).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        likely = "utf-16-le" if 0 in raw else "cp1252"
        raise InputError(
            f"not {guess}: byte {raw[error.start]:#04x} can't be decoded.",
            f'Save it as UTF-8, or name the encoding where that can be said, such as encoding="{likely}".',
            file=file,
            line=line,
        ) from None
    except LookupError:
        raise InputError(
            f"there is no encoding {guess!r}.", "Name one that Python knows.", file=file
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        remedy = 'Give text; if it is UTF-16 without a mark, say encoding="utf-16-le" or "utf-16-be".'
        raise InputError("there is a zero byte, which no text has.", remedy, file=file, line=line)
    return text


def parse_json(text: str, file: str | None = None, **hooks: Callable[..., Any]) -> Any:
    """What a JSON text holds; ``hooks`` are those of :func:`json.loads`.

    Raises
    ------
    InputError
        If it is no JSON, with its line, or nested beyond all sense.
    """
    try:
        return json.loads(text.removeprefix("\ufeff"), **hooks)  # type: ignore[arg-type]
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}.", file=file, line=error.lineno) from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply.", "Give a flatter one.", file=file) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}.", file=file) from None


def read_json(path: str | Path, encoding: str | None = None, **hooks: Callable[..., Any]) -> Any:
    """What a JSON file holds; see :func:`parse_json`."""
    return parse_json(read_text(path, encoding), str(path), **hooks)


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1."""
    return [(i, line) for i, line in enumerate(text.splitlines(), start=1) if line.strip()]


def find_file(directory: str | Path, name: str, *, file: str | None = None, line: int | None = None) -> Path:
    """A file that another one names: the directory in a name written on Windows is dropped if need be, and
    upper and lower case may differ if only one file fits.

    Raises
    ------
    InputError
        If none or several fit; says which names were tried.
    """
    wanted = Path(name.replace("\\", "/"))
    base = Path(directory)
    for candidate in (base / wanted, base / wanted.name):
        if candidate.is_file():
            return candidate
    similar = sorted(p for p in base.iterdir() if p.name.lower() == wanted.name.lower() and p.is_file())
    if len(similar) == 1:
        return similar[0]
    if similar:
        cause = f"{name!r} could be {' or '.join(p.name for p in similar)}."
        raise InputError(cause, "Write the name as on disk.", file=file, line=line)
    raise InputError(
        f"there is no file {wanted.name!r}, in upper or lower case, beside the file that names it.",
        "Put it there or correct the name.",
        file=file,
        line=line,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Numbers(Discreet):
    """A column of numbers: f8[n] (0 where missing), their exact decimals, and bool[n] masks."""

    value: NDArray[np.float64]
    decimals: tuple[str, ...]
    missing: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    decimal: str


def decimal_mark(texts: Sequence[str], decimal: str | None = None) -> str:
    """The mark that this column uses: the one given, or a comma if some number has one and none a point."""
    if decimal is not None:
        return decimal
    commas = any("," in text for text in texts)
    return (
        ","
        if commas and not any("." in t.strip() for t in texts if t.strip() not in MISSING_NUMBERS)
        else "."
    )


def parse_numbers(texts: Sequence[str], decimal: str | None = None) -> Numbers:
    """Read a column of numbers with decimal point or comma; what is no number is marked, not guessed.

    A separator of thousands is not read: ``1.234,5`` and ``1,234.5`` are marked as wrong.
    """
    mark = decimal_mark(texts, decimal)
    pattern = _NUMBER[mark]
    stripped = [text.strip() for text in texts]
    missing = np.array([text in MISSING_NUMBERS for text in stripped], dtype=np.bool_)
    right = np.array([pattern.fullmatch(text) is not None for text in stripped], dtype=np.bool_)
    plain = tuple(
        text.replace(",", ".") if ok else "0" for text, ok in zip(stripped, right.tolist(), strict=True)
    )
    value = np.array(plain, dtype=np.str_).astype(np.float64) if plain else np.zeros(0)
    wrong = ~(right | missing) | ~np.isfinite(value)
    return Numbers(np.where(wrong, 0, value), plain, missing, wrong, mark)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A remedy that tells the name that is nearest to a wrong one; empty if none is near."""
    name, listed = str(name), [str(other) for other in names]
    alike = [other for other in listed if other.casefold() == name.casefold()]
    near = alike or difflib.get_close_matches(name, listed, 1)
    return f"Did you mean {near[0]}?" if near and len(name) < 200 else ""


def line_ranges(lines: Sequence[int]) -> str:
    """``line 4`` or ``lines 2-3, 7``."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in spans]
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(texts)}"
