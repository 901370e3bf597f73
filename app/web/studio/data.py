"""Facts into a draft: uploaded or named at a database, surveyed, and made a cube by a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

from starlette.responses import Response

from app.domain.errors import UserError
from app.domain.people import Permission
from app.domain.version import Files, Version
from app.office.cube_writer import LEVELS, ROLES, ColumnChoice, CubeChoice, with_rules, write_cube
from app.office.folders import scratch
from app.office.intake import ENCODINGS, SEPARATORS, Writing, detect, normalise
from app.office.named_files import cube_place, facts_place, name_of, same_name, stem_of
from app.office.survey import Survey, survey, survey_database
from app.web.language import marked as _
from app.web.studio.drafts import draft_as_read, draft_link, draft_of, languages_of
from app.web.studio.publication import publication_link
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit, status_of

routes = Routes()

#: Bytes of a file of facts.
FACTS_LIMIT = 1 << 30


ROLE_WORDS = {
    "level": _("level"),
    "time": _("level of time"),
    "label": _("label of a level"),
    "measure": _("measure"),
    "respondent": _("respondent"),
    "holding": _("holding of the respondent"),
    "weight": _("sampling weight"),
    "nothing": _("not used"),
}
SEPARATOR_WORDS = {
    "comma": _("comma"),
    "semicolon": _("semicolon"),
    "tab": _("tab"),
    "bar": _("vertical bar"),
}


@dataclass(frozen=True)
class FactsRow:
    """A file of facts in the draft; ``address`` is where its reader may look into it."""

    path: str
    size: str
    address: str


@dataclass(frozen=True, eq=False)
class DataPage:
    """Where facts come from."""

    template: ClassVar[str] = "studio/data.html"
    frame: Frame
    draft: int
    sources: tuple[str, ...]
    revision: int
    facts: tuple[FactsRow, ...]
    wrong: str
    sql: str


@dataclass(frozen=True)
class ColumnRow:
    """A column in the form; ``number`` names its fields."""

    number: int
    name: str
    examples: str
    distinct: str
    missing: int
    numeric: bool
    role: str
    above: str
    labels: str
    negative: bool


@dataclass(frozen=True, eq=False)
class WizardPage:
    """A survey of facts, and the form that makes a cube of them."""

    template: ClassVar[str] = "studio/wizard.html"
    frame: Frame
    draft: int
    revision: int
    name: str
    survey: Survey
    columns: tuple[ColumnRow, ...]
    roles: tuple[tuple[str, str], ...]
    encodings: tuple[str, ...]
    separators: tuple[tuple[str, str], ...]
    separator: str
    cube: str
    threshold: str
    all_caption: str
    count_caption: str
    wrong: str
    source: str
    sql: str


@routes.get("/studio/drafts/{draft:int}/data", Permission.READ_FACTS)
def data_page(visit: Visit) -> Response:
    """Where facts may come from."""
    return visit.page(_data(visit, draft_of(visit)))


def _data(visit: Visit, draft: Version, wrong: str = "", sql: str = "") -> DataPage:
    files = visit.office.versions.files(draft)
    versions, anyone = visit.office.versions, visit.actor.may(Permission.READ_CONFIDENTIAL)
    facts = tuple(
        FactsRow(
            path,
            f"{versions.upload(digest).size:,}",
            f"/studio/drafts/{draft.id}/data/{digest}"
            if anyone or versions.holds(visit.actor.name, digest)
            else "",
        )
        for path, digest in files.uploads.items()
    )
    may = visit.actor.may(Permission.UPLOAD_FACTS)
    title = visit.say(_("Add data") if may else _("Data"))
    frame = visit.frame(title, publication_link(visit), draft_link(visit, draft))
    sources = visit.office.settings.databases()
    return DataPage(frame, draft.id, sources, draft.revision, facts, wrong, sql)


@routes.post("/studio/drafts/{draft:int}/data", Permission.UPLOAD_FACTS, FACTS_LIMIT)
def upload(visit: Visit) -> Response:
    """Take a file in, and go on to what is in it."""
    draft = draft_of(visit)
    file = visit.file("facts")
    try:
        if file is None:
            raise UserError(visit.say(_("Choose a file first.")))
        name = _safe_name(file.filename or "")
        with _spooled(file.file) as place:
            detect(place, name)
            with visit.office.journal.together():
                kept = visit.office.versions.put_upload(place, name, visit.actor.name)
                facts = {"sha256": kept.digest, "bytes": kept.size}
                visit.office.journal.record(visit.actor, "facts.upload", name, None, facts, visit.origin)
    except UserError as error:
        return visit.page(_data(visit, draft, visit.told(error.mistakes[0].cause)), 422)
    visit.office.drafting.tidy(visit.actor, visit.origin)
    return visit.redirect(f"/studio/drafts/{draft.id}/data/{kept.digest}", "uploaded")


def _safe_name(name: str) -> str:
    """The last part of a file's name, as far as it can be part of a path."""
    last = re.split(r"[\\/]", name)[-1]
    stem, dot, ending = last.partition(".")
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:80] or "facts"
    return f"{stem}{dot}{re.sub(r'[^A-Za-z0-9.]+', '', ending)[-20:]}"


