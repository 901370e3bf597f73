"""What the marks of a drawing are called: which cells each of them may stand for, and which one it does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lxml.html import HtmlElement

from app.redteam.tables import TableRow

_FIGURE = re.compile(r"\d(?:[\d.,'’\s]*\d)?")
#: Between the figures of a mark that tells two.
_BESIDE = " · "


def numbers_of(text: str) -> list[float]:
    """The numbers in a text, as English writes them."""
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


def title_of(element: HtmlElement) -> str:
    """What an element itself is called, empty for nothing."""
    if not isinstance(element.tag, str):
        return ""
    found = element.find("title")
    return (found.text_content() if found is not None else element.get("aria-label") or "").strip()


def tells(figure: str, row: TableRow) -> bool:
    """Whether a figure is a cell's number, in any language's signs and any power of ten (per cent)."""
    if row.value is None:
        return False
    found = _FIGURE.search(re.sub(r"[Ee][+-]?\d+", "", figure))
    return found is not None and digits_of(found.group()) == digits_of(f"{Decimal(repr(row.value)):f}")


def digits_of(text: str) -> str:
    """The digits of a number without its signs, or the zeros that say how large it is."""
    return re.sub(r"\D", "", text).strip("0")


@dataclass(frozen=True)
class Label:
    """What a mark is called: the cells (rows) that it may stand for, and the figure it tells, if any."""

    element: HtmlElement
    name: str
    rows: tuple[int, ...]
    figure: str


class Labels:
    """Which cells a mark's title names: those whose telling captions stand in it, longest, as whole words.

    Members may be called by numbers, so what follows the last colon, a mark's figure, is looked at only when
    nothing before it names a cell. Several cells may be called the same: a province and its capital.
    """

    def __init__(self, rows: Sequence[TableRow]) -> None:
        names = rows[0].captions if rows else ()
        telling = [name for name in names if len({row.captions[name] for row in rows}) > 1]
        #: What all of them share, a year or an area, stands in titles too.
        self._shared = tuple(rows[0].captions[name] for name in names if name not in telling) if rows else ()
        self._named: dict[tuple[str, ...], list[int]] = {}
        for number, row in enumerate(rows):
            self._named.setdefault(tuple(row.captions[name] for name in telling), []).append(number)
        # The longest come first: a caption may be part of another.
        found = [(sum(map(len, captions)), captions) for captions in self._named if any(captions)]
        self._captions = sorted(found, key=lambda pair: -pair[0])

    def of(self, element: HtmlElement, context: str = "", beside: int | None = None) -> Label | None:
        """The label of an element by its title and what is said beside the drawing (``context``: the measure
        of an axis, the column that a map is of); ``beside``: which one of several figures is its own."""
        title = title_of(element)
        if not title:
            return None
        head, _, tail = title.rpartition(":")
        named = self._standing_in(f"{context}, {head}" if context else head) if head else []
        if named:
            told = tail
        else:
            named, told = self._standing_in(f"{context}, {title}" if context else title), title
            for caption in sorted((*itertools.chain(*named[:1]), *self._shared), key=len, reverse=True):
                told = told.replace(caption, " ", 1)
        if not named:
            return None
        figures = told.split(_BESIDE)
        if beside is not None and beside < len(figures):
            told = figures[beside]
        rows = sorted(row for captions in named for row in self._named[captions])
        return Label(element, head or title, tuple(rows), told.strip() if numbers_of(told) else "")

    def _standing_in(self, text: str) -> list[tuple[str, ...]]:
        """The longest captions that stand in a text; several are made of the same words."""
        if not self._captions:
            # One cell, which every title names.
            return list(self._named)
        found: list[tuple[str, ...]] = []
        longest = 0
        for length, captions in self._captions:
            if found and length < longest:
                break
            if all(caption in text for caption in captions) and all(map(_word_of(text), captions)):
                found.append(captions)
                longest = length
        return found


def _word_of(text: str) -> Callable[[str], bool]:
    return lambda caption: re.search(rf"(?<!\w){re.escape(caption)}(?!\w)", text) is not None


def placed(labels: Iterable[Label], rows: Sequence[TableRow]) -> Iterator[tuple[int, Label]]:
    """Each mark of a drawing, in its order, with the one cell that it stands for.

    Of cells that are called the same, a mark that tells the figure of a shown one is that one's. Another
    figure is a hidden one's: nobody else has it. Marks without a figure are taken in the order of the cells,
    all of them when none tells a figure, else the hidden ones.
    """
    named: dict[tuple[int, ...], list[Label]] = {}
    for label in labels:
        named.setdefault(label.rows, []).append(label)
    for candidates, alike in named.items():
        if len(candidates) == 1:
            yield from ((candidates[0], label) for label in alike)
            continue
        shown = [row for row in candidates if rows[row].value is not None]
        hidden = [row for row in candidates if rows[row].hidden]
        if len(alike) == len(shown) + len(hidden) and not any(label.figure for label in alike):
            yield from zip(sorted(shown + hidden), alike, strict=True)
            continue
        left = []
        for label in alike:
            own = next((row for row in shown if label.figure and tells(label.figure, rows[row])), None)
            if own is None:
                left.append(label)
            else:
                shown.remove(own)
                yield own, label
        waiting = hidden or shown
        for number, label in enumerate(left):
            if waiting:
                yield waiting[min(number, len(waiting) - 1)], label
