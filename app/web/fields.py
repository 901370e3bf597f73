"""The fields of a query string: which ones an address may have, and what is said of the others.

A misspelt field would show other figures than its reader means, so it is refused by name. What campaigns and
networks append to links is nobody's mistake: it is left aside, and no address of the site carries it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request

from app.domain.publication import Sheet
from app.web.contexts import Link
from app.web.language import marked as _
from app.web.language import translations
from app.web.locate import AS_OF, LOCATED
from app.web.refusals import NO_VALUE, RefusalError

Pairs = list[tuple[str, str]]

_MOST_FIELDS = 64
#: A form sends a field for each member that is ticked.
_MOST_BOXES = 5000
#: Fields that others append to links, to count who follows them.
_APPENDED = frozenset(
    (
        *(
            "_ga",
            "_gl",
            "dclid",
            "gad_campaignid",
            "gad_source",
            "gbraid",
            "gclid",
            "gclsrc",
            "srsltid",
            "wbraid",
        ),
        *("_hsenc", "_hsmi", "epik", "fbclid", "igsh", "igshid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok"),
        *("msclkid", "rdt_cid", "s_kwcid", "ttclid", "twclid", "yclid"),
    )
)
_APPENDED_STARTS = ("utm_", "mtm_", "pk_", "piwik_", "matomo_", "hsa_", "at_")
#: How alike (0 to 1) two names are that may be meant for one another.
_ALIKE = 0.6
_LONGEST = 60


NO_PARAMETER = _("There is no parameter “%(name)s”.")
NEAREST = _("There is no parameter “%(name)s”. The nearest is “%(nearest)s”.")
_TWICE = _("“%(name)s” is said twice.")
_CORRECTED = _("Open with “%(name)s”")
_WITHOUT = _("Open without it")


@dataclass(frozen=True)
class Known:
    """The fields that an address may have.

    ``numbered`` are names that go on with a dot and a number. `AS_OF` is one of every address.
    """

    names: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        head, _, number = name.rpartition(".")
        # One hierarchy has one number: two fields would mean it, and one of them nothing.
        counted = number.isascii() and number.isdigit() and len(number) < 4 and number == str(int(number))
        return name in self.names or name == AS_OF or (counted and head in self.numbered)

    def nearest(self, name: str) -> str:
        """The field that a name may be a slip for; empty where none is alike."""
        head, dot, number = name.rpartition(".")
        if dot and number.isdigit() and (found := _nearest(head, self.numbered)):
            return f"{found}.{number}"
        return _nearest(name, self.names | {AS_OF})


class UnknownFieldError(RefusalError):
    """A request with fields that its address doesn't have (``wrong``), each with the nearest or nothing."""

    def __init__(self, wrong: dict[str, str]) -> None:
        name, nearest = next(iter(wrong.items()))
        super().__init__(400, NEAREST if nearest else NO_PARAMETER, name=name, nearest=nearest)
        self.wrong = wrong


def _nearest(name: str, names: Iterable[str]) -> str:
    """The name that is most like another, of those of its kind (what stands before the first dot) if any."""
    kind, dot, _ = name[:_LONGEST].partition(".")
    offered = sorted(names)
    same = [other for other in offered if dot and other.startswith(f"{kind}.")]
    alike = [(SequenceMatcher(None, other, name[:_LONGEST]).ratio(), other) for other in same or offered]
    best, found = max(alike, default=(0.0, ""))
    return found if same or best >= _ALIKE else ""


def pairs_of(request: Request) -> Pairs:
    """The fields of the query string in order; `RefusalError` 400 for one that isn't UTF-8."""
    try:
        pairs = parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_BOXES,
        )
    except ValueError:
        raise RefusalError(400) from None
    return [pair for pair in pairs if pair[0] not in _APPENDED and not pair[0].startswith(_APPENDED_STARTS)]


