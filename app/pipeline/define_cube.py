"""define: cubes, with their files' columns checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from app.domain.cube import Cuts, Texts
from app.domain.errors import UserError
from app.domain.numbers import decimals_format, spelled_out
from app.domain.publication import (
    CalculatedDefinition,
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    NamedSetDefinition,
    Position,
    RemoteDefinition,
)
from app.mdx import parse_expression
from app.pipeline.define_remote import DATABASES, FACTS, REMOTE, read_remote
from app.pipeline.sources import columns_of
from app.pipeline.toml import Reader, nearest

_NO_FACTS = FactsDefinition(None, None, None, None, None, None, None)
#: Letters that a database has room for.
LONGEST_NAME = 200
PERIODS = ("year", "quarter", "month", "week")
HIDDEN = ("blank", "parent")
AGGREGATORS = ("sum", "count", "distinct-count", "min", "max", "avg", "median")


@dataclass(frozen=True)
class Columns:
    """Columns of a file; ``names`` None when they aren't known (a database)."""

    file: str
    names: tuple[str, ...] | None

    def check(self, reader: Reader, key: str, column: str | None) -> None:
        """Note a column that the file doesn't have."""
        if column is not None and self.names is not None and column not in self.names:
            reader.wrong(f"File {self.file} has no column {column}.", nearest(column, self.names), key)


def read_cube(reader: Reader, folder: Path, languages: tuple[str, ...]) -> CubeDefinition | None:
    """A cube; mistakes are noted. None when it has not even a name."""
    name = reader.text("name", required=True)
    if name is not None and "/" in name:
        reader.wrong("A cube's name becomes an address and can't hold a slash.", "Rename it.", "name")
    if name is not None and len(name) > LONGEST_NAME:
        reader.wrong(f"A cube's name has at most {LONGEST_NAME} letters.", "Rename it.", "name")
    captions = reader.texts("caption", languages)
    engine = reader.choice("engine", (FACTS, *DATABASES, *REMOTE), FACTS)
    remote: RemoteDefinition | None = None
    # What levels say of measures is checked as they are read.
    mine = reader.values.get("measure")
    sums = tuple(
        str(item.get("name"))
        for item in (mine if isinstance(mine, list) else ())
        if isinstance(item, dict) and item.get("aggregator") == "sum"
    )
    facts, columns, dimensions = _NO_FACTS, Columns("", None), tuple[DimensionDefinition, ...]()
    if engine not in REMOTE:
        facts, columns = _facts(reader, folder, engine)
        dimensions = tuple(_dimensions(reader, folder, languages, columns, sums))
        if not dimensions and "dimension" in reader.values:
            reader.wrong("The cube has no dimension.", "Add one as [[dimension]].")
    else:
        remote = read_remote(reader, engine, name or "")
    measures = tuple(_measures(reader, languages, None if remote else columns))
    if not measures and reader.values.get("measure") == []:
        reader.wrong("The cube has no measure.", "Add one as [[measure]].")
    calculated = tuple(_calculated(reader, languages))
    named_sets = tuple(_named_sets(reader))
    formerly = _formerly(reader, ())
    reader.done()
    if name is None:
        return None
    return CubeDefinition(
        name,
        captions or {languages[0]: name},
        facts,
        dimensions,
        measures,
        calculated,
        reader.at("name"),
        named_sets,
        remote,
        formerly,
    )


def _formerly(reader: Reader, names: Iterable[str]) -> tuple[str, ...]:
    """Names that something had when it was published; none that something else has now."""
    found = reader.strings("formerly")
    for name in found:
        if name in names:
            reader.wrong(
                f"There is a {name} today.", "Give formerly names that nothing has any more.", "formerly"
            )
    return found


def _names(reader: Reader, key: str) -> list[str]:
    """The names of all tables of a list."""
    listed = reader.values.get(key)
    return (
        [str(item.get("name")) for item in listed if isinstance(item, dict)]
        if isinstance(listed, list)
        else []
    )


