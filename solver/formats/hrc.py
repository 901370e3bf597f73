"""Hierarchy files: ``.hrc`` of τ-Argus, JSON trees, parent-child text, and code lists.

An ``.hrc`` line is a code behind as many level marks as its depth::

    B
    @B05
    @B06
    C

The mark is checked, not assumed: with no mark given it must be clear from the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solver.errors import InputError
from solver.formats.text import Problems, line_ranges, numbered_lines, parse_json, read_text
from solver.hierarchy import TOTAL, Hierarchy

KNOWN_MARKS = ("@", ".")
_CODE_AND_LABEL = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",;\t][^,;\t]*|))\s*(?:[,;\t](.*))?')


def _strip_marks(line: str, mark: str) -> tuple[int, str]:
    depth = 0
    while line.startswith(mark):
        depth, line = depth + 1, line[len(mark) :]
    return depth, line.strip()


def _detect_mark(lines: Sequence[tuple[int, str]], problems: Problems) -> str | None:
    """The one known mark that lines begin with; None for a flat list."""
    used = {mark: [i for i, line in lines if line.lstrip().startswith(mark)] for mark in KNOWN_MARKS}
    used = {mark: where for mark, where in used.items() if where}
    tabs = [i for i, line in lines if line.startswith("\t")]
    if tabs:
        cause = f"{line_ranges(tabs)} begin with a tab, which could be the level mark."
        problems.add(cause, "Name the mark, or drop the tabs.", line=tabs[0])
    if len(used) > 1:
        told = " and ".join(f"{line_ranges(where)} with {mark!r}" for mark, where in used.items())
        problems.add(
            f"ambiguous level mark: {told}.",
            "Name the mark.",
            line=min(min(where) for where in used.values()),
        )
    elif used:
        mark, where = next(iter(used.items()))
        if where[0] == lines[0][0]:
            problems.add(
                f"ambiguous: the first code begins with {mark!r}, which could be the level mark or a part of "
                "the code.",
                "Name the mark, or give the hierarchy as a JSON tree, which carries any code.",
                line=where[0],
            )
        return mark
    return None


def _without_total(
    lines: list[tuple[int, str]], mark: str | None, total: str, problems: Problems
) -> list[tuple[int, str]]:
    """The lines below the total, if the file has it on top of all; it needn't."""
    if not lines or lines[0][1].strip() != total:
        return lines
    below = [line for _, line in lines[1:]]
    if mark and below and all(line.startswith(mark) for line in below):
        return [(i, line.removeprefix(mark)) for i, line in lines[1:]]
    if below:
        problems.add(
            f"the first code is {total!r}, as the total is called, but not all others lie below it.",
            "Drop the line, or give the total another name.",
            line=lines[0][0],
        )
    return lines[1:]


def parse_hrc(
    text: str, mark: str | None = None, total: str = TOTAL, *, file: str | None = None
) -> Hierarchy:
    """Read the text of an ``.hrc`` file.

    Parameters
    ----------
    text
        The lines; outer blanks of a code, blank lines and a missing last newline don't matter.
    mark
        What each level puts before the code; left out, it is found among ``@`` and ``.`` if that is clear.
    total
        Name of the total above all codes of the first level.

    Raises
    ------
    MultipleInputError
        Ambiguous or wrong mark, a level left out, no code, a code that occurs twice; each with its line.
    """
    problems = Problems(file)
    lines = numbered_lines(text.removeprefix("\ufeff"))
    if mark is None:
        mark = _detect_mark(lines, problems)
        problems.stop()
    else:
        for other in KNOWN_MARKS:
            odd = [i for i, line in lines if line.startswith(other) and not (mark and line.startswith(mark))]
            if odd and other != mark:
                verb = "starts" if len(odd) == 1 else "start"
                problems.add(
                    f'{line_ranges(odd)} {verb} with "{other}" but mark is "{mark}".',
                    "Name the right mark, or give the hierarchy as a JSON tree.",
                    line=odd[0],
                )
        problems.stop()
    lines = _without_total(lines, mark, total, problems)
    path: list[str] = [total]
    pairs: list[tuple[str | None, str]] = [(None, total)]
    where: list[int] = [0]
    spelled: dict[str, str] = {}
    for i, line in lines:
        depth, code = _strip_marks(line, mark) if mark else (0, line.strip())
        if mark and depth == 0 and code.startswith(mark):
            problems.add("there are blanks before the level mark.", "Drop them.", line=i)
            continue
        if depth >= len(path):
            problems.add(
                f"{code!r} is {depth} levels deep, but the line above only {len(path) - 2}."
                if len(path) > 1
                else f"the first code, {code!r}, carries a level mark.",
                "Deepen by one level at a time; if a level takes several characters, name them as its mark.",
                line=i,
            )
            continue
        if not code:
            problems.add("there is no code behind the level marks.", "Write one or drop the line.", line=i)
            continue
        if code == total:
            cause = f"{code!r} is what the total above all codes is called."
            problems.add(cause, "Drop the line, or give the total another name.", line=i)
            continue
        raw = line[depth * len(mark) :] if mark else line
        if code in spelled and spelled[code] != raw:
            problems.add(
                f"{raw!r} and {spelled[code]!r} are the same code without outer blanks.",
                "Make them differ.",
                line=i,
            )
            continue
        spelled[code] = raw
        path[depth + 1 :] = [code]
        pairs.append((path[depth], code))
        where.append(i)
    try:
        hierarchy = Hierarchy.from_pairs(pairs, file=file, lines=where)
    except InputError as error:
        problems.extend(error)
    problems.stop()
    return hierarchy


