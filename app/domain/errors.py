"""The error tree, split by who can mend it.

CelosiaError
├── UserError        whoever wrote the input: a list of `Mistake`, shown in full, exit 2
│   ├── ConflictError    it was right when it was read, and somebody changed it since
│   └── TelltaleError    what it would tell has to be accepted first (`app.domain.release_life`)
├── OperatorError    whoever runs the machine: disk, database, port, lost file, exit 1
├── InternalError    us: a broken guarantee; the public sees no detail, exit 1
├── OverdueError     nobody: an answer takes more work than it may (`app.domain.patience`)
└── AbandonedError   nobody: who asked for it waits no longer
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mistake:
    """One thing wrong in the input: where it stands, what is wrong, what to do.

    Parameters
    ----------
    file : str
        Path as the user wrote it, or ``""`` for text given directly.
    line, column : int
        1-based; 0 when the place is the file as a whole.
    cause, remedy : str
        One plain sentence each; the remedy may be empty.
    excerpt : str
        The line in question and a caret under it, or ``""``.
    """

    file: str
    line: int
    column: int
    cause: str
    remedy: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = f"{place}: {self.cause}" if place else self.cause
        if self.remedy:
            text = f"{text} {self.remedy}"
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class CelosiaError(Exception):
    """Root of every error that Celosia raises on purpose."""


class UserError(CelosiaError):
    """The input is wrong; carries every mistake found, in order of place."""

    def __init__(self, mistakes: Iterable[Mistake] | Mistake | str) -> None:
        if isinstance(mistakes, str):
            mistakes = Mistake("", 0, 0, mistakes)
        if isinstance(mistakes, Mistake):
            mistakes = (mistakes,)
        self.mistakes: tuple[Mistake, ...] = tuple(sorted(set(mistakes)))
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class ConflictError(UserError):
    """What a change was decided on is no more as it was read; nothing was changed."""


class OperatorError(CelosiaError):
    """The surroundings failed: disk, database, network, a file that vanished."""


class InternalError(CelosiaError):
    """A guarantee of ours doesn't hold; nothing may be published after it."""
