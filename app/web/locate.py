"""Which release a request is answered from: the live one, one that the address names, or one of a moment.

``/r/<release>/…`` is every address of the site, as it was under a release that will not change.
``asOf=<moment>`` in a query string takes the release that was the last one at that moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, unquote_to_bytes

from starlette.types import Scope

from app.domain.history import ReleaseMark, as_of, live

#: Keys of the scope under which the inside finds the release to answer from, and the whole `Located`.
RELEASE = "celosia.release"
LOCATED = "celosia.located"
#: Key of the scope that says that nobody will read the body.
HEAD = "celosia.head"

AS_OF = "asOf"
_OLD = "/r/"

#: The time in a moment of ISO 8601: hour, minute, second and fraction, as far as it says them.
_TIME = re.compile(
    r"^(?:\d{4}-.{5}|\d{8}|\d{4}W\d{3}).(\d\d)(?::?(\d\d)(?::?(\d\d)([.,]\d+)?)?)?(?:Z|[+-].*)?$"
)
#: The last of what it doesn't say.
_LAST = (23, 59, 59, 999_999)


@dataclass(frozen=True, slots=True)
class Located:
    """Where a request leads.

    Attributes
    ----------
    release : str or None
        Id of the release; None when there is nothing to answer from.
    path : str
        The address below the release's prefix.
    prefix : str
        Empty for the live release, else how the addresses of the release begin.
    lasting : bool
        Whether the address names the release, so that its answer never changes.
    refusal : int
        The status when there is no such release, else 0.
    """

    release: str | None
    path: str
    prefix: str = ""
    lasting: bool = False
    refusal: int = 0


def locate(scope: Scope, marks: Sequence[ReleaseMark]) -> Located:
    """The release of a request, among those that there are."""
    path: str = scope["path"]
    query: bytes = scope["query_string"]
    moments = _moments(query)
    if path.startswith(_OLD):
        name, _, rest = path[len(_OLD) :].partition("/")
        if moments:
            return Located(None, f"/{rest}", refusal=400)
        found = next((mark for mark in marks if mark.id == name), None)
        return _located(found, f"/{rest}", lasting=True)
    if moments:
        moment = read_moment(moments[0]) if len(moments) == 1 else None
        if moment is None:
            return Located(None, path, refusal=400)
        return _located(as_of(marks, moment), path, lasting=False)
    mark = live(marks)
    return Located(mark.id if mark is not None else None, path)


def _moments(query: bytes) -> list[str]:
    """What a query string gives as `AS_OF`, in whichever spelling of that name."""
    if AS_OF.encode() not in (unquote_to_bytes(query) if b"%" in query else query):
        return []
    return parse_qs(query.decode("latin-1"), keep_blank_values=True).get(AS_OF, [])


def _located(mark: ReleaseMark | None, path: str, lasting: bool) -> Located:
    if mark is None or not (mark.readable or mark.withdrawn):
        return Located(None, path, refusal=404)
    if mark.withdrawn:
        return Located(None, path, refusal=410)
    return Located(mark.id, path, prefix_of(mark.id), lasting)


def prefix_of(release_id: str) -> str:
    """How the addresses of a release begin."""
    return f"{_OLD}{quote(release_id, safe='')}"


def write_moment(moment: datetime) -> str:
    """A moment of UTC as programs read it, to the second; `read_moment` understands it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_moment(text: str) -> datetime | None:
    """The last moment that a text in ISO 8601 may mean, in UTC unless it says otherwise; None if none.

    A date is its whole day, 09:30 its whole minute: so a release that went public within it had come by then,
    and every moment that we print, however short, finds the release that it is of.
    """
    # A plus sign that wasn't escaped arrives as a space.
    text = text.strip().replace(" ", "+")
    try:
        moment = datetime.fromisoformat(text)
        said = _TIME.search(text)
        parts = sum(part is not None for part in said.groups()) if said else 0
        own = (moment.hour, moment.minute, moment.second, moment.microsecond)
        hour, minute, second, fraction = (*own[:parts], *_LAST[parts:])
        moment = moment.replace(hour=hour, minute=minute, second=second, microsecond=fraction)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
