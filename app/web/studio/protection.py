"""The last run's cells by state, why one is hidden, and decisions on cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import urlencode

from starlette.responses import Response

from app.domain.cube import text_in
from app.domain.errors import OperatorError, UserError
from app.domain.people import Permission
from app.office.naming import Names
from app.office.protection import DECISIONS, STATES, StateTable, Why
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.reasons import reason_said
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit, status_of

routes = Routes()

_PAGE = 100


CELL_WORDS = {
    "shown": _("shown"),
    "empty": _("empty"),
    "sensitive": _("hidden by a rule"),
    "secondary": _("hidden for others' sake"),
    "known": _("hidden, but known from an earlier release"),
}
DECISION_WORDS = {
    "hide": _("hide it"),
    "show": _("it must be shown"),
    "waive": _("waive the rules"),
}

routes.tab(_("Cells"), "/studio/cells", Permission.READ_CONFIDENTIAL, 50)


@dataclass(frozen=True)
class StateChoice:
    """A state to narrow the list to, and how many cells are in it."""

    state: str
    text: str
    count: int
    address: str
    current: bool


@dataclass(frozen=True)
class CellRow:
    key: str
    name: str
    state: str
    text: str
    reasons: str
    address: str


@dataclass(frozen=True, eq=False)
class CellsPage:
    """Cells of the last run; ``wrong`` says why there are none."""

    template: ClassVar[str] = "studio/cells.html"
    frame: Frame
    choices: tuple[StateChoice, ...]
    rows: tuple[CellRow, ...]
    found: int
    words: str
    state: str
    older: str
    wrong: str


@dataclass(frozen=True, eq=False)
class CellPage:
    """Why a cell is as it is."""

    template: ClassVar[str] = "studio/cell.html"
    frame: Frame
    why: Why
    names: Names
    decisions: tuple[tuple[str, str], ...]
    version: int
    wrong: str


@routes.get("/studio/cells", Permission.READ_CONFIDENTIAL)
def cells_page(visit: Visit) -> Response:
    """Published cells of the last run, by state."""
    state, words, start = visit.asked("state"), visit.asked("words")[:200], visit.asked("start", "0")
    if (state and state not in STATES) or not (start.isascii() and start.isdigit() and len(start) < 9):
        raise RefusedError(400)
    frame = visit.frame(visit.say(_("Cells")))
    try:
        found = visit.office.protection.cells(state, words, int(start), _PAGE, visit.language)
    except UserError as error:
        return visit.page(CellsPage(frame, (), (), 0, words, state, "", visit.said(error)))
    choices = tuple(
        StateChoice(name, visit.say(CELL_WORDS[name]), count, _address(name, words), name == state)
        for name, count in found.counts
    )
    rows = tuple(
        CellRow(
            line.key,
            line.name,
            line.state,
            visit.say(CELL_WORDS[line.state]),
            ", ".join(reason_said(reason, visit.language) for reason in line.reasons),
            f"/studio/cells/why?{urlencode({'cell': line.key})}",
        )
        for line in found.lines
    )
    more = int(start) + _PAGE
    older = _address(state, words, more) if more < found.found else ""
    return visit.page(CellsPage(frame, choices, rows, found.found, words, state, older, ""))


def _address(state: str, words: str, start: int = 0) -> str:
    fields = {"state": state, "words": words, "start": str(start) if start else ""}
    return f"/studio/cells?{urlencode({name: value for name, value in fields.items() if value})}"


@dataclass(frozen=True, eq=False)
class StatesPage:
    """A sheet's table, coloured by the states of its cells."""

    template: ClassVar[str] = "studio/states.html"
    frame: Frame
    sheets: tuple[tuple[str, str], ...]
    sheet: str
    table: StateTable | None
    choosers: tuple[tuple[tuple[tuple[str, str], ...], str], ...]
    states: Mapping[str, str]
    wrong: str

    @staticmethod
    def why(key: str) -> str:
        """Where a cell's state is explained."""
        return f"/studio/cells/why?{urlencode({'cell': key})}"


@routes.get("/studio/cells/table", Permission.READ_CONFIDENTIAL)
def states_page(visit: Visit) -> Response:
    """A table of the last run, coloured by the states of its cells."""
    frame = visit.frame(visit.say(_("Tables by state")), Link(visit.say(_("Cells")), "/studio/cells"))
    words = {name: visit.say(text) for name, text in CELL_WORDS.items()}
    protection = visit.office.protection
    sheets: tuple[tuple[str, str], ...] = ()
    try:
        sheets = tuple(
            (name, text_in(title, visit.language) or name) for name, title in protection.choices().sheets
        )
        sheet = visit.asked("sheet")[:400] or (sheets[0][0] if sheets else "")
        wished = tuple(visit.request.query_params.getlist("choice"))[:20]
        table = protection.table(sheet, visit.asked("query")[:200], wished, visit.language)
    except (UserError, OperatorError) as error:
        page = StatesPage(frame, sheets, "", None, (), words, visit.said(error))
        return visit.page(page, 422 if visit.asked("sheet") else 200)
    choosers = tuple(
        (
            tuple((m.unique_name, text_in(m.captions, visit.language) or m.unique_name) for m in members),
            chosen,
        )
        for members, chosen in zip(protection.parameters(sheet), table.choices, strict=True)
    )
    return visit.page(StatesPage(frame, sheets, sheet, table, choosers, words, ""))


@routes.get("/studio/cells/why", Permission.READ_CONFIDENTIAL)
def cell_page(visit: Visit) -> Response:
    """Why a cell is hidden, and what would free it."""
    return _cell(visit, visit.asked("cell")[:2000])


def _cell(visit: Visit, cell: str, refused: UserError | None = None) -> Response:
    try:
        found = visit.office.protection.why(cell)
    except UserError as error:
        raise RefusedError(422, visit.said(error)) from None
    current = visit.office.versions.current()
    page = CellPage(
        visit.frame(visit.say(_("Why is it hidden?")), Link(visit.say(_("Cells")), "/studio/cells")),
        replace(found, reasons=tuple(reason_said(reason, visit.language) for reason in found.reasons)),
        visit.office.protection.names(visit.language),
        tuple((name, visit.say(DECISION_WORDS[name])) for name in DECISIONS),
        0 if current is None else current.id,
        "" if refused is None else visit.said(refused),
    )
    return visit.page(page, 200 if refused is None else status_of(refused))


@routes.post("/studio/cells/decide", Permission.DECIDE_CELLS, as_read="version")
def decide(visit: Visit) -> Response:
    """Write a decision on a cell into a new version."""
    cell = visit.text("cell")[:2000]
    decision, reason = visit.text("decision"), visit.text("reason")[:1000]
    read = visit.integer("version")
    try:
        visit.office.protection.decide(visit.actor, cell, decision, reason, read=read, origin=visit.origin)
    except UserError as error:
        return _cell(visit, cell, error)
    return visit.redirect(f"/studio/cells/why?{urlencode({'cell': cell})}", "decided")
