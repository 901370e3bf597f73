"""The life of a release: its states, who may move it from one to the next, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.domain.errors import UserError
from app.domain.people import same_person


class ReleaseState(StrEnum):
    """Where a release stands.

    A *draft* has its cells but no audit that takes in everything shown so far; an *audited* one has.
    """

    DRAFT = "draft"
    AUDITED = "audited"
    APPROVED = "approved"
    SCHEDULED = "scheduled"
    LIVE = "live"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"


class ReleaseAction(StrEnum):
    """What moves a release."""

    APPROVE = "approve"
    REVOKE = "revoke"
    SCHEDULE = "schedule"
    UNSCHEDULE = "unschedule"
    PUBLISH = "publish"
    ROLL_BACK = "roll-back"
    WITHDRAW = "withdraw"


_S = ReleaseState
#: From which states each action leads where.
MOVES: Mapping[ReleaseAction, tuple[frozenset[ReleaseState], ReleaseState]] = {
    ReleaseAction.APPROVE: (frozenset({_S.AUDITED}), _S.APPROVED),
    ReleaseAction.REVOKE: (frozenset({_S.APPROVED, _S.SCHEDULED}), _S.AUDITED),
    ReleaseAction.SCHEDULE: (frozenset({_S.APPROVED, _S.SCHEDULED}), _S.SCHEDULED),
    ReleaseAction.UNSCHEDULE: (frozenset({_S.SCHEDULED}), _S.APPROVED),
    ReleaseAction.PUBLISH: (frozenset({_S.APPROVED, _S.SCHEDULED}), _S.LIVE),
    ReleaseAction.ROLL_BACK: (frozenset({_S.SUPERSEDED}), _S.LIVE),
    ReleaseAction.WITHDRAW: (frozenset(_S) - {_S.WITHDRAWN}, _S.WITHDRAWN),
}
#: States of releases that wait to be shown: one that goes live makes drafts of the others.
WAITING = (_S.AUDITED, _S.APPROVED, _S.SCHEDULED)


class TelltaleError(UserError):
    """A release waits for somebody to accept what its newly hidden cells tell."""


@dataclass(frozen=True)
class Trail:
    """What the journal says of a move: who made it, by the name that it knows them by, and from where."""

    who: str
    origin: str = ""


@dataclass(frozen=True)
class ReleaseRecord:
    """What is known of a release besides its cells.

    Attributes
    ----------
    id : str
    state : ReleaseState
    version : int
        Grows by one at every move: a move names the version that it was decided on.
    created : datetime
    made_by : str
        Who had it computed.
    four_eyes : bool
        Whether somebody else has to approve it.
    made_from : str
        Digest of the pattern; releases of one pattern show the same.
    basis : tuple of str
        Releases that its audit took as known.
    approved_by, approved, embargo
        None until then.
    first_live, ended : datetime or None
        When it was first shown, and when it was last taken down.
    reason : str
        Why it was withdrawn, or why what it showed needn't count.
    forgotten : bool
        An admin decided that what it showed needn't count as known.
    pruned : bool
        Its cells and layouts are gone: it can't be shown again.
    telltale : int
        Cells that it hides and the last one showed, because few contributors changed in them. What changed
        stays hidden; whoever compares the two sees where. It takes somebody who accepts that to approve it.
    """

    id: str
    state: ReleaseState
    version: int
    created: datetime
    made_by: str
    four_eyes: bool
    made_from: str
    basis: tuple[str, ...]
    approved_by: str | None = None
    approved: datetime | None = None
    embargo: datetime | None = None
    first_live: datetime | None = None
    ended: datetime | None = None
    reason: str = ""
    forgotten: bool = False
    pruned: bool = False
    telltale: int = 0

    def __post_init__(self) -> None:
        moments = (self.created, self.approved, self.embargo, self.first_live, self.ended)
        if any(moment is not None and moment.tzinfo is None for moment in moments):
            raise ValueError("a moment without time zone")
        if self.state is ReleaseState.SCHEDULED and self.embargo is None:
            raise ValueError("a scheduled release has an embargo")

    @property
    def was_shown(self) -> bool:
        """Whether readers may know what stands in it."""
        return self.first_live is not None and not self.forgotten

    def actions(self) -> tuple[ReleaseAction, ...]:
        """What can be done with it now."""
        possible = [action for action, (states, _) in MOVES.items() if self.state in states]
        return tuple(a for a in possible if not (a is ReleaseAction.ROLL_BACK and self.pruned))

    def after(self, action: ReleaseAction, actor: str, *, accepted: bool = False) -> ReleaseState:
        """The state that an action leads to.

        Parameters
        ----------
        accepted : bool
            Of an approval: readers may see where the change of `telltale` cells is.

        Raises
        ------
        UserError
            When it isn't possible now, or not for this person.
        """
        states, target = MOVES[action]
        if self.state not in states:
            raise UserError(
                f"Release {self.id} is {self.state}: it can't be moved by {action}. "
                f"That takes one that is {' or '.join(sorted(states))}."
            )
        if action is ReleaseAction.ROLL_BACK and self.pruned:
            raise UserError(f"The cells of release {self.id} were pruned. Run the pipeline again instead.")
        if action is ReleaseAction.APPROVE and self.four_eyes and same_person(actor, self.made_by):
            raise UserError(
                f"Release {self.id} was made by {actor}, and four eyes are wanted: "
                "somebody else has to approve it."
            )
        if action is ReleaseAction.APPROVE and self.telltale and not accepted:
            raise TelltaleError(
                f"Release {self.id} newly hides {self.telltale} cells because few respondents changed in "
                "them: whoever compares it with the last one sees where. Wait until more changes come "
                "together, or accept that as you approve it."
            )
        return target


def embargo_moment(text: str, zone: str = "") -> datetime:
    """The moment that a date and time name, in UTC.

    Parameters
    ----------
    text : str
        ISO 8601, as in ``2026-10-25T09:00`` or ``2026-10-25T09:00+01:00``.
    zone : str
        Time zone of a text without offset, as in ``Europe/Madrid``.

    Raises
    ------
    UserError
        If it can't be read, has no zone, or names a moment that the zone's clocks skip or strike twice.
    """
    try:
        return _in_utc(text, datetime.fromisoformat(text.strip()), zone)
    except (ValueError, OverflowError):
        # Of the calendar's first and last days, some moments are none in UTC.
        raise UserError(f"{text} is no date and time. Write it as 2026-10-25T09:00.") from None


def _in_utc(text: str, moment: datetime, zone: str) -> datetime:
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    if not zone:
        raise UserError(f"{text} names no time zone. Add an offset, as in {text}+01:00, or name the zone.")
    try:
        there = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(f"There is no time zone {zone}. Write it as Europe/Madrid.") from None
    early, late = moment.replace(tzinfo=there), moment.replace(tzinfo=there, fold=1)
    if early.utcoffset() != late.utcoffset():
        back = early.astimezone(UTC).astimezone(there).replace(tzinfo=None)
        what = "strike twice" if back == moment else "skip"
        raise UserError(f"The clocks of {zone} {what} {text}. Write the offset, as in {text}+01:00.")
    return early.astimezone(UTC)


#: The furthest that an embargo may lie ahead: beyond it a year was mistyped.
FURTHEST = timedelta(days=3660)


def check_embargo(moment: datetime, now: datetime) -> None:
    """Refuse an embargo that lies in the past or absurdly far ahead.

    Raises
    ------
    UserError
    """
    if moment <= now:
        raise UserError(
            f"{moment.isoformat()} has passed: it is {now.isoformat(timespec='seconds')} by the database's "
            "clock. Publish the release at once instead."
        )
    if moment - now > FURTHEST:
        raise UserError(f"{moment.isoformat()} is more than ten years ahead.")