@contextmanager
def _spooled(source: object) -> Iterator[Path]:
    with scratch() as folder:
        place = folder / "facts"
        with place.open("wb") as file:
            while body := source.read(1 << 20):  # type: ignore[attr-defined]
                file.write(body)
        yield place


@contextmanager
def _fetched(visit: Visit, digest: str) -> Iterator[tuple[Path, str]]:
    """An upload as a file, with its name: one's own, or anybody's for who may see confidential values."""
    whose = "" if visit.actor.may(Permission.READ_CONFIDENTIAL) else visit.actor.name
    try:
        found = visit.office.versions.upload(digest, whose)
    except UserError:
        raise RefusedError(404) from None
    with scratch() as folder:
        place = folder / "facts"
        with place.open("wb") as file:
            for body in visit.office.versions.chunks(digest):
                file.write(body)
        yield place, found.name


def _writing(visit: Visit, place: Path, name: str) -> Writing:
    """How the file is written: as detected, unless the reader says otherwise."""
    found = detect(place, name)
    if found.kind != "csv":
        return found
    said = {field: visit.text(field) or visit.asked(field) for field in ("encoding", "separator", "decimal")}
    return Writing(
        "csv",
        said["encoding"] if said["encoding"] in ENCODINGS else found.encoding,
        found.bom,
        SEPARATORS.get(said["separator"], found.separator),
        said["decimal"] if said["decimal"] in (".", ",") else found.decimal,
    )


@routes.get("/studio/drafts/{draft:int}/data/{digest}", Permission.READ_FACTS)
def wizard_page(visit: Visit) -> Response:
    """What is in a file of facts, and what could be made of it."""
    draft = draft_of(visit)
    with _fetched(visit, visit.part("digest")) as (place, name):
        try:
            found = survey(place, _writing(visit, place, name))
        except UserError as error:
            return visit.page(_data(visit, draft, visit.told(error.mistakes[0].cause)), 422)
    return visit.page(_wizard(visit, draft, name, found, None, ""))


def _wizard(
    visit: Visit,
    draft: Version,
    name: str,
    found: Survey,
    chosen: tuple[ColumnChoice, ...] | None,
    wrong: str,
) -> WizardPage:
    stem = stem_of(name).replace("-", " ").replace("_", " ").strip() or "facts"
    rows = []
    for number, (facts, proposal) in enumerate(zip(found.columns, found.proposals, strict=True)):
        mine = chosen[number] if chosen is not None else None
        rows.append(
            ColumnRow(
                number,
                facts.name,
                ", ".join(facts.examples)[:80],
                "…" if facts.distinct < 0 else f"{facts.distinct:,}",
                facts.missing,
                facts.numeric,
                mine.role if mine else proposal.role,
                mine.above if mine else proposal.above,
                mine.labels if mine else proposal.labels,
                mine.negative if mine else facts.negative,
            )
        )
    separators = {sign: key for key, sign in SEPARATORS.items()}
    return WizardPage(
        frame=visit.frame(
            visit.say(_("What is in {name}"), name=name), publication_link(visit), draft_link(visit, draft)
        ),
        draft=draft.id,
        revision=draft.revision,
        name=name,
        survey=replace(
            found, problems=tuple(replace(item, cause=visit.told(item.cause)) for item in found.problems)
        ),
        columns=tuple(rows),
        roles=tuple((role, visit.say(ROLE_WORDS[role])) for role in ROLES),
        encodings=ENCODINGS,
        separators=tuple((key, visit.say(SEPARATOR_WORDS[key])) for key in SEPARATORS),
        separator=separators.get(found.writing.separator, "comma"),
        cube=visit.text("cube", stem[:1].upper() + stem[1:])[:80],
        threshold=visit.text("threshold", "3")[:6],
        all_caption=visit.text("all", visit.say(_("All")))[:100],
        count_caption=visit.text("count", visit.say(_("Number")))[:100],
        wrong=wrong,
        source=visit.text("source"),
        sql=visit.text("sql"),
    )


