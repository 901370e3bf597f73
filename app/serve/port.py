"""What the read side asks of the storage and of MDX; the tests' fixtures give it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.domain.catalogue import Catalogue
from app.domain.history import ReleaseMark
from app.domain.masked import Layout, MaskedCellSet
from app.domain.patience import Patience
from app.domain.release import Release


class ReleaseStore(Protocol):
    """Releases as the public may read them. Only release tables stand behind it, never raw values."""

    def releases(self) -> Sequence[ReleaseMark]:
        """Every release and its state, in one reading; without a live one nothing is shown."""

    def release(self, release_id: str) -> Release | None:
        """A release with its cells."""

    def catalogue(self, release_id: str) -> Catalogue | None:
        """The publication as released."""

    def certificate(self, release_id: str) -> str | None:
        """The text of a release's certificate, None when it has none."""

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        """Where the cells of a query stand; ``choice`` is a member's unique name for each parameter."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The answer to a query over the cells of a release.

    Attributes
    ----------
    cube : str
    masked : MaskedCellSet
    hierarchies : tuple of tuple of str
        Unique names on each axis, also where it has no position.
    properties
        For each axis, position and member: what DIMENSION PROPERTIES asked for.
    cell_properties : tuple of str
        What CELL PROPERTIES asked for, in capitals; empty where the query says nothing.
    """

    cube: str
    masked: MaskedCellSet
    hierarchies: tuple[tuple[str, ...], ...]
    properties: tuple[tuple[tuple[Mapping[str, str | None], ...], ...], ...]
    cell_properties: tuple[str, ...]


class Asker(Protocol):
    """Answers MDX over the cells of a release; `app.serve.adhoc` does, and the site sees this alone."""

    def ask(self, text: str, release: Release, catalogue: Catalogue, patience: Patience) -> Asked:
        """The masked answer to a query, worked on as long as ``patience`` lasts.

        Raises
        ------
        UserError
            With the position in the text.
        OverdueError, AbandonedError
        """
        ...
