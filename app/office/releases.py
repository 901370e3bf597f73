"""Releases for those who decide about them: every move is checked, made, and written into the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from app.db.releases import ReleaseBook
from app.db.store import Store
from app.domain.errors import UserError
from app.domain.masked import CellStatus
from app.domain.people import Actor
from app.domain.release_life import ReleaseAction, ReleaseRecord, ReleaseState, Trail
from app.office.journal import Journal, whence
from app.office.naming import Names

#: Keys that a comparison names one by one.
MOST_NAMED = 500


@dataclass(frozen=True)
class Comparison:
    """What readers of one release see otherwise than those of an earlier one; keys of cells."""

    earlier: str
    newly_hidden: tuple[str, ...]
    newly_shown: tuple[str, ...]
    changed: int
    new: int
    gone: int
    hidden: int
    same: int


class Releases:
    """The releases of one office. Made by `app.bootstrap`."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    @property
    def _book(self) -> ReleaseBook:
        return self._store.book

    def all(self) -> tuple[ReleaseRecord, ...]:
        """Every release, newest first."""
        return self._book.present()

    def get(self, release_id: str) -> ReleaseRecord:
        """A release.

        Raises
        ------
        UserError
            If there is none.
        """
        return self._book.get(release_id)

    def now(self) -> datetime:
        """The time by the clock that decides about embargoes."""
        return self._book.now()

    def move(
        self,
        actor: Actor,
        action: ReleaseAction,
        release_id: str,
        version: int,
        origin: str = "",
        embargo: datetime | None = None,
        reason: str = "",
        accepted: bool = False,
    ) -> ReleaseRecord:
        """Make a move, which the book records together with it; one that is refused is recorded here.

        Parameters
        ----------
        version : int
            Of the release, as it was when this was decided.
        embargo : datetime
            When it is to be shown, of one that is scheduled.
        reason : str
            Why it is withdrawn.
        accepted : bool
            Of an approval: readers may see where few changed.

        Raises
        ------
        UserError
            If it can't be done now or not by this person, or somebody moved the release since ``version``.
        """
        more: tuple[object, ...] = ()
        said: dict[str, object] = {"accepted": accepted} if action is ReleaseAction.APPROVE else {}
        if action is ReleaseAction.SCHEDULE:
            if embargo is None:
                raise UserError("Say when it shall be shown.")
            more = (embargo,)
        elif action is ReleaseAction.WITHDRAW:
            more = (reason,)
        move: Callable[..., ReleaseRecord] = getattr(self._book, action.replace("-", "_"))
        before = {"state": str(self.get(release_id).state)}
        try:
            trail = Trail(actor.name, whence(actor, origin))
            return move(release_id, version, actor.name, *more, **said, trail=trail)
        except UserError as error:
            why = {"why": str(error)}
            self._journal.record(actor, f"release.{action}.refused", release_id, before, why, origin)
            raise

    # ------------------------------------------------------------------ comparison

    def before(self, record: ReleaseRecord) -> ReleaseRecord | None:
        """The release that readers saw, or will have seen, last before this one."""
        shown = [
            other
            for other in self.all()
            if other.id != record.id and other.first_live is not None and not other.pruned
        ]
        if record.first_live is not None:
            earlier = [other for other in shown if other.first_live and other.first_live < record.first_live]
            return max(earlier, key=lambda other: str(other.first_live), default=None)
        live = [other for other in shown if other.state is ReleaseState.LIVE]
        return live[0] if live else max(shown, key=lambda other: str(other.first_live), default=None)

    def compare(self, release_id: str, earlier_id: str) -> Comparison | None:
        """What changed for readers from one release to another; None when the cells of one are gone."""
        new, old = self._store.release(release_id), self._store.release(earlier_id)
        if new is None or old is None or not new.keys or not old.keys:
            return None
        place = {key: row for row, key in enumerate(old.keys)}
        rows = np.array([place.get(key, -1) for key in new.keys], dtype=np.int64)
        met = rows >= 0
        before = np.where(met, old.status[rows], -1)
        hidden_now = new.status == CellStatus.CONFIDENTIAL
        hidden_then = before == CellStatus.CONFIDENTIAL
        both = met & (new.status == CellStatus.SHOWN) & (before == CellStatus.SHOWN)
        differ = both & (new.values != old.values[rows])

        def named(mark: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[str, ...]:
            return tuple(new.keys[row] for row in np.flatnonzero(mark))

        return Comparison(
            earlier=earlier_id,
            newly_hidden=named(met & hidden_now & ~hidden_then),
            newly_shown=named(met & ~hidden_now & hidden_then),
            changed=int(differ.sum()),
            new=int((~met).sum()),
            gone=len(old.keys) - int(met.sum()),
            hidden=int(hidden_now.sum()),
            same=int((hidden_now & hidden_then).sum()),
        )

    def names(self, release_id: str, language: str) -> Names:
        """What the cells of a release are called in a language."""
        catalogue = self._store.catalogue(release_id)
        return Names(() if catalogue is None else catalogue.cubes.values(), language)

    def certificate(self, release_id: str) -> str | None:
        """The text of a release's certificate."""
        return self._book.certificate(release_id)
