"""What the read side asks of the storage; `app.db` gives it, and so does the fixture of the tests."""

from __future__ import annotations

from typing import Protocol

from app.domain.catalogue import Catalogue
from app.domain.masked import Layout
from app.domain.release import Release


class ReleaseStore(Protocol):
    """Releases as the public may read them. Only release tables stand behind it, never raw values."""

    def live_release_id(self) -> str | None:
        """Id of the live release; None: nothing is shown."""

    def live_release(self) -> Release | None:
        """The live release with its cells."""

    def catalogue(self, release_id: str) -> Catalogue | None:
        """The publication as released."""

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        """Where the cells of a query stand; ``choice`` is a member's unique name for each parameter."""
