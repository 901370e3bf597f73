"""Places and looks of marks: what the shown ones of a drawing say about a hidden one's."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from lxml.html import HtmlElement

from app.redteam.report import PageLeak
from app.redteam.tables import TableRow

#: Attributes that are places.
PLACES = ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2")
#: Attributes that are lengths, by the direction that they run in.
LENGTHS = {
    "x": ("width",),
    "y": ("height",),
    "": ("r", "rx", "ry", "opacity", "fill-opacity", "stroke-width"),
}
SHAPES = frozenset({"rect", "circle", "ellipse", "line", "path", "polyline", "polygon", "use", "image"})
#: How well the marks of shown cells must lie on a line for their scale to count as understood.
_FIT = 2e-3
#: Within which two places, printed with two decimals, are the same.
NEAR = 0.05
#: The end of the plot, in per cent of its width.
_EDGE = 100.0
#: The hatched mark that stands for a hidden bar: its width in pixels, where bars have shares of the plot, and
#: how it may be moved from the place where they begin.
_FIXED = ("14", ("", "translate(-7)", "translate(-14)", "translate(40)"))


@dataclass(frozen=True)
class Mark:
    """A shape of a cell (``row``). ``spans`` say from where to where it reaches, by direction, where these
    are places in the plot itself. A ``fixed`` one has a size that hangs on no figure."""

    row: int
    tag: str
    look: frozenset[str]
    numbers: Mapping[str, float]
    spans: Mapping[str, tuple[float, float]]
    fixed: bool = False


def marks_of(row: int, element: HtmlElement, plot: HtmlElement) -> Iterator[Mark]:
    """The shapes that a named element is made of."""
    for shape in element.iter():
        if not isinstance(shape.tag, str):
            continue
        numbers = numbers_in(shape)
        look = look_of(shape)
        if numbers or (look and shape.tag in SHAPES):
            here = next((a for a in shape.iterancestors("svg")), plot) is plot
            width, moves = _FIXED
            fixed = shape.get("width") == width and (shape.get("transform") or "") in moves
            if fixed:
                # A size in pixels is none on the scale of the plot.
                del numbers["width"]
            yield Mark(row, shape.tag, look, numbers, spans_of(numbers) if here else {}, fixed)


def look_of(shape: HtmlElement) -> frozenset[str]:
    """Classes and colours."""
    fill = shape.get("fill") or ""
    colours = [] if fill.startswith("url(") else [fill]
    return frozenset([*(shape.get("class") or "").split(), *filter(None, [*colours, shape.get("style")])])


def numbers_in(shape: HtmlElement) -> dict[str, float]:
    """A shape's attributes that are places and lengths."""
    names = (*PLACES, *itertools.chain(*LENGTHS.values()))
    found = {name: (shape.get(name) or "").rstrip("%px ") for name in names}
    return {name: float(text) for name, text in found.items() if re.fullmatch(r"-?\d+(\.\d+)?", text)}


