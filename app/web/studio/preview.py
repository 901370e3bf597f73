"""A draft's sheet as the public will see it, made by the public site's own code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from app.domain.errors import Mistake, UserError
from app.domain.people import Permission
from app.domain.publication import Theme
from app.domain.version import Version
from app.office.previews import Preview
from app.serve.answer import LiveReader, NotPublishedError
from app.web.assets import load_assets
from app.web.contents import Contents
from app.web.contexts import SheetPage
from app.web.fields import chosen, fields_of, fields_of_sheet
from app.web.language import marked as _
from app.web.pages import Site, answer_queries
from app.web.refusals import RefusalError
from app.web.render import Renderer
from app.web.studio.drafts import draft_link, draft_of, languages_of
from app.web.studio.publication import publication_link
from app.web.studio.routes import Routes
from app.web.studio.visit import HTML, Frame, RefusedError, Visit, quoted
from app.web.theme import theme_style

routes = Routes()


@cache
def _renderer() -> Renderer:
    return Renderer(load_assets())


@dataclass(frozen=True, eq=False)
class NoPreviewPage:
    template: ClassVar[str] = "studio/no_preview.html"
    frame: Frame
    mistakes: tuple[Mistake, ...]
    edit: str


@routes.get("/studio/drafts/{draft:int}/preview/{path:path}", Permission.READ_OFFICE)
def preview(visit: Visit) -> Response:
    """A sheet of a draft as readers would see it; a language before its path shows it in that."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    path = visit.part("path")
    language, _slash, rest = path.partition("/")
    if language in languages_of(files) and rest.startswith("sheets/"):
        path = rest
    else:
        language = ""
    if path not in files.texts:
        raise RefusedError(404)
    try:
        found = visit.office.previews.preview(files, path)
    except UserError as error:
        frame = visit.frame(visit.say(_("No preview")), publication_link(visit), draft_link(visit, draft))
        edit = f"/studio/drafts/{draft.id}/sheet/{quoted(path)}"
        return visit.page(NoPreviewPage(frame, visit.mistakes(error.mistakes), edit), 422)
    try:
        return _shown(visit, draft, found, path, language)
    except RefusalError as error:
        raise RefusedError(error.status, error.sentence(visit.language)) from None
    except NotPublishedError:
        raise RefusedError(404) from None


@routes.get("/studio/drafts/{draft:int}/theme.css", Permission.READ_OFFICE)
def theme(visit: Visit) -> Response:
    """The draft's colours."""
    return Response(theme_style(_theme(visit)), headers={"content-type": "text/css; charset=utf-8"})


@routes.get("/studio/drafts/{draft:int}/logo.svg", Permission.READ_OFFICE)
def logo(visit: Visit) -> Response:
    """The draft's logo, drawn and nothing else, should somebody open it alone."""
    drawn = _theme(visit).logo
    if not drawn:
        raise RefusedError(404)
    return Response(drawn, headers={"content-type": "image/svg+xml"})


def _theme(visit: Visit) -> Theme:
    files = visit.office.versions.files(draft_of(visit))
    try:
        return visit.office.previews.theme(files)
    except UserError:
        raise RefusedError(404) from None


def _shown(visit: Visit, draft: Version, found: Preview, path: str, language: str) -> Response:
    reader = LiveReader(found, patience=3600.0)
    contents = Contents(found.told)
    base = f"/studio/drafts/{draft.id}"
    address = f"{base}/preview/{language}/{quoted(path)}" if language else f"{base}/preview/{quoted(path)}"
    site = Site(contents, language or found.told.languages[0], "", only=address)
    entry = next(contents.root.walk())
    known = fields_of_sheet(entry.sheet)
    asked = fields_of(visit.request, replace(known, names=known.names | {"lang", "said"}))
    fields = {name: value for name, value in asked.items() if name not in ("lang", "said")}
    choices = contents.choices(entry.sheet, chosen(fields))
    answers = answer_queries(reader, contents, entry, choices, fields)
    page = site.sheet(entry, choices, answers, fields)
    edit = f"{base}/sheet/{quoted(path)}"
    body = _renderer()(_detached(page, visit, fields, base, path)).decode()
    return Response(_with_banner(visit, body, found, edit).encode(), headers={"content-type": HTML})


def _detached(page: SheetPage, visit: Visit, fields: dict[str, str], base: str, path: str) -> SheetPage:
    """The page with addresses of the draft in place of those that the site doesn't have yet."""
    state = f"?{urlencode(fields)}" if fields else ""
    languages = tuple(
        replace(link, address=f"{base}/preview/{link.code}/{quoted(path)}{state}")
        for link in page.frame.languages
    )
    frame = replace(
        page.frame,
        languages=languages,
        canonical="",
        home=page.address,
        crumbs=(),
        release_id="",
        released="",
        latest="",
        theme=f"{base}/theme.css" if page.frame.theme else "",
        logo=f"{base}/logo.svg" if page.frame.logo else "",
    )
    blocks = tuple(replace(block, downloads=()) for block in page.blocks)
    said = visit.say(_("A preview can't be cited."))
    return replace(page, frame=frame, blocks=blocks, citation=said, dataset=Markup("{}"))


def _with_banner(visit: Visit, body: str, found: Preview, edit: str) -> str:
    """The page with a line on top that says what it is, and what isn't known yet."""
    said = visit.say(_("Preview of a draft, masked by the live release."))
    if found.unknown:
        said += " " + visit.say(
            _("{unknown} of {cells} cells are new: they stay hidden until a recomputation decides on them."),
            unknown=found.unknown,
            cells=found.unknown + found.known,
        )
    else:
        said += " " + visit.say(_("Every cell is in the live release already."))
    back, label = visit.say(_("Back to the editor")), visit.say(_("Preview"))
    banner = f'<aside class="preview-banner" aria-label="{label}">{said} <a href="{edit}">{back}</a></aside>'
    return body.replace("<header", f"{banner}<header", 1)
