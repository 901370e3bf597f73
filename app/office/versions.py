"""Versions of the publication: saved, compared, published, imported, exported, written out as a folder."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from app.db.workspace import WorkspaceStore
from app.domain.errors import ConflictError, Mistake, OperatorError, UserError
from app.domain.toml import read_toml
from app.domain.version import (
    FACT_ENDINGS,
    LONGEST_TEXT,
    TEXT_ENDINGS,
    Change,
    Files,
    Upload,
    Version,
    text_digest,
)
from app.office.named_files import named_files

#: Names the version that a folder was written from, so that it isn't written twice.
MARK = ".version"
#: Lines of a text whose changes are told one by one: to find them can take time by their square.
MOST_LINES = 10_000
#: How long an upload that isn't used yet is kept.
GRACE = timedelta(days=7)


class Versions:
    """The versions of one workspace. Made by `app.bootstrap`.

    Parameters
    ----------
    store : WorkspaceStore
    cache : Path, optional
        Folder in which uploads are kept as files, so that large ones are read from the database once.
    """

    def __init__(self, store: WorkspaceStore, cache: Path | None = None) -> None:
        self._store = store
        self._cache = cache

    # ------------------------------------------------------------------ reading

    def current(self) -> Version | None:
        """The current version, None before the first."""
        return self._store.current()

    def version(self, identity: int) -> Version:
        """A version by its number.

        Raises
        ------
        UserError
            If there is none.
        """
        found = self._store.version(identity)
        if found is None or found.state == "discarded":
            raise UserError(f"There is no version {identity}.")
        return found

    def draft(self, identity: int) -> Version:
        """A draft by its number.

        Raises
        ------
        UserError
            If there never was one.
        ConflictError
            If it was published or thrown away since.
        """
        found = self._store.version(identity)
        if found is None:
            raise UserError(f"There is no version {identity}.")
        if found.state != "draft":
            raise ConflictError("This draft was published or thrown away meanwhile. Begin another one.")
        return found

    def history(self, limit: int = 200) -> tuple[Version, ...]:
        """The current version and those before it, newest first."""
        return self._store.versions(("current", "past"), limit)

    def drafts(self, author: str = "") -> tuple[Version, ...]:
        """Drafts, newest first; of one author where given."""
        return self._store.versions(("draft",), author=author)

    def files(self, version: Version) -> Files:
        """What a version holds."""
        return self._store.files(version.id)

    def diff(self, a: Version | None, b: Version) -> tuple[Change, ...]:
        """What changed from ``a`` (None: from nothing) to ``b``, by path."""
        return diff_files(Files({}) if a is None else self.files(a), self.files(b))

    # ------------------------------------------------------------------ writing

    def save(
        self,
        files: Mapping[str, str],
        parent: Version | None,
        author: str,
        message: str,
        uploads: Mapping[str, str] | None = None,
    ) -> Version:
        """A new current version over ``parent``.

        Parameters
        ----------
        files
            Texts by path.
        parent
            The version that they were made from; it must still be the current one.
        uploads
            Digests by path; those of the parent where not given.

        Raises
        ------
        UserError
            If a path or text can't be one, or another version became current since.
        """
        kept = uploads if uploads is not None else self.files(parent).uploads if parent is not None else {}
        whole = Files(dict(files), dict(kept))
        require_inside(whole)
        return self._store.add(whole, None if parent is None else parent.id, author, message, "current")

    def begin(self, author: str, message: str = "") -> Version:
        """A draft that begins as the current version (empty before the first)."""
        current = self.current()
        files = Files({}) if current is None else self.files(current)
        return self._store.add(files, None if current is None else current.id, author, message, "draft")

    def edit(self, draft: Version, files: Files) -> Version:
        """Put other files into a draft, as read at ``draft.revision``.

        Raises
        ------
        ConflictError
            If it was saved elsewhere meanwhile.
        """
        return self._store.edit(draft.id, draft.revision, files)

    def publish(self, draft: Version, message: str) -> Version:
        """Make a draft the current version.

        Raises
        ------
        UserError
            If another version became current since it was begun; `update` helps then.
        """
        require_inside(self.files(draft))
        return self._store.promote(draft.id, draft.revision, message)

    def conflicts(self, draft: Version) -> tuple[str, ...]:
        """Paths that both the draft and the current version changed since they parted, differently."""
        base, theirs, mine = self._three(draft)
        return tuple(
            path
            for path in sorted(theirs.keys() | mine.keys() | base.keys())
            if theirs.get(path) != base.get(path)
            and mine.get(path) != base.get(path)
            and mine.get(path) != theirs.get(path)
        )

    def update(self, draft: Version) -> Version:
        """Bring a draft up to the current version: whoever changed a file wins, the draft where both did."""
        base, theirs, mine = self._three(draft)
        merged = {}
        for path in theirs.keys() | mine.keys():
            chosen = mine.get(path) if mine.get(path) != base.get(path) else theirs.get(path)
            if chosen is not None:
                merged[path] = chosen
        files = Files(
            {path: body for path, (kind, body) in merged.items() if kind == "text"},
            {path: body for path, (kind, body) in merged.items() if kind == "upload"},
        )
        current = self.current()
        if current is None:
            raise UserError("There is no current version yet.")
        return self._store.edit(draft.id, draft.revision, files, current.id)

    def discard(self, draft: Version) -> None:
        """Throw a draft away, as read at ``draft.revision``."""
        self._store.drop_draft(draft.id, draft.revision)

    def _three(self, draft: Version) -> tuple[dict[str, tuple[str, str]], ...]:
        """By path: what the draft began from, what is current, what the draft holds."""
        parent = None if draft.parent is None else self._store.version(draft.parent)
        found = (parent, self.current(), draft)
        return tuple({} if version is None else _flat(self.files(version)) for version in found)

    # ------------------------------------------------------------------ uploads

    def put_upload(self, path: Path, name: str, author: str) -> Upload:
        """Keep a file of facts."""
        return self._store.put_upload(path, name, author)

    def forget_unused(self, grace: timedelta = GRACE) -> tuple[Upload, ...]:
        """Forget uploads that nobody has used for a while: no version and no draft holds them."""
        forgotten = self._store.forget_uploads(datetime.now(UTC) - grace)
        if self._cache is not None:
            for upload in forgotten:
                (self._cache / upload.digest).unlink(missing_ok=True)
        return forgotten

    def upload(self, digest: str, person: str = "") -> Upload:
        """What is known of an upload; as ``person`` uploaded it, where one is named.

        Raises
        ------
        UserError
            If there is none, or not of that person.
        """
        found = self._store.upload(digest, person)
        if found is None:
            raise UserError("There is no such upload.")
        return found

    def holds(self, person: str, digest: str) -> bool:
        """Whether a person uploaded a file's bytes, be it first or after others."""
        return self._store.upload(digest, person) is not None

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes of an upload."""
        return self._store.chunks(digest)

    # ------------------------------------------------------------------ folders

    def import_folder(self, path: Path, author: str = "", message: str = "Imported from a folder") -> Version:
        """The files of a folder, facts included, as the new current version.

        Raises
        ------
        UserError
            If it is no publication, or a cube's facts lie outside of it.
        OperatorError
            If a file can't be read.
        """
        if not (path / "publication.toml").is_file():
            raise UserError(f"{path} is no publication: it has no publication.toml.")
        texts, facts = read_folder(path)
        parent = self.current()
        uploads = {
            name: self.put_upload(path / name, PurePosixPath(name).name, author).digest for name in facts
        }
        return self.save(texts, parent, author, message, uploads)

    def export(self, version: Version, into: Path) -> Path:
        """Write a version's files into a folder that is new or empty; returns it.

        Raises
        ------
        UserError
            If the folder isn't empty.
        OperatorError
            If it can't be written.
        """
        if into.exists() and (not into.is_dir() or any(into.iterdir())):
            raise UserError(f"{into} isn't an empty folder. Choose a new one.")
        try:
            into.mkdir(parents=True, exist_ok=True)
            self._write(self.files(version), into)
        except OSError as error:
            raise OperatorError(f"Can't write into {into}: {error.strerror}.") from error
        return into

    def materialise(self, version: Version, into: Path) -> Path:
        """The folder of a version, as `load_publication` reads it, whole or not at all.

        Parameters
        ----------
        into : Path
            The folder itself. What a version left there is replaced; what we didn't write isn't.
        """
        return self.materialise_files(self.files(version), into)

    def materialise_files(self, files: Files, into: Path) -> Path:
        """As `materialise`, of files that are no version (yet)."""
        mark = into / MARK
        digest = files.digest
        try:
            if mark.is_file() and mark.read_text() == digest:
                return into
            if into.exists() and not mark.is_file() and any(into.iterdir()):
                raise UserError(f"{into} holds other files. Choose a new folder.")
            into.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
            try:
                self._write(files, fresh)
                (fresh / MARK).write_text(digest)
                if into.exists():
                    shutil.rmtree(into)
                fresh.rename(into)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        except OSError as error:
            if mark.is_file() and mark.read_text() == digest:
                return into  # Another process was faster.
            raise OperatorError(f"Can't write into {into}: {error.strerror}.") from error
        return into

    def _write(self, files: Files, into: Path) -> None:
        for path, text in files.texts.items():
            place = into / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        for path, digest in files.uploads.items():
            place = into / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if self._cache is None:
                _write_chunks(self.chunks(digest), place)
                continue
            kept = self._cached(digest, self._cache)
            try:
                os.link(kept, place)
            except OSError:
                shutil.copyfile(kept, place)

    def _cached(self, digest: str, cache: Path) -> Path:
        kept = cache / digest
        if not kept.is_file():
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=cache)
            os.close(handle)
            fresh = Path(name)
            try:
                _write_chunks(self.chunks(digest), fresh)
                fresh.replace(kept)
            finally:
                fresh.unlink(missing_ok=True)
        return kept


def diff_files(before: Files, after: Files) -> tuple[Change, ...]:
    """What changed between two sets of files, by path."""
    old, new = _flat(before), _flat(after)
    changes = []
    for path in sorted(old.keys() | new.keys()):
        was, now = old.get(path), new.get(path)
        if was == now:
            continue
        kind = "added" if was is None else "removed" if now is None else "changed"
        lines = tuple(
            line.rstrip("\n")
            for line in difflib.unified_diff(_lines(was), _lines(now), lineterm="", n=3)
            if not line.startswith(("---", "+++"))
        )
        changes.append(Change(path, kind, lines))
    return tuple(changes)


def _flat(files: Files) -> dict[str, tuple[str, str]]:
    texts = {path: ("text", text) for path, text in files.texts.items()}
    return texts | {path: ("upload", digest) for path, digest in files.uploads.items()}


def _lines(content: tuple[str, str] | None) -> list[str]:
    """What a difference is told by: lines of a text, and of what is too long to be read its mark."""
    if content is None:
        return []
    kind, body = content
    if kind == "text" and len(body) > LONGEST_TEXT:
        return [f"{len(body)} letters {text_digest(body)[:16]}"]
    lines = body.splitlines() if kind == "text" else [f"facts {body[:16]}"]
    return lines if len(lines) <= MOST_LINES else [f"{len(lines)} lines {text_digest(body)[:16]}"]


def _write_chunks(chunks: Iterator[bytes], place: Path) -> None:
    with place.open("wb") as file:
        for body in chunks:
            file.write(body)


def read_folder(folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts by path, and the paths of facts, of a publication's folder.

    Hidden files are left out. Links must not lead out of the folder.

    Raises
    ------
    UserError
        With every file that can't belong.
    OperatorError
        If one can't be read.
    """
    texts: dict[str, str] = {}
    facts: list[str] = []
    mistakes: list[Mistake] = []
    root = folder.resolve()
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if Path(top, name).is_symlink():
                path = Path(top, name).relative_to(folder).as_posix()
                mistakes.append(
                    Mistake(path, 0, 0, "A link to a folder can't be kept.", "Copy the folder in.")
                )
        for name in sorted(names):
            place = Path(top, name)
            path = place.relative_to(folder).as_posix()
            lowered = name.lower()
            if name.startswith("."):
                continue
            if not place.resolve().is_relative_to(root):
                mistakes.append(Mistake(path, 0, 0, "The link leads out of the folder.", "Copy the file in."))
            elif lowered.endswith(FACT_ENDINGS):
                facts.append(path)
            elif lowered.endswith(TEXT_ENDINGS):
                try:
                    texts[path] = place.read_bytes().decode("utf-8")
                except UnicodeDecodeError:
                    mistakes.append(Mistake(path, 0, 0, "The file isn't UTF-8.", "Save it as UTF-8."))
                except OSError as error:
                    raise OperatorError(f"File {path} can't be read: {error.strerror}.") from error
    if mistakes:
        raise UserError(mistakes)
    return texts, tuple(facts)


def require_inside(files: Files) -> None:
    """Facts and dimension tables must be among the files, so that a version means the same on any machine.

    Raises
    ------
    UserError
        With every cube that names a file outside. TOML that can't be read is left to `define`.
    """
    mistakes = []
    for path, text in files.texts.items():
        if not (path.startswith("cubes/") and path.endswith(".toml")):
            continue
        try:
            cube = read_toml(text)
        except (ValueError, RecursionError):
            continue
        for name, place in named_files(cube):
            if place not in files.uploads and place not in files.texts:
                cause = f"File {name} isn't part of the publication."
                remedy = "Upload it, and name it by its place, as in ../data/firms.csv."
                mistakes.append(Mistake(path, 0, 0, cause, remedy))
    if mistakes:
        raise UserError(mistakes)
