"""What if: the form that asks, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from app.domain.cube import text_in
from app.domain.errors import OperatorError, UserError
from app.domain.numbers import locale_of
from app.domain.people import Permission
from app.domain.version import Files
from app.office.drafting import change_of_rules
from app.office.naming import Names
from app.office.protection import Change, Choices, Figures, Member, WhatIf, changed
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, Visit

routes = Routes()

_MOST = 100


routes.tab(_("What if"), "/studio/what-if", Permission.ASK_WHAT_IF, 55)


@dataclass(frozen=True)
class Line:
    """A figure now and then, and what it changes by."""

    words: str
    now: str
    then: str
    change: str


@dataclass(frozen=True, eq=False)
class WhatIfPage:
    """A question about the protection, and its answer.

    ``typed`` holds the form's fields; ``members`` are those of the level to be merged, ``chosen`` some of
    them.
    """

    template: ClassVar[str] = "studio/what_if.html"
    frame: Frame
    choices: Choices | None
    sheets: tuple[tuple[str, str], ...]
    drafts: tuple[tuple[str, str], ...]
    typed: dict[str, str]
    members: tuple[tuple[str, str], ...]
    chosen: tuple[str, ...]
    lines: tuple[Line, ...]
    answer: WhatIf | None
    most: int
    wrong: str
    names: Names | None

    def called(self, cell: str) -> str:
        """What readers call a cell."""
        return cell if self.names is None else self.names.said(cell)

    @staticmethod
    def named(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Options that are called what they are."""
        return tuple(zip(names, names, strict=True))


#: Which cells another threshold would free says how many contributors each has.
_RULES = _("What other rules would do tells of confidential cells: ask somebody who may see those.")
FIELDS = ("threshold", "measure", "sheet", "level", "draft", "merge")


@routes.get("/studio/what-if", Permission.ASK_WHAT_IF)
def what_if_page(visit: Visit) -> Response:
    """Ask what another sheet would do, or another rule: that takes the right to confidential values."""
    typed = {name: visit.asked(name)[:200] for name in FIELDS}
    return visit.page(_page(visit, typed, (), None, ""))


@routes.post("/studio/what-if", Permission.ASK_WHAT_IF)
def ask(visit: Visit) -> Response:
    """Compute the answer; nothing is stored."""
    typed = {name: visit.text(name).strip()[:400] for name in FIELDS}
    chosen = visit.texts("member")
    if visit.text("do") == "members":
        return visit.page(_page(visit, typed, chosen, None, ""))
    try:
        answer = _answer(visit, typed, chosen)
    except (UserError, OperatorError) as error:
        return visit.page(_page(visit, typed, chosen, None, visit.said(error)), 422)
    return visit.page(_page(visit, typed, chosen, answer, ""))


def _answer(visit: Visit, typed: dict[str, str], chosen: tuple[str, ...]) -> WhatIf:
    change = _change(visit, typed, chosen)
    protection = visit.office.protection
    sees = visit.actor.may(Permission.READ_CONFIDENTIAL)
    if typed["threshold"] and not sees:
        raise UserError(visit.say(_RULES))
    if not typed["draft"]:
        return protection.what_if(change)
    number = visit.integer("draft")
    draft = visit.office.drafting.draft(number or 0)
    files = visit.office.versions.files(draft)
    asked = visit.office.previews.publication(files)
    current = visit.office.versions.current()
    before = Files({}) if current is None else visit.office.versions.files(current)
    if not sees and change_of_rules(before, files):
        raise UserError(visit.say(_RULES))
    return protection.what_if(change, draft=asked, has_new_cells=_cells(before) != _cells(files))


def _cells(files: Files) -> object:
    """What decides which cells there are: sheets, cubes and facts."""
    texts = {path: text for path, text in files.texts.items() if path.startswith(("sheets/", "cubes/"))}
    return texts, dict(files.uploads)


def _change(visit: Visit, typed: dict[str, str], chosen: tuple[str, ...]) -> Change:
    threshold = visit.integer("threshold")
    asks = (threshold is not None, typed["sheet"], typed["level"], typed["merge"] and chosen, typed["draft"])
    if not any(asks):
        raise UserError(visit.say(_("Say what: a threshold, a sheet, a level, members or a draft.")))
    sheets = [typed["sheet"]] if typed["sheet"] else []
    return changed(
        threshold, typed["measure"], sheets, typed["level"], typed["merge"] if chosen else "", chosen
    )


def _page(
    visit: Visit, typed: dict[str, str], chosen: tuple[str, ...], answer: WhatIf | None, wrong: str
) -> WhatIfPage:
    choices: Choices | None = None
    members: tuple[Member, ...] = ()
    try:
        choices = visit.office.protection.choices()
        members = visit.office.protection.members(typed["merge"]) if typed["merge"] else ()
    except (UserError, OperatorError) as error:
        wrong = wrong or visit.said(error)
    return WhatIfPage(
        frame=visit.frame(visit.say(_("What if"))),
        choices=choices,
        sheets=tuple(
            (name, text_in(title, visit.language) or name)
            for name, title in (choices.sheets if choices is not None else ())
        ),
        drafts=tuple(
            (str(draft.id), visit.say(_("Draft {number}"), number=draft.id) + f" · {draft.author}")
            for draft in visit.office.versions.drafts()
        ),
        typed=typed,
        members=tuple(
            (member.key, text_in(member.captions, visit.language) or member.key) for member in members
        ),
        chosen=chosen,
        lines=() if answer is None else tuple(_lines(visit, answer.now, answer.then)),
        answer=answer,
        most=_MOST,
        wrong=wrong,
        names=None if answer is None else visit.office.protection.names(visit.language),
    )


def _lines(visit: Visit, now: Figures, then: Figures) -> Iterator[Line]:
    """The figures; those that are made of confidential values for who may see such alone."""
    locale = locale_of(visit.language)

    def count(words: str, a: float, b: float) -> Line:
        said = [format_decimal(float(f"{value:.6g}"), locale=locale) for value in (a, b, abs(b - a))]
        return Line(visit.say(words), said[0], said[1], _signed(b - a, said[2]))

    sees = visit.actor.may(Permission.READ_CONFIDENTIAL)
    yield count(_("Published cells"), now.cells, then.cells)
    if sees:
        yield count(_("Sensitive cells"), now.sensitive, then.sensitive)
    yield count(_("Hidden cells"), now.hidden, then.hidden)
    if sees:
        lost = [format_percent(value, "0.00%", locale=locale) for value in (now.lost, then.lost)]
        moved = format_percent(abs(then.lost - now.lost), "0.00%", locale=locale)
        yield Line(visit.say(_("Value hidden")), lost[0], lost[1], _signed(then.lost - now.lost, moved))
        yield count(_("Cost"), now.cost, then.cost)


def _signed(change: float, said: str) -> str:
    return f"+{said}" if change > 0 else f"−{said}" if change < 0 else "="