def _facts(reader: Reader, folder: Path, engine: str) -> tuple[FactsDefinition, Columns]:
    table = reader.table("facts", required=True)
    if table is None:
        return _NO_FACTS, Columns("", None)
    file, url = table.text("file"), table.text("url")
    sql, name = table.text("sql"), table.text("table")
    columns = Columns("", None)
    if (file is None) == (url is None):
        table.wrong("Facts come from a file or from a database, one of the two.", "Give file or url.")
    if engine in DATABASES and file is not None:
        remedy = "Give url, or leave engine out."
        table.wrong(f"The {engine} engine reads the facts where they are, not from a file.", remedy, "file")
    if url is not None and (sql is None) == (name is None):
        table.wrong("A database needs to be told what to read.", "Give sql or table, one of the two.", "url")
    if url is None and (sql or name):
        table.wrong("Keys sql and table need a url.", "Give url, or leave them out.")
    if file is not None:
        file, columns = _file(table, "file", file, folder)
    mark = "`" if engine == "spark" else '"'
    quoted = None if name is None else mark + name.replace(mark, mark * 2) + mark
    roles = {role: table.text(role) for role in ("respondent", "holding", "weight", "request")}
    for role, column in roles.items():
        columns.check(table, role, column)
    table.done()
    facts = FactsDefinition(
        file,
        url,
        sql or (quoted and f"select * from {quoted}"),
        roles["respondent"],
        roles["holding"],
        roles["weight"],
        roles["request"],
        engine,
    )
    return facts, columns


def _file(reader: Reader, key: str, file: str, folder: Path) -> tuple[str, Columns]:
    path = Path(os.path.abspath(folder / file))
    try:
        return str(path), Columns(file, columns_of(path))
    except UserError as error:
        mistake = error.mistakes[0]
        reader.wrong(mistake.cause, mistake.remedy or f"Paths count from {Path(reader.file).parent}/.", key)
        return str(path), Columns(file, None)


def _dimensions(
    reader: Reader, folder: Path, languages: tuple[str, ...], facts: Columns, sums: tuple[str, ...]
) -> Iterator[DimensionDefinition]:
    seen: set[str] = set()
    for table in reader.tables("dimension", required=True):
        name = table.text("name", required=True) or ""
        if name in seen or name == "Measures":
            table.wrong(f"The cube has a dimension {name} already.", "Give it another name.", "name")
        seen.add(name)
        captions = table.texts("caption", languages) or {languages[0]: name}
        file, key = table.text("table"), table.text("key")
        fact = table.text("fact")
        columns = facts
        sql = table.text("sql")
        if sql is not None and facts.names is not None:
            table.wrong(
                "Key sql reads the database of the facts, but these are a file.", "Give table.", "sql"
            )
        if sql is not None and file is not None:
            table.wrong(
                "A dimension's table is a file or a query, one of the two.", "Give table or sql.", "sql"
            )
        if file is not None or sql is not None:
            columns = Columns("", None)
            if file is not None:
                file, columns = _file(table, "table", file, folder)
            if key is None:
                table.wrong("A dimension table needs the column that joins it.", "Give key.")
            columns.check(table, "key", key)
            facts.check(table, "fact" if fact else "key", fact or key)
        elif key is not None or fact is not None:
            table.wrong("Keys key and fact join a dimension table.", "Give table, or leave them out.")
        lists_unknown = table.flag("unknown", True)
        formerly = _formerly(table, _names(reader, "dimension"))
        hierarchies = tuple(_hierarchies(table, name, captions, languages, columns, sums))
        if not hierarchies:
            table.wrong(f"Dimension {name} has no hierarchy.", "Add one as [[dimension.hierarchy]].")
        table.done()
        yield DimensionDefinition(
            name, captions, hierarchies, file, key, fact or key, sql, lists_unknown, formerly
        )