@routes.post("/studio/drafts/{draft:int}/source", Permission.UPLOAD_FACTS)
def source(visit: Visit) -> Response:
    """What a query of a database gives, and the cube that is made of it when its form comes back."""
    draft = draft_of(visit)
    sources, sql = visit.office.settings.databases(), visit.text("sql").strip()
    wanted = visit.integer("source")
    if wanted is None or not 0 <= wanted < len(sources):
        raise RefusedError(400)
    url = sources[wanted]
    try:
        found = survey_database(url, sql)
    except UserError as error:
        return visit.page(_data(visit, draft, visit.told(error.mistakes[0].cause), sql), 422)
    visit.office.journal.record(visit.actor, "facts.query", url, None, {"sql": sql[:2000]}, visit.origin)
    if "c0.role" not in visit.form:
        return visit.page(_wizard(visit, draft, "query", found, None, ""))
    chosen = _chosen(visit, found)
    try:
        draft = draft_as_read(visit)
        files = visit.office.versions.files(draft)
        choice = _cube(visit, files, chosen, "", url, sql)
        visit.office.drafting.put_texts(visit.actor, draft, _texts(files, choice), visit.origin)
    except UserError as error:
        said = " ".join(visit.told(mistake.cause) for mistake in error.mistakes)
        return visit.page(_wizard(visit, draft, "query", found, chosen, said), status_of(error))
    return visit.redirect(f"/studio/drafts/{draft.id}", "added")


@routes.post("/studio/drafts/{draft:int}/data/{digest}", Permission.UPLOAD_FACTS)
def make_cube(visit: Visit) -> Response:
    """Write the cube, and the facts as the engine reads them, into the draft."""
    draft = draft_of(visit)
    with _fetched(visit, visit.part("digest")) as (place, name):
        writing = _writing(visit, place, name)
        found = survey(place, writing)
        chosen = _chosen(visit, found)
        try:
            draft = draft_as_read(visit)
            files = visit.office.versions.files(draft)
            wanted, body = _facts_file(visit, place, name, writing, found, chosen)
            path = facts_place(files, wanted, cube_place(files, visit.text("cube").strip()))
            choice = _cube(visit, files, chosen, f"../{path}")
            texts = _texts(files, choice)
            kept = visit.office.versions.put_upload(body, PurePosixPath(path).name, visit.actor.name)
            visit.office.drafting.put_upload(visit.actor, draft, path, kept, texts, visit.origin)
        except UserError as error:
            said = " ".join(visit.told(mistake.cause) for mistake in error.mistakes)
            return visit.page(_wizard(visit, draft, name, found, chosen, said), status_of(error))
    return visit.redirect(f"/studio/drafts/{draft.id}", "added")


def _chosen(visit: Visit, found: Survey) -> tuple[ColumnChoice, ...]:
    names = {facts.name for facts in found.columns}
    chosen = []
    for number, facts in enumerate(found.columns):
        role = visit.text(f"c{number}.role", "nothing")
        other = visit.text(f"c{number}.other")
        if role not in ROLES or (other and other not in names):
            raise RefusedError(400)
        chosen.append(
            ColumnChoice(
                facts.name,
                role,
                other if role in LEVELS else "",
                other if role == "label" else "",
                visit.text(f"c{number}.negative") == "yes" or (role == "measure" and facts.negative),
            )
        )
    return tuple(chosen)


def _facts_file(
    visit: Visit,
    place: Path,
    name: str,
    writing: Writing,
    found: Survey,
    chosen: tuple[ColumnChoice, ...],
) -> tuple[str, Path]:
    """The path that the facts would have by their name, and the file as the engine reads it.

    Raises
    ------
    UserError
        If a line can't be read, or a measure holds what is no number.
    """
    fatal = [problem for problem in found.problems if problem.fatal]
    if fatal:
        raise UserError(visit.say(_("Line {line}: {cause}"), line=fatal[0].line, cause=fatal[0].cause))
    for facts, item in zip(found.columns, chosen, strict=True):
        if item.role in ("measure", "weight") and (not facts.numeric or facts.wrong):
            said = _("Column {name} holds what is no number, first in line {line}.")
            raise UserError(visit.say(said, name=facts.name, line=facts.wrong or 2))
    stem = stem_of(name)
    if writing.kind == "parquet":
        return f"data/{stem}.parquet", place
    body = place.with_name("normalised")
    normalise(place, writing, body)
    return f"data/{stem}.csv", body


def _cube(
    visit: Visit, files: Files, chosen: tuple[ColumnChoice, ...], file: str, url: str = "", sql: str = ""
) -> CubeChoice:
    threshold = visit.integer("threshold")
    return CubeChoice(
        name=visit.text("cube").strip(),
        language=languages_of(files)[0],
        columns=chosen,
        threshold=threshold if threshold is not None else 0,
        all_caption=visit.text("all").strip() or "All",
        count_caption=visit.text("count").strip() or "Number",
        file=file,
        url=url,
        sql=sql,
    )


def _texts(files: Files, choice: CubeChoice) -> dict[str, str]:
    """The cube's file, and the publication's with rules for it.

    Raises
    ------
    UserError
        If the draft has no publication, or a cube of that name in another file.
    """
    if "publication.toml" not in files.texts:
        raise UserError("Start the publication first: its title and languages.")
    path = cube_place(files, choice.name)
    for other, text in files.texts.items():
        if other.startswith("cubes/") and other != path and same_name(name_of(text), choice.name):
            raise UserError(f"There is a cube {choice.name} already, in {other}.")
    rules = with_rules(files.texts["publication.toml"], choice)
    return {path: write_cube(choice), "publication.toml": rules}
