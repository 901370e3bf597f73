"""The publication's versions: what is current, what was before, what differs; and drafts begun from it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar

from starlette.responses import Response, StreamingResponse

from app.domain.errors import UserError
from app.domain.people import Permission
from app.domain.version import Change, Files, Version
from app.office.archive import write_zip
from app.office.drafting import require_rules_permission
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.visit import A_NUMBER, A_TEXT, TEXTS, Frame, RefusedError, Visit

routes = Routes()


routes.tab(
    _("Publication"),
    "/studio/publication",
    Permission.READ_OFFICE,
    10,
    ("/studio/drafts", "/studio/versions"),
)

STATE_WORDS = {"draft": _("draft"), "current": _("current"), "past": _("past")}


@dataclass(frozen=True)
class VersionRow:
    id: int
    author: str
    message: str
    moment: str
    state: str
    current: bool


@dataclass(frozen=True, eq=False)
class PublicationPage:
    template: ClassVar[str] = "studio/publication.html"
    frame: Frame
    versions: tuple[VersionRow, ...]
    drafts: tuple[VersionRow, ...]


@dataclass(frozen=True)
class FileRow:
    path: str
    kind: str
    size: str


@dataclass(frozen=True, eq=False)
class VersionPage:
    template: ClassVar[str] = "studio/version.html"
    frame: Frame
    version: VersionRow
    parent: int
    changes: tuple[Change, ...]
    files: tuple[FileRow, ...]


def publication_link(visit: Visit) -> Link:
    return Link(visit.say(_("Publication")), "/studio/publication")


def version_row(visit: Visit, version: Version) -> VersionRow:
    state = visit.say(STATE_WORDS[version.state])
    return VersionRow(
        version.id,
        version.author,
        version.message,
        visit.moment(version.created),
        state,
        version.state == "current",
    )


@routes.get("/studio/publication", Permission.READ_OFFICE)
def publication_page(visit: Visit) -> Response:
    """Versions and drafts."""
    versions = visit.office.versions
    return visit.page(
        PublicationPage(
            visit.frame(visit.say(_("Publication"))),
            tuple(version_row(visit, item) for item in versions.history()),
            tuple(version_row(visit, item) for item in versions.drafts()),
        )
    )


@routes.post("/studio/drafts", Permission.EDIT_PUBLICATION)
def begin(visit: Visit) -> Response:
    """A draft of what is current."""
    draft = visit.office.drafting.begin(visit.actor, visit.origin)
    return visit.redirect(f"/studio/drafts/{draft.id}")


def _version(visit: Visit) -> Version:
    try:
        return visit.office.versions.version(visit.number("version"))
    except UserError:
        raise RefusedError(404) from None


@routes.get("/studio/versions/{version:int}", Permission.READ_OFFICE)
def version_page(visit: Visit) -> Response:
    """A version: its files, and what it changed."""
    version = _version(visit)
    versions = visit.office.versions
    parent = None if version.parent is None else versions.version(version.parent)
    files = versions.files(version)
    rows = [FileRow(path, "text", f"{len(text):,}") for path, text in files.texts.items()]
    rows += [
        FileRow(path, "facts", f"{versions.upload(digest).size:,}") for path, digest in files.uploads.items()
    ]
    title = visit.say(_("Version {number}"), number=version.id)
    return visit.page(
        VersionPage(
            visit.frame(title, publication_link(visit)),
            version_row(visit, version),
            version.parent or 0,
            versions.diff(parent, version),
            tuple(sorted(rows, key=lambda row: row.path)),
        )
    )


@routes.get("/studio/versions/{version:int}/export", Permission.READ_FACTS)
def export(visit: Visit) -> Response:
    """A version as a ZIP file, with its facts: who may not see confidential values gets the own ones."""
    version = _version(visit)
    author = None if visit.actor.may(Permission.READ_CONFIDENTIAL) else visit.actor.name
    file = tempfile.TemporaryFile()  # noqa: SIM115  whoever sends it closes it
    try:
        write_zip(visit.office.versions, version, file, author)
    except BaseException:
        file.close()
        raise
    visit.office.journal.record(visit.actor, "version.export", f"version {version.id}", origin=visit.origin)
    file.seek(0)
    headers = {"content-disposition": f'attachment; filename="version-{version.id}.zip"'}
    return StreamingResponse(_parts(file), media_type="application/zip", headers=headers)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while body := file.read(1 << 16):
            yield body


@routes.get("/studio/api/versions/current", Permission.READ_OFFICE)
def current_document(visit: Visit) -> Response:
    """The current version's texts, for programs."""
    current = visit.office.versions.current()
    if current is None:
        raise RefusedError(404)
    files = visit.office.versions.files(current)
    return visit.json(
        {
            "version": current.id,
            "author": current.author,
            "message": current.message,
            "files": dict(files.texts),
            "facts": dict(files.uploads),
        }
    )


@routes.post("/studio/api/versions", Permission.EDIT_PUBLICATION, as_read="parent")
def save_document(visit: Visit) -> Response:
    """A new current version: ``{"parent": 7, "message": "…", "files": {path: text}}``; facts stay."""
    body = visit.json_body()
    texts, message, parent = body.get("files"), body.get("message"), body.get("parent")
    whole = isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())
    known = parent is None or (
        isinstance(parent, int) and not isinstance(parent, bool) and 0 < parent < 1 << 31
    )
    if not whole:
        raise visit.unread("files", TEXTS)
    if not isinstance(message, str):
        raise visit.unread("message", A_TEXT)
    if not known:
        raise visit.unread("parent", A_NUMBER)
    assert isinstance(texts, dict)
    if any("\0" in text for text in (message, *texts, *texts.values())):
        raise RefusedError(400)
    versions = visit.office.versions
    base = None if parent is None else versions.version(parent)
    kept = Files({}) if base is None else versions.files(base)
    require_rules_permission(visit.actor, kept, Files(texts, kept.uploads))
    with visit.office.journal.together():
        saved = versions.save(texts, base, visit.actor.name, message[:1000])
        visit.office.journal.record(
            visit.actor,
            "version.publish",
            f"version {saved.id}",
            {"version": parent},
            {"version": saved.id, "message": saved.message},
            visit.origin,
        )
    return visit.json({"version": saved.id}, 201)
