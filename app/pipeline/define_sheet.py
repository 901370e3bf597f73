"""define: sheets, their parameters and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from app.domain.cube import Texts
from app.domain.errors import UserError
from app.domain.publication import (
    MOST_ON_SHEET,
    CubeDefinition,
    Parameter,
    Position,
    Publication,
    QueryDefinition,
    Sheet,
    View,
)
from app.mdx import Query, parse, parse_expression
from app.mdx import tree as mdx_tree
from app.pipeline.define_contact import read_contact, read_next_release
from app.pipeline.toml import Mistakes, Reader, nearest, read_document

VIEWS = get_args(View)
CHARTS = ("bar", "line", "stacked", "pyramid", "scatter")


def read_folder_title(reader: Reader, languages: tuple[str, ...]) -> tuple[Texts, Texts, int]:
    """Title, notes and order of a folder."""
    title = reader.texts("title", languages, required=True)
    notes = reader.texts("notes", languages)
    order = reader.integer("order", 0)
    reader.done()
    return title, notes, order


def read_sheet(
    reader: Reader, identity: str, languages: tuple[str, ...], cubes: Mapping[str, CubeDefinition]
) -> tuple[int, Sheet]:
    """A sheet and its order; mistakes are noted."""
    title = reader.texts("title", languages, required=True)
    notes = reader.texts("notes", languages)
    order = reader.integer("order", 0)
    parameters = tuple(_parameters(reader, languages, cubes))
    queries = tuple(_queries(reader, languages, cubes, {item.name for item in parameters}))
    if not queries:
        reader.wrong("The sheet has no query.", "Add one as [[query]].")
    contact, next_release = read_contact(reader, languages), read_next_release(reader)
    reader.done()
    return order, Sheet(identity, title, notes, queries, parameters, reader.at(), contact, next_release)


def sheet_of_file(path: Path, publication: Publication) -> Sheet:
    """A sheet that isn't in the publication's folder; its id is the file's name without the suffix.

    Raises
    ------
    UserError
        With every mistake in it.
    """
    mistakes = Mistakes()
    reader = read_document(path, str(path), mistakes)
    if reader is None:
        raise UserError(mistakes.found)
    cubes = {cube.name: cube for cube in publication.cubes}
    _, sheet = read_sheet(reader, path.stem, publication.languages, cubes)
    if mistakes.found:
        raise UserError(mistakes.found)
    return sheet


def _parameters(
    reader: Reader, languages: tuple[str, ...], cubes: Mapping[str, CubeDefinition]
) -> Iterator[Parameter]:
    seen: set[str] = set()
    for table in reader.tables("parameter", most=MOST_ON_SHEET):
        name = table.text("name", required=True) or ""
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            table.wrong(f"{name!r} can't be a parameter's name.", "Use letters, digits and _.", "name")
        if name in seen:
            table.wrong(f"Parameter {name} is defined twice.", "Give each its own name.", "name")
        seen.add(name)
        title = table.texts("title", languages, required=True)
        cube = table.text("cube", required=len(cubes) != 1) or next(iter(cubes), "")
        if cubes and cube and cube not in cubes:
            table.wrong(f"There is no cube {cube}.", nearest(cube, list(cubes)), "cube")
        members = table.text("set", required=True) or ""
        if members:
            at = table.text_at("set")
            _noting(table, lambda text=members, at=at: parse_expression(text, at.file, at.line))
        table.done()
        yield Parameter(name, title, cube, members, table.text_at("set"))


def _queries(
    reader: Reader, languages: tuple[str, ...], cubes: Mapping[str, CubeDefinition], parameters: set[str]
) -> Iterator[QueryDefinition]:
    seen: set[str] = set()
    for number, table in enumerate(reader.tables("query", required=True, most=MOST_ON_SHEET), 1):
        identity = table.text("id") or f"q{number}"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", identity):
            remedy = "Use up to 100 letters, digits, - and _."
            table.wrong(f"{identity!r} can't be a query's id.", remedy, "id")
        if identity in seen:
            table.wrong(f"Query {identity} is defined twice.", "Give each its own id.", "id")
        seen.add(identity)
        title = table.texts("title", languages)
        view = table.choice("show", VIEWS, "table")
        text = table.text("mdx", required=True) or ""
        at = table.text_at("mdx")
        if text:
            _check_mdx(table, text, at, cubes, parameters)
        options = table.take("options", dict, "a table [query.options]") or {}
        _check_options(table, options)
        table.done()
        yield QueryDefinition(identity, title, text, view, at, dict(options))  # type: ignore[arg-type]


def _check_options(table: Reader, options: Mapping[str, Any]) -> None:
    inner = table.table("options") if options else None
    for key, words in (("chart", CHARTS), ("x", ("rows", "columns"))):
        if inner is not None and key in options:
            inner.choice(key, words)
    for key in ("shapes", "shape-key"):
        if inner is not None and key in options:
            inner.text(key)


def _check_mdx(
    table: Reader, text: str, at: Position, cubes: Mapping[str, CubeDefinition], parameters: set[str]
) -> None:
    query = _noting(table, lambda: parse(text, at.file, at.line))
    if not isinstance(query, Query):
        return
    name = query.cube_name
    if cubes and name not in cubes:
        table.wrong(f"There is no cube {name}.", nearest(name, list(cubes)), "mdx")
    for parameter in sorted({node.name for node in _nodes(query) if isinstance(node, mdx_tree.Parameter)}):
        if parameter not in parameters:
            table.wrong(
                f"The sheet has no parameter {parameter}.",
                nearest(parameter, sorted(parameters)) or "Define it as [[parameter]].",
                "mdx",
            )


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from _nodes(item)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            if field.name not in ("source", "at") or isinstance(
                getattr(node, field.name), mdx_tree.SubSelect
            ):
                yield from _nodes(getattr(node, field.name))


def _noting(table: Reader, reading: Any) -> Any:
    """What the reading gives; None with its mistakes noted."""
    try:
        return reading()
    except UserError as error:
        table.mistakes.found.extend(error.mistakes)
        return None
