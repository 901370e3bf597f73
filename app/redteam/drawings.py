"""Reading the drawings of a page or a file: every mark that stands for a cell, every text and line beside.

A drawing is read as what it is: bars and pyramids along, lines up, scatters both ways by the names of their
axes, maps by their colours and the column that each is of. What can't be read is said, so that a drawing that
nobody understands isn't taken for a clean one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from lxml.html import HtmlElement

from app.redteam.geometry import (
    LENGTHS,
    NEAR,
    PLACES,
    SHAPES,
    Mark,
    look_of,
    marks_of,
    numbers_in,
    read_looks,
    read_places,
    shown_marks,
    spans_of,
)
from app.redteam.labels import Labels, digits_of, numbers_of, placed, title_of
from app.redteam.report import PageLeak
from app.redteam.tables import TableRow

_PLOTS = frozenset({"plot", "tiles", "areas"})
#: Directions in which the figures of a drawing run; of one of another kind, both may.
_SIDES = {"bars": "x", "pyramid": "x", "lines": "y", "tiles": "", "areas": ""}
#: Attributes of a mark that hold numbers of places, sizes and names, not of cells.
_DRAWN = {*PLACES, *LENGTHS["x"], *LENGTHS["y"], *LENGTHS[""]} | {
    *("class", "id", "fill", "d", "points", "transform", "dx", "dy", "href", "viewbox", "overflow"),
}
_DIGIT = re.compile(r"\d")


def read_drawings(block: HtmlElement, rows: Sequence[TableRow]) -> tuple[list[PageLeak], list[str]]:
    """Hidden cells that drawings say, or that the scale of the shown ones reads from them; and what of the
    drawings couldn't be read."""
    labels = Labels(rows)
    leaks: list[PageLeak] = []
    trouble: list[str] = []
    reaches: dict[HtmlElement | None, list[bool]] = {}
    for element in _plots(block):
        plot = _Plot(element, rows, labels)
        plot.read()
        leaks += plot.leaks
        trouble += plot.trouble
        # The two halves of a pyramid have one scale.
        reaches.setdefault(element.getparent(), []).append(plot.reaches)
    if not all(any(found) for found in reaches.values()):
        trouble.append("an axis that reaches further than the shown figures need")
    figures = {digits_of(f"{Decimal(repr(row.value)):f}") for row in rows if row.value is not None}
    if not {digits_of(limit) for limit in _limits(block)} <= figures:
        trouble.append("a class of a map with a limit that no cell shows")
    return leaks, list(dict.fromkeys(trouble))


def _plots(block: HtmlElement) -> Iterator[HtmlElement]:
    """What marks are drawn in: the plots of a chart, the maps, or a drawing that has neither."""
    for drawing in block.iter("svg"):
        if any(a.tag == "svg" for a in drawing.iterancestors()) or drawing.get("aria-hidden") == "true":
            continue
        inner = [svg for svg in drawing.iter("svg") if _PLOTS & _classes_of(svg)]
        yield from inner or ([] if "stub" in _classes_of(drawing) else [drawing])


def _classes_of(element: HtmlElement) -> set[str]:
    return set((element.get("class") or "").split())


def _kind(plot: HtmlElement) -> str:
    """What kind of drawing a plot belongs to, empty when its surroundings don't say."""
    for element in (plot, *plot.iterancestors()):
        for kind in ("scatter", *_SIDES):
            if kind in _classes_of(element):
                return kind
    return ""


def _axes(plot: HtmlElement) -> tuple[str, str] | None:
    """The measures of a scatter, across and up, by the texts with arrows beside it."""
    across = [t.text_content().strip() for t in plot.iter("text")]
    right = [text.removesuffix("→").strip() for text in across if text.endswith("→")]
    for above in plot.iterancestors():
        up = [t.text_content().strip() for t in above.iter("p", "text")]
        names = [text.removeprefix("↑").strip() for text in up if text.startswith("↑")]
        if names and right:
            return right[-1], names[-1]
    return None


