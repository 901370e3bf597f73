"""From a cube's definition and its files to hierarchies, encoded facts and an open server."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.cube.cuboids import Cuboids, Scanner
from app.cube.facts import Ancestors, Facts, MeasureColumn
from app.cube.hierarchies import build_hierarchy
from app.cube.numbers import FixedPoint, encode, encode_integers
from app.cube.profiles import Profiler
from app.cube.server import Server
from app.cube.sources import FileSource, file_digest, file_source, read_database
from app.domain.cube import Cube, Hierarchy, IntArray, Measure
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition, DimensionDefinition, MeasureDefinition
from app.mdx import quote

_AGGREGATORS = ("sum", "count", "distinct-count", "min", "max", "avg", "median")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_WIDE = ("HUGEINT", "UBIGINT", "UHUGEINT")
NO = "('', '0', 'false', 'f', 'no', 'n')"
_SHOWN = 5


class Engine(Scanner, Protocol):
    """The SQL engine that data are loaded with; its dialect is DuckDB's."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]: ...

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None: ...

    def describe(self, relation: str) -> dict[str, str]: ...

    def read_file(self, relation: str, source: FileSource) -> None: ...

    def keep_table(self, name: str, table: pa.Table) -> None: ...

    def keep_facts(self, cube: Cube, facts: Facts, ancestors: Ancestors) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Dimension:
    """A dimension's distinct rows in table ``dim``; ``join`` finds the row of each fact."""

    definition: DimensionDefinition
    hierarchies: tuple[Hierarchy, ...]
    members: tuple[IntArray, ...]
    join: str
    number: str


