"""What MDX could go on with at a place in a query: members, levels, functions, parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from app.domain.cube import Cube, Hierarchy

MOST = 60

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "WITH", "MEMBER", "SET", "AS", "ON", "COLUMNS", "ROWS", "NON EMPTY", "CASE",
    "WHEN", "THEN", "ELSE", "END", "AND", "OR", "NOT", "DIMENSION PROPERTIES",
)  # fmt: skip

#: Functions that are written after a dot, as everybody writes them.
_AFTER_DOT = (
    "Members", "Children", "Parent", "Siblings", "CurrentMember", "PrevMember", "NextMember", "FirstChild",
    "LastChild", "Level", "Name", "UniqueName", "Properties", "Lag", "Lead", "Item", "AllMembers",
)  # fmt: skip

_PATH = re.compile(
    r"(?P<path>(?:&?\[(?:[^\]]|\]\])*\]\s*\.\s*)*)(?P<partial>&?\[(?:[^\]]|\]\])*|[A-Za-z_][A-Za-z0-9_]*|)\Z"
)
_PARAMETER = re.compile(r"@[A-Za-z0-9_]*\Z")
_PART = re.compile(r"(&?)\[((?:[^\]]|\]\])*)\]")
_CUBE_WANTED = re.compile(r"\bFROM\s+\[?[^\]\s()]*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Suggestion:
    """A text to put in place of what was begun, and what it stands for."""

    text: str
    label: str
    kind: str


@dataclass(frozen=True)
class Completion:
    """Suggestions for the text from ``start`` on up to the caret."""

    start: int
    suggestions: tuple[Suggestion, ...]


def complete(
    text: str,
    caret: int,
    cubes: Mapping[str, Cube],
    parameters: Iterable[str] = (),
    functions: Iterable[str] = (),
    language: str = "en",
) -> Completion:
    """What may stand at the caret of a query that is being written.

    Parameters
    ----------
    text : str
        The query so far.
    caret : int
        Where it is being written, as an offset in ``text``.
    cubes : mapping of name to Cube
        Those that may be asked; members come from the one that the query names, or from all.
    parameters, functions : iterable of str
        Names.
    language : str
        Of the members' captions.
    """
    before = text[: max(0, min(caret, len(text)))]
    found = _PARAMETER.search(before)
    if found:
        begun = found.group()[1:].lower()
        names = [name for name in parameters if name.lower().startswith(begun)]
        return Completion(found.start(), tuple(Suggestion(f"@{name}", name, "parameter") for name in names))
    if _CUBE_WANTED.search(before):
        start = max(before.rfind("["), before.rfind(" ") + 1, before.rfind("\n") + 1)
        begun = before[start:].lstrip("[").lower()
        return Completion(
            start,
            tuple(
                Suggestion(_bracket(name), name, "cube") for name in cubes if name.lower().startswith(begun)
            ),
        )
    match = _PATH.search(before)
    assert match is not None
    path, partial = match.group("path"), match.group("partial")
    begun = partial.lstrip("&").lstrip("[").replace("]]", "]").lower()
    asked = _asked(text, cubes)
    suggestions: list[Suggestion] = []
    if path:
        for cube in asked:
            suggestions += _below(cube, path, language)
        suggestions += [Suggestion(name, name, "function") for name in _AFTER_DOT]
    elif partial.startswith(("[", "&")):
        for cube in asked:
            suggestions += _beginnings(cube, language)
    elif partial:
        suggestions += [Suggestion(word, word, "keyword") for word in KEYWORDS]
        suggestions += [Suggestion(name, name, "function") for name in sorted(functions)]
    kept = [item for item in suggestions if _fits(item, begun)]
    return Completion(match.start("partial"), tuple(dict.fromkeys(kept))[:MOST])


def _fits(item: Suggestion, begun: str) -> bool:
    plain = item.text.lstrip("&").strip("[]").lower()
    return not begun or plain.startswith(begun) or begun in item.label.lower()


def _asked(text: str, cubes: Mapping[str, Cube]) -> tuple[Cube, ...]:
    named = [cube for name, cube in cubes.items() if f"[{name.lower()}]" in text.lower()]
    return tuple(named) or tuple(cubes.values())


def _beginnings(cube: Cube, language: str) -> Iterator[Suggestion]:
    yield Suggestion("[Measures]", "Measures", "dimension")
    for hierarchy in cube.hierarchies:
        caption = hierarchy.captions.get(language) or hierarchy.name
        yield Suggestion(hierarchy.unique_name, caption, "hierarchy")


def _below(cube: Cube, path: str, language: str) -> Iterator[Suggestion]:
    """What may follow a path of names with a dot after it."""
    whole = re.sub(r"\s*\.\s*\Z", "", path)
    whole = re.sub(r"\s*\.\s*", ".", whole)
    lowered = whole.lower()
    if lowered == "[measures]":
        for measure in cube.measures:
            yield Suggestion(
                _tail(measure.unique_name), measure.captions.get(language) or measure.name, "measure"
            )
        return
    for hierarchy in cube.hierarchies:
        if lowered == f"[{hierarchy.dimension.lower()}]" != hierarchy.unique_name.lower():
            yield Suggestion(_tail(hierarchy.unique_name), hierarchy.name, "hierarchy")
        if lowered == hierarchy.unique_name.lower():
            for level in hierarchy.levels:
                yield Suggestion(
                    _tail(level.unique_name), level.captions.get(language) or level.name, "level"
                )
            yield from _members(hierarchy, np.flatnonzero(hierarchy.parent < 0).tolist(), language, False)
            continue
        for depth, level in enumerate(hierarchy.levels):
            if lowered == level.unique_name.lower():
                members = np.flatnonzero(hierarchy.depth == depth).tolist()
                yield from _members(hierarchy, members, language, True)
        if not lowered.startswith(hierarchy.unique_name.lower()):
            continue
        member = _member(hierarchy, lowered, language)
        if member is not None:
            yield from _members(hierarchy, hierarchy.child_lists[member].tolist(), language, False)


def _member(hierarchy: Hierarchy, lowered: str, language: str) -> int | None:
    for number, name in enumerate(hierarchy.unique_names):
        if name.lower() == lowered:
            return number
    parts = _PART.findall(lowered)
    last = parts[-1][1].replace("]]", "]") if parts else ""
    for number in range(hierarchy.size):
        if hierarchy.caption(number, language).lower() == last:
            return number
    return None


def _members(
    hierarchy: Hierarchy, members: Iterable[int], language: str, by_key: bool
) -> Iterator[Suggestion]:
    for member in members:
        unique = hierarchy.unique_names[member]
        caption = hierarchy.caption(member, language)
        text = (
            _tail(unique)
            if by_key or not unique.endswith(f"&{_bracket(hierarchy.keys[member])}")
            else _bracket(caption)
        )
        yield Suggestion(text, caption, "member")


def _tail(unique_name: str) -> str:
    """The last part of a unique name, as it follows a dot."""
    found = list(_PART.finditer(unique_name))
    return found[-1].group() if found else unique_name


def _bracket(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"
