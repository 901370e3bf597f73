"""Cells by the captions that readers know them by."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.domain.cube import Cube, text_in
from app.domain.places import SEPARATOR

_PART = r"\[(?:[^\]]|\]\])*\]"
_NAME = re.compile(rf"{_PART}(?:\.?&?{_PART})*")
#: A formula of two members, as keys have it.
_FORMULA = re.compile(rf"(?:{_PART}=)?\(Chain ({_NAME.pattern}) ({_NAME.pattern}) ([-+*/])\)")


class Names:
    """Captions of the members and measures of some cubes, in a language where there are such."""

    def __init__(self, cubes: Iterable[Cube], language: str) -> None:
        known = tuple(cubes)
        self._captions: dict[str, str] = {}
        self._prefix = f"{known[0].name}{SEPARATOR}" if len(known) == 1 else ""
        for cube in known:
            for measure in cube.measures:
                self._captions[measure.unique_name] = text_in(measure.captions, language) or measure.name
            for tree in cube.hierarchies:
                captions = (tree.caption(member, language) for member in range(tree.size))
                self._captions.update(zip(tree.unique_names, captions, strict=True))

    def said(self, text: str) -> str:
        """A cell's key, or a text that holds keys, with captions in place of unique names.

        The name of a cube goes without saying where there is one.
        """
        plain = text.replace(self._prefix, "") if self._prefix else text
        plain = _FORMULA.sub(r"\1 \3 \2", plain)
        told = _NAME.sub(lambda match: self._captions.get(match.group(), match.group()), plain)
        return told.replace(SEPARATOR, " · ")