def _above(plot: HtmlElement) -> str:
    """The column that a map is of, where there are several: a caption, or in a file the text before it."""
    for above in plot.iterancestors("figure"):
        caption = above.find("figcaption")
        if caption is not None:
            return str(caption.text_content()).strip()
    before = plot.getprevious()
    if before is None or before.tag != "text" or before.get("class"):
        return ""
    return str(before.text_content()).strip()


def _limits(block: HtmlElement) -> Iterator[str]:
    """The limits of classes of colour, as the legends of maps say them."""
    for key in block.iter("svg"):
        colours = [rect for rect in key.findall("rect") if re.fullmatch(r"c\d+", rect.get("class") or "")]
        if not colours or key.find("title") is not None:
            continue
        line = next(key.iterancestors("li"), key.getnext())
        if line is not None:
            yield from filter(_DIGIT.search, line.text_content().split(" – "))


def _grid(plot: HtmlElement) -> tuple[dict[str, list[float]], dict[str, dict[float, str]]]:
    """Places of the grid's lines, by the direction that they follow one another in, and the texts there."""
    lines: dict[str, set[float]] = {"x": set(), "y": set()}
    texts: dict[str, dict[float, str]] = {"x": {}, "y": {}}
    beside = plot.getprevious()
    stub = [beside] if beside is not None and "stub" in _classes_of(beside) else []
    for group in (*(g for g in plot.iter("g") if _classes_of(g) & {"grid", "along"}), *stub):
        for line in group.iter("line"):
            for side, (start, end) in spans_of(numbers_in(line)).items():
                if start == end:
                    lines[side].add(start)
        for text in group.iter("text"):
            for side in lines.keys() & numbers_in(text).keys():
                texts[side][numbers_in(text)[side]] = text.text_content()
    return {side: sorted(places) for side, places in lines.items()}, {
        side: {place: texts[side][place] for place in places & texts[side].keys()}
        for side, places in lines.items()
    }


def _is_zero(text: str) -> bool:
    return "0" in text and not digits_of(text)


def _told(element: HtmlElement, name: str) -> Iterator[str]:
    """What the parts of a named mark say besides its name, in texts and attributes."""
    for part in element.iter():
        if not isinstance(part.tag, str) or part.tag == "title":
            continue
        yield from (value for key, value in part.attrib.items() if key not in _DRAWN)
        text = part.text_content().strip().rstrip("…") if part.tag == "text" else ""
        if text not in name:
            yield text


