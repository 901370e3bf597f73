"""CSPLib/JJ problem files: `0`, n, n cells, m, m relations; `.jj`, `.csp`, gzipped or not.

A cell line is `id value weight status lb ub lpl upl spl [name]`, a relation line
`rhs k : id (coef) id (coef) …`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from solver.arguments import as_path
from solver.errors import InputError, MultipleInputError
from solver.formats.text import Problems
from solver.instance import Instance, Status

_TERM = re.compile(r"(\S+)\s*\(\s*([^()\s]+)\s*\)")
_UNBOUNDED = 1e20
# What a remedy tells, and how much of a line a message shows.
_FIELDS = "id value weight status lb ub lpl upl spl [name]"
_NUMBERS = ("value", "weight", "lb", "ub", "lpl", "upl", "spl")
_RELATION = "rhs k : id (coef) id (coef) …"
_WHOLE = "Give a whole JJ file: 0, the number of cells, the cells, the number of relations, the relations."
_COUNTED = "Correct the number of relations, or take it out."
_SHOWN = 40
# After so many mistakes a file is something else.
_MOST_MISTAKES = 50

# Id, status, numbers, the value as written, name; right-hand side, cells with their coefficients.
_Row = tuple[str, int, tuple[float, ...], str, str]
_Relation = tuple[float, list[tuple[int, float]]]


def read_jj(path: str | Path) -> Instance:
    """Read a JJ file.

    Raises
    ------
    InputError
        Names file, line and cause.
    """
    place = as_path(path, "a file")
    file = str(place)
    try:
        raw = place.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except OSError as error:
        # A broken archive is one too, without a word of the system.
        cause = "a broken gzip file" if error.strerror is None else f"cannot be read: {error.strerror}"
        raise InputError(f"{cause}.", "Give a JJ file, plain or gzipped.", file=file) from None
    except (EOFError, zlib.error):
        raise InputError("a broken gzip file.", "Give a JJ file, plain or gzipped.", file=file) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError("not text.", "Give a JJ file, plain or gzipped.", file=file, line=line) from None
    return parse_jj(text, file)


def parse_jj(text: str, file: str | None = None) -> Instance:
    """Parse the text of a JJ file; `file` is for error messages."""
    problems = Problems(file)
    try:
        rows, places, relations = _read(_Lines(text, file), problems)
    except InputError as error:
        if not isinstance(error, MultipleInputError):
            problems.extend(error)
    if len(problems.found) == 1:
        raise problems.found[0]
    problems.stop()
    n = len(rows)
    sizes = [len(terms) for _, terms in relations]
    entries = [entry for _, terms in relations for entry in terms]
    numbers = np.array([row[2] for row in rows], dtype=np.float64).reshape(n, 7)
    lower, upper = numbers[:, 2], numbers[:, 3]
    named = any(row[4] for row in rows)
    numbered = all(row[0] == str(k) for k, row in enumerate(rows))
    try:
        return Instance(
            value=numbers[:, 0],
            weight=numbers[:, 1],
            lower_bound=np.where(lower <= -_UNBOUNDED, -np.inf, lower),
            upper_bound=np.where(upper >= _UNBOUNDED, np.inf, upper),
            lpl=numbers[:, 4],
            upl=numbers[:, 5],
            spl=numbers[:, 6],
            status=np.array([row[1] for row in rows], dtype=np.int8),
            indptr=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            indices=np.array([cell for cell, _ in entries]),
            coefs=np.array([coef for _, coef in entries]),
            rhs=np.array([right for right, _ in relations]),
            names=None if numbered and not named else tuple(row[4] or row[0] for row in rows),
            decimals=tuple(row[3] for row in rows),
        )
    except InputError as error:
        names = [row[4] or row[0] for row in rows]
        # A relation's mistake names a cell too, but isn't on its line.
        known = error.cell in names and not error.cause.startswith("relation ")
        line = places[names.index(str(error.cell))] if known else None
        raise InputError(error.cause, error.remedy, file=file, line=line, cell=error.cell) from None


def _read(lines: _Lines, problems: Problems) -> tuple[list[_Row], list[int], list[_Relation]]:
    """The cells, their lines, and the relations; mistakes are noted, up to so many."""
    lines.next("the first line, 0,")
    rows, places = list[_Row](), list[int]()
    ids: dict[str, int] = {}
    for k in range(lines.count("cells")):
        row = _cell(lines, problems)
        if row[0] in ids:
            cause = f"the id {row[0]} is that of line {places[ids[row[0]]]} too."
            problems.add(cause, "Give each cell its own.", line=lines.number)
        ids.setdefault(row[0], k)
        rows.append(row)
        places.append(lines.number)
        if len(problems.found) >= _MOST_MISTAKES:
            problems.stop()
    relations = list[_Relation]()
    for _ in range(lines.count("relations")):
        relations.append(_relation(lines, ids, problems))
        if len(problems.found) >= _MOST_MISTAKES:
            problems.stop()
    lines.end()
    return rows, places, relations


def format_jj(instance: Instance) -> str:
    """The text of a JJ file for an instance.

    Raises
    ------
    InputError
        Insiders cannot be written in this format.
    """
    if instance.insiders:
        raise InputError("a JJ file cannot hold insiders.", "Write a case (a name that ends in .json).")
    bounds = (
        np.clip(instance.lower_bound, -_UNBOUNDED, _UNBOUNDED),
        np.clip(instance.upper_bound, -_UNBOUNDED, _UNBOUNDED),
    )
    texts = instance.decimals or tuple(_number(v) for v in instance.value)
    out = ["0", str(instance.n)]
    for i in range(instance.n):
        numbers = (bounds[0][i], bounds[1][i], instance.lpl[i], instance.upl[i], instance.spl[i])
        fields = [str(i), texts[i], _number(instance.weight[i]), Status(instance.status[i]).code]
        fields += [_number(v) for v in numbers]
        if instance.names is not None:
            fields.append(instance.names[i])
        out.append(" ".join(fields))
    out.append(str(instance.m))
    for r in range(instance.m):
        part = slice(instance.indptr[r], instance.indptr[r + 1])
        terms = zip(instance.indices[part], instance.coefs[part], strict=True)
        listed = " ".join(f"{i} ({_number(c)})" for i, c in terms)
        out.append(f"{_number(instance.rhs[r])} {part.stop - part.start} : {listed}".rstrip())
    return "\n".join(out) + "\n"


def write_jj(instance: Instance, path: str | Path) -> None:
    """Write a JJ file, gzipped if the name ends in `.gz`."""
    data = format_jj(instance).encode()
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    Path(path).write_bytes(data)


class _Lines:
    """Non-empty lines with their numbers."""

    def __init__(self, text: str, file: str | None) -> None:
        numbered = enumerate(text.splitlines(), 1)
        self._rest: Iterator[tuple[int, str]] = ((k, line) for k, line in numbered if line.strip())
        self._file = file
        self.number = 0

    def next(self, expected: str) -> str:
        found = next(self._rest, None)
        if found is None:
            ends = f"the file ends where {expected} should be."
            raise InputError(ends, _WHOLE, file=self._file, line=self.number or 1)
        self.number, line = found
        return line

    def count(self, of: str) -> int:
        line = self.next(f"the number of {of}")
        try:
            result = int(line)
        except ValueError:
            result = -1
        if result < 0:
            raise self.error(f"expected the number of {of}, found “{line.strip()[:_SHOWN]}”.", _WHOLE)
        return result

    def end(self) -> None:
        found = next(self._rest, None)
        if found is not None:
            self.number, line = found
            raise self.error(f"text after the last relation: “{line.strip()[:_SHOWN]}”.", _COUNTED)

    def error(self, cause: str, remedy: str) -> InputError:
        return InputError(cause, remedy, file=self._file, line=self.number)


def _cell(lines: _Lines, problems: Problems) -> _Row:
    """The cell of the next line; what is wrong with it is noted, and a cell like any takes its place."""
    line = lines.next("a cell")
    words = line.split(None, 9)
    if len(words) < 9:
        problems.add("a cell needs 9 fields.", f"Write {_FIELDS}.", line=lines.number)
        return words[0], int(Status.FREE), (0.0,) * 7, "0", ""
    status, numbers = int(Status.FREE), []
    try:
        status = int(Status.from_code(words[3]))
    except ValueError:
        problems.add(
            f"there is no status “{words[3][:_SHOWN]}”.",
            "Use one of u, s, z, x, v.",
            line=lines.number,
            cell=words[0],
        )
    for field, word in zip(_NUMBERS, (words[1], words[2], *words[4:9]), strict=True):
        try:
            numbers.append(float(word))
        except ValueError:
            numbers.append(0.0)
            cause = f"{field} is no number: “{word[:_SHOWN]}”."
            problems.add(cause, "Write a number, with a point.", line=lines.number, cell=words[0])
    return words[0], status, tuple(numbers), words[1], words[9].strip() if len(words) > 9 else ""


def _relation(
    lines: _Lines, ids: dict[str, int], problems: Problems
) -> tuple[float, list[tuple[int, float]]]:
    """The relation of the next line; what is wrong with it is noted, and an empty one takes its place."""
    line = lines.next("a relation")
    head, colon, tail = line.partition(":")
    words = head.split()
    if not colon or len(words) != 2:
        problems.add("this is no relation.", f"Write {_RELATION}.", line=lines.number)
        return 0.0, []
    terms, found = [], _TERM.findall(tail)
    try:
        right, size = float(words[0]), int(words[1])
        terms = [(ids[name], float(coef)) for name, coef in found]
    except KeyError as error:
        cause = f"the relation names cell {error.args[0]}, which is not listed."
        problems.add(cause, "List it among the cells, or leave it out.", line=lines.number)
        return 0.0, []
    except ValueError as error:
        cause = f"not a number: {str(error).rpartition(': ')[2][:_SHOWN]}."
        problems.add(cause, f"Write {_RELATION}.", line=lines.number)
        return 0.0, []
    if len(terms) != size or _TERM.sub("", tail).strip():
        cause = f"the relation announces {size} terms and has {len(terms)} readable ones."
        problems.add(cause, f"Write {_RELATION}, k of them.", line=lines.number)
    return right, terms


def _number(value: float) -> str:
    return (
        format(float(value), ".0f") if float(value).is_integer() and abs(value) < 1e16 else repr(float(value))
    )
