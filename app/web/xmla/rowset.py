"""Rowsets: rows of named columns, with the schema that says their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.web.xmla.soap import EMPTY, ROWSET, encoded, quoted

Row = Mapping[str, object]

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
#: What of an answer a client may want.
CONTENTS = ("None", "Schema", "Data", "SchemaData")


@dataclass(frozen=True)
class Column:
    """A column of a rowset; ``kind`` is its type of XML Schema without the prefix."""

    name: str
    kind: str = "string"


@dataclass(frozen=True)
class Rowset:
    """A rowset: its columns, and the columns by which its rows may be restricted."""

    name: str
    columns: tuple[Column, ...]
    restrictions: tuple[str, ...] = ()
    description: str = ""


def rowset_xml(columns: Iterable[Column], rows: Iterable[Row], content: str = "SchemaData") -> str:
    """Rows as XML; what a row doesn't have, or has as None, is left out."""
    columns = tuple(columns)
    if content == "None":
        return empty_xml()
    schema = _schema(columns) if content in ("Schema", "SchemaData") else ""
    names = [(column.name, encoded(column.name)) for column in columns]
    parts = [f'<root xmlns="{ROWSET}" {XSI}>{schema}']
    for row in rows if content in ("Data", "SchemaData") else ():
        cells = (_cell(element, row[name]) for name, element in names if row.get(name) is not None)
        parts.append(f"<row>{''.join(cells)}</row>")
    parts.append("</root>")
    return "".join(parts)


def empty_xml() -> str:
    """An answer without anything, to commands that have none."""
    return f'<root xmlns="{EMPTY}"/>'


def _cell(element: str, value: object) -> str:
    if isinstance(value, tuple):
        # Rows within a row: DISCOVER_SCHEMA_ROWSETS tells the restrictions so, each an element.
        parts = ("".join(_cell(name, item) for name, item in inner) for inner in value)
        return "".join(f"<{element}>{part}</{element}>" for part in parts)
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"<{element}>{quoted(value)}</{element}>"


def _schema(columns: tuple[Column, ...]) -> str:
    rows = "".join(
        f'<xsd:element sql:field="{column.name}" name="{column.name}" minOccurs="0"><xsd:complexType>'
        '<xsd:sequence><xsd:any processContents="skip"/></xsd:sequence></xsd:complexType></xsd:element>'
        if column.kind == "xml"
        else f'<xsd:element sql:field="{quoted(column.name)}" name="{encoded(column.name)}" '
        f'type="xsd:{column.kind}" minOccurs="0"/>'
        if column.kind != "restrictions"
        else f'<xsd:element sql:field="{column.name}" name="{column.name}" minOccurs="0" '
        'maxOccurs="unbounded"><xsd:complexType><xsd:sequence><xsd:element name="Name" type="xsd:string"/>'
        '<xsd:element name="Type" type="xsd:string"/></xsd:sequence></xsd:complexType></xsd:element>'
        for column in columns
    )
    return (
        f'<xsd:schema targetNamespace="{ROWSET}" xmlns:sql="urn:schemas-microsoft-com:xml-sql" '
        'elementFormDefault="qualified"><xsd:element name="root"><xsd:complexType>'
        '<xsd:sequence minOccurs="0" maxOccurs="unbounded"><xsd:element name="row" type="row"/>'
        '</xsd:sequence></xsd:complexType></xsd:element><xsd:complexType name="row">'
        f"<xsd:sequence>{rows}</xsd:sequence></xsd:complexType></xsd:schema>"
    )