def spans_of(numbers: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """From where to where a shape of such attributes reaches across and down."""
    spans = {}
    for side, length in (("x", "width"), ("y", "height")):
        if f"c{side}" in numbers:
            spans[side] = (numbers[f"c{side}"],) * 2
        elif f"{side}1" in numbers and f"{side}2" in numbers:
            spans[side] = (numbers[f"{side}1"], numbers[f"{side}2"])
        elif side in numbers or length in numbers:
            start = numbers.get(side, 0.0)
            spans[side] = (start, start + numbers.get(length, 0.0))
    return spans


@dataclass(frozen=True)
class Readings:
    """Hidden cells that their marks' places or looks tell; ``unread`` are those of whose marks it can't be
    said what they tell, though they differ from hatching."""

    leaks: list[PageLeak]
    unread: set[int]


def shown_marks(marks: Sequence[Mark], rows: Sequence[TableRow]) -> list[Mark]:
    """Those that stand for figures: the hatching of a pair may be called as the shown one of the two is."""
    return [mark for mark in marks if rows[mark.row].value is not None and "veil" not in mark.look]


def read_places(
    marks: Sequence[Mark],
    rows: Sequence[TableRow],
    side: str,
    extent: tuple[float, float] | None = None,
    ticks: Sequence[tuple[float, float]] = (),
) -> Readings:
    """Read hidden marks along a direction with the scale that the shown ones give, or of too few the ticks.

    ``extent`` is from where to where the grid reaches, ``ticks`` are places and what stands there. Hatching
    over the whole grid tells nothing, nor does a mark of a fixed size where bars begin or behind those of its
    row, nor a strip at the edge beyond the grid.
    """
    shown = shown_marks(marks, rows)
    bounds = extent or (0.0, _EDGE)
    points = all(start == end for start, end in (m.spans[side] for m in shown if side in m.spans))
    found = Readings([], set())
    for mark in marks:
        if not rows[mark.row].hidden or _veils(mark, shown, side, bounds):
            continue
        told = False
        for name in ("middle",) if points else ("end", "start", "middle"):
            # Shapes of all kinds have ends.
            scale = _scale(shown, rows, lambda other, name=name: _end_of(other, side, name), ticks)  # type: ignore[misc]
            place = _end_of(mark, side, name, bounds)
            if not told and scale is not None and place is not None:
                found.leaks.append(scale.read(mark, place))
                told = True
        for name in LENGTHS[side]:
            alike = [other for other in shown if other.tag == mark.tag]
            scale = _scale(alike, rows, lambda other, name=name: other.numbers.get(name))  # type: ignore[misc]
            if not told and scale is not None and name in mark.numbers:
                found.leaks.append(scale.read(mark, mark.numbers[name]))
                told = True
        if not told and side in mark.spans and mark.tag in SHAPES:
            found.unread.add(mark.row)
    return found


def _end_of(mark: Mark, side: str, name: str, bounds: tuple[float, float] | None = None) -> float | None:
    """One of a mark's ends; the other where that one lies on the ``bounds`` and says nothing."""
    if side not in mark.spans:
        return None
    start, end = mark.spans[side]
    if bounds is not None and name != "middle":
        ends = (start, end) if name == "start" else (end, start)
        return next((e for e in ends if all(abs(e - bound) > NEAR for bound in bounds)), ends[0])
    return {"start": start, "middle": (start + end) / 2, "end": end}[name]


@dataclass(frozen=True)
class _Scale:
    slope: float
    start: float
    error: float

    def read(self, mark: Mark, place: float) -> PageLeak:
        value = self.slope * place + self.start
        return PageLeak(mark.row, "drawn", value - self.error, value + self.error)


def _scale(
    shown: Sequence[Mark],
    rows: Sequence[TableRow],
    place_of: Callable[[Mark], float | None],
    ticks: Sequence[tuple[float, float]] = (),
) -> _Scale | None:
    """The line that the places of shown cells lie on, if need be with the ticks; None when they don't."""
    known = [(place, rows[mark.row].value or 0.0) for mark in shown if (place := place_of(mark)) is not None]
    if len({place for place, _ in known}) < 3:
        known += ticks
    if len({place for place, _ in known}) < 3:
        return None
    places, values = np.array(known).T
    slope, start = np.polyfit(places, values, 1)
    error = float(np.abs(slope * places + start - values).max())
    if error > _FIT * float(np.ptp(values)) or not slope:
        return None
    return _Scale(float(slope), float(start), error)


def _veils(mark: Mark, shown: Sequence[Mark], side: str, bounds: tuple[float, float]) -> bool:
    """Whether a mark lies where hatching does, whatever the value of its cell."""
    if side not in mark.spans:
        return False
    start, end = mark.spans[side]
    low, high = bounds
    if side == "x" and mark.fixed and "veil" in mark.look:
        return _stands_apart(mark, [other for other in shown if {"x", "y"} <= other.spans.keys()])
    # The plot is a little wider than its grid; what is longer than the plot is no hatching.
    if (
        -NEAR <= start <= low + NEAR
        and high - NEAR <= end <= max(high, _EDGE if side == "x" else high) + NEAR
    ):
        return True
    return side == "x" and abs(end - _EDGE) < NEAR and start != end and start > high + NEAR


def _stands_apart(mark: Mark, shown: Sequence[Mark]) -> bool:
    """Whether a mark of a fixed size stands behind the bars of its row, or where those of all rows begin."""
    start = mark.spans["x"][0]
    behind = [other.spans["x"][1] for other in shown if other.spans["y"] == mark.spans.get("y")]
    if behind:
        return abs(start - max(behind)) < NEAR
    if abs(start) < NEAR and min((other.spans["x"][0] for other in shown), default=0.0) < NEAR:
        return True
    return all(min(abs(end - start) for end in other.spans["x"]) < NEAR for other in shown)


def read_looks(marks: Sequence[Mark], rows: Sequence[TableRow]) -> Readings:
    """Hidden marks that look as shown ones do: a colour that stands for a class of values tells it."""
    ranges: dict[tuple[str, frozenset[str]], list[float]] = {}
    for mark in shown_marks(marks, rows):
        if mark.tag in SHAPES and mark.look:
            ranges.setdefault((mark.tag, mark.look), []).append(rows[mark.row].value or 0.0)
    found = Readings([], set())
    for mark in marks:
        if not rows[mark.row].hidden or mark.tag not in SHAPES or not mark.look:
            continue
        spans = sorted((min(v), max(v), look) for (tag, look), v in ranges.items() if tag == mark.tag)
        ordered = len(spans) > 1 and all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        own = [(low, high) for low, high, look in spans if look == mark.look]
        shade = _shade(mark.look)
        if ordered and own:
            found.leaks.append(PageLeak(mark.row, "drawn", *own[0]))
        elif ordered and shade is not None:
            # A class without shown cells lies between its neighbours.
            shades = [(other, low, high) for low, high, look in spans if (other := _shade(look)) is not None]
            below = max((high for other, _, high in shades if other < shade), default=-math.inf)
            above = min((low for other, low, _ in shades if other > shade), default=math.inf)
            found.leaks.append(PageLeak(mark.row, "drawn", below, above))
        elif own or shade is not None:
            found.unread.add(mark.row)
    return found


def _shade(look: frozenset[str]) -> int | None:
    """The number of a class of colour."""
    return next((int(name[1:]) for name in look if re.fullmatch(r"c\d+", name)), None)
