"""A sheet's file as a form: read from its text, and written back without losing comments or unknown keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from app.domain.errors import Mistake, UserError
from app.domain.publication import MOST_ON_SHEET

VIEWS = ("table", "chart", "map")
#: Letters of a text that is shown as a form; the reader that keeps comments takes seconds for more.
LONGEST_FORM = 100_000
CHARTS = ("", "bar", "line", "stacked", "pyramid", "scatter")


@dataclass(frozen=True)
class QueryForm:
    """A query; ``title`` by language."""

    id: str
    title: Mapping[str, str]
    show: str
    chart: str
    mdx: str


@dataclass(frozen=True)
class ParameterForm:
    """A parameter; ``title`` by language."""

    name: str
    title: Mapping[str, str]
    cube: str
    set: str


@dataclass(frozen=True)
class SheetForm:
    """What a sheet's form shows; ``order`` empty where the file says none."""

    title: Mapping[str, str]
    notes: Mapping[str, str]
    order: str
    parameters: tuple[ParameterForm, ...]
    queries: tuple[QueryForm, ...]


def read_form(text: str, path: str, languages: Sequence[str]) -> SheetForm:
    """The form of a sheet's text.

    Raises
    ------
    UserError
        If it isn't TOML, or a part has a shape that the form can't show; it can be edited as text then.
    """
    document = _parsed(text, path)
    return SheetForm(
        title=_texts(document.get("title"), languages),
        notes=_texts(document.get("notes"), languages),
        order=str(document.get("order", "")),
        parameters=tuple(
            ParameterForm(
                str(table.get("name", "")),
                _texts(table.get("title"), languages),
                str(table.get("cube", "")),
                str(table.get("set", "")),
            )
            for table in _tables(document, "parameter", path)
        ),
        queries=tuple(
            QueryForm(
                str(table.get("id", "")),
                _texts(table.get("title"), languages),
                str(table.get("show", "table")),
                _chart(table),
                str(table.get("mdx", "")).strip("\n"),
            )
            for table in _tables(document, "query", path)
        ),
    )


def write_form(text: str, path: str, form: SheetForm, languages: Sequence[str]) -> str:
    """The sheet's text with what the form says; the rest of it stays as it was written.

    Raises
    ------
    UserError
        If ``text`` isn't TOML.
    """
    if read_form(text, path, languages) == form:
        return text
    document = _parsed(text, path)
    _put_texts(document, "title", form.title, languages)
    _put_texts(document, "notes", form.notes, languages)
    if form.order.strip():
        try:
            document["order"] = int(form.order)
        except ValueError:
            raise UserError(Mistake(path, 0, 0, "The order isn't a whole number.")) from None
    elif "order" in document:
        del document["order"]
    old = _tables(document, "parameter", path)
    _put_tables(
        document, "parameter", [_parameter(item, old, n, languages) for n, item in enumerate(form.parameters)]
    )
    old = _tables(document, "query", path)
    _put_tables(document, "query", [_query(item, old, n, languages) for n, item in enumerate(form.queries)])
    return tomlkit.dumps(document)


def new_sheet(title: str, language: str, cube: str) -> str:
    """The text of a sheet to begin with."""
    document = tomlkit.document()
    titles = tomlkit.inline_table()
    titles[language] = title
    document["title"] = titles
    query = tomlkit.table()
    query["id"] = "table"
    query["show"] = "table"
    query["mdx"] = tomlkit.string(
        f"\nSELECT {{[Measures].Members}} ON COLUMNS\nFROM [{cube.replace(']', ']]')}]\n", multiline=True
    )
    queries = tomlkit.aot()
    queries.append(query)
    document["query"] = queries
    return tomlkit.dumps(document)


def new_publication(title: str, publisher: str, languages: Sequence[str]) -> str:
    """The text of a publication's first file."""
    if not title or not languages:
        raise UserError("A publication needs a title and a language.")
    document = tomlkit.document()
    document["languages"] = list(languages)
    for key, text in (("title", title), ("publisher", publisher)):
        if text:
            texts = tomlkit.inline_table()
            texts[languages[0]] = text
            document[key] = texts
    rules = tomlkit.table()
    rules["zeros"] = "show"
    rules["insiders"] = True
    document["confidentiality"] = rules
    return tomlkit.dumps(document)


def new_folder(title: str, language: str) -> str:
    """The text of a folder's own file."""
    document = tomlkit.document()
    titles = tomlkit.inline_table()
    titles[language] = title
    document["title"] = titles
    return tomlkit.dumps(document)


