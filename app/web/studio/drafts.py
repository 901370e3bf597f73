"""A draft: its tree of folders and sheets, and what may be done with it as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import ClassVar

from starlette.responses import Response

from app.domain.errors import ConflictError, Mistake, UserError
from app.domain.people import Permission
from app.domain.toml import read_toml
from app.domain.version import Change, Files, Version
from app.office.archive import unpacked
from app.office.sheet_form import new_folder, new_publication, new_sheet
from app.office.versions import diff_files
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.publication import publication_link
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit, quoted, status_of

routes = Routes()

ARCHIVE_LIMIT = 512 << 20


@dataclass(frozen=True)
class TreeRow:
    """A line of the tree: a folder, a sheet, a cube, another text, or facts; ``title`` as readers see it."""

    path: str
    name: str
    title: str
    kind: str
    depth: int
    edit: str
    preview: str
    wrong: int


@dataclass(frozen=True, eq=False)
class DraftPage:
    template: ClassVar[str] = "studio/draft.html"
    frame: Frame
    id: int
    revision: int
    author: str
    parent: int
    behind: bool
    conflicts: tuple[str, ...]
    rows: tuple[TreeRow, ...]
    folders: tuple[str, ...]
    mistakes: tuple[Mistake, ...]
    changed: int


@dataclass(frozen=True, eq=False)
class ChangesPage:
    template: ClassVar[str] = "studio/changes.html"
    frame: Frame
    id: int
    revision: int
    changes: tuple[Change, ...]
    behind: bool
    conflicts: tuple[str, ...]
    message: str
    wrong: str


def draft_of(visit: Visit) -> Version:
    """The draft of the address, at the revision that the form was made from, where one was sent.

    Saved as such it is refused if somebody saved it since.

    Raises
    ------
    RefusedError
        404 if there never was one.
    ConflictError
        If it was published or thrown away since.
    """
    number = visit.number("draft")
    try:
        found = visit.office.drafting.draft(number)
    except ConflictError:
        raise
    except UserError:
        raise RefusedError(404) from None
    revision = visit.integer("revision")
    return found if revision is None else replace(found, revision=revision)


def draft_as_read(visit: Visit) -> Version:
    """The draft of the address, if it still is as it was when the form was made.

    Raises
    ------
    ConflictError
    """
    draft = draft_of(visit)
    if visit.office.versions.version(draft.id).revision != draft.revision:
        raise ConflictError("This draft was saved elsewhere meanwhile. Open it again and repeat the change.")
    return draft


def draft_link(visit: Visit, draft: Version) -> Link:
    return Link(visit.say(_("Draft {number}"), number=draft.id), f"/studio/drafts/{draft.id}")


def languages_of(files: Files) -> tuple[str, ...]:
    """The publication's languages, as far as they can be read."""
    try:
        found = read_toml(files.texts.get("publication.toml", "")).get("languages")
    except (ValueError, RecursionError):
        found = None
    kept = tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()
    return kept or ("en",)


@routes.get("/studio/drafts/{draft:int}", Permission.READ_OFFICE)
def draft_page(visit: Visit) -> Response:
    """The draft's tree."""
    draft = draft_of(visit)
    office = visit.office
    files = office.versions.files(draft)
    mistakes = office.previews.mistakes(files) if files.texts else ()
    current = office.versions.current()
    behind = (current.id if current else None) != draft.parent
    parent = None if draft.parent is None else office.versions.version(draft.parent)
    changed = len(office.versions.diff(parent, draft))
    return visit.page(
        DraftPage(
            frame=visit.frame(visit.say(_("Draft {number}"), number=draft.id), publication_link(visit)),
            id=draft.id,
            revision=draft.revision,
            author=draft.author,
            parent=draft.parent or 0,
            behind=behind,
            conflicts=office.versions.conflicts(draft) if behind else (),
            rows=tuple(_tree(draft, files, mistakes, visit.language)),
            folders=_folders(files),
            mistakes=visit.mistakes(mistakes),
            changed=changed,
        )
    )


