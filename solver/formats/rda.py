"""Metadata files (``.rda``) of τ-Argus, and the microdata or tables of cells that they describe.

A variable is a line with its name (and, for microdata, its first position, width and missing codes, which
``<MISSING>`` may name too), followed by its tags in angle brackets. A tag word without brackets on the
variable's own line is read too. Lines that begin with # or // are comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.discreet import Discreet
from solver.errors import InputError
from solver.formats.hrc import read_codelist, read_hierarchy
from solver.formats.tabular import STATUS_LETTERS, DelimitedText, read_delimited, scan_table
from solver.formats.text import Problems, did_you_mean, find_file, numbered_lines, parse_numbers, read_text
from solver.hierarchy import TOTAL, Hierarchy
from solver.table import CellTable

ROLES: Mapping[str, str] = {
    "RECODEABLE": "dimension",
    "RECODABLE": "dimension",
    "NUMERIC": "response",
    "WEIGHT": "weight",
    "HOLDING": "holding",
    "REQUEST": "request",
    "FREQUENCY": "frequency",
    "MAXSCORE": "top",
    "STATUS": "status",
    "SHADOW": "shadow",
    "COST": "cost",
    "COSTVAR": "cost",
    "LOWERPL": "lpl",
    "UPPERPL": "upl",
}
"""Tags that say what a variable is for."""

WRITTEN = {role: tag for tag, role in [*ROLES.items()][::-1]}
FIELDS = {"TOTCODE": "total", "CODELIST": "codelist", "HIERCODELIST": "hierarchy", "HIERLEADSTRING": "mark"}
KEPT = ("DISTANCE", "TRUNCABLE")
OTHER = ("HIERARCHICAL", "HIERLEVELS", "DECIMALS", "MISSING", *KEPT)
FILE_TAGS = {"SEPARATOR": "separator", "SAFE": "safe", "UNSAFE": "unsafe", "PROTECT": "protect"}
KNOWN = frozenset((*ROLES, *FIELDS, *OTHER, *FILE_TAGS))
COMMENTS = ("#", "//")
_TOKEN = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True)
class Variable:
    """One variable of an ``.rda`` file.

    ``start`` (from 1) and ``width`` are positions in a file of fixed columns. ``mark`` is the level mark of
    the hierarchy file, ``levels`` the numbers of characters that each level of a hierarchical code takes.
    ``kept`` are tags without effect here, with their arguments, for who reads the file after us.
    """

    name: str
    roles: tuple[str, ...] = ()
    start: int | None = None
    width: int | None = None
    missing: tuple[str, ...] = ()
    total: str = TOTAL
    codelist: str | None = None
    hierarchy: str | None = None
    mark: str | None = None
    levels: tuple[int, ...] = ()
    decimals: int = 0
    requests: tuple[str, ...] = ()
    kept: tuple[tuple[str, tuple[str, ...]], ...] = ()
    line: int | None = None

    @property
    def is_dimension(self) -> bool:
        """Whether the variable spans the table."""
        return "dimension" in self.roles or bool(self.codelist or self.hierarchy or self.levels)


@dataclass(frozen=True)
class Metadata:
    """An ``.rda`` file: its variables in the order of the data's columns, and the marks of the status."""

    variables: tuple[Variable, ...]
    separator: str | None = None
    safe: str = "S"
    unsafe: str = "U"
    protect: str = "P"
    file: str | None = None

    def __post_init__(self) -> None:
        names = [variable.name for variable in self.variables]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"variable {', '.join(twice)} occurs twice.", file=self.file)

    def of(self, role: str) -> tuple[Variable, ...]:
        """The variables of one role."""
        if role == "dimension":
            return tuple(v for v in self.variables if v.is_dimension)
        return tuple(v for v in self.variables if role in v.roles)

    def hierarchies(self, directory: str | Path, codes: Mapping[str, Sequence[str]]) -> dict[str, Hierarchy]:
        """The hierarchy of each dimension: from its file beside the metadata, from the levels of its codes,
        or flat.

        Parameters
        ----------
        directory
            Where the files lie; upper and lower case of a name may differ.
        codes
            The codes of each dimension that the data have.

        Raises
        ------
        MultipleInputError
            If files are missing or wrong.
        """
        problems = Problems(self.file)
        found: dict[str, Hierarchy] = {}
        for variable in self.of("dimension"):
            try:
                found[variable.name] = self._hierarchy(variable, directory, codes.get(variable.name, ()))
            except InputError as error:
                problems.extend(error)
        problems.stop()
        return found

    def _hierarchy(self, variable: Variable, directory: str | Path, codes: Sequence[str]) -> Hierarchy:
        named = variable.hierarchy or variable.codelist
        if variable.levels:
            return _by_levels(dict.fromkeys(codes), variable, self.file)
        if named is None:
            return Hierarchy.flat(dict.fromkeys(codes), variable.total)
        path = find_file(directory, named, file=self.file, line=variable.line)
        if variable.hierarchy is None and path.suffix.lower() != ".hrc":
            return Hierarchy.flat(read_codelist(path), variable.total)
        return read_hierarchy(path, mark=variable.mark, total=variable.total)


