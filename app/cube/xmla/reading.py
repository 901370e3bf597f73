"""XMLA answers as values: rowsets, datasets and faults, from XML that isn't trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from app.domain.errors import OperatorError

Row = Mapping[str, str]
#: A whole number as servers write it.
NUMBER = re.compile("[0-9]{1,9}")
_ENCODED = re.compile(r"_x([0-9A-Fa-f]{4})_")
#: Words of a fault that are passed on.
_LONGEST = 500


class FaultError(OperatorError):
    """The server says why it gives no answer."""


@dataclass(frozen=True)
class Member:
    """A member of a position: hierarchy, unique name, caption, level, and the properties it came with."""

    hierarchy: str
    unique_name: str
    caption: str
    level: str
    depth: int
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """What a cell holds; ``value`` is None where it has none, ``text`` is how the server prints it."""

    value: float | str | None
    text: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """A multidimensional answer.

    Attributes
    ----------
    axes : tuple of axes, each of positions, each of members
        Without the slicer.
    slicer : tuple of Member
    cells : mapping of ordinal to Cell
        Cells that aren't there are empty; axis 0 varies fastest.
    """

    axes: tuple[tuple[tuple[Member, ...], ...], ...]
    slicer: tuple[Member, ...]
    cells: Mapping[int, Cell]

    @property
    def size(self) -> int:
        n = 1
        for axis in self.axes:
            n *= len(axis)
        return n


@dataclass(frozen=True)
class Message:
    """What came back: the answer's root element (None where there is none), and the session named with it."""

    root: etree._Element | None
    session: str


def read_message(body: bytes) -> Message:
    """A SOAP message.

    Raises
    ------
    FaultError
        It is a fault.
    OperatorError
        It is no SOAP message, or has a document type.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        envelope = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise OperatorError("The XMLA server's answer is no well-formed XML.") from None
    if envelope.getroottree().docinfo.internalDTD is not None:
        raise OperatorError("The XMLA server's answer has a document type, which none needs.")
    if name_of(envelope) != "Envelope":
        raise OperatorError("The XMLA server's answer is no SOAP message.")
    content = child(envelope, "Body")
    fault = child(content, "Fault")
    if fault is not None:
        raise FaultError(_fault(fault))
    session = child(child(envelope, "Header"), "Session")
    found = session.get("SessionId", "") if session is not None else ""
    returned = child(next(iter(content), None) if content is not None else None, "return")
    root = child(returned, "root")
    for problem in root.iter() if root is not None else ():
        # A rowset or dataset that broke off says so in its midst ([MS-SSAS] 2.2.4.1).
        if name_of(problem) == "Error" and "exception" in str(etree.QName(problem).namespace or ""):
            raise FaultError(_said(problem.get("Description", "")))
    return Message(root, str(found))


def _fault(fault: etree._Element) -> str:
    detail = child(fault, "detail")
    described = [
        item.get("Description") or text_of(child(item, "desc"))
        for item in (detail.iter() if detail is not None else ())
        if name_of(item).lower() == "error"
    ]
    return _said(next((text for text in described if text), "") or text_of(child(fault, "faultstring")))


def _said(text: str) -> str:
    plain = " ".join(text.split())[:_LONGEST]
    return f"The XMLA server says: {plain or 'nothing'}"


def name_of(element: etree._Element) -> str:
    """An element's name without its namespace; empty for comments."""
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    """The first child of a name."""
    return next((item for item in element if name_of(item) == name), None) if element is not None else None


def _items(element: etree._Element | None) -> list[etree._Element]:
    return list(element) if element is not None else []


def text_of(element: etree._Element | None) -> str:
    """All text within an element."""
    return "".join(element.itertext()).strip() if element is not None else ""


def decoded(name: str) -> str:
    """An element's name as a column's: ``_x0020_`` is a space."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), name)


def read_rows(root: etree._Element | None) -> tuple[Row, ...]:
    """Rows of a rowset; a column that holds elements is left out."""
    if root is None:
        return ()
    return tuple(
        {decoded(name_of(cell)): text_of(cell) for cell in row if not len(cell)}
        for row in root
        if name_of(row) == "row"
    )


def read_dataset(root: etree._Element | None) -> Dataset:
    """A multidimensional dataset in tuple form.

    Raises
    ------
    OperatorError
        It is none.
    """
    info = child(root, "OlapInfo")
    if info is None:
        raise OperatorError("The XMLA server gave no multidimensional dataset.")
    axes: list[tuple[tuple[Member, ...], ...]] = []
    slicer: tuple[Member, ...] = ()
    for axis in _items(child(root, "Axes")):
        positions = tuple(_positions(axis))
        if axis.get("name") == "SlicerAxis":
            slicer = positions[0] if positions else ()
        else:
            axes.append(positions)
    cells = dict(_cells(root))
    dataset = Dataset(tuple(axes), slicer, cells)
    if any(not 0 <= ordinal < dataset.size for ordinal in cells):
        raise OperatorError("The XMLA server gave a cell beyond its axes.")
    return dataset


def _positions(axis: etree._Element) -> Iterator[tuple[Member, ...]]:
    tuples = child(axis, "Tuples")
    if tuples is None and child(axis, "CrossProduct") is not None:
        raise OperatorError("The XMLA server gave an axis in cluster form, though tuples were asked for.")
    for position in tuples if tuples is not None else ():
        if name_of(position) == "Tuple":
            yield tuple(_member(member) for member in position if name_of(member) == "Member")


def _member(member: etree._Element) -> Member:
    found = {name_of(item): text_of(item) for item in member}
    depth = found.pop("LNum", "0")
    return Member(
        member.get("Hierarchy", ""),
        found.pop("UName", ""),
        found.pop("Caption", ""),
        found.pop("LName", ""),
        int(depth) if NUMBER.fullmatch(depth) else 0,
        {decoded(name): value for name, value in found.items()},
    )


def whole(text: str) -> int:
    """A whole number of an answer.

    Raises
    ------
    OperatorError
        If it is none.
    """
    if not NUMBER.fullmatch(text):
        raise OperatorError("The XMLA server gave something else where a number belongs.")
    return int(text)


def _cells(root: etree._Element | None) -> Iterator[tuple[int, Cell]]:
    for cell in _items(child(root, "CellData")):
        if name_of(cell) != "Cell":
            continue
        ordinal = cell.get("CellOrdinal", "")
        if not ordinal:
            raise OperatorError("The XMLA server gave a cell without its number.")
        value = child(cell, "Value")
        if value is not None and child(value, "Error") is not None:
            told = child(value, "Error")
            assert told is not None
            raise FaultError(_said(text_of(child(told, "Description")) or told.get("Description", "")))
        yield whole(ordinal), Cell(_value(value), text_of(child(cell, "FmtValue")))


def _value(value: etree._Element | None) -> float | str | None:
    if value is None or value.get("{http://www.w3.org/2001/XMLSchema-instance}nil") in ("true", "1"):
        return None
    kind = value.get("{http://www.w3.org/2001/XMLSchema-instance}type", "")
    text = text_of(value)
    if kind.rpartition(":")[2] in ("string", "dateTime") or not text:
        return text
    if text in ("true", "false"):
        return float(text == "true")
    try:
        return float(text)
    except ValueError:
        return text