def _tree(draft: Version, files: Files, mistakes: tuple[Mistake, ...], language: str) -> Iterator[TreeRow]:
    wrong: dict[str, int] = {}
    for mistake in mistakes:
        wrong[mistake.file] = wrong.get(mistake.file, 0) + 1
    base = f"/studio/drafts/{draft.id}"
    seen: set[str] = set()
    for path in sorted((*files.texts, *files.uploads), key=_tree_order):
        parts = PurePosixPath(path).parts
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in seen:
                seen.add(folder)
                title = _title(files.texts.get(f"{folder}/folder.toml", ""), language)
                yield TreeRow(folder, parts[depth - 1], title, "folder", depth - 1, "", "", 0)
        kind = _kind(path, files)
        edit = "" if kind == "facts" else f"{base}/{'sheet' if kind == 'sheet' else 'text'}/{quoted(path)}"
        preview = f"{base}/preview/{quoted(path)}" if kind == "sheet" else ""
        title = _title(files.texts[path], language) if kind == "sheet" else ""
        yield TreeRow(path, parts[-1], title, kind, len(parts) - 1, edit, preview, wrong.get(path, 0))


def _title(text: str, language: str) -> str:
    """The title that a file gives, in a language if it can be."""
    try:
        found = read_toml(text).get("title", "")
    except (ValueError, RecursionError):
        return ""
    if isinstance(found, dict):
        found = found.get(language) or next(iter(found.values()), "")
    return found if isinstance(found, str) else ""


def _tree_order(path: str) -> tuple[int, list[tuple[bool, str]]]:
    parts = path.split("/")
    first = {"publication.toml": 0, "sheets": 1, "cubes": 2}.get(parts[0], 3)
    return first, [(number == len(parts) - 1, part) for number, part in enumerate(parts)]


def _kind(path: str, files: Files) -> str:
    if path in files.uploads:
        return "facts"
    is_sheet = path.startswith("sheets/") and path.endswith(".toml") and not path.endswith("/folder.toml")
    return "sheet" if is_sheet else "text"


def _folders(files: Files) -> tuple[str, ...]:
    found = {"sheets"}
    for path in files.texts:
        parts = path.split("/")[:-1]
        found |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1) if parts[0] == "sheets"}
    return tuple(sorted(found))


def _back(visit: Visit, draft: Version, said: str) -> Response:
    return visit.redirect(f"/studio/drafts/{draft.id}", said)


@routes.post("/studio/drafts/{draft:int}/start", Permission.EDIT_PUBLICATION)
def start(visit: Visit) -> Response:
    """The first file of a publication that doesn't exist yet."""
    draft = draft_as_read(visit)
    if "publication.toml" in visit.office.versions.files(draft).texts:
        raise UserError(f"There is something at {'publication.toml'} already.")
    languages = tuple(item.strip() for item in visit.text("languages").split(",") if item.strip())
    text = new_publication(visit.text("title").strip(), visit.text("publisher").strip(), languages)
    visit.office.drafting.put_texts(visit.actor, draft, {"publication.toml": text}, visit.origin)
    return _back(visit, draft, "added")


@routes.post("/studio/drafts/{draft:int}/new", Permission.EDIT_PUBLICATION)
def new(visit: Visit) -> Response:
    """A new sheet or folder."""
    draft = draft_as_read(visit)
    files = visit.office.versions.files(draft)
    languages = languages_of(files)
    folder, name, title = (
        visit.text("folder", "sheets"),
        visit.text("name").strip(),
        visit.text("title").strip(),
    )
    if folder not in _folders(files):
        raise RefusedError(400)
    if visit.text("kind") == "folder":
        path, text = f"{folder}/{name}/folder.toml", new_folder(title or name, languages[0])
    else:
        cubes = [PurePosixPath(path).stem for path in files.texts if path.startswith("cubes/")]
        path, text = f"{folder}/{name}.toml", new_sheet(title or name, languages[0], _cube(files, cubes))
    if path in files.texts:
        raise UserError(f"There is something at {path} already.")
    visit.office.drafting.put_texts(visit.actor, draft, {path: text}, visit.origin)
    if visit.text("kind") == "folder":
        return _back(visit, draft, "added")
    return visit.redirect(f"/studio/drafts/{draft.id}/sheet/{quoted(path)}", "added")


