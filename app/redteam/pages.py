"""Reading a page: does it tell a hidden cell's number in a text, an attribute, a script or a drawing?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any
from urllib.parse import urldefrag, urlsplit

from lxml import html
from lxml.html import HtmlElement

from app.redteam.drawings import read_drawings
from app.redteam.labels import numbers_of
from app.redteam.report import PageLeak
from app.redteam.tables import TableRow

#: Attributes that place or style things and can't hold a cell's number.
_HARMLESS = frozenset({"class", "id", "headers", "colspan", "rowspan", "scope", "href", "lang", "tabindex"})
_DIGIT = re.compile(r"\d")


def parse_page(text: str) -> HtmlElement:
    return html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))


def block_of(page: HtmlElement, identity: str, position: int) -> HtmlElement | None:
    """The part of a page that belongs to a query: by its id, else by its place among the tables."""
    for element in page.iter():
        if isinstance(element.tag, str) and element.get("id") == identity:
            return element
    tables = list(page.iter("table"))
    return tables[position] if position < len(tables) else None


def links_of(block: HtmlElement) -> Iterator[str]:
    """Where the links of a part of a page lead, and the frames that it offers to other people's pages."""
    for link in block.iter("a"):
        yield urldefrag(link.get("href") or "").url
    for code in block.iter("pre"):
        for frame in re.findall(r'<iframe src="([^"]+)"', code.text_content()):
            parts = urlsplit(unescape(frame))
            yield parts._replace(scheme="", netloc="").geturl()


def shows_of(page: HtmlElement, identity: str) -> list[str]:
    """What the form of a query offers to show its figures as, in the words of addresses."""
    chosen = (select for select in page.iter("select") if select.get("name") == f"show.{identity}")
    return [said for select in chosen for option in select.iter("option") if (said := option.get("value"))]


def read_block(block: HtmlElement, rows: Sequence[TableRow]) -> tuple[list[PageLeak], str]:
    """Leaks of a query's part of a page against its download, and what couldn't be read of it."""
    leaks: list[PageLeak] = []
    trouble: list[str] = []
    for table in block.iter("table"):
        cells = [cell for cell in table.iter("td") if "corner" not in (cell.get("class") or "")]
        if len(cells) != len(rows):
            trouble.append(f"a table of {len(cells)} cells where the download has {len(rows)}")
            continue
        leaks += _table_leaks(cells, rows)
    leaks += _script_leaks(block, rows)
    drawn, unread = read_drawings(block, rows)
    return leaks + drawn, "; ".join(trouble + unread)


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


def _table_leaks(cells: Sequence[HtmlElement], rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    for number, (cell, row) in enumerate(zip(cells, rows, strict=True)):
        if not row.hidden:
            continue
        texts = [cell.text_content()]
        for element in cell.iter():
            texts += [value for name, value in element.attrib.items() if name not in _HARMLESS]
        for text in texts:
            if _DIGIT.search(text):
                value = (numbers_of(text) or [float("nan")])[0]
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