def _hierarchies(
    reader: Reader,
    dimension: str,
    called: Texts,
    languages: tuple[str, ...],
    columns: Columns,
    sums: tuple[str, ...],
) -> Iterator[HierarchyDefinition]:
    seen: set[str] = set()
    for table in reader.tables("hierarchy"):
        name = table.text("name") or dimension
        if name in seen:
            table.wrong(f"Hierarchy {name} is defined twice.", "Give each its own name.", "name")
        seen.add(name)
        captions = table.texts("caption", languages) or (
            called if name == dimension else {languages[0]: name}
        )
        everything = table.texts("all", languages) if "all" in table.values else None
        all_name, default = table.text("all-name"), table.text("default")
        if all_name is not None and everything is None:
            table.wrong("Key all-name goes with all.", "Give all, or leave it out.", "all-name")
        time = table.flag("time", False)
        formerly = _formerly(table, _names(reader, "hierarchy"))
        levels = tuple(_levels(table, languages, columns, sums))
        if not levels:
            table.wrong(f"Hierarchy {name} has no level.", "Add one as [[dimension.hierarchy.level]].")
        if len(levels) > 1 and any(level.parent is not None for level in levels):
            cause = f"Hierarchy {name} has a level with a parent column and other levels."
            table.wrong(cause, "A parent-child hierarchy has that level alone.")
        table.done()
        yield HierarchyDefinition(name, captions, everything, levels, default, time, all_name, formerly)


def _levels(
    reader: Reader, languages: tuple[str, ...], columns: Columns, sums: tuple[str, ...]
) -> Iterator[LevelDefinition]:
    seen: set[str] = set()
    for table in reader.tables("level"):
        name = table.text("name", required=True) or ""
        if name in seen:
            table.wrong(f"Level {name} is defined twice.", "Give each its own name.", "name")
        seen.add(name)
        captions = table.texts("caption", languages) or {languages[0]: name}
        key = table.text("key", required=True) or ""
        label, order = table.texts("label", languages), table.text("order")
        properties: Mapping[str, str] = {}
        inner = table.table("properties")
        if inner is not None:
            properties = {item: inner.text(item) or "" for item in inner.values}
            for item, column in properties.items():
                columns.check(inner, item, column)
        columns.check(table, "key", key or None)
        columns.check(table, "order", order)
        parent, null_parent = table.text("parent"), table.text("null-parent")
        columns.check(table, "parent", parent)
        if null_parent is not None and parent is None:
            table.wrong("Key null-parent goes with parent.", "Give parent, or leave it out.", "null-parent")
        for column in label.values():
            columns.check(table, "label", column)
        unique = table.flag("unique", True)
        member_name = table.text("member-name")
        columns.check(table, "member-name", member_name)
        period = table.choice("period", PERIODS, "") if "period" in table.values else ""
        hidden = table.choice("hidden", HIDDEN, "") if "hidden" in table.values else ""
        bands = _bands(table, sums)
        formerly = _formerly(table, _names(reader, "level"))
        codes = table.table("recoded")
        recoded = {} if codes is None else {code: codes.text(code) or "" for code in codes.values}
        if len(set(recoded.values())) < len(recoded):
            table.wrong("Two keys became one.", "Give recoded another key for each.", "recoded")
        table.done()
        yield LevelDefinition(
            name,
            captions,
            key,
            label,
            order,
            properties,
            unique,
            parent,
            null_parent,
            member_name=member_name,
            period=period,
            hidden=hidden,
            bands=bands,
            formerly=formerly,
            recoded=recoded,
        )


def _bands(reader: Reader, sums: tuple[str, ...]) -> Cuts | None:
    """Which of the summed measures a level's members divide, and where."""
    table = reader.table("bands")
    if table is None:
        return None
    measure = table.text("measure", required=True) or ""
    if measure and measure not in sums:
        table.wrong(f"Measure {measure} is no sum of this cube.", nearest(measure, sums), "measure")
    cuts = table.numbers("cuts", required=True)
    if any(a >= b for a, b in pairwise(cuts)):
        table.wrong("The cuts of bands rise.", "Give them in the order of the members.", "cuts")
    table.done()
    return Cuts(measure, cuts)