def write_hrc(hierarchy: Hierarchy, path: str | Path, mark: str = "@") -> None:
    """Write an ``.hrc`` file; the single root is left out, as τ-Argus adds it itself.

    Raises
    ------
    InputError
        If a code can't be written so: it begins with a mark, or has outer blanks.
    """
    depth = hierarchy.depth
    single = int((hierarchy.parent < 0).sum() == 1)
    problems = Problems(str(path))
    lines = []
    for code, level in zip(hierarchy.codes, depth.tolist(), strict=True):
        if single and level == 0:
            continue
        if code.startswith((mark, *KNOWN_MARKS)) or code != code.strip() or not code or "\n" in code:
            problems.add(f"code {code!r} can't be written to an .hrc file.", "Write a JSON tree.", cell=code)
        lines.append(mark * (level - single) + code + "\n")
    problems.stop()
    Path(path).write_text("".join(lines), encoding="utf-8")


def parse_tree(text: str, *, file: str | None = None) -> Hierarchy:
    """Read a hierarchy from nested JSON objects, which carry any code.

    Raises
    ------
    MultipleInputError
        Not JSON, not objects, or a code that occurs twice.
    """
    problems = Problems(file)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key.strip() for key, _ in pairs]
        for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
            problems.add(f"{key!r} is twice under one parent.", "Keep one of the two.")
        return {key: value for key, (_, value) in zip(keys, pairs, strict=True)}

    data = parse_json(text, file, object_pairs_hook=unique)
    if not isinstance(data, dict):
        raise InputError("a hierarchy is a JSON object.", 'Write {"Total": {"a": {}, "b": {}}}.', file=file)
    try:
        hierarchy = Hierarchy.from_tree(data)
    except InputError as error:
        problems.extend(error)
    problems.stop()
    return hierarchy


def write_tree(hierarchy: Hierarchy, path: str | Path) -> None:
    """Write the hierarchy as nested JSON objects."""
    text = json.dumps(hierarchy.tree(), ensure_ascii=False, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")


def parse_parent_child(text: str, *, file: str | None = None, separator: str | None = None) -> Hierarchy:
    """Read a hierarchy from text with the columns parent and child (in this order if not so named).

    Raises
    ------
    MultipleInputError
        Every code with two parents or under itself, every line with other than two fields.
    """
    from solver.formats.tabular import parse_delimited

    table = parse_delimited(text, file=file, separator=separator)
    lowered = [name.strip().lower() for name in table.header]
    if len(lowered) != 2:
        raise InputError(
            f"{len(lowered)} columns, but a hierarchy has two, parent and child.", file=file, line=1
        )
    named = set(lowered) == {"parent", "child"}
    parents = table.columns[lowered.index("parent") if named else 0]
    children = table.columns[lowered.index("child") if named else 1]
    lines = list(table.lines)
    if not named:
        parents, children, lines = (
            (table.header[0], *parents),
            (table.header[1], *children),
            [1, *lines],
        )
    pairs = [(p.strip() or None, c.strip()) for p, c in zip(parents, children, strict=True)]
    return Hierarchy.from_pairs(pairs, file=file, lines=lines)


def read_codelist(path: str | Path, encoding: str | None = None) -> dict[str, str]:
    """Read a code list (``.cdl``): code and label on each line, divided by comma, semicolon or tab.

    Raises
    ------
    MultipleInputError
        If a code occurs twice.
    """
    problems = Problems(str(path))
    labels: dict[str, str] = {}
    for i, line in numbered_lines(read_text(path, encoding)):
        match = _CODE_AND_LABEL.fullmatch(line)
        if match is None:
            problems.add("a quote does not end.", "Close it, and double quotes inside.", line=i)
            continue
        quoted, plain, label = match.groups()
        code = (plain if quoted is None else quoted.replace('""', '"')).strip()
        if code in labels:
            problems.add(f"code {code!r} occurs twice.", "Keep one of the two.", line=i)
        labels[code] = (label or "").strip().strip('"')
    problems.stop()
    return labels


def read_hierarchy(
    path: str | Path, *, mark: str | None = None, total: str = TOTAL, encoding: str | None = None
) -> Hierarchy:
    """Read a hierarchy by the ending of its name: ``.hrc``, ``.json`` (tree), ``.cdl`` (flat code list),
    anything else as parent-child text.

    Raises
    ------
    InputError
    """
    file, ending = str(path), Path(path).suffix.lower()
    if ending == ".cdl":
        return Hierarchy.flat(read_codelist(path, encoding), total)
    text = read_text(path, encoding)
    if ending == ".json":
        return parse_tree(text, file=file)
    if ending == ".hrc":
        return parse_hrc(text, mark, total, file=file)
    return parse_parent_child(text, file=file)