def _cube(files: Files, stems: list[str]) -> str:
    for stem in sorted(stems):
        try:
            name = read_toml(files.texts[f"cubes/{stem}.toml"]).get("name")
        except (ValueError, RecursionError):
            continue
        if isinstance(name, str):
            return name
    return "Cube"


@routes.post("/studio/drafts/{draft:int}/move", Permission.EDIT_PUBLICATION)
def move(visit: Visit) -> Response:
    """Another path for a file or folder."""
    draft = draft_as_read(visit)
    path, to = visit.text("path"), visit.text("to").strip().strip("/")
    visit.office.drafting.move(visit.actor, draft, path, to, visit.origin)
    return _back(visit, draft, "saved")


@routes.post("/studio/drafts/{draft:int}/delete", Permission.EDIT_PUBLICATION)
def delete(visit: Visit) -> Response:
    """Take a file or folder out."""
    draft = draft_as_read(visit)
    visit.office.drafting.delete(visit.actor, draft, visit.text("path"), visit.origin)
    return _back(visit, draft, "removed")


@routes.get("/studio/drafts/{draft:int}/changes", Permission.READ_OFFICE)
def changes_page(visit: Visit) -> Response:
    """What the draft changes."""
    return visit.page(_changes(visit, draft_of(visit), "", ""))


def _changes(visit: Visit, draft: Version, message: str, wrong: str) -> ChangesPage:
    versions = visit.office.versions
    parent = None if draft.parent is None else versions.version(draft.parent)
    before = Files({}) if parent is None else versions.files(parent)
    current = versions.current()
    behind = (current.id if current else None) != draft.parent
    return ChangesPage(
        visit.frame(visit.say(_("Changes")), publication_link(visit), draft_link(visit, draft)),
        draft.id,
        draft.revision,
        diff_files(before, versions.files(draft)),
        behind,
        versions.conflicts(draft) if behind else (),
        message,
        wrong,
    )


@routes.post("/studio/drafts/{draft:int}/publish", Permission.EDIT_PUBLICATION)
def publish(visit: Visit) -> Response:
    """Make the draft the current version."""
    draft = draft_as_read(visit)
    message = visit.text("message")
    try:
        mistakes = visit.office.previews.check(visit.office.versions.files(draft))
        if mistakes:
            raise UserError(mistakes)
        published = visit.office.drafting.publish(visit.actor, draft, message, visit.origin)
    except UserError as error:
        return visit.page(_changes(visit, draft, message[:1000], visit.said(error)), status_of(error))
    return visit.redirect(f"/studio/versions/{published.id}", "published")


@routes.post("/studio/drafts/{draft:int}/update", Permission.EDIT_PUBLICATION)
def update(visit: Visit) -> Response:
    """Bring the draft up to the current version."""
    draft = draft_as_read(visit)
    visit.office.drafting.update(visit.actor, draft, visit.origin)
    return _back(visit, draft, "updated")


@routes.post("/studio/drafts/{draft:int}/discard", Permission.EDIT_PUBLICATION)
def discard(visit: Visit) -> Response:
    """Throw the draft away."""
    visit.office.drafting.discard(visit.actor, draft_as_read(visit), visit.origin)
    return visit.redirect("/studio/publication", "discarded")


@routes.post("/studio/drafts/{draft:int}/import", Permission.EDIT_PUBLICATION, ARCHIVE_LIMIT)
def import_archive(visit: Visit) -> Response:
    """Take over the files of a ZIP file in place of the draft's: facts too, from who may upload them."""
    draft = draft_as_read(visit)
    file = visit.file("archive")
    if file is None:
        raise UserError(visit.say(_("Choose a file first.")))
    with unpacked(file.file, file.size or 0) as found:
        if found.facts and not visit.actor.may(Permission.UPLOAD_FACTS):
            raise RefusedError(403)
        uploads = {
            path: visit.office.versions.put_upload(place, PurePosixPath(path).name, visit.actor.name).digest
            for path, place in found.facts.items()
        }
        texts: Mapping[str, str] = found.texts
        kept = visit.office.versions.files(draft).uploads if visit.text("keep") == "yes" else {}
        visit.office.drafting.replace(visit.actor, draft, Files(texts, {**kept, **uploads}), visit.origin)
    return _back(visit, draft, "imported")
