"""Reading a page: does it tell a hidden cell's number in a text, an attribute, a script or a drawing?"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lxml import html
from lxml.html import HtmlElement

from app.redteam.report import Kind
from app.redteam.tables import TableRow

#: Attributes that place or style things and can't hold a cell's number.
_HARMLESS = frozenset({"class", "id", "headers", "colspan", "rowspan", "scope", "href", "lang", "tabindex"})
_GEOMETRY = ("x", "y", "width", "height", "cx", "cy", "r", "x1", "x2", "y1", "y2")
_DIGIT = re.compile(r"\d")
#: How well the marks of shown cells must lie on a line for their scale to count as understood.
_FIT = 2e-3


@dataclass(frozen=True)
class PageLeak:
    """A hidden cell (index into the rows) that the page gives away; ``kind`` as in a finding."""

    row: int
    kind: Kind
    lower: float
    upper: float


def parse_page(text: str) -> HtmlElement:
    return html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))


def block_of(page: HtmlElement, identity: str, position: int) -> HtmlElement | None:
    """The part of a page that belongs to a query: by its id, else by its place among the tables."""
    for element in page.iter():
        if isinstance(element.tag, str) and element.get("id") == identity:
            return element
    tables = list(page.iter("table"))
    return tables[position] if position < len(tables) else None


def read_block(block: HtmlElement, rows: Sequence[TableRow]) -> tuple[list[PageLeak], str]:
    """Leaks of a query's part of a page against its download, and what couldn't be read of it."""
    leaks: list[PageLeak] = []
    trouble = ""
    for table in block.iter("table"):
        cells = [cell for cell in table.iter("td") if "corner" not in (cell.get("class") or "")]
        if len(cells) != len(rows):
            trouble = f"a table of {len(cells)} cells where the download has {len(rows)}"
            continue
        leaks += _table_leaks(cells, rows)
    leaks += _script_leaks(block, rows)
    leaks += _drawn_leaks(block, rows)
    return leaks, trouble


def rows_as_printed(block: HtmlElement) -> list[tuple[str, ...]]:
    """The rows of a table as texts: the names that they stand under, their own, then their cells.

    What a row stands under is told by headings and by the indentation of the names before it.
    """
    table = next(block.iter("table"), None)
    printed = []
    trail: list[tuple[int, str]] = []
    for row in table.iter("tr") if table is not None else ():
        texts = [" ".join(cell.text_content().split()) for cell in row.iter("th", "td")]
        cells = [cell for cell in row.iter("td") if cell.get("class") != "corner"]
        if not cells:
            trail = [(-1, texts[0])] if texts else []
            continue
        name = next(row.iter("th"), None)
        found = re.fullmatch(r"d(\d)", name.get("class") or "") if name is not None else None
        depth = int(found.group(1)) if found else 0
        trail = [above for above in trail if above[0] < depth]
        printed.append((" / ".join(text for _, text in trail), *texts))
        trail.append((depth, texts[0]))
    return printed


def order_tells(
    published: Sequence[tuple[str, ...]], sorted_rows: Sequence[tuple[str, ...]], at: int
) -> bool:
    """Whether a table sorted by column ``at`` (from the right, -1 the last) puts hidden rows in an order.

    Among those that stand under the same names (first in each row) they must stand as published: an order
    made from hidden numbers tells which is larger. Families may move as a whole, by their heads.
    """
    if sorted(published) != sorted(sorted_rows):
        return False
    before, after = (_hidden_by_family(rows, at) for rows in (published, sorted_rows))
    return before != after


def _hidden_by_family(rows: Sequence[tuple[str, ...]], at: int) -> dict[str, list[tuple[str, ...]]]:
    families: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        if len(row) >= -at and row[at] in ("[c]", "[x]"):
            families.setdefault(row[0], []).append(row)
    return families


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]


def _table_leaks(cells: Sequence[HtmlElement], rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    for number, (cell, row) in enumerate(zip(cells, rows, strict=True)):
        if not row.hidden:
            continue
        texts = [cell.text_content()]
        for element in cell.iter():
            texts += [value for name, value in element.attrib.items() if name not in _HARMLESS]
        for text in texts:
            if _DIGIT.search(text):
                value = (_numbers(text) or [float("nan")])[0]
                yield PageLeak(number, "in the page", value, value)
                break


def _script_leaks(block: HtmlElement, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Lists of numbers, one for each cell, in scripts and attributes."""
    texts = [script.text or "" for script in block.iter("script")]
    texts += [
        value
        for element in block.iter()
        if isinstance(element.tag, str)
        for name, value in element.attrib.items()
        if name.startswith("data-")
    ]
    for text in texts:
        for found in _lists(text):
            if len(found) != len(rows):
                continue
            for number, (value, row) in enumerate(zip(found, rows, strict=True)):
                if row.hidden and isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield PageLeak(number, "in the page", float(value), float(value))


