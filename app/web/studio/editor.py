"""Editing a sheet as a form, any file as text; mistakes stand under their place, nothing typed is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response

from app.domain.errors import CelosiaError, Mistake, UserError
from app.domain.people import Permission
from app.domain.publication import MOST_ON_SHEET
from app.domain.version import LONGEST_TEXT, Files, Version
from app.office.sheet_form import CHARTS, VIEWS, ParameterForm, QueryForm, SheetForm, read_form, write_form
from app.web.language import marked as _
from app.web.studio.drafts import draft_as_read, draft_link, draft_of, languages_of
from app.web.studio.publication import publication_link
from app.web.studio.routes import Routes
from app.web.studio.shell import as_document
from app.web.studio.visit import A_LIST, A_NUMBER, A_TEXT, Frame, RefusedError, Visit, quoted, status_of

routes = Routes()


@dataclass(frozen=True, eq=False)
class TextPage:
    """A file as text."""

    template: ClassVar[str] = "studio/text.html"
    frame: Frame
    draft: int
    revision: int
    path: str
    text: str
    mistakes: tuple[Mistake, ...]
    preview: str
    form: str
    too_long: bool


@dataclass(frozen=True, eq=False)
class SheetEditorPage:
    """A sheet as a form; ``mistakes`` point at lines of its file, ``under`` are those of each query's MDX."""

    template: ClassVar[str] = "studio/sheet.html"
    frame: Frame
    draft: int
    revision: int
    path: str
    languages: tuple[str, ...]
    form: SheetForm
    views: tuple[tuple[str, str], ...]
    charts: tuple[tuple[str, str], ...]
    mistakes: tuple[Mistake, ...]
    under: tuple[tuple[Mistake, ...], ...]
    checked: bool
    preview: str
    text: str


VIEW_WORDS = {"table": _("table"), "chart": _("chart"), "map": _("map")}
CHART_WORDS = {
    "": _("as it fits"),
    "bar": _("bars"),
    "line": _("lines"),
    "stacked": _("stacked bars"),
    "pyramid": _("pyramid"),
    "scatter": _("scatter"),
}


def _path(visit: Visit, files: Files) -> str:
    path = visit.part("path")
    if path not in files.texts:
        raise RefusedError(404)
    return path


def _addresses(draft: Version, path: str) -> tuple[str, str, str]:
    base = f"/studio/drafts/{draft.id}"
    is_sheet = path.startswith("sheets/") and not path.endswith("/folder.toml")
    preview = f"{base}/preview/{quoted(path)}" if is_sheet else ""
    form = f"{base}/sheet/{quoted(path)}" if is_sheet else ""
    return preview, form, f"{base}/text/{quoted(path)}"


@routes.get("/studio/drafts/{draft:int}/text/{path:path}", Permission.READ_OFFICE)
def text_page(visit: Visit) -> Response:
    """A file as text, with what is wrong in it."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    path = _path(visit, files)
    mistakes = tuple(item for item in visit.office.previews.mistakes(files) if item.file == path)
    return visit.page(_text(visit, draft, path, files.texts[path], mistakes, draft.revision))


def _text(
    visit: Visit, draft: Version, path: str, text: str, mistakes: tuple[Mistake, ...], revision: int
) -> TextPage:
    preview, form, _own = _addresses(draft, path)
    frame = visit.frame(path, publication_link(visit), draft_link(visit, draft))
    rules = f"/studio/drafts/{draft.id}/rules" if path == "publication.toml" else ""
    shown = text if len(text) <= LONGEST_TEXT else ""
    return TextPage(
        frame, draft.id, revision, path, shown, mistakes, preview, form or rules, bool(text) > bool(shown)
    )


@routes.post("/studio/drafts/{draft:int}/text/{path:path}", Permission.EDIT_PUBLICATION)
def save_text(visit: Visit) -> Response:
    """Save a file's text; it is kept with its mistakes, which are shown."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    path, text = _path(visit, files), visit.text("text")
    try:
        draft_as_read(visit)
        saved = visit.office.drafting.put_texts(visit.actor, draft, {path: text}, visit.origin)
    except UserError as error:
        said = error.mistakes
        return visit.page(_text(visit, draft, path, text, said, draft.revision), status_of(error))
    found = visit.office.previews.mistakes(visit.office.versions.files(saved))
    if any(item.file == path for item in found):
        mistakes = tuple(item for item in found if item.file == path)
        return visit.page(_text(visit, saved, path, text, mistakes, saved.revision))
    return visit.redirect(f"/studio/drafts/{draft.id}/text/{quoted(path)}", "saved")