def known_among(pairs: Pairs, known: Known) -> Pairs:
    """The fields in order; `UnknownFieldError` for those that the address doesn't have."""
    if wrong := {name: known.nearest(name) for name, _ in pairs if name not in known}:
        raise UnknownFieldError(wrong)
    return pairs


async def unasked(request: Request) -> None:
    """Before routes whose addresses have no fields of their own: `UnknownFieldError` for those there are."""
    known_among(pairs_of(request), Known())


def fields_of(request: Request, known: Known) -> dict[str, str]:
    """The fields of an address by name; errors as of `pairs_of` and `by_name`."""
    return by_name(pairs_of(request), known)


def by_name(pairs: Pairs, known: Known) -> dict[str, str]:
    """Fields by name.

    Raises
    ------
    UnknownFieldError
        For others than those known.
    RefusalError
        400 for too many, or for one that is said twice.
    """
    fields: dict[str, str] = {}
    for name, value in known_among(pairs, known):
        if name not in fields:
            fields[name] = value
        elif name.startswith("tick."):
            # Boxes of one name: each value is a term, which has no comma of its own.
            fields[name] += f",{value}"
        else:
            raise RefusalError(400, _TWICE, name=name)
    if len(fields) > _MOST_FIELDS:
        raise RefusalError(400)
    return fields


def refuse_beyond(fields: Mapping[str, str], query: str, count: int) -> None:
    """`UnknownFieldError` for a field of a query that is about a hierarchy beyond its ``count``."""
    for name in fields:
        of, _, number = name.partition(".")[2].rpartition(".")
        if of == query and number.isdigit() and int(number) >= count:
            raise UnknownFieldError({name: ""})


def chosen(fields: dict[str, str]) -> dict[str, str]:
    """Choices by parameter."""
    return {name[2:]: value for name, value in fields.items() if name.startswith("p.")}


def edited(fields: Mapping[str, str], sheet: Sheet) -> str:
    """The query whose form is open, empty for none; `RefusalError` 400 for one that the sheet hasn't."""
    name = fields.get("edit", "")
    if name and name not in (query.id for query in sheet.queries):
        raise RefusalError(400, NO_VALUE, name="edit", value=name)
    return name


def fields_of_sheet(sheet: Sheet) -> Known:
    """What the addresses of a sheet may say: choices, how each table is arranged, and what forms send."""
    names = {"edit"}
    numbered = set()
    for parameter in sheet.parameters:
        names |= {f"p.{parameter.name}", f"find.p.{parameter.name}"}
    for query in sheet.queries:
        kinds = ("pivot", "sort", "totals", "show", "empty", "page", "chart", "cell")
        names |= {f"{kind}.{query.id}" for kind in kinds}
        names |= {f"spot.{query.id}.row", f"spot.{query.id}.column"}
        numbered |= {f"{kind}.{query.id}" for kind in ("pick", "fold", "open")}
        numbered |= {f"{kind}.{query.id}" for kind in ("place", "which", "since", "count", "one", "tick")}
        numbered |= {f"{kind}.{query.id}" for kind in ("looked", "at", "look", "find", "part")}
    return Known(frozenset(names), frozenset(numbered))


def ways_out(request: Request, error: UnknownFieldError, language: str) -> tuple[Link, ...]:
    """The same address with the fields that may be meant, and without the wrong ones."""
    say = translations(language).gettext
    pairs = pairs_of(request)
    path = request.scope[LOCATED].prefix + quote(request.scope["path"])

    def address(pairs: Pairs) -> str:
        return f"{path}?{urlencode(pairs)}" if pairs else path

    ways = []
    meant = [(error.wrong.get(name, name), value) for name, value in pairs]
    if all(error.wrong.values()) and len({name for name, _ in meant}) == len({name for name, _ in pairs}):
        ways.append(Link(say(_CORRECTED) % {"name": next(iter(error.wrong.values()))}, address(meant)))
    ways.append(Link(say(_WITHOUT), address([pair for pair in pairs if pair[0] not in error.wrong])))
    return tuple(ways)
