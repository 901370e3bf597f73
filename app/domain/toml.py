"""TOML as it comes from anybody: what would take hours or all memory is refused before it is read."""

from __future__ import annotations

import re
import tomllib
from typing import Any

#: Parts of a dotted key. The reader takes time and memory by their square.
MOST_PARTS = 64
#: Values of a document, counted by the signs that part them. Two readers make an object of each, and somebody
#: at a desk waits for it.
MOST_VALUES = 100_000

# A run of names and dots. Possessive, and begun at the beginning of a name alone, so that it is linear.
_DOTTED = re.compile(
    r"(?<![\w\"'-])(?:(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+)" f"{{{MOST_PARTS}}}"
)


class TooMuchError(ValueError):
    """A document of more values than anybody writes by hand."""


def read_toml(text: str) -> dict[str, Any]:
    """The document that a text is; a byte order mark before it is left out.

    Raises
    ------
    ValueError
        If it is no TOML; `tomllib.TOMLDecodeError` says where. `TooMuchError` if there is too much of it.
    RecursionError
        If it is nested too deeply.
    """
    text = text.removeprefix("\ufeff")
    if _DOTTED.search(text):
        raise RecursionError
    if sum(map(text.count, "=,[")) > MOST_VALUES:
        raise TooMuchError
    return tomllib.loads(text)