@routes.get("/studio/drafts/{draft:int}/sheet/{path:path}", Permission.READ_OFFICE)
def sheet_page(visit: Visit) -> Response:
    """A sheet as a form, or as text when its text has no such shape."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    path = _path(visit, files)
    try:
        form = read_form(files.texts[path], path, languages_of(files))
    except UserError:
        return visit.redirect(_addresses(draft, path)[2])
    mistakes = tuple(item for item in visit.office.previews.mistakes(files) if item.file == path)
    return visit.page(_sheet(visit, draft, path, files, form, mistakes, False, draft.revision))


def _sheet(
    visit: Visit,
    draft: Version,
    path: str,
    files: Files,
    form: SheetForm,
    mistakes: tuple[Mistake, ...],
    checked: bool,
    revision: int,
) -> SheetEditorPage:
    preview, _form, text = _addresses(draft, path)
    told = visit.mistakes(mistakes)
    return SheetEditorPage(
        frame=visit.frame(path, publication_link(visit), draft_link(visit, draft)),
        draft=draft.id,
        revision=revision,
        path=path,
        languages=languages_of(files),
        form=form,
        views=tuple((key, visit.say(VIEW_WORDS[key])) for key in VIEWS),
        charts=tuple((key, visit.say(CHART_WORDS[key])) for key in CHARTS),
        mistakes=told,
        under=_under(form, told),
        checked=checked,
        preview=preview,
        text=text,
    )


def _under(form: SheetForm, mistakes: tuple[Mistake, ...]) -> tuple[tuple[Mistake, ...], ...]:
    """The mistakes of each query: those whose line is one of its own and of no other."""
    found: list[list[Mistake]] = [[] for _query in form.queries]
    holders: dict[str, set[int]] = {}
    for number, query in enumerate(form.queries):
        for own in query.mdx.splitlines():
            holders.setdefault(own.strip(), set()).add(number)
    for mistake in mistakes:
        line = mistake.excerpt.partition("\n")[0].strip()
        there = holders.get(line, ()) if line else ()
        if len(there) == 1:
            found[next(iter(there))].append(mistake)
    return tuple(map(tuple, found))


@routes.post("/studio/drafts/{draft:int}/sheet/{path:path}", Permission.EDIT_PUBLICATION)
def save_sheet(visit: Visit) -> Response:
    """Save a sheet's form, with a query or parameter more where that was asked for."""
    draft = draft_of(visit)
    files = visit.office.versions.files(draft)
    path = _path(visit, files)
    languages = languages_of(files)
    form = _read(visit, languages)
    try:
        draft_as_read(visit)
        text = write_form(files.texts[path], path, form, languages)
        saved = visit.office.drafting.put_texts(visit.actor, draft, {path: text}, visit.origin)
    except UserError as error:
        said = error.mistakes
        return visit.page(
            _sheet(visit, draft, path, files, form, said, False, draft.revision), status_of(error)
        )
    files = visit.office.versions.files(saved)
    mistakes = visit.office.previews.check(files, path)
    form = read_form(files.texts[path], path, languages)
    return visit.page(_sheet(visit, saved, path, files, form, mistakes, True, saved.revision))


def _read(visit: Visit, languages: tuple[str, ...]) -> SheetForm:
    def texts(name: str) -> dict[str, str]:
        return {code: text for code in languages if (text := visit.text(f"{name}.{code}").strip())}

    do = visit.text("do")
    parameters, queries = [], []
    for number in range(MOST_ON_SHEET):
        if f"p{number}.name" in visit.form and do != f"drop-p{number}":
            parameters.append(
                ParameterForm(
                    visit.text(f"p{number}.name").strip(),
                    texts(f"p{number}.title"),
                    visit.text(f"p{number}.cube").strip(),
                    visit.text(f"p{number}.set").strip(),
                )
            )
        if f"q{number}.id" in visit.form and do != f"drop-q{number}":
            show, chart = visit.text(f"q{number}.show"), visit.text(f"q{number}.chart")
            queries.append(
                QueryForm(
                    visit.text(f"q{number}.id").strip(),
                    texts(f"q{number}.title"),
                    show if show in VIEWS else "table",
                    chart if chart in CHARTS else "",
                    visit.text(f"q{number}.mdx").rstrip(),
                )
            )
    if do == "add-query":
        queries.append(QueryForm(f"query{len(queries) + 1}", {}, "table", "", "SELECT  ON COLUMNS\nFROM []"))
    if do == "add-parameter":
        parameters.append(ParameterForm(f"choice{len(parameters) + 1}", {}, "", "[].Members"))
    return SheetForm(
        texts("title"), texts("notes"), visit.text("order").strip(), tuple(parameters), tuple(queries)
    )


@routes.post("/studio/api/drafts/{draft:int}/complete", Permission.EDIT_PUBLICATION)
def complete(visit: Visit) -> Response:
    """``{"text": …, "caret": …, "parameters": […]}``: what MDX may go on with at the caret."""
    draft = draft_of(visit)
    body = visit.json_body()
    text, caret, names = body.get("text"), body.get("caret"), body.get("parameters", [])
    if not isinstance(text, str):
        raise visit.unread("text", A_TEXT)
    if not isinstance(caret, int):
        raise visit.unread("caret", A_NUMBER)
    if not isinstance(names, list):
        raise visit.unread("parameters", A_LIST)
    known = tuple(name for name in names if isinstance(name, str))[:MOST_ON_SHEET]
    files = visit.office.versions.files(draft)
    found = visit.office.previews.complete(files, text[:100_000], caret, known, visit.language)
    return visit.json(
        {
            "start": found.start,
            "suggestions": [
                {"text": item.text, "label": item.label, "kind": item.kind} for item in found.suggestions
            ],
        }
    )


@routes.post("/studio/api/drafts/{draft:int}/check", Permission.EDIT_PUBLICATION)
def check(visit: Visit) -> Response:
    """``{"path": …, "text": …}``: what would be wrong with this text in place of the file's."""
    draft = draft_of(visit)
    body = visit.json_body()
    path, text = body.get("path"), body.get("text")
    if not isinstance(path, str):
        raise visit.unread("path", A_TEXT)
    if not isinstance(text, str):
        raise visit.unread("text", A_TEXT)
    files = visit.office.versions.files(draft)
    try:
        whole = Files({**files.texts, path: text}, files.uploads)
        mistakes = visit.office.previews.check(whole, path)
    except UserError as error:
        mistakes = error.mistakes
    except CelosiaError as error:
        mistakes = (Mistake("", 0, 0, str(error)),)
    return visit.json({"mistakes": [as_document(visit, mistake) for mistake in mistakes]})
