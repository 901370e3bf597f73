"""Long lists of members in forms: a page offers what was searched for, part by part, and what is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.web.contexts import Finder, Option
from app.web.language import translations
from app.web.refusals import NO_VALUE, RefusalError
from app.web.search import fold

#: As many members are offered one by one without a search.
MOST = 200
#: Members that a page offers of a longer list, and of those that are chosen already.
PART = 100
LONGEST = 100


@dataclass(frozen=True)
class Look:
    """What a reader searches a list for, and which part of what was found."""

    words: str = ""
    part: int = 0


def read_looks(fields: Mapping[str, str], query: str) -> dict[int, Look]:
    """What an address searches the lists of a query's form for, by hierarchy."""
    found: dict[int, Look] = {}
    for name, text in fields.items():
        kind, _, suffix = name.partition(".")
        of, _, number = suffix.rpartition(".")
        if (
            kind in ("find", "part")
            and of == query
            and number.isascii()
            and number.isdigit()
            and len(number) < 4
        ):
            before = found.get(int(number), Look())
            if kind == "find":
                found[int(number)] = Look(text[:LONGEST], before.part)
            else:
                found[int(number)] = Look(before.words, part_of(fields, name))
    return found


def part_of(fields: Mapping[str, str], *names: str) -> int:
    """The number that the first of some fields says, 0 for none; `RefusalError` 400 for what is no number."""
    name = next((name for name in names if fields.get(name)), "")
    text = fields.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 7):
        raise RefusalError(400, NO_VALUE, name=name, value=text)
    return int(text or "0")


@dataclass(frozen=True)
class Listing:
    """``shown`` are numbers of members: one part of the ``total`` that were found."""

    shown: tuple[int, ...]
    total: int
    part: int
    parts: int


def listing(texts: Sequence[str], look: Look, near: int = 0) -> Listing:
    """The part of a list that answers a search; the one with member ``near`` where no part is asked for."""
    wanted = fold(" ".join(look.words.split()))
    found = [number for number, text in enumerate(texts) if not wanted or wanted in fold(text)]
    parts = max(1, -(-len(found) // PART))
    part = look.part or (found.index(near) // PART + 1 if near in found else 1)
    part = min(part, parts)
    return Listing(tuple(found[(part - 1) * PART : part * PART]), len(found), part, parts)


def finder(suffix: str, button: str, look: Look, found: Listing, language: str) -> Finder:
    """The search of a list as a form shows it; ``button`` as in `Finder`."""
    _ = translations(language).gettext
    first = (found.part - 1) * PART + 1
    said = (
        _("%(first)s–%(last)s of %(total)s")
        % {"first": first, "last": first + len(found.shown) - 1, "total": found.total}
        if found.total
        else _("Nothing found")
    )
    return Finder(
        suffix,
        button,
        look.words,
        said,
        found.part,
        found.part - 1,
        found.part + 1 if found.part < found.parts else 0,
    )


def offered(options: Sequence[Option], found: Listing) -> tuple[Option, ...]:
    """Options of a list from which one is chosen: the chosen one if it wasn't found, and those found."""
    shown = set(found.shown)
    chosen = (option for number, option in enumerate(options) if option.chosen and number not in shown)
    return (*chosen, *(options[number] for number in found.shown))