class Loader:
    """Reads one cube into an engine, collecting every mistake on the way."""

    def __init__(self, engine: Engine, definition: CubeDefinition) -> None:
        self.engine = engine
        self.definition = definition
        self.mistakes: list[Mistake] = []
        self.language = next(iter(definition.captions), "en")
        self.digests: list[str] = []
        self.facts_name = ""
        self.types: dict[str, str] = {}
        self.n = 0
        #: What counts the facts behind rows of ``raw``.
        self.tally = "count(*)"

    def wrong(self, cause: str, remedy: str = "") -> None:
        at = self.definition.at
        self.mistakes.append(Mistake(at.file, at.line, at.column, cause, remedy))

    def load(self) -> Server:
        self.open_facts()
        self.check_columns()
        self.stop_if_wrong()
        dimensions = self.dimensions()
        cube = self.cube(dimensions)
        facts = self.facts(dimensions)
        self.stop_if_wrong()
        ancestors = Ancestors(cube)
        self.engine.keep_facts(cube, facts, ancestors)
        self.engine.run("DROP TABLE IF EXISTS raw")
        scales = [column.scale for column in facts.measures]
        cuboids = Cuboids(cube, scales, facts.size, ancestors, self.engine)
        profiler = Profiler(cube, facts, cuboids)
        return Server(self.definition, cube, facts, profiler, cuboids, self.digest(), self.engine.close)

    def dimensions(self) -> list[Dimension]:
        found = [
            dimension
            for number, definition in enumerate(self.definition.dimensions)
            if (dimension := self.dimension(number, definition)) is not None
        ]
        self.stop_if_wrong()
        return found

    def cube(self, dimensions: Sequence[Dimension]) -> Cube:
        return Cube(
            self.definition.name,
            self.definition.captions,
            tuple(hierarchy for dimension in dimensions for hierarchy in dimension.hierarchies),
            tuple(self.measure(measure) for measure in self.definition.measures),
        )

    def digest(self) -> str:
        return hashlib.sha256("".join(self.digests).encode()).hexdigest()

    def stop_if_wrong(self) -> None:
        if self.mistakes:
            raise UserError(self.mistakes)

    # Facts

    def open_facts(self) -> None:
        facts = self.definition.facts
        if facts.url is not None:
            self.open_query("raw", facts.sql or "")
            self.facts_name = "the query of the facts"
        else:
            self.facts_name = self.open_file("raw", facts.file or "")
        self.types = self.engine.describe("raw")
        self.n = self.engine.rows("SELECT count(*) FROM raw")[0][0]
        if self.n == 0:
            self.wrong(f"{self.facts_name} has no rows.")

    def open_query(self, relation: str, sql: str) -> None:
        try:
            table, digest = read_database(self.definition.facts.url or "", sql)
        except UserError as error:
            for mistake in error.mistakes:
                self.wrong(mistake.cause, mistake.remedy)
            raise UserError(self.mistakes) from error
        self.engine.keep_table(relation, table)
        self.digests.append(digest)

    def open_table(self, relation: str, dimension: DimensionDefinition) -> str:
        """Take in the table of a dimension; what to call it."""
        if dimension.sql is None:
            return self.open_file(relation, dimension.table or "")
        self.open_query(relation, dimension.sql)
        return f"the query of dimension {dimension.name}"

    def open_file(self, relation: str, path: str) -> str:
        try:
            source = file_source(path)
        except UserError as error:
            for mistake in error.mistakes:
                self.wrong(mistake.cause, mistake.remedy)
            raise UserError(self.mistakes) from error
        before = file_digest(source.path)
        self.engine.read_file(relation, source)
        if file_digest(source.path) != before:
            raise OperatorError(f"File {source.name} changed while it was read. Run again.")
        self.digests.append(before)
        return source.name

    def check_columns(self) -> None:
        facts = self.definition.facts
        wanted: dict[str, str] = {}
        for role in ("respondent", "holding", "weight", "request"):
            column = getattr(facts, role)
            if column is not None:
                wanted[column] = f"the {role} column"
        for measure in self.definition.measures:
            if measure.column is not None:
                wanted[measure.column] = f"measure {measure.name}"
            elif measure.aggregator != "count":
                self.wrong(f"Measure {measure.name} ({measure.aggregator}) has no column.")
            if measure.aggregator not in _AGGREGATORS:
                close = ", ".join(_AGGREGATORS)
                self.wrong(
                    f"Measure {measure.name}: there is no aggregator {measure.aggregator}.",
                    f"One of {close}.",
                )
            if measure.aggregator == "avg" and facts.weight is not None:
                remedy = "Publish the sum and the count, and calculate their ratio."
                self.wrong(
                    f"Measure {measure.name}: an average with sampling weights isn't a measure.", remedy
                )
        for dimension in self.definition.dimensions:
            if not dimension.has_table:
                wanted.update(columns_of(dimension))
            elif dimension.fact_key is not None:
                wanted[dimension.fact_key] = f"dimension {dimension.name}"
        for column, user in wanted.items():
            self.need(column, user, self.types, self.facts_name)

    def need(self, column: str, user: str, types: Mapping[str, str], where: str) -> None:
        if column not in types:
            near = difflib.get_close_matches(column, list(types), 3, 0.5)
            hint = f"Nearest: {', '.join(near)}." if near else f"It has {', '.join(list(types)[:20])}."
            self.wrong(f"{where} has no column {column}, which {user} needs.", hint)

    # Dimensions

    def dimension(self, number: int, definition: DimensionDefinition) -> Dimension | None:
        relation, where = f"dim{number}", self.facts_name
        levels = [level for h in definition.hierarchies for level in h.levels]
        keyed = [column for level in levels for column in (level.key, level.parent) if column is not None]
        keys = list(dict.fromkeys(keyed))
        others = [column for column in columns_of(definition) if column not in keys]
        picked = ", ".join(f"min({quoted(column)}) AS {quoted(column)}" for column in others)
        grouped = ", ".join(map(quoted, keys))
        source = "raw"
        if definition.has_table:
            source = f"table{number}"
            where = self.open_table(source, definition)
            types = self.engine.describe(source)
            known = len(self.mistakes)
            for column, user in columns_of(definition).items():
                self.need(column, user, types, where)
            key = definition.table_key or ""
            self.need(key, f"dimension {definition.name}", types, where)
            if len(self.mistakes) > known:
                return None
            grouped = ", ".join(dict.fromkeys([quoted(key), *map(quoted, keys)]))
            others = [column for column in others if column != key]
            picked = ", ".join(f"min({quoted(column)}) AS {quoted(column)}" for column in others)
        chosen = f"{grouped}, {picked}" if picked else grouped
        self.engine.run(
            f"CREATE TABLE {relation} AS SELECT row_number() OVER (ORDER BY {grouped}) - 1 AS celosia_row, * "
            f"FROM (SELECT {chosen} FROM {source} GROUP BY {grouped})"
        )
        columns = [*dict.fromkeys([*keys, *others])]
        shown = ", ".join(map(quoted, columns))
        found = self.engine.rows(f"SELECT {shown} FROM {relation} ORDER BY celosia_row")
        n_rows = len(found)
        rows = {column: [row[index] for row in found] + [None] for index, column in enumerate(columns)}
        join = " AND ".join(
            f"raw.{quoted(key)} IS NOT DISTINCT FROM {relation}.{quoted(key)}" for key in keys
        )
        unknown = 0
        if definition.has_table:
            join = self.join_table(definition, relation, where)
            unknown = self.check_keys(definition, relation, join, where)
        used: frozenset[int] = frozenset()
        if any(level.parent is not None for level in levels):
            sql = f"SELECT DISTINCT celosia_row FROM raw JOIN {relation} ON {join}"
            used = frozenset(row for (row,) in self.engine.rows(sql))
        built = [
            build_hierarchy(definition, h, rows, n_rows + (unknown > 0), self.language, where, used)
            for h in definition.hierarchies
        ]
        for _, _, mistakes in built:
            self.mistakes.extend(mistakes)
        hierarchies = tuple(hierarchy for hierarchy, _, _ in built if hierarchy is not None)
        return Dimension(
            definition,
            hierarchies,
            tuple(member for _, member, _ in built),
            f"LEFT JOIN {relation} ON {join}",
            f"coalesce({relation}.celosia_row, {n_rows})",
        )

    def join_table(self, definition: DimensionDefinition, relation: str, where: str) -> str:
        key = quoted(definition.table_key or "")
        twice = self.engine.rows(
            f"SELECT CAST({key} AS VARCHAR) FROM {relation} GROUP BY {key} HAVING count(*) > 1 ORDER BY 1"
        )
        for (value,) in twice[:_SHOWN]:
            self.wrong(
                f"{where}: key “{value}” of dimension {definition.name} stands in several places.",
                "Give it one parent.",
            )
        fact = quoted(definition.fact_key or definition.table_key or "")
        return f"CAST(raw.{fact} AS VARCHAR) = CAST({relation}.{key} AS VARCHAR)"

    def check_keys(self, definition: DimensionDefinition, relation: str, join: str, where: str) -> int:
        """Complain of facts whose key the table lacks; the number of facts without any key."""
        fact = quoted(definition.fact_key or definition.table_key or "")
        lost = self.engine.rows(
            f"SELECT CAST(raw.{fact} AS VARCHAR), {self.tally} FROM raw LEFT JOIN {relation} ON {join} "
            f"WHERE {relation}.celosia_row IS NULL AND raw.{fact} IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        if lost:
            names = ", ".join(str(key) for key, _ in lost[:_SHOWN])
            more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            n = sum(count for _, count in lost)
            cause = f"{n:,} rows of {self.facts_name} have a key that {where} lacks: {names}{more}."
            self.wrong(cause, f"Add them to the table of dimension {definition.name}.")
        return int(self.engine.rows(f"SELECT count(*) FROM raw WHERE {fact} IS NULL")[0][0])

    # Encoding

    def measure(self, definition: MeasureDefinition) -> Measure:
        return definition.measure(f"[Measures].{quote(definition.name)}", {self.language: definition.name})

    def facts(self, dimensions: Sequence[Dimension]) -> Facts:
        weight = self.weight()
        measures = tuple(self.measure_column(measure, weight) for measure in self.definition.measures)
        leaf: list[IntArray] = []
        for dimension in dimensions:
            rows = self.column(dimension.number, dimension.join)
            leaf.extend(member[rows] for member in dimension.members)
        contributor, who = self.contributor()
        return Facts(tuple(leaf), measures, contributor, weight, self.asked(), who)

    def column(self, expression: str, join: str = "") -> NDArray[Any]:
        """One value for each fact row, in the rows' order."""
        # A plain scan keeps the order of insertion; a join may not.
        order = "ORDER BY raw.rowid" if join else ""
        return self.engine.arrays(f"SELECT {expression} AS v FROM raw {join} {order}")["v"]

    def measure_column(self, measure: MeasureDefinition, weight: NDArray[np.float64] | None) -> MeasureColumn:
        empty = FixedPoint(0), np.zeros((self.n, 0), dtype=np.int64)
        if measure.column is None:
            scale, limbs = (
                (FixedPoint(0), np.ones((self.n, 1), np.int64)) if weight is None else encode(weight)
            )
            return MeasureColumn(scale, limbs, None, None)
        name = quoted(measure.column)
        nulls = self.column(f"raw.{name} IS NULL")
        present = ~nulls if nulls.any() else None
        if measure.aggregator == "count":
            ones = (~nulls).astype(np.float64) * (1.0 if weight is None else weight)
            return MeasureColumn(*encode(ones), present, None)
        if measure.aggregator == "distinct-count":
            codes = self.column(
                "codes.code",
                f"LEFT JOIN (SELECT {name} AS value, row_number() OVER (ORDER BY {name}) AS code "
                f"FROM raw WHERE {name} IS NOT NULL GROUP BY {name}) AS codes ON raw.{name} = codes.value",
            )
            return MeasureColumn(*empty, present, np.ma.filled(codes.astype(np.float64), np.nan))
        scale, limbs = self.number(measure.column, f"measure {measure.name}", weight)
        if measure.aggregator in ("sum", "avg"):
            return MeasureColumn(scale, limbs, present, None)
        raw = self.number(measure.column, f"measure {measure.name}", None)
        values = raw[0].to_float(raw[1]) if raw[1].shape[1] else np.zeros(self.n)
        return MeasureColumn(*empty, present, np.where(nulls, np.nan, values))

    def number(
        self, column: str, user: str, weight: NDArray[np.float64] | None
    ) -> tuple[FixedPoint, NDArray[np.int64]]:
        """A column of numbers, times the weights; 0 where null."""
        name, kind = quoted(column), self.types[column]
        failed = FixedPoint(0), np.zeros((self.n, 1), dtype=np.int64)
        if kind == "VARCHAR":
            kind = self.text_kind(column, user)
        if kind in _INTEGERS and weight is None:
            return encode_integers(
                self.column(f"coalesce(CAST(raw.{name} AS BIGINT), 0)").astype(np.int64), 0
            )
        if kind in _WIDE or kind.startswith("DECIMAL"):
            # The digits of a decimal are its exact value in units of the last place.
            digits = f"CAST(replace(CAST(raw.{name} AS VARCHAR), '.', '') AS HUGEINT)"
            largest = self.engine.rows(f"SELECT max(abs({digits})) FROM raw")[0][0] or 0
            if weight is None and largest < 2**63:
                decimals = int(kind.rsplit(",", 1)[1].rstrip(")")) if kind.startswith("DECIMAL") else 0
                whole = self.column(f"coalesce(CAST({digits} AS BIGINT), 0)").astype(np.int64)
                return encode_integers(whole, decimals)
        elif kind not in ("DOUBLE", "FLOAT", "BOOLEAN", *_INTEGERS):
            if kind:
                self.wrong(f"Column {column} is {kind}, but {user} needs numbers.")
            return failed
        values = self.column(f"coalesce(CAST(raw.{name} AS DOUBLE), 0)").astype(np.float64)
        if not np.isfinite(values).all():
            self.wrong(f"Column {column} holds infinite values or NaN.", "Leave such values empty.")
            return failed
        return encode(values if weight is None else values * weight)

    def text_kind(self, column: str, user: str) -> str:
        """What the texts of a column are: BIGINT, DOUBLE, or "" after complaining."""
        name = quoted(column)
        bad, first, fractional = self.engine.rows(
            f"SELECT count(*) FILTER (wrong), min(rowid) FILTER (wrong), count(*) FILTER (NOT whole) FROM ("
            f"SELECT rowid, {name} IS NOT NULL AND try_cast({name} AS DOUBLE) IS NULL AS wrong, "
            f"coalesce(regexp_full_match({name}, '[+-]?[0-9]{{1,18}}'), true) AS whole FROM raw)"
        )[0]
        if bad:
            cause = f"{bad:,} values of column {column} are no numbers, the first in row {first + 1}"
            self.wrong(f"{self.facts_name}: {cause}; {user} needs numbers.")
            return ""
        return "DOUBLE" if fractional else "BIGINT"

    def weight(self) -> NDArray[np.float64] | None:
        column = self.definition.facts.weight
        if column is None:
            return None
        scale, limbs = self.number(column, "the weight", None)
        weight = scale.to_float(limbs)
        missing = int(np.count_nonzero(~(weight > 0)))
        if missing and not self.mistakes:
            self.wrong(f"{missing:,} rows have no weight above zero in column {column}.")
        return weight

    def asked(self) -> NDArray[np.bool_] | None:
        column = self.definition.facts.request
        if column is None:
            return None
        text = f"lower(trim(CAST(raw.{quoted(column)} AS VARCHAR)))"
        return self.column(f"coalesce({text} NOT IN {NO}, false)").astype(bool)

    def contributor(self) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
        """Number of each row's holding, else respondent, else of the row itself; hashes of their names."""
        facts = self.definition.facts
        given = [column for column in (facts.holding, facts.respondent) if column is not None]
        if not given:
            return np.arange(self.n, dtype=np.int64), None
        names = [
            f"'{mark}' || nullif(CAST(raw.{quoted(column)} AS VARCHAR), '')"
            for mark, column in zip("hr", given, strict=False)
        ]
        who = f"coalesce({', '.join(names)}, 'n' || raw.rowid)"
        self.engine.run(
            "CREATE OR REPLACE TABLE people AS SELECT who, row_number() OVER (ORDER BY who) - 1 AS number "
            f"FROM (SELECT DISTINCT {who} AS who FROM raw)"
        )
        number = self.column("people.number", f"JOIN people ON people.who = {who}").astype(np.int64)
        if self.engine.rows("SELECT count(*) FROM people WHERE who[1] = 'n'")[0][0]:
            # A row's place is no name: it may be another's tomorrow.
            return number, None
        hashes = self.engine.arrays("SELECT md5_number_lower(who) AS v FROM people ORDER BY number")["v"]
        return number, np.asarray(hashes, dtype=np.uint64)


def columns_of(dimension: DimensionDefinition) -> dict[str, str]:
    """Columns that a dimension reads, and what for."""
    found: dict[str, str] = {}
    for hierarchy in dimension.hierarchies:
        for level in hierarchy.levels:
            user = f"level {level.name} of {dimension.name}"
            columns = (level.key, *level.caption_columns.values(), *level.properties.values())
            found.update(dict.fromkeys(columns, user))
            others = (level.order, level.parent, level.member_name)
            found.update((column, user) for column in others if column is not None)
    return found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
