"""What the read side asks of the storage; `app.db` gives it, and so does the fixture of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.domain.catalogue import Catalogue
from app.domain.history import ReleaseMark
from app.domain.masked import Layout
from app.domain.release import Release


class ReleaseStore(Protocol):
    """Releases as the public may read them. Only release tables stand behind it, never raw values."""

    def releases(self) -> Sequence[ReleaseMark]:
        """Every release and its state, in one reading; without a live one nothing is shown."""

    def release(self, release_id: str) -> Release | None:
        """A release with its cells."""

    def catalogue(self, release_id: str) -> Catalogue | None:
        """The publication as released."""

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        """Where the cells of a query stand; ``choice`` is a member's unique name for each parameter."""
