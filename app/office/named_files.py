"""Files that cubes name, and places beside them where other facts and other cubes may go."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import PurePosixPath

from app.domain.toml import read_toml
from app.domain.version import Files

_PACKED = re.compile(r"\.gz$", re.IGNORECASE)


def named_files(cube: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Files of facts and of members that a cube's document names: as it says them, and their places."""
    facts, dimensions = cube.get("facts"), cube.get("dimension")
    said = [facts.get("file")] if isinstance(facts, dict) else []
    tables = dimensions if isinstance(dimensions, list) else ()
    said += [dimension.get("table") for dimension in tables if isinstance(dimension, dict)]
    for name in said:
        if isinstance(name, str):
            yield name, name if os.path.isabs(name) else os.path.normpath(f"cubes/{name}")


def stem_of(name: str) -> str:
    """A file's name without its ending; ``facts.xlsx.csv`` is another one than ``facts.csv``."""
    return PurePosixPath(_PACKED.sub("", name)).stem.replace(".", "-").strip("-") or "facts"


def facts_place(files: Files, wanted: str, cube: str) -> str:
    """Where facts of the cube in file ``cube`` go: ``wanted``, or a place like it that nothing is at.

    In the place of other facts only where this cube alone names them: its definition is replaced too, and the
    form says so. Upper and lower case are one, as on other machines.
    """
    taken = _taken(files)
    place = next(path for path in _like(wanted) if path.lower() not in taken or _its_own(files, path, cube))
    return next((path for path in files.uploads if path.lower() == place.lower()), place)


def cube_place(files: Files, name: str) -> str:
    """Where a cube of that name goes: in the place of one of the same name, or else where nothing is."""
    wanted = f"cubes/{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-') or 'cube'}.toml"
    there = next((path for path in files.texts if path.lower() == wanted), "")
    if there and name_of(files.texts[there]) == name:
        return there
    taken = _taken(files)
    return next(path for path in _like(wanted) if path.lower() not in taken)


def name_of(text: str) -> str:
    """A cube's name by its file; empty where the file can't be read."""
    document = _document(text)
    return "" if document is None else str(document.get("name", ""))


def same_name(one: str, other: str) -> bool:
    """Whether two names of cubes are one: queries don't tell upper from lower case."""
    return one.casefold() == other.casefold()


def _its_own(files: Files, wanted: str, cube: str) -> bool:
    """Whether that cube names the facts, and certainly no other."""
    its = False
    for path, text in files.texts.items():
        if not path.startswith("cubes/"):
            continue
        document = _document(text)
        names = document is not None and any(
            place.lower() == wanted.lower() for _, place in named_files(document)
        )
        if path == cube:
            its = names
        elif names or document is None:
            return False
    return its


def _like(wanted: str) -> Iterator[str]:
    place = PurePosixPath(wanted)
    yield wanted
    for number in count(2):
        yield f"{place.parent}/{place.stem}-{number}{place.suffix}"


def _taken(files: Files) -> set[str]:
    return {path.lower() for path in (*files.texts, *files.uploads)}


def _document(text: str) -> Mapping[str, object] | None:
    try:
        return read_toml(text)
    except (ValueError, RecursionError):
        return None
