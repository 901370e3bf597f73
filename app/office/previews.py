"""A draft as the public will see it, and what is wrong in it: laid out as drafted, shown as released.

A preview is the live release with the draft's sheets: it is masked like any page, so that it never shows a
number that isn't public already, and a cell that the release doesn't hold is not released in it, until a
recomputation decides about new cells.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.evaluate import FUNCTIONS
from app.cube.port import CubeServer
from app.db.store import Store
from app.domain.catalogue import Catalogue
from app.domain.crawled import Address, Crawl
from app.domain.cube import Cube
from app.domain.errors import CelosiaError, Mistake, UserError
from app.domain.history import ReleaseMark, live
from app.domain.masked import Layout
from app.domain.masking import released
from app.domain.places import Places
from app.domain.publication import CubeDefinition, Folder, Publication, Sheet, Theme
from app.domain.release import Release
from app.domain.version import Files
from app.office.completion import Completion, complete
from app.office.settings import Settings
from app.office.versions import Versions, require_inside
from app.pipeline.arrange import arrange
from app.pipeline.check import check_publication
from app.pipeline.crawl import crawl
from app.pipeline.define import draft_publication
from app.pipeline.define_remote import FACTS
from app.pipeline.earlier import NO_PAST
from app.pipeline.release import catalogue_of, places_of
from app.pipeline.run import remembered

#: Cubes kept open, and folders of drafts kept on disk.
_OPEN = 4
_FOLDERS = 12
ID = "preview"


@dataclass(frozen=True, eq=False)
class Preview:
    """A sheet of a draft as a store of one release, which the public site's own code reads.

    ``known`` and ``unknown`` count the cells that the live release shows or knows, and those that only a
    recomputation can decide on.
    """

    mark: ReleaseMark
    held: Release
    told: Catalogue
    layouts: Mapping[Address, Layout]
    known: int
    unknown: int

    def releases(self) -> tuple[ReleaseMark, ...]:
        return (self.mark,)

    def release(self, release_id: str) -> Release | None:
        return self.held if release_id == self.held.id else None

    def catalogue(self, release_id: str) -> Catalogue | None:
        return self.told if release_id == self.held.id else None

    def certificate(self, release_id: str) -> str | None:
        """A preview isn't certified."""
        return None

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        return self.layouts.get((sheet_id, query_id, choice)) if release_id == self.held.id else None


