"""The releases that there have been: which of them may be read, and which was the one at a moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

#: States in which a release may be read; any other, known or not, shows nothing.
READABLE = frozenset({"live", "superseded"})
#: The state of a release that was public and isn't any more.
WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class ReleaseMark:
    """A release without its cells.

    ``since`` (with time zone) is when it went public; it says nothing in states that never were public.
    """

    id: str
    state: str
    since: datetime

    @property
    def readable(self) -> bool:
        return self.state in READABLE

    @property
    def withdrawn(self) -> bool:
        return self.state == WITHDRAWN


def live(marks: Iterable[ReleaseMark]) -> ReleaseMark | None:
    """The release that is live, if there is one."""
    return next((mark for mark in marks if mark.state == "live"), None)


def as_of(marks: Iterable[ReleaseMark], moment: datetime) -> ReleaseMark | None:
    """The last release that had gone public by a moment; it may have been withdrawn since."""
    public = (mark for mark in marks if (mark.readable or mark.withdrawn) and mark.since <= moment)
    return max(public, key=lambda mark: mark.since, default=None)
