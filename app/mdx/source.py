"""Where MDX text stands in its file, so that every complaint can point at it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from app.domain.errors import Mistake, UserError

_EXCERPT = 100


class MdxSyntaxError(UserError):
    """MDX text that isn't a query: line, column, a caret, and what was expected."""


@dataclass(frozen=True)
class Source:
    """MDX text with the file and line that it begins on (1-based)."""

    text: str
    file: str = ""
    line: int = 1

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return starts

    def mistake(self, at: int, cause: str, remedy: str = "") -> Mistake:
        """A mistake at offset ``at`` of the text, with the line and a caret under it."""
        row = bisect_right(self._starts, at) - 1
        start = self._starts[row]
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else len(self.text)].expandtabs(1)
        column = at - start
        first = max(0, column - _EXCERPT // 2)
        excerpt = f"{line[first : first + _EXCERPT]}\n{' ' * (column - first)}^"
        return Mistake(self.file, self.line + row, column + 1, cause, remedy, excerpt)
