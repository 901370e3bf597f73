"""Query → mask → masked cellset, with the stamp that goes along."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from app.domain.catalogue import Catalogue
from app.domain.errors import CelosiaError, InternalError
from app.domain.masked import Layout, MaskedCellSet
from app.domain.masking import mask
from app.domain.release import Release
from app.serve.issue import Stamp, issue_stamp
from app.serve.port import ReleaseStore


class NotPublishedError(CelosiaError):
    """The release has no such sheet, query or choice."""


class ReleaseMovedError(CelosiaError):
    """Another release went live between two readings; asking again is right."""


@dataclass(frozen=True, eq=False)
class Served:
    """What a renderer gets: masked cells and the stamp without which its bytes don't pass the guard."""

    masked: MaskedCellSet
    stamp: Stamp


class LiveReader:
    """Answers from the live release of a store.

    A release never changes, so its cells, its catalogue and its layouts are read once; which release is
    live is asked again after ``patience`` seconds.

    Parameters
    ----------
    store : ReleaseStore
    patience : float
        Seconds for which a switch of releases may go unnoticed; 0 asks the store every time.
    layouts : int
        How many layouts are kept.
    clock : callable
        Seconds, never going back.
    """

    def __init__(
        self,
        store: ReleaseStore,
        patience: float = 0.25,
        layouts: int = 512,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._patience = patience
        self._clock = clock
        self._capacity = layouts
        self._lock = Lock()
        self._live: str | None = None
        self._asked = float("-inf")
        self._release: Release | None = None
        self._catalogue: Catalogue | None = None
        self._layouts: OrderedDict[tuple[str, str, str, tuple[str, ...]], Layout] = OrderedDict()

    def live_id(self) -> str | None:
        """Id of the live release, at most ``patience`` seconds old."""
        now = self._clock()
        if now - self._asked >= self._patience:
            self._live = self._store.live_release_id()
            self._asked = now
        return self._live

    def catalogue(self, release_id: str) -> Catalogue:
        """The publication as released.

        Raises
        ------
        ReleaseMovedError
            ``release_id`` isn't live any more.
        """
        with self._lock:
            catalogue = self._catalogue
        if catalogue is None or catalogue.release_id != release_id:
            catalogue = self._store.catalogue(release_id)
            if catalogue is None:
                raise ReleaseMovedError(release_id)
            if catalogue.release_id != release_id:
                raise InternalError("the store gave the catalogue of another release")
            with self._lock:
                self._catalogue = catalogue
        return catalogue

    def answer(self, release_id: str, sheet: str, query: str, choice: tuple[str, ...]) -> Served:
        """The masked cells of a query for one choice of the sheet's parameters.

        Raises
        ------
        NotPublishedError
            The release has no such layout.
        ReleaseMovedError
            ``release_id`` isn't live any more.
        """
        release = self._cells(release_id)
        layout = self._layout(release_id, sheet, query, choice)
        return Served(mask(layout, release), issue_stamp(release.id))

    def _cells(self, release_id: str) -> Release:
        with self._lock:
            release = self._release
        if release is None or release.id != release_id:
            release = self._store.live_release()
            if release is None or release.id != release_id:
                raise ReleaseMovedError(release_id)
            with self._lock:
                self._release = release
                self._layouts.clear()
        return release

    def _layout(self, release_id: str, sheet: str, query: str, choice: tuple[str, ...]) -> Layout:
        key = (release_id, sheet, query, choice)
        with self._lock:
            layout = self._layouts.get(key)
            if layout is not None:
                self._layouts.move_to_end(key)
                return layout
        layout = self._store.layout(release_id, sheet, query, choice)
        if layout is None:
            raise NotPublishedError(sheet)
        with self._lock:
            self._layouts[key] = layout
            while len(self._layouts) > self._capacity:
                self._layouts.popitem(last=False)
        return layout