class Previews:
    """Looks at drafts. Made by `app.bootstrap`.

    Parameters
    ----------
    versions, store, settings
    open_cube : callable
        Opens a cube by its definition.
    scratch : Path
        Folder for drafts that are written out to be read.
    """

    def __init__(
        self,
        versions: Versions,
        store: Store,
        settings: Settings,
        open_cube: Callable[[CubeDefinition], CubeServer],
        scratch: Path,
    ) -> None:
        self._versions = versions
        self._store = store
        self._settings = settings
        self._open_cube = open_cube
        self._scratch = scratch
        self._cubes: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = RLock()

    def mistakes(self, files: Files) -> tuple[Mistake, ...]:
        """What is wrong in the text of the files, without asking the data."""
        with self._lock:
            return self._draft(files)[1]

    def publication(self, files: Files) -> Publication:
        """The files as a publication.

        Raises
        ------
        UserError
            With what is wrong in their text.
        """
        with self._lock:
            publication, mistakes = self._draft(files)
        if publication is None or mistakes:
            raise UserError(mistakes)
        return publication

    def theme(self, files: Files) -> Theme:
        """How a draft's site looks.

        Raises
        ------
        UserError
            If that can't be read.
        """
        with self._lock:
            publication, mistakes = self._draft(files)
        if publication is None:
            raise UserError(mistakes)
        return publication.theme

    def check(self, files: Files, path: str = "") -> tuple[Mistake, ...]:
        """What is wrong in the files, or in the sheet at ``path``, also when it is tried on the data."""
        with self._lock:
            publication, mistakes = self._draft(files)
            wrong = {mistake.file for mistake in mistakes}
            if path:
                mistakes = tuple(mistake for mistake in mistakes if mistake.file == path)
            if publication is None or mistakes:
                return mistakes
            if path:
                sheet = _sheet_at(publication, path)
                if sheet is None:
                    return ()
                publication = _alone(publication, sheet)
            try:
                with self._opener(files) as opener:
                    # One sheet renames nothing; of all the files a run would ask what has another name.
                    past = NO_PAST if path else remembered(self._store)
                    check_publication(publication, opener, past, wrong)
            except UserError as error:
                return error.mistakes
            except CelosiaError as error:
                return (Mistake("", 0, 0, str(error)),)
            return ()

    def preview(self, files: Files, path: str) -> Preview:
        """A sheet as the public will see it.

        Parameters
        ----------
        path : str
            Of the sheet's file, as ``sheets/economy/towns.toml``.

        Raises
        ------
        UserError
            With what is wrong in the sheet or in its cube.
        OperatorError
            If data can't be read.
        """
        with self._lock:
            publication, mistakes = self._draft(files)
            in_the_way = [
                item for item in mistakes if item.file == path or not item.file.startswith("sheets/")
            ]
            if publication is None or in_the_way:
                raise UserError(in_the_way or mistakes)
            sheet = _sheet_at(publication, path)
            if sheet is None:
                raise UserError(f"There is no sheet {path} in this draft.")
            publication = _alone(publication, sheet)
            live, public = self._live()
            with self._opener(files) as opener:
                servers = {cube.name: opener(cube) for cube in publication.cubes}
                found = crawl(publication, servers, exact=False)
                rows = _rows(found, live)
                layouts = {
                    address: replace(layout, cell=np.where(layout.cell >= 0, rows[layout.cell], -1))
                    for address, layout in _arranged(publication, found, live, rows, servers).items()
                }
            told = catalogue_of(publication, found, live, _places(found, rows, public))
            known = int((rows >= 0).sum())
            return Preview(
                ReleaseMark(live.id, "live", live.created), live, told, layouts, known, len(rows) - known
            )

    def complete(
        self, files: Files, text: str, caret: int, parameters: tuple[str, ...], language: str
    ) -> Completion:
        """What may stand at the caret of a query."""
        with self._lock:
            cubes: dict[str, Cube] = {}
            publication, mistakes = self._draft(files)
            wrong = {mistake.file for mistake in mistakes}
            with self._opener(files) as opener:
                for definition in publication.cubes if publication is not None else ():
                    if definition.at.file in wrong:
                        continue
                    try:
                        cubes[definition.name] = opener(definition).discover()
                    except CelosiaError:
                        continue  # A cube that can't be opened has nothing to suggest; `check` says why.
            return complete(text, caret, cubes, parameters, FUNCTIONS, language)

    # ------------------------------------------------------------------ inside

    def _draft(self, files: Files) -> tuple[Publication | None, tuple[Mistake, ...]]:
        try:
            require_inside(files)
        except UserError as error:
            return None, error.mistakes
        folder = self._versions.materialise_files(files, self._scratch / files.digest[:32])
        self._tidy(folder)
        publication, mistakes = draft_publication(folder)
        allowed = self._settings.sources()
        for cube in publication.cubes if publication is not None else ():
            url = cube.facts.url if cube.remote is None else cube.remote.url
            if url is not None and url not in allowed:
                cause = f"Cube {cube.name} reads a database that no admin has named."
                if cube.remote is not None:
                    cause = f"Cube {cube.name} asks a server that no admin has named."
                mistakes += (
                    Mistake(cube.at.file, cube.at.line, cube.at.column, cause, "Ask an admin to add it."),
                )
        return publication, mistakes

    def _tidy(self, kept: Path) -> None:
        used = {cube.folder for cube in self._cubes.values()} | {kept}
        folders = [item for item in self._scratch.iterdir() if item.is_dir() and item not in used]
        folders.sort(key=lambda item: item.stat().st_mtime, reverse=True)
        for folder in folders[_FOLDERS:]:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _opener(self, files: Files) -> Iterator[Callable[[CubeDefinition], CubeServer]]:
        """Opens the cubes of a draft for one look.

        Those whose facts were taken in are kept for the next one; the others hold a connection, or a
        transaction of somebody's database, and are closed after the look.
        """
        data = sorted(files.uploads.items())
        folder = self._scratch / files.digest[:32]
        passing: dict[str, _Kept] = {}

        def open_kept(definition: CubeDefinition) -> CubeServer:
            key = repr((files.texts.get(definition.at.file), data))
            if definition.remote is not None or definition.facts.engine != FACTS:
                if key not in passing:
                    passing[key] = _Kept(self._open_cube(definition), folder)
                return passing[key]
            kept = self._cubes.get(key)
            if kept is None:
                kept = self._cubes[key] = _Kept(self._open_cube(definition), folder)
                while len(self._cubes) > _OPEN:
                    _name, old = self._cubes.popitem(last=False)
                    old.end()
            self._cubes.move_to_end(key)
            return kept

        try:
            yield open_kept
        finally:
            for server in passing.values():
                server.end()

    def close(self) -> None:
        """Close every cube that is kept open."""
        with self._lock:
            while self._cubes:
                self._cubes.popitem()[1].end()

    def _live(self) -> tuple[Release, Catalogue | None]:
        """What readers see now; a release of nothing before the first."""
        mark = live(self._store.releases())
        found = None if mark is None else self._store.release(mark.id)
        if mark is None or found is None:
            nothing = Release(ID, "live", datetime.now(UTC), {}, (), np.zeros(0, np.int8), np.zeros(0))
            return nothing, None
        return found, self._store.catalogue(mark.id)


