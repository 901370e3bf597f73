"""The relations of a Mondrian schema as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lxml import etree

_RELATIONS = ("Table", "View", "InlineTable", "Join")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Relation:
    """What stands after FROM, and the alias of its first table."""

    sql: str
    alias: str


@dataclass
class Select:
    """A query that is put together column by column."""

    relation: Relation
    columns: dict[str, str] = field(default_factory=dict)
    joined: list[tuple[Relation, str]] = field(default_factory=list)

    def add(self, expression: str, name: str) -> str:
        """Select an expression; the name that it got: the same one for the same expression and name."""
        found = name
        number = 2
        while self.columns.get(found, expression) != expression:
            found = f"{name} {number}"
            number += 1
        self.columns[found] = expression
        return found

    def holds(self, relation: Relation) -> bool:
        return relation == self.relation or any(relation == other for other, _ in self.joined)

    def join(self, relation: Relation, condition: str) -> None:
        self.joined.append((relation, condition))

    def text(self, columns: Sequence[str] | None = None) -> str:
        """The query; columns that it doesn't have are null."""
        shown = [
            f"{self.columns.get(name, 'null')} as {quoted(name)}" for name in (columns or list(self.columns))
        ]
        joins = "".join(f"\nleft join {other.sql} on {condition}" for other, condition in self.joined)
        return f"select {', '.join(shown) or '1 as one'}\nfrom {self.relation.sql}{joins}"

    @staticmethod
    def union(parts: Sequence[Select]) -> str:
        """Several queries one below the other."""
        columns = list(dict.fromkeys(name for part in parts for name in part.columns))
        return "\nunion all\n".join(part.text(columns) for part in parts)


def relation_of(element: etree._Element) -> Relation | None:
    """The relation that stands in an element, None where there is none."""
    found = [child for child in element if child.tag in _RELATIONS]
    return _relation(found[0]) if found else None


def sql_child(element: etree._Element, tag: str) -> str | None:
    """SQL of an expression's element: of the generic dialect where there is one, else of the first."""
    options = element.findall(f"{tag}/SQL" if tag else "SQL")
    chosen = next((item for item in options if item.get("dialect", "generic") == "generic"), None)
    if chosen is None and options:
        chosen = options[0]
    return None if chosen is None else (chosen.text or "").strip()


def _relation(element: etree._Element) -> Relation:
    match element.tag:
        case "Table":
            name = element.get("name", "")
            alias = element.get("alias") or name
            table = quoted(name)
            if element.get("schema"):
                table = f"{quoted(element.get('schema', ''))}.{table}"
            condition = sql_child(element, "")
            if condition:
                table = f"(select * from {table} where {condition})"
            return Relation(f"{table} as {quoted(alias)}", alias)
        case "View":
            alias = element.get("alias", "view")
            return Relation(f"({sql_child(element, '')}) as {quoted(alias)}", alias)
        case "InlineTable":
            alias = element.get("alias", "inline")
            return Relation(f"({_rows(element)}) as {quoted(alias)}", alias)
        case _:
            left, right = (_relation(child) for child in element if child.tag in _RELATIONS)
            here = f"{quoted(element.get('leftAlias') or left.alias)}.{quoted(element.get('leftKey', ''))}"
            there = (
                f"{quoted(element.get('rightAlias') or right.alias)}.{quoted(element.get('rightKey', ''))}"
            )
            other = f"({right.sql})" if " join " in right.sql else right.sql
            return Relation(f"{left.sql} left join {other} on {here} = {there}", left.alias)


def _rows(element: etree._Element) -> str:
    kinds = {
        item.get("name", ""): item.get("type", "String") for item in element.findall("ColumnDefs/ColumnDef")
    }
    selects: list[str] = []
    for row in element.findall("Rows/Row"):
        values = {item.get("column", ""): item.text for item in row.findall("Value")}
        cells = (f"{_literal(values.get(name), kind)} as {quoted(name)}" for name, kind in kinds.items())
        selects.append(f"select {', '.join(cells)}")
    if not selects:
        nothing = ", ".join(f"null as {quoted(name)}" for name in kinds)
        return f"select {nothing} where 1 = 0"
    return " union all ".join(selects)


def _literal(value: str | None, kind: str) -> str:
    if value is None:
        return "null"
    if kind in ("Numeric", "Integer", "Boolean"):
        return value.strip()
    # A colon before a word would stand for a parameter of the query.
    escaped = value.strip().replace("'", "''").replace(":", "\\:")
    return f"'{escaped}'"