def _by_levels(codes: Mapping[str, None], variable: Variable, file: str | None) -> Hierarchy:
    """Cut codes into the digits of each level; a shorter code is an inner one."""
    ends = np.cumsum(variable.levels).tolist()
    problems = Problems(file)
    pairs: dict[tuple[str | None, str], None] = {(None, variable.total): None}
    for code in codes:
        if code == variable.total or not code:
            continue
        if len(code) > ends[-1]:
            problems.add(
                f"code {code!r} of {variable.name} is longer than its levels, {ends[-1]} characters.",
                "Correct the code or <HIERLEVELS>.",
                line=variable.line,
            )
        above: str = variable.total
        for end in dict.fromkeys(ends):
            node = code[:end]
            if node and node != above:
                pairs[(above, node)] = None
                above = node
    problems.stop()
    return Hierarchy.from_pairs(pairs, file=file)


def _groups(line: str, bare: bool) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Leading words, and each tag with its arguments."""
    leading: list[str] = []
    tags: list[tuple[str, list[str]]] = []
    for match in _TOKEN.finditer(line):
        word = match.group(1) if match.group(2) is None else match.group(2)
        is_tag = match.group(2) is not None and (
            (word.startswith("<") and word.endswith(">")) or (bare and word.upper() in KNOWN)
        )
        if is_tag:
            tags.append((word.strip("<>").upper(), []))
        elif tags:
            tags[-1][1].append(word)
        else:
            leading.append(word)
    return leading, tags


def _declare(words: Sequence[str], line: int, problems: Problems) -> dict[str, Any]:
    """A variable line: name, then for microdata position and width, then missing codes."""
    entry: dict[str, Any] = {"name": words[0], "line": line, "roles": []}
    for word in words:
        if word.startswith("<"):
            problems.add(f"{word} is no tag.", "Close it with >.", line=line)
    rest = list(words[1:])
    if len(rest) >= 2 and rest[0].isdigit() and rest[1].isdigit():
        entry["start"], entry["width"] = int(rest.pop(0)), int(rest.pop(0))
        if entry["start"] < 1:
            problems.add(f"{words[0]} starts at position 0.", "Positions count from 1.", line=line)
        if entry["width"] < 1:
            problems.add(f"{words[0]} is 0 characters wide.", "Give a width of 1 or more.", line=line)
    entry["missing"] = tuple(rest)
    return entry


def _apply(entry: dict[str, Any], tag: str, arguments: Sequence[str], line: int, problems: Problems) -> None:
    first = arguments[0] if arguments else None
    if tag in ROLES:
        role = ROLES[tag]
        if role in ("shadow", "cost", "lpl", "upl") and "response" in entry["roles"]:
            entry["roles"].remove("response")
        entry["roles"].append(role)
        if tag == "REQUEST":
            entry["requests"] = tuple(arguments)
    elif tag in FIELDS:
        if first is None:
            problems.add(f"<{tag}> needs a text.", "Write it behind the tag, in quotes.", line=line)
        entry[FIELDS[tag]] = first
    elif tag in ("HIERLEVELS", "DECIMALS"):
        if not arguments or not all(word.isdigit() for word in arguments):
            problems.add(f"<{tag}> needs whole numbers.", "Write them behind the tag.", line=line)
        elif tag == "DECIMALS":
            entry["decimals"] = int(arguments[0])
        else:
            entry["levels"] = tuple(int(word) for word in arguments if int(word))
    elif tag == "MISSING":
        entry["missing"] = (*entry["missing"], *arguments)
    elif tag in KEPT:
        entry["kept"] = (*entry.get("kept", ()), (tag, tuple(arguments)))
    elif tag not in KNOWN:
        remedy = f"{did_you_mean(tag, KNOWN)} Known are {', '.join(sorted(KNOWN))}.".strip()
        problems.add(f"<{tag}> is an unknown tag.", remedy, line=line)


def parse_rda(text: str, *, file: str | None = None) -> Metadata:
    """Read the text of an ``.rda`` file, for microdata or for a table of cells.

    Raises
    ------
    MultipleInputError
        Every unknown tag, tag before the first variable, and malformed argument, with its line.
    """
    problems = Problems(file)
    entries: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    for i, line in numbered_lines(text.removeprefix("\ufeff")):
        if line.lstrip().startswith(COMMENTS):
            continue
        leading, tags = _groups(line, bare=not line.lstrip().startswith("<"))
        if leading:
            entries.append(_declare(leading, i, problems))
        for tag, arguments in tags:
            if tag in FILE_TAGS:
                if not arguments:
                    problems.add(f"<{tag}> needs a text.", "Write it behind the tag, in quotes.", line=i)
                elif tag == "SEPARATOR" and arguments[0].upper() in ("\\T", "TAB"):
                    settings["separator"] = "\t"
                else:
                    settings[FILE_TAGS[tag]] = arguments[0]
            elif entries:
                _apply(entries[-1], tag, arguments, i, problems)
            elif tag != "SPSS":
                problems.add(f"<{tag}> stands before any variable.", "Name the variable first.", line=i)
    if not entries:
        problems.add("no variable is described.", "Name each on a line of its own.")
    problems.stop()
    variables = tuple(Variable(**{**entry, "roles": tuple(entry["roles"])}) for entry in entries)
    return Metadata(variables, file=file, **settings)


def read_rda(path: str | Path, encoding: str | None = None) -> Metadata:
    """Read an ``.rda`` file; see :func:`parse_rda`."""
    return parse_rda(read_text(path, encoding), file=str(path))


def write_rda(metadata: Metadata, path: str | Path) -> None:
    """Write an ``.rda`` file that :func:`read_rda` reads back."""
    lines = []
    if metadata.separator is not None:
        lines.append(f'<SEPARATOR> "{metadata.separator}"')
    if metadata.of("status"):
        marks = {"SAFE": metadata.safe, "UNSAFE": metadata.unsafe, "PROTECT": metadata.protect}
        lines += [f'<{tag}> "{mark}"' for tag, mark in marks.items()]
    for v in metadata.variables:
        place = [] if v.start is None else [str(v.start), str(v.width)]
        lines.append(" ".join([v.name, *place, *(f'"{code}"' for code in v.missing)]))
        for role in v.roles:
            tag = f"<{WRITTEN[role]}>"
            if role in ("shadow", "cost", "lpl", "upl"):
                tag = f"<NUMERIC> {tag}"
            lines.append("  " + " ".join([tag, *(f'"{code}"' for code in v.requests if role == "request")]))
        if v.is_dimension and v.total != TOTAL:
            lines.append(f'  <TOTCODE> "{v.total}"')
        if v.codelist is not None:
            lines.append(f'  <CODELIST> "{v.codelist}"')
        if v.hierarchy is not None or v.levels:
            lines.append("  <HIERARCHICAL>")
        if v.hierarchy is not None:
            lines.append(f'  <HIERCODELIST> "{v.hierarchy}"')
        if v.mark is not None:
            lines.append(f'  <HIERLEADSTRING> "{v.mark}"')
        if v.levels:
            lines.append(f"  <HIERLEVELS> {' '.join(map(str, v.levels))}")
        if v.decimals:
            lines.append(f"  <DECIMALS> {v.decimals}")
        lines += ["  " + " ".join([f"<{tag}>", *arguments]) for tag, arguments in v.kept]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass(frozen=True, eq=False, repr=False)
class Microdata(Discreet):
    """Units as columns, with the role of each column; what :func:`solver.protect.protect` takes.

    ``columns`` holds texts for dimensions, holdings, requests and status, and f8 for everything else; codes
    that the metadata declare missing are empty.
    """

    columns: Mapping[str, Sequence[str] | NDArray[np.float64]]
    dims: tuple[str, ...]
    responses: tuple[str, ...]
    weight: str | None
    holding: str | None
    request: str | None
    lines: tuple[int, ...]
    file: str | None = None


def _fixed(metadata: Metadata, path: str | Path, encoding: str | None) -> DelimitedText:
    problems = Problems(str(path))
    unplaced = [v.name for v in metadata.variables if v.start is None]
    if unplaced:
        problems.add(f"no positions are given for {', '.join(unplaced)}.", "Give them or a <SEPARATOR>.")
        problems.stop()
    spans = [(v.start or 1, v.width or 0) for v in metadata.variables]
    needed = max(start for start, _ in spans)
    lines = numbered_lines(read_text(path, encoding))
    for i, line in lines:
        if len(line) < needed:
            problems.add(f"the line ends before position {needed}.", "Complete the record.", line=i)
    problems.stop()
    columns = tuple(tuple(text[s - 1 : s - 1 + w] for _, text in lines) for s, w in spans)
    names = tuple(v.name for v in metadata.variables)
    return DelimitedText(names, columns, tuple(i for i, _ in lines), "", str(path))


def read_microdata(metadata: Metadata, path: str | Path, *, encoding: str | None = None) -> Microdata:
    """Read the microdata that an ``.rda`` file describes, of fixed columns or with a separator.

    Raises
    ------
    MultipleInputError
        Every number that is none, with its line.
    """
    names = [v.name for v in metadata.variables]
    if metadata.separator is None:
        text = _fixed(metadata, path, encoding)
    else:
        text = read_delimited(path, separator=metadata.separator, header=names, encoding=encoding)
    problems = Problems(str(path))
    columns: dict[str, Sequence[str] | NDArray[np.float64]] = {}
    for v in metadata.variables:
        raw = text.column(v.name)
        trimmed = [code.strip() for code in raw]
        missing = {code.strip() for code in v.missing}
        if v.is_dimension:
            columns[v.name] = tuple("" if code in missing else code for code in trimmed)
        elif {"holding", "request", "status"} & set(v.roles) or not v.roles:
            columns[v.name] = tuple(trimmed)
        else:
            numbers = parse_numbers(raw)
            absent = numbers.missing | np.array([code in missing for code in trimmed], dtype=np.bool_)
            for row in np.flatnonzero(numbers.wrong | absent).tolist():
                problems.add(
                    f"{v.name} is {raw[row]!r}.", "Give a number or drop the unit.", line=text.lines[row]
                )
            if "weight" in v.roles:
                for row in np.flatnonzero(~(numbers.wrong | absent) & (numbers.value <= 0)).tolist():
                    cause = f"{v.name} is {raw[row].strip()}, but a sampling weight is above 0."
                    problems.add(cause, "Correct it or drop the unit.", line=text.lines[row])
            columns[v.name] = numbers.value
    problems.stop()

    def single(role: str) -> str | None:
        found = metadata.of(role)
        return found[0].name if found else None

    return Microdata(
        columns,
        tuple(v.name for v in metadata.of("dimension")),
        tuple(v.name for v in metadata.of("response") if not v.is_dimension),
        single("weight"),
        single("holding"),
        single("request"),
        text.lines,
        str(path),
    )


def read_tabular(metadata: Metadata, path: str | Path, *, encoding: str | None = None) -> CellTable:
    """Read the table of cells that an ``.rda`` file describes; its columns are the variables in order.

    Raises
    ------
    MultipleInputError
        Every mistake of the file, with its line.
    """
    names = [v.name for v in metadata.variables]
    text = read_delimited(path, separator=metadata.separator or ",", header=names, encoding=encoding)
    responses = [v.name for v in metadata.of("response") if not v.is_dimension]
    if not responses:
        raise InputError("no variable is <NUMERIC>.", "Mark the one to protect.", file=metadata.file)

    def single(role: str) -> str | None:
        found = metadata.of(role)
        return found[0].name if found else None

    letters = {**STATUS_LETTERS, metadata.safe: "s", metadata.unsafe: "u", metadata.protect: "z"}
    cells, mistakes = scan_table(
        text,
        dims=[v.name for v in metadata.of("dimension")],
        value=responses[0],
        count=single("frequency"),
        status=single("status"),
        top=[v.name for v in metadata.of("top")],
        cost=single("cost"),
        lpl=single("lpl"),
        upl=single("upl"),
        letters=letters,
    )
    Problems(str(path), list(mistakes)).stop()
    return cells