class _Kept:
    """An open cube that several looks share; closing it is ours to do."""

    def __init__(self, server: CubeServer, folder: Path) -> None:
        self._server = server
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def close(self) -> None:
        """Whoever borrowed it is done; it stays open."""

    def end(self) -> None:
        self._server.close()


def _sheet_at(publication: Publication, path: str) -> Sheet | None:
    identity = PurePosixPath(path).with_suffix("").as_posix().removeprefix("sheets/")
    return next((sheet for sheet in publication.sheets() if sheet.id == identity), None)


def _alone(publication: Publication, sheet: Sheet) -> Publication:
    """The publication with this one sheet, in its folders, and without decisions on other cells."""

    def kept(folder: Folder) -> Folder:
        inside = tuple(
            kept(inner) for inner in folder.folders if any(item.id == sheet.id for item in inner.walk())
        )
        sheets = tuple(item for item in folder.sheets if item.id == sheet.id)
        return replace(folder, folders=inside, sheets=sheets)

    rules = replace(publication.confidentiality, decisions=())
    return replace(publication, root=kept(publication.root), confidentiality=rules)


def _rows(found: Crawl, live: Release) -> NDArray[np.int64]:
    """Where the published cells of a crawl stand in a release; -1 for those that it doesn't have."""
    place = {key: row for row, key in enumerate(live.keys)}
    keys = (key for cells in found.cubes for key in cells.keys(np.arange(cells.n_published)))
    return np.array([place.get(key, -1) for key in keys], dtype=np.int64)


def _arranged(
    publication: Publication,
    found: Crawl,
    live: Release,
    rows: NDArray[np.int64],
    servers: Mapping[str, CubeServer],
) -> Mapping[Address, Layout]:
    """Layouts whose axes are made of the figures that readers see."""
    status, values = released(rows, live)
    keys = tuple(live.keys[row] if row >= 0 else "" for row in rows.tolist())
    seen = Release(live.id, live.state, live.created, live.fingerprints, keys, status, values)
    return arrange(publication, found, seen, servers)[1]


def _places(found: Crawl, rows: NDArray[np.int64], public: Catalogue | None) -> dict[str, Places]:
    """Where cells can be met by opening branches: as in the live release, while its cube is the draft's.

    Of another cube, what this sheet shows itself.
    """
    places: dict[str, Places] = {}
    for name, own in places_of(found).items():
        cube = next(cells.cube for cells in found.cubes if cells.cube.name == name)
        if public is not None and name in public.places and _members(public.cubes[name]) == _members(cube):
            places[name] = public.places[name]
            continue
        met, named = rows[own.row] >= 0, rows[own.key_row] >= 0
        keys = tuple(key for key, is_there in zip(own.keys, named.tolist(), strict=True) if is_there)
        places[name] = Places(own.coords[met], rows[own.row[met]], keys, rows[own.key_row[named]])
    return places


def _members(cube: Cube) -> object:
    """What coordinates number."""
    hierarchies = [(tree.unique_name, tree.unique_names) for tree in cube.hierarchies]
    return [measure.unique_name for measure in cube.measures], hierarchies
