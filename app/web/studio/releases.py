"""Releases: where each stands, what changed for readers, and the moves that admins make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from urllib.parse import urlencode

from starlette.responses import Response

from app.domain.errors import UserError
from app.domain.people import Permission
from app.domain.release_life import ReleaseAction, ReleaseRecord, embargo_moment
from app.office.naming import Names
from app.office.protection import CellLine
from app.office.releases import MOST_NAMED, Comparison
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.studio.protection import CELL_WORDS
from app.web.studio.reasons import reason_said
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, RefusedError, Visit, status_of

routes = Routes()

ZONES = ("Europe/Madrid", "Atlantic/Canary", "UTC")


STATE_WORDS = {
    "draft": _("draft: to be computed again"),
    "audited": _("audited"),
    "approved": _("approved"),
    "scheduled": _("scheduled"),
    "live": _("live"),
    "superseded": _("superseded"),
    "withdrawn": _("withdrawn"),
}

routes.tab(_("Releases"), "/studio/releases", Permission.READ_OFFICE, 40)


@dataclass(frozen=True)
class ReleaseRow:
    """A release as a line of the list or the head of its page.

    ``telltale`` counts cells that tell where few changed, for who may know or has to decide; 0 for others.
    """

    id: str
    state: str
    state_words: str
    made: str
    made_by: str
    approved_by: str
    approved: str
    embargo: str
    first_live: str
    ended: str
    reason: str
    pruned: bool
    four_eyes: bool
    version: int
    actions: tuple[str, ...]
    telltale: int


@dataclass(frozen=True)
class ChangedCell:
    """A cell that readers see otherwise than before: its name, why, and where that is told in full."""

    name: str
    why: str
    address: str


@dataclass(frozen=True, eq=False)
class ReleasesPage:
    """Every release."""

    template: ClassVar[str] = "studio/releases.html"
    frame: Frame
    releases: tuple[ReleaseRow, ...]


@dataclass(frozen=True, eq=False)
class ReleasePage:
    """One release; ``wrong`` says why the last move was refused."""

    template: ClassVar[str] = "studio/release.html"
    frame: Frame
    release: ReleaseRow
    comparison: Comparison | None
    newly_hidden: tuple[ChangedCell, ...]
    newly_shown: tuple[ChangedCell, ...]
    why_hidden: str
    certified: bool
    zones: tuple[str, ...]
    now: str
    moment: str
    zone: str
    wrong: str


@routes.get("/studio/releases", Permission.READ_OFFICE)
def releases_page(visit: Visit) -> Response:
    """Every release, newest first."""
    rows = tuple(_row(visit, record) for record in visit.office.releases.all())
    return visit.page(ReleasesPage(visit.frame(visit.say(_("Releases"))), rows))


@routes.get("/studio/releases/{release}", Permission.READ_OFFICE)
def release_page(visit: Visit) -> Response:
    """One release."""
    return visit.page(_release(visit, ""))


@routes.get("/studio/releases/{release}/certificate.json", Permission.READ_OFFICE)
def certificate(visit: Visit) -> Response:
    """The certificate of a release, also before readers see it."""
    record = _record(visit)
    text = visit.office.releases.certificate(record.id)
    if text is None:
        raise RefusedError(404)
    return visit.attachment(text.encode(), "application/json", f"certificate-{record.id}.json")


@routes.get("/studio/api/releases", Permission.READ_OFFICE)
def releases_document(visit: Visit) -> Response:
    """Every release, for programs."""
    return visit.json([_document(visit, record) for record in visit.office.releases.all()])


def _telltale(visit: Visit, record: ReleaseRecord) -> int:
    may = visit.actor.may(Permission.READ_CONFIDENTIAL) or visit.actor.may(Permission.APPROVE_RELEASES)
    return record.telltale if may else 0


def _document(visit: Visit, record: ReleaseRecord) -> dict[str, object]:
    telltale = _telltale(visit, record)
    moments = ("created", "approved", "embargo", "first_live", "ended")
    return {
        "id": record.id,
        "state": str(record.state),
        "version": record.version,
        "made_by": record.made_by,
        "approved_by": record.approved_by,
        "reason": record.reason,
        "pruned": record.pruned,
        **({"telltale": telltale} if telltale else {}),
        **{
            name: moment.isoformat() if (moment := getattr(record, name)) is not None else None
            for name in moments
        },
    }


def _record(visit: Visit) -> ReleaseRecord:
    wanted = visit.part("release")
    found = next((record for record in visit.office.releases.all() if record.id == wanted), None)
    if found is None:
        raise RefusedError(404)
    return found


def _move(visit: Visit, action: ReleaseAction) -> Response:
    """Make a move with the release of the address, decided on the version that the page showed."""
    record = _record(visit)
    version = visit.integer("version")
    assert version is not None
    try:
        embargo = None
        if action is ReleaseAction.SCHEDULE:
            embargo = embargo_moment(visit.text("moment"), visit.text("zone"))
        reason = visit.text("reason")[:1000]
        accepted = visit.text("accept") == "yes"
        visit.office.releases.move(
            visit.actor, action, record.id, version, visit.origin, embargo, reason, accepted
        )
    except UserError as error:
        return visit.page(_release(visit, visit.said(error)), status_of(error))
    return visit.redirect(f"/studio/releases/{record.id}", "moved")


#: What each move takes; there is a route for each.
MOVES = {
    ReleaseAction.APPROVE: Permission.APPROVE_RELEASES,
    ReleaseAction.REVOKE: Permission.APPROVE_RELEASES,
    ReleaseAction.SCHEDULE: Permission.MANAGE_RELEASES,
    ReleaseAction.UNSCHEDULE: Permission.MANAGE_RELEASES,
    ReleaseAction.PUBLISH: Permission.MANAGE_RELEASES,
    ReleaseAction.ROLL_BACK: Permission.MANAGE_RELEASES,
    ReleaseAction.WITHDRAW: Permission.MANAGE_RELEASES,
}

for _action, _permission in MOVES.items():
    routes.post(f"/studio/releases/{{release}}/{_action}", _permission)(partial(_move, action=_action))


def _release(visit: Visit, wrong: str) -> ReleasePage:
    record, releases = _record(visit), visit.office.releases
    earlier = releases.before(record)
    title = visit.say(_("Release {id}"), id=record.id)
    crumb = Link(visit.say(_("Releases")), "/studio/releases")
    comparison = None if earlier is None else releases.compare(record.id, earlier.id)
    told: Mapping[str, CellLine] = {}
    held = visit.office.store.release(record.id)
    if comparison is not None and held is not None and visit.actor.may(Permission.READ_CONFIDENTIAL):
        told = visit.office.protection.told_of(held, (*comparison.newly_hidden, *comparison.newly_shown))
    names = releases.names(record.id, visit.language) if comparison is not None else None
    return ReleasePage(
        frame=visit.frame(title, crumb),
        release=_row(visit, record),
        comparison=comparison,
        newly_hidden=_changed(visit, comparison.newly_hidden if comparison else (), names, told),
        newly_shown=_changed(visit, comparison.newly_shown if comparison else (), names, told),
        why_hidden=_why_hidden(visit, comparison.newly_hidden if comparison else (), told),
        certified=releases.certificate(record.id) is not None,
        zones=ZONES,
        now=visit.moment(releases.now()),
        moment=visit.text("moment")[:40],
        zone=visit.text("zone")[:40],
        wrong=wrong,
    )


def _changed(
    visit: Visit, keys: Sequence[str], names: Names | None, told: Mapping[str, CellLine]
) -> tuple[ChangedCell, ...]:
    found = []
    for key in keys[:MOST_NAMED]:
        line = told.get(key)
        why = ""
        if line is not None:
            why = ", ".join(
                (
                    visit.say(CELL_WORDS[line.state]),
                    *(reason_said(reason, visit.language) for reason in line.reasons),
                )
            )
        address = f"/studio/cells/why?{urlencode({'cell': key})}" if line is not None else ""
        found.append(ChangedCell(names.said(key) if names is not None else key, why, address))
    return tuple(found)


def _why_hidden(visit: Visit, keys: Sequence[str], told: Mapping[str, CellLine]) -> str:
    """How many of the newly hidden cells are so by a rule, and how many for others' sake."""
    counts = Counter(told[key].state for key in keys if key in told)
    return "; ".join(f"{visit.say(CELL_WORDS[state])}: {count}" for state, count in counts.most_common())


def _row(visit: Visit, record: ReleaseRecord) -> ReleaseRow:
    return ReleaseRow(
        id=record.id,
        state=str(record.state),
        state_words=visit.say(STATE_WORDS[str(record.state)]),
        made=visit.moment(record.created),
        made_by=record.made_by,
        approved_by=record.approved_by or "",
        approved=visit.moment(record.approved),
        embargo=visit.moment(record.embargo),
        first_live=visit.moment(record.first_live),
        ended=visit.moment(record.ended),
        reason=record.reason,
        pruned=record.pruned,
        four_eyes=record.four_eyes,
        version=record.version,
        actions=tuple(str(action) for action in record.actions()),
        telltale=_telltale(visit, record),
    )