@dataclass
class _Plot:
    """One plot: which hidden cells it tells, and what couldn't be read of it."""

    element: HtmlElement
    rows: Sequence[TableRow]
    labels: Labels
    leaks: list[PageLeak] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    reaches: bool = True

    def read(self) -> None:
        self._kind = _kind(self.element)
        self._lines, self._ticks = _grid(self.element)
        named = [e for e in self.element.iter() if e is not self.element and title_of(e)]
        ways: list[tuple[str, str, int | None]] = [(_above(self.element), _SIDES.get(self._kind, "xy"), None)]
        if self._kind == "scatter":
            names = _axes(self.element)
            if names is None:
                self.trouble.append("a scatter whose axes have no names")
                return
            ways = [(name, side, at) for at, (name, side) in enumerate(zip(names, "xy", strict=True))]
        for context, sides, beside in ways:
            marks = self._titled(named, context, beside)
            for side in sides:
                self._places(marks, side)
            self._places(marks, "")
            looks = read_looks(marks, self.rows)
            self.leaks += looks.leaks
            if looks.unread - {leak.row for leak in self.leaks}:
                self.trouble.append("a hidden cell that is drawn as a shown one")
        self._untitled(marks, named)

    def _titled(self, named: Sequence[HtmlElement], context: str, beside: int | None) -> list[Mark]:
        """The marks that say which cell they are, in words that may tell too much themselves."""
        found = [self.labels.of(element, context, beside) for element in named]
        if None in found and self.rows:
            self.trouble.append("a mark that names no cell")
        marks: list[Mark] = []
        for row, label in placed(filter(None, found), self.rows):
            if self.rows[row].hidden:
                for text in (label.figure, *_told(label.element, label.name)):
                    self._said(row, text)
            marks += marks_of(row, label.element, self.element)
        return marks

    def _said(self, row: int, text: str) -> None:
        if _DIGIT.search(text):
            value = (numbers_of(text) or [math.nan])[0]
            self.leaks.append(PageLeak(row, "in the page", value, value))

    def _places(self, marks: Sequence[Mark], side: str) -> None:
        lines = self._lines.get(side, [])
        # Bars have the whole width; of a pyramid's grid, the line in the middle isn't drawn.
        grid = (lines[0], lines[-1]) if lines and self._kind in ("lines", "scatter") else None
        ticks = self._ticks.get(side, {})
        known = [(place, found[0]) for place, text in ticks.items() if (found := numbers_of(text))]
        read = read_places(marks, self.rows, side, grid, known)
        self.leaks += read.leaks
        if self._kind and read.unread - {leak.row for leak in self.leaks}:
            self.trouble.append("a hidden cell with a place of its own on a scale that isn't understood")
        spans = [mark.spans[side] for mark in shown_marks(marks, self.rows) if side in mark.spans]
        if len(lines) > 2 and spans:
            near = min(map(min, spans)) < lines[1] + NEAR or _is_zero(ticks.get(lines[0], ""))
            far = max(map(max, spans)) > lines[-2] - NEAR or _is_zero(ticks.get(lines[-1], ""))
            self.reaches &= near and far

    def _untitled(self, marks: Sequence[Mark], named: Sequence[HtmlElement]) -> None:
        """Texts and strokes that say no cell: are they a hidden one's?"""
        names = set(named)
        for shape in self.element.iter(*SHAPES, "text"):
            above = list(shape.iterancestors())
            if shape in names or not names.isdisjoint(above) or any(a.tag == "defs" for a in above):
                continue
            if any("grid" in _classes_of(a) for a in above) or "axis" in _classes_of(shape):
                continue
            numbers = numbers_in(shape)
            if shape.tag == "text":
                for mark in self._hidden_at(marks, spans_of(numbers), "xy"):
                    self._said(mark.row, shape.text_content())
            else:
                self._nameless(marks, shape.tag, look_of(shape), numbers)

    def _nameless(
        self, marks: Sequence[Mark], tag: str, look: frozenset[str], numbers: Mapping[str, float]
    ) -> None:
        """A shape without a name: a stroke from figure to figure, or a hidden one's whose row it lies in."""
        spans = spans_of(numbers)
        if set(spans) != {"x", "y"}:
            self.trouble.append("a shape without a name")
            return
        ends = [dict(zip("xy", end, strict=True)) for end in zip(*spans.values(), strict=True)]
        if tag == "line":
            spots = [mark.spans for mark in marks if len(mark.spans) == 2]
            odd = [end for end in ends if not any(_at(end, spot) for spot in spots)]
            found = [{side: (place, place) for side, place in end.items()} for end in odd]
        else:
            found = [spans]
        side = _SIDES.get(self._kind, "")
        for spot in found:
            hidden = self._hidden_at(marks, spot, "x" if side == "y" else "y") if side else []
            # Of several hidden cells in one place it may be another's.
            self.trouble.append("a shape without a name")
            for mark in hidden:
                self._places([*shown_marks(marks, self.rows), Mark(mark.row, tag, look, numbers, spot)], side)

    def _hidden_at(
        self, marks: Sequence[Mark], spot: Mapping[str, tuple[float, float]], sides: str
    ) -> list[Mark]:
        """Hatching of hidden cells that a spot lies in, seen in some directions."""
        return [
            mark
            for mark in marks
            if self.rows[mark.row].hidden
            and all(side in mark.spans and side in spot for side in sides)
            and all(
                mark.spans[side][0] - NEAR <= sum(spot[side]) / 2 <= mark.spans[side][1] + NEAR
                for side in sides
            )
        ]


def _at(end: Mapping[str, float], spot: Mapping[str, tuple[float, float]]) -> bool:
    return all(abs(end[side] - spot[side][0]) < NEAR for side in "xy")