def _measures(
    reader: Reader, languages: tuple[str, ...], facts: Columns | None
) -> Iterator[MeasureDefinition]:
    """Measures of columns of the facts, or (None) of another server, which knows them by name."""
    seen: set[str] = set()
    same: dict[tuple[str | None, str | None], str] = {}
    adding: set[str] = set()
    wholes: list[tuple[Reader, str, str]] = []
    for table in reader.tables("measure", required=True):
        name = table.text("name", required=True) or ""
        if name in seen:
            table.wrong(f"Measure {name} is defined twice.", "Give each its own name.", "name")
        seen.add(name)
        captions: Texts = table.texts("caption", languages) or {languages[0]: name}
        aggregator = table.choice("aggregator", AGGREGATORS)
        if aggregator == "avg":
            table.wrong(
                "An average can't be protected as a measure of its own.",
                "Write it as a [[calculated]] member: the sum divided by the count.",
                "aggregator",
            )
        column = table.text("column") if facts is not None else None
        if facts is not None and column is None and aggregator != "count":
            table.wrong(f"Measure {name} needs a column.", "Give column.")
        twin = same.setdefault((aggregator, None if aggregator == "count" else column), name)
        if facts is not None and twin != name:
            table.wrong(
                f"Measure {name} has the numbers of measure {twin}, but would be protected apart from it.",
                "Write it as a [[calculated]] member with a format of its own.",
            )
        if facts is not None:
            facts.check(table, "column", column)
        unit = table.texts("unit", languages)
        decimals = _decimals(table)
        form = spelled_out(table.text("format") or decimals_format(decimals or 0), languages[0])
        nonnegative = table.flag("nonnegative", True)
        whole = table.text("of_which")
        formerly = _formerly(table, _names(reader, "measure"))
        if aggregator in ("sum", "count"):
            adding.add(name)
        if whole is not None:
            wholes.append((table, name, whole))
        table.done()
        yield MeasureDefinition(
            name,
            captions,
            aggregator,
            column,
            unit,
            form,
            decimals or 0,
            nonnegative,
            (whole,) if whole else (),
            formerly,
        )
    for table, name, whole in wholes:
        if whole not in adding or name not in adding or whole == name:
            table.wrong(
                f"Measure {name} can't be part of {whole}.",
                "Give of_which another measure of this cube; both must be sums or counts.",
                "of_which",
            )


def _calculated(reader: Reader, languages: tuple[str, ...]) -> Iterator[CalculatedDefinition]:
    for table in reader.tables("calculated"):
        on = table.text("on") or "[Measures]"
        name = table.text("name", required=True) or ""
        captions = table.texts("caption", languages) or {languages[0]: name}
        formula, at = _formula(table)
        order = table.integer("solve-order", 0) if "solve-order" in table.values else None
        form, unit = table.text("format"), table.texts("unit", languages)
        decimals = _decimals(table)
        table.done()
        yield CalculatedDefinition(on, name, captions, formula, form, decimals, unit, at, order)


def _named_sets(reader: Reader) -> Iterator[NamedSetDefinition]:
    seen: set[str] = set()
    for table in reader.tables("named-set"):
        name = table.text("name", required=True) or ""
        if name.lower() in seen:
            table.wrong(f"Named set {name} is defined twice.", "Give each its own name.", "name")
        seen.add(name.lower())
        formula, at = _formula(table)
        table.done()
        yield NamedSetDefinition(name, formula, at)


def _formula(table: Reader) -> tuple[str, Position]:
    """MDX under the key ``formula``, once it has been parsed, and where it starts."""
    formula = table.text("formula", required=True) or ""
    at = table.text_at("formula")
    if formula:
        try:
            parse_expression(formula, at.file, at.line)
        except UserError as error:
            table.mistakes.found.extend(error.mistakes)
    return formula, at


def _decimals(table: Reader) -> int | None:
    if "decimals" not in table.values:
        return None
    decimals = table.integer("decimals", 0)
    if not 0 <= decimals <= 12:
        table.wrong("Key decimals is out of range.", "Give a whole number from 0 to 12.", "decimals")
        return 0
    return decimals