def _lists(text: str) -> Iterator[list[Any]]:
    try:
        waiting = [json.loads(text)]
    except ValueError:
        waiting = []
        for found in re.findall(r"\[[^\[\]]*\]", text):
            try:
                waiting.append(json.loads(found))
            except ValueError:
                continue
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            yield item
            flat = [inner for part in item if isinstance(part, list) for inner in part]
            if flat:
                yield flat
            waiting.extend(part for part in item if isinstance(part, (list, dict)))
        elif isinstance(item, dict):
            waiting.extend(item.values())


@dataclass(frozen=True)
class _Mark:
    row: int
    tag: str
    classes: frozenset[str]
    geometry: dict[str, float]


def _drawn_leaks(block: HtmlElement, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    labels = _Labels(rows)
    for drawing in block.iter("svg"):
        if any(ancestor.tag == "svg" for ancestor in drawing.iterancestors()):
            continue
        marks = list(_marks(drawing, labels))
        for element in drawing.iter():
            title = _title(element)
            row = labels.row_of(title) if title else None
            if row is not None and rows[row].hidden and _told(title, rows[row]):
                value = _told(title, rows[row])[0]
                yield PageLeak(row, "in the page", value, value)
        shown = [mark for mark in marks if rows[mark.row].value is not None]
        hidden = [mark for mark in marks if rows[mark.row].hidden]
        yield from _measured(shown, hidden, rows)
        yield from _coloured(shown, hidden, rows)


def _title(element: HtmlElement) -> str:
    if not isinstance(element.tag, str):
        return ""
    found = element.find("title")
    return (found.text_content() if found is not None else element.get("aria-label") or "").strip()


class _Labels:
    """Which cell a mark's label names: the one all of whose telling captions stand in it as whole words.

    Members may be called by numbers, so what follows the last colon, a mark's figure, is looked at only when
    nothing before it names a cell.
    """

    def __init__(self, rows: Sequence[TableRow]) -> None:
        names = rows[0].captions if rows else ()
        telling = [name for name in names if len({row.captions[name] for row in rows}) > 1]
        captions = ([row.captions[name] for name in telling] for row in rows)
        found = [(number, words) for number, words in enumerate(captions) if any(words)]
        # The longest come first: a caption may be part of another.
        self._rows = sorted(found, key=lambda pair: -sum(map(len, pair[1])))

    def row_of(self, title: str) -> int | None:
        for text in (title.rpartition(":")[0], title):
            for number, captions in self._rows:
                if all(caption in text for caption in captions) and all(map(_standing_in(text), captions)):
                    return number
        return None


def _standing_in(text: str) -> Callable[[str], bool]:
    return lambda caption: re.search(rf"(?<!\w){re.escape(caption)}(?!\w)", text) is not None


def _told(title: str, row: TableRow) -> list[float]:
    """Numbers of a label besides those in the members' own names."""
    for caption in sorted(row.captions.values(), key=len, reverse=True):
        title = title.replace(caption, " ", 1)
    return _numbers(title)


def _marks(drawing: HtmlElement, labels: _Labels) -> Iterator[_Mark]:
    for element in drawing.iter():
        title = _title(element)
        row = labels.row_of(title) if title else None
        if row is None:
            continue
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
