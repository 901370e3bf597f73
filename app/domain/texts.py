"""Characters that texts can't have: what neither XML nor a spreadsheet holds, nor any encoding."""

from __future__ import annotations

import re

#: What XML 1.0 (2.2, Characters) leaves out: controls, two noncharacters, halves of pairs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def unprintable(text: str) -> tuple[int, str] | None:
    """Where the first character stands that no file could hold, and its name, as in *U+FFFE*."""
    found = _UNPRINTABLE.search(text)
    return (found.start(), f"U+{ord(found.group()):04X}") if found else None


def printable(text: str) -> str:
    """A text without such characters."""
    return _UNPRINTABLE.sub("", text)
