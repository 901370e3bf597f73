"""Query → mask → masked cellset, with the stamp that goes along."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

from app.domain.catalogue import Catalogue
from app.domain.errors import CelosiaError, InternalError, OperatorError
from app.domain.history import READABLE, ReleaseMark, live
from app.domain.masked import Layout, MaskedCellSet
from app.domain.masking import mask
from app.domain.observations import Observations
from app.domain.patience import Patience
from app.domain.release import Release
from app.serve.cubes import released_cells
from app.serve.drill import open_members, openable
from app.serve.issue import Stamp, issue_stamp
from app.serve.port import Asked, Asker, ReleaseStore

K = TypeVar("K")
V = TypeVar("V")


class NotPublishedError(CelosiaError):
    """The release has no such sheet, query or choice."""


class ReleaseMovedError(CelosiaError):
    """The release can't be read any more, because another went live; asking again is right."""


@dataclass(frozen=True, eq=False)
class Served:
    """What a renderer gets: masked cells and the stamp without which its bytes don't pass the guard.

    ``openable`` gives the unique names of members whose children are in the release too.
    """

    masked: MaskedCellSet
    stamp: Stamp
    openable: Callable[[], frozenset[str]] = frozenset


@dataclass(frozen=True, eq=False)
class ServedQuery:
    """The answer to a reader's own query, with its stamp."""

    asked: Asked
    stamp: Stamp


@dataclass(frozen=True, eq=False)
class ServedCells:
    """As `Served`, of cells that are no table."""

    cells: Observations
    stamp: Stamp