def _parsed(text: str, path: str) -> tomlkit.TOMLDocument:
    if len(text) > LONGEST_FORM:
        raise UserError(Mistake(path, 0, 0, "The file is too long for a form.", "Edit the sheet as text."))
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        line = int(getattr(error, "line", 0) or 0)
        column = int(getattr(error, "col", 0) or 0)
        cause = f"This isn't TOML: {str(error).partition(' at line')[0]}."
        raise UserError(Mistake(path, line, column, cause)) from None
    except (RecursionError, ValueError):
        raise UserError(Mistake(path, 0, 0, "This isn't TOML.")) from None


def _texts(value: Any, languages: Sequence[str]) -> dict[str, str]:
    if isinstance(value, str):
        return {languages[0]: str(value).strip("\n")}
    if isinstance(value, Mapping):
        return {code: str(value[code]).strip("\n") for code in languages if isinstance(value.get(code), str)}
    return {}


def _tables(document: Any, key: str, path: str) -> list[Any]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise UserError(Mistake(path, 0, 0, f"Key {key} isn't a list of tables.", "Edit the sheet as text."))
    if len(found) > MOST_ON_SHEET:
        # The form would send fewer than there are, and the others would be lost.
        raise UserError(Mistake(path, 0, 0, "The file is too long for a form.", "Edit the sheet as text."))
    return list(found)


def _chart(table: Any) -> str:
    options = table.get("options")
    return str(options.get("chart", "")) if isinstance(options, Mapping) else ""


def _put_texts(table: Any, key: str, texts: Mapping[str, str], languages: Sequence[str]) -> None:
    if _texts(table.get(key), languages) == {code: text for code, text in texts.items() if text.strip()}:
        return
    kept = {code: text for code, text in texts.items() if text.strip()}
    if not kept:
        if key in table:
            del table[key]
        return
    there = table.get(key)
    if not isinstance(there, Mapping) or isinstance(there, str):
        there = tomlkit.inline_table() if all("\n" not in text for text in kept.values()) else tomlkit.table()
        table[key] = there
        there = table[key]
    for code in languages:
        if code in kept:
            there[code] = _string(kept[code])
        elif code in there:
            del there[code]


def _string(text: str) -> Any:
    if "\n" in text:
        return tomlkit.string(f"\n{text}\n", multiline=True)
    return tomlkit.string(text)


def _put_tables(document: Any, key: str, tables: list[Table]) -> None:
    there = document.get(key)
    old = list(there) if isinstance(there, AoT) else []
    if isinstance(there, AoT) and all(a is b for a, b in zip(old, tables, strict=False)):
        # Those that were there stay where they are, with the comments around them.
        for table in tables[len(old) :]:
            there.append(table)
        if len(tables) >= len(old):
            return
    found: AoT = tomlkit.aot()
    for table in tables:
        found.append(table)
    if tables:
        document[key] = found
    elif key in document:
        del document[key]


def _same(name: str, key: str, old: Sequence[Any], number: int) -> Table:
    """The table that was there under the same name, else at the same place, else a new one."""
    for table in old:
        if table.get(key) == name and isinstance(table, Table):
            return table
    there = old[number] if number < len(old) else None
    if isinstance(there, Table) and not there.get(key):
        return there
    return tomlkit.table()


def _parameter(item: ParameterForm, old: Sequence[Any], number: int, languages: Sequence[str]) -> Table:
    table = _same(item.name, "name", old, number)
    _put(table, "name", item.name)
    _put_texts(table, "title", item.title, languages)
    _put(table, "cube", item.cube)
    _put(table, "set", item.set)
    return table


def _query(item: QueryForm, old: Sequence[Any], number: int, languages: Sequence[str]) -> Table:
    table = _same(item.id, "id", old, number)
    _put(table, "id", item.id)
    _put_texts(table, "title", item.title, languages)
    _put(table, "show", item.show)
    if str(table.get("mdx", "")).strip("\n") != item.mdx.strip("\n"):
        table["mdx"] = tomlkit.string(f"\n{item.mdx.strip(chr(10))}\n", multiline=True)
    if _chart(table) != item.chart:
        if "options" not in table:
            table["options"] = tomlkit.inline_table()
        options: Any = table["options"]
        if item.chart:
            options["chart"] = item.chart
        elif "chart" in options:
            del options["chart"]
        if not options:
            del table["options"]
    return table


def _put(table: Any, key: str, value: str) -> None:
    if not value:
        if key in table:
            del table[key]
    elif table.get(key) != value:
        table[key] = value
