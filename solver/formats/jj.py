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
from solver.errors import InputError
from solver.instance import Instance, Status

_TERM = re.compile(r"(\S+)\s*\(\s*([^()\s]+)\s*\)")
_UNBOUNDED = 1e20


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
    lines = _Lines(text, file)
    lines.next("the first line, 0")
    n = lines.count("cells")
    rows = [_cell(lines) for _ in range(n)]
    ids = {row[0]: k for k, row in enumerate(rows)}
    if len(ids) != n:
        raise InputError("two cells have the same id.", file=file)
    m = lines.count("relations")
    indptr, rhs = [0], []
    indices: list[int] = []
    coefs: list[float] = []
    for _ in range(m):
        right, terms = _relation(lines, ids)
        rhs.append(right)
        indices.extend(cell for cell, _ in terms)
        coefs.extend(coef for _, coef in terms)
        indptr.append(len(indices))
    lines.end()
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
            indptr=np.array(indptr),
            indices=np.array(indices),
            coefs=np.array(coefs),
            rhs=np.array(rhs),
            names=None if numbered and not named else tuple(row[4] or row[0] for row in rows),
            decimals=tuple(row[3] for row in rows),
        )
    except InputError as error:
        raise InputError(error.cause, error.remedy, file=file, cell=error.cell) from None


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
            raise InputError(f"the file ends where {expected} should be.", file=self._file, line=self.number)
        self.number, line = found
        return line

    def count(self, of: str) -> int:
        line = self.next(f"the number of {of}")
        try:
            result = int(line)
        except ValueError:
            result = -1
        if result < 0:
            raise self.error(f"expected the number of {of}, found “{line.strip()}”.")
        return result

    def end(self) -> None:
        found = next(self._rest, None)
        if found is not None:
            self.number, line = found
            raise self.error(f"text after the last relation: “{line.strip()[:40]}”.")

    def error(self, cause: str, cell: str | None = None) -> InputError:
        return InputError(cause, file=self._file, line=self.number, cell=cell)


def _cell(lines: _Lines) -> tuple[str, int, tuple[float, ...], str, str]:
    line = lines.next("a cell")
    words = line.split(None, 9)
    if len(words) < 9:
        raise lines.error("a cell needs 9 fields: id value weight status lb ub lpl upl spl.")
    try:
        status = int(Status.from_code(words[3]))
    except ValueError:
        raise lines.error(f"status “{words[3]}” is none of u, s, z, x, v.", cell=words[0]) from None
    try:
        numbers = (float(words[1]), float(words[2]), *map(float, words[4:9]))
    except ValueError as error:
        raise lines.error(f"not a number: {str(error).rpartition(': ')[2]}.", cell=words[0]) from None
    return words[0], status, numbers, words[1], words[9].strip() if len(words) > 9 else ""


def _relation(lines: _Lines, ids: dict[str, int]) -> tuple[float, list[tuple[int, float]]]:
    line = lines.next("a relation")
    head, colon, tail = line.partition(":")
    words = head.split()
    if not colon or len(words) != 2:
        raise lines.error("a relation reads: rhs k : id (coef) id (coef) …")
    try:
        right, size = float(words[0]), int(words[1])
        terms = [(ids[name], float(coef)) for name, coef in _TERM.findall(tail)]
    except KeyError as error:
        raise lines.error(f"the relation names cell {error.args[0]}, which is not listed.") from None
    except ValueError as error:
        raise lines.error(f"not a number: {str(error).rpartition(': ')[2]}.") from None
    if len(terms) != size or _TERM.sub("", tail).strip():
        raise lines.error(f"the relation announces {size} terms and has {len(terms)} readable ones.")
    return right, terms


def _number(value: float) -> str:
    return (
        format(float(value), ".0f") if float(value).is_integer() and abs(value) < 1e16 else repr(float(value))
    )
