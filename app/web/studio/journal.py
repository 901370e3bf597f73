"""The journal: who did what, when, from where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from starlette.responses import Response

from app.domain.people import Permission
from app.office.journal import Entry
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, Visit

routes = Routes()

_PAGE = 50


routes.tab(_("Journal"), "/studio/journal", Permission.READ_JOURNAL, 90)


@dataclass(frozen=True)
class JournalLine:
    number: int
    moment: str
    actor: str
    action: str
    subject: str
    change: str
    origin: str
    digest: str


@dataclass(frozen=True, eq=False)
class JournalPage:
    """A page of entries; ``older`` leads on; ``checked`` says what walking the chain found."""

    template: ClassVar[str] = "studio/journal.html"
    frame: Frame
    lines: tuple[JournalLine, ...]
    older: str
    actor: str
    action: str
    actions: tuple[str, ...]
    checked: str
    sound: bool


@routes.get("/studio/journal", Permission.READ_JOURNAL)
def journal_page(visit: Visit) -> Response:
    """The newest entries, or those of one actor or action."""
    return visit.page(_journal(visit, "", True))


@routes.get("/studio/journal/check", Permission.READ_JOURNAL)
def check(visit: Visit) -> Response:
    """Walk the whole chain."""
    verdict = visit.office.journal.verify()
    if verdict.ok:
        words = visit.say(
            _("{entries} entries, unbroken. Digest of the last: {head}"),
            entries=verdict.entries,
            head=verdict.head,
        )
    else:
        words = visit.say(_("The journal is broken at entry {number}."), number=verdict.broken_at)
    return visit.page(_journal(visit, words, verdict.ok))


def _journal(visit: Visit, checked: str, sound: bool) -> JournalPage:
    actor, action = visit.asked("actor")[:200], visit.asked("action")[:64]
    before = visit.asked("before")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 18 else None
    entries = visit.office.journal.latest(_PAGE, number, actor, action)
    older = ""
    if len(entries) == _PAGE:
        wishes = {"before": entries[-1].number, "actor": actor, "action": action}
        older = f"/studio/journal?{urlencode(wishes)}"
    return JournalPage(
        visit.frame(visit.say(_("Journal"))),
        tuple(_line(visit, entry) for entry in entries),
        older,
        actor,
        action,
        visit.office.journal.actions(),
        checked,
        sound,
    )


def _line(visit: Visit, entry: Entry) -> JournalLine:
    before, after = _words(entry.before), _words(entry.after)
    change = f"{before} → {after}" if before else after
    return JournalLine(
        entry.number,
        visit.moment(entry.moment),
        entry.actor,
        entry.action,
        entry.subject,
        change,
        entry.origin,
        entry.digest,
    )


def _words(facts: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in facts.items()
    )


@routes.get("/studio/api/journal", Permission.READ_JOURNAL)
def journal_document(visit: Visit) -> Response:
    """The newest entries, for programs."""
    return visit.json(
        [
            {
                "number": entry.number,
                "moment": entry.moment.isoformat(),
                "actor": entry.actor,
                "action": entry.action,
                "subject": entry.subject,
                "before": dict(entry.before),
                "after": dict(entry.after),
                "origin": entry.origin,
                "digest": entry.digest,
            }
            for entry in visit.office.journal.latest(500)
        ]
    )
