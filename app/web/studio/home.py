"""The first page of the studio: what is live, what is current, and where one's drafts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.responses import Response

from app.domain.people import Permission
from app.domain.release_life import ReleaseState
from app.web.language import marked as _
from app.web.studio.routes import Routes
from app.web.studio.visit import Frame, Visit

routes = Routes()


@dataclass(frozen=True, eq=False)
class StudioHomePage:
    template: ClassVar[str] = "studio/home.html"
    frame: Frame
    release: str
    released: str
    version: str
    saved: str
    drafts: int
    places: tuple[tuple[str, str, str], ...]


#: What each place is for.
PLACES = {
    "/studio/publication": _("Versions and drafts: sheets, cubes and facts"),
    "/studio/jobs": _("Recompute and audit, with progress and results"),
    "/studio/releases": _("Approve, schedule, show, withdraw"),
    "/studio/rules": _("What makes a cell confidential"),
    "/studio/cells": _("Why a cell is hidden, and decisions on it"),
    "/studio/what-if": _("What another rule or sheet would hide"),
    "/studio/people": _("Accounts, roles and settings"),
    "/studio/journal": _("Who did what, and that nothing was struck out"),
}


@routes.get("/studio", Permission.READ_OFFICE)
def home(visit: Visit) -> Response:
    """Where things stand."""
    office = visit.office
    live = next((record for record in office.releases.all() if record.state is ReleaseState.LIVE), None)
    current = office.versions.current()
    mine = office.versions.drafts(visit.actor.name)
    return visit.page(
        StudioHomePage(
            visit.frame(visit.say(_("Studio"))),
            live.id if live else "",
            visit.moment(live.first_live) if live else "",
            str(current.id) if current else "",
            f"{current.author}: {current.message}" if current else "",
            len(mine),
            tuple(
                (item.text, item.address, visit.say(PLACES[item.address]) if item.address in PLACES else "")
                for item in visit.studio.navigation(visit)
            ),
        )
    )
