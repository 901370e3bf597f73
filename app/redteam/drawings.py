"""Reading a drawing: which cell each mark stands for, and whether a hidden one's place or colour tells it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from lxml.html import HtmlElement

from app.redteam.report import PageLeak
from app.redteam.tables import TableRow

_GEOMETRY = ("x", "y", "width", "height", "cx", "cy", "r", "x1", "x2", "y1", "y2")
#: How well the marks of shown cells must lie on a line for their scale to count as understood.
_FIT = 2e-3
_FIGURE = re.compile(r"\d(?:[\d.,'’\s]*\d)?")


def drawn_leaks(block: HtmlElement, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Hidden cells that a drawing says, or that the scale of the shown ones reads from it."""
    labels = _Labels(rows)
    for drawing in block.iter("svg"):
        if any(ancestor.tag == "svg" for ancestor in drawing.iterancestors()):
            continue
        marks: list[_Mark] = []
        for row, label in _placed(_named(drawing, labels), rows):
            if rows[row].hidden and label.figure:
                value = numbers_of(label.figure)[0]
                yield PageLeak(row, "in the page", value, value)
            marks += _marks(row, label.element)
        shown = [mark for mark in marks if rows[mark.row].value is not None]
        hidden = [mark for mark in marks if rows[mark.row].hidden]
        yield from _measured(shown, hidden, rows)
        yield from _coloured(shown, hidden, rows)


def numbers_of(text: str) -> list[float]:
    """The numbers in a text, as English writes them."""
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


@dataclass(frozen=True)
class _Label:
    """What a mark is called: the cells (rows) that it may stand for, and the figure it tells, if any."""

    element: HtmlElement
    rows: tuple[int, ...]
    figure: str


class _Labels:
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

    def of(self, element: HtmlElement) -> _Label | None:
        title = _title(element)
        if not title:
            return None
        head, _, tail = title.rpartition(":")
        named = self._standing_in(head)
        if named:
            told = tail
        else:
            named, told = self._standing_in(title), title
            for caption in sorted((*itertools.chain(*named[:1]), *self._shared), key=len, reverse=True):
                told = told.replace(caption, " ", 1)
        if not named:
            return None
        rows = sorted(row for captions in named for row in self._named[captions])
        return _Label(element, tuple(rows), told.strip() if numbers_of(told) else "")

    def _standing_in(self, text: str) -> list[tuple[str, ...]]:
        """The longest captions that stand in a text; several are made of the same words."""
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


def _title(element: HtmlElement) -> str:
    if not isinstance(element.tag, str):
        return ""
    found = element.find("title")
    return (found.text_content() if found is not None else element.get("aria-label") or "").strip()


def _named(drawing: HtmlElement, labels: _Labels) -> dict[tuple[int, ...], list[_Label]]:
    """The marks of a drawing in its order, by the cells that they may stand for."""
    named: dict[tuple[int, ...], list[_Label]] = {}
    for element in drawing.iter():
        label = labels.of(element)
        if label is not None:
            named.setdefault(label.rows, []).append(label)
    return named


def _placed(
    named: dict[tuple[int, ...], list[_Label]], rows: Sequence[TableRow]
) -> Iterator[tuple[int, _Label]]:
    """Each mark with the one cell that it stands for.

    Of cells that are called the same, a mark that tells the figure of a shown one is that one's. Another
    figure is a hidden one's: nobody else has it. Marks without a figure are taken in the order of the cells,
    all of them when none tells a figure, else the hidden ones.
    """
    for candidates, labels in named.items():
        if len(candidates) == 1:
            yield from ((candidates[0], label) for label in labels)
            continue
        shown = [row for row in candidates if rows[row].value is not None]
        hidden = [row for row in candidates if rows[row].hidden]
        if len(labels) == len(shown) + len(hidden) and not any(label.figure for label in labels):
            yield from zip(sorted(shown + hidden), labels, strict=True)
            continue
        left = []
        for label in labels:
            own = next((row for row in shown if label.figure and _tells(label.figure, rows[row])), None)
            if own is None:
                left.append(label)
            else:
                shown.remove(own)
                yield own, label
        waiting = hidden or shown
        for number, label in enumerate(left):
            if waiting:
                yield waiting[min(number, len(waiting) - 1)], label


def _tells(figure: str, row: TableRow) -> bool:
    """Whether a figure is a cell's number, in any language's signs and any power of ten (per cent)."""
    found = _FIGURE.search(re.sub(r"[Ee][+-]?\d+", "", figure))
    return found is not None and _digits(found.group()) == _digits(f"{Decimal(repr(row.value)):f}")


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text).strip("0")


@dataclass(frozen=True)
class _Mark:
    row: int
    tag: str
    classes: frozenset[str]
    geometry: dict[str, float]


def _marks(row: int, element: HtmlElement) -> Iterator[_Mark]:
    for shape in element.iter():
        if not isinstance(shape.tag, str):
            continue
        geometry = {}
        for name in _GEOMETRY:
            text = (shape.get(name) or "").rstrip("%px ")
            if re.fullmatch(r"-?\d+(\.\d+)?", text):
                geometry[name] = float(text)
        if geometry:
            classes = frozenset((shape.get("class") or "").split())
            yield _Mark(row, shape.tag, classes, geometry)


def _measured(
    shown: Sequence[_Mark], hidden: Sequence[_Mark], rows: Sequence[TableRow]
) -> Iterator[PageLeak]:
    """Read hidden marks with the scale that the shown ones give."""
    for tag in sorted({mark.tag for mark in hidden}):
        for name in _GEOMETRY:
            known = [
                (mark.geometry[name], rows[mark.row].value or 0.0)
                for mark in shown
                if mark.tag == tag and name in mark.geometry
            ]
            if len({place for place, _ in known}) < 3:
                continue
            places, values = np.array(known).T
            slope, start = np.polyfit(places, values, 1)
            error = float(np.abs(slope * places + start - values).max())
            if error > _FIT * float(np.ptp(values)) or not slope:
                continue
            read = [mark for mark in hidden if mark.tag == tag and name in mark.geometry]
            same = len(read) > 1 and len({mark.geometry[name] for mark in read}) == 1
            for mark in read:
                if same or _fills_the_plot(mark):
                    continue
                value = float(slope * mark.geometry[name] + start)
                yield PageLeak(mark.row, "drawn", value - error, value + error)


def _fills_the_plot(mark: _Mark) -> bool:
    """Whether a mark reaches the edge of the plot, so that its length says nothing about its cell."""
    g = mark.geometry
    return any(
        abs(g.get(a, 0.0) + g.get(b, -1.0) - 100.0) < 0.02 for a, b in (("x", "width"), ("y", "height"))
    )


def _coloured(
    shown: Sequence[_Mark], hidden: Sequence[_Mark], rows: Sequence[TableRow]
) -> Iterator[PageLeak]:
    """A hidden mark in a colour that stands for a class of values."""
    ranges: dict[tuple[str, frozenset[str]], list[float]] = {}
    for mark in shown:
        ranges.setdefault((mark.tag, mark.classes), []).append(rows[mark.row].value or 0.0)
    for tag in {tag for tag, _ in ranges}:
        spans = sorted((min(v), max(v), c) for (t, c), v in ranges.items() if t == tag and c)
        ordered = len(spans) >= 3 and all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        if not ordered or sum(len(v) for (t, _), v in ranges.items() if t == tag) < 2 * len(spans):
            continue
        for mark in hidden:
            for low, high, classes in spans:
                if mark.tag == tag and mark.classes == classes:
                    yield PageLeak(mark.row, "drawn", low, high)