class LiveReader:
    """Answers from the releases of a store that may be read.

    A release never changes, so its cells, its catalogue and its layouts are read once; which releases
    there are and in which state is asked again after ``patience`` seconds.

    Parameters
    ----------
    store : ReleaseStore
    patience : float
        Seconds for which a switch of releases may go unnoticed; 0 asks the store every time.
    layouts : int
        How many layouts are kept.
    releases : int
        How many releases are kept in memory.
    clock : callable
        Seconds, never going back.
    asker : Asker, optional
        Answers readers' own queries; without it there are none.
    """

    def __init__(
        self,
        store: ReleaseStore,
        patience: float = 0.25,
        layouts: int = 512,
        releases: int = 3,
        clock: Callable[[], float] = monotonic,
        asker: Asker | None = None,
    ) -> None:
        self._asker = asker
        self._store = store
        self._patience = patience
        self._clock = clock
        self._lock = Lock()
        self._marks: tuple[ReleaseMark, ...] = ()
        self._asked = self._failed = float("-inf")
        self._failure: OperatorError | None = None
        self._asking = Lock()
        self._releases: _Kept[str, Release] = _Kept(releases, self._lock)
        self._catalogues: _Kept[str, Catalogue] = _Kept(releases, self._lock)
        self._cubes: _Kept[tuple[str, str], Observations] = _Kept(releases, self._lock)
        self._layouts: _Kept[tuple[str, str, str, tuple[str, ...]], Layout] = _Kept(layouts, self._lock)

    def marks(self) -> tuple[ReleaseMark, ...]:
        """Every release and its state, at most ``patience`` seconds old.

        One at a time asks the store. Who waited while that failed isn't made to wait for another try.

        Raises
        ------
        OperatorError
            If the store doesn't answer.
        """
        came = self._clock()
        with self._asking:
            if self._failure is not None and self._failed >= came:
                raise self._failure
            now = self._clock()
            if now - self._asked >= self._patience:
                try:
                    self._marks = tuple(self._store.releases())
                except OperatorError as error:
                    self._failure, self._failed = error, self._clock()
                    raise
                self._asked, self._failure = now, None
            return self._marks

    def recent_marks(self) -> tuple[ReleaseMark, ...] | None:
        """As `marks`, as far as the store needn't be asked for them: None where it must."""
        return self._marks if self._clock() - self._asked < self._patience else None

    def live_id(self) -> str | None:
        """Id of the live release, at most ``patience`` seconds old."""
        mark = live(self.marks())
        return mark.id if mark is not None else None

    def catalogue(self, release_id: str) -> Catalogue:
        """The publication as released.

        Raises
        ------
        ReleaseMovedError
            ``release_id`` can't be read any more.
        """
        catalogue = self._catalogues.get(release_id)
        if catalogue is None:
            catalogue = self._store.catalogue(release_id)
            if catalogue is None:
                raise ReleaseMovedError(release_id)
            if catalogue.release_id != release_id:
                raise InternalError("the store gave the catalogue of another release")
            self._catalogues.put(release_id, catalogue)
        return catalogue

    def certificate(self, release_id: str) -> str | None:
        """The text of a release's certificate; nothing of a cell is in it."""
        return self._store.certificate(release_id)

    def answer(
        self,
        release_id: str,
        sheet: str,
        query: str,
        choice: tuple[str, ...],
        opened: tuple[str, ...] = (),
    ) -> Served:
        """The masked cells of a query for one choice of the sheet's parameters.

        ``opened`` are unique names of members whose children are wanted too, parents before their children.

        Raises
        ------
        NotPublishedError
            The release has no such layout.
        ReleaseMovedError
            ``release_id`` can't be read any more.
        """
        release = self._cells(release_id)
        layout = self._layout(release_id, sheet, query, choice)
        catalogue = self.catalogue(release_id)
        name = catalogue.cube_of.get((sheet, query), "")
        places = catalogue.places.get(name)
        if places is None:
            return Served(mask(layout, release), issue_stamp(release.id))
        cube = catalogue.cubes[name]
        if opened:
            layout = open_members(layout, opened, cube, places, release)
        return Served(
            mask(layout, release),
            issue_stamp(release.id),
            partial(openable, layout, cube, places),
        )

    @property
    def takes_queries(self) -> bool:
        """Whether `ask` answers."""
        return self._asker is not None

    def ask(self, release_id: str, text: str, patience: Patience | None = None) -> ServedQuery:
        """The masked answer to a query in MDX, over the cells that the release holds.

        A cell that no sheet shows is hidden; a formula is worked out from shown cells only.

        Raises
        ------
        UserError
            With the position in the text.
        OverdueError, AbandonedError
            ``patience`` is at its end.
        NotPublishedError
            This site answers no queries of readers.
        ReleaseMovedError
            ``release_id`` isn't live any more.
        """
        if self._asker is None:
            raise NotPublishedError("queries")
        cells, catalogue = self._cells(release_id), self.catalogue(release_id)
        asked = self._asker.ask(text, cells, catalogue, patience or Patience())
        return ServedQuery(asked, issue_stamp(release_id))

    def cube(self, release_id: str, name: str) -> ServedCells:
        """Every released cell of a cube.

        Raises
        ------
        NotPublishedError
            The release has no such cube.
        ReleaseMovedError
            ``release_id`` can't be read any more.
        """
        release = self._cells(release_id)
        cube = self.catalogue(release_id).cubes.get(name)
        if cube is None:
            raise NotPublishedError(name)
        cells = self._cubes.get((release_id, name))
        if cells is None:
            cells = released_cells(release, cube)
            self._cubes.put((release_id, name), cells)
        return ServedCells(cells, issue_stamp(release.id))

    def _cells(self, release_id: str) -> Release:
        release = self._releases.get(release_id)
        if release is None:
            release = self._store.release(release_id)
            if release is None or release.state not in READABLE:
                raise ReleaseMovedError(release_id)
            if release.id != release_id:
                raise InternalError("the store gave the cells of another release")
            self._releases.put(release_id, release)
        return release

    def _layout(self, release_id: str, sheet: str, query: str, choice: tuple[str, ...]) -> Layout:
        key = (release_id, sheet, query, choice)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._store.layout(release_id, sheet, query, choice)
            if layout is None:
                raise NotPublishedError(sheet)
            self._layouts.put(key, layout)
        return layout


class _Kept(Generic[K, V]):
    """The last so many things that were asked for."""

    def __init__(self, capacity: int, lock: Lock) -> None:
        self._capacity = capacity
        self._lock = lock
        self._things: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._things.get(key)
            if found is not None:
                self._things.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._things[key] = value
            while len(self._things) > self._capacity:
                self._things.popitem(last=False)
