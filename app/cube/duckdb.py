"""The default engine: facts in an embedded DuckDB, aggregated there."""

from __future__ import annotations

import difflib
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.cube.cuboids import Column, Cuboids, Levels, Ready, Sums
from app.cube.facts import Ancestors, Facts, MeasureColumn
from app.cube.hierarchies import build_hierarchy
from app.cube.numbers import FixedPoint, encode, encode_integers
from app.cube.server import Server
from app.cube.sources import file_digest, file_source, read_database
from app.domain.cube import Cube, Hierarchy, IntArray, Measure
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition, DimensionDefinition, MeasureDefinition
from app.mdx import quote

_AGGREGATORS = ("sum", "count", "distinct-count", "min", "max", "avg", "median")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_WIDE = ("HUGEINT", "UBIGINT", "UHUGEINT")
_NO = "('', '0', 'false', 'f', 'no', 'n')"
_SHOWN = 5


def open_cube(definition: CubeDefinition) -> Server:
    """Load a cube's data and open it for queries.

    Raises
    ------
    UserError
        With every mistake found in the definition and the data.
    OperatorError
        When a file is damaged or a database can't be reached.
    """
    engine = DuckDBEngine()
    try:
        return _Loader(engine, definition).load()
    except BaseException:
        engine.close()
        raise


class DuckDBEngine:
    """A private in-memory database; every thread has a cursor of its own."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(
            ":memory:",
            config={"autoinstall_known_extensions": "false", "temp_directory": tempfile.gettempdir()},
        )
        self._grouped: dict[tuple[int, int], str] = {}
        self._sizes: dict[str, int] = {}
        self._measures: list[str] = []
        self._columns: list[int] = []

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.cursor().execute(sql, list(parameters)).fetchall()

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        return self._connection.cursor().execute(sql).fetchnumpy()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, list(parameters))

    def describe(self, relation: str) -> dict[str, str]:
        """Column types by name."""
        return {row[0]: str(row[1]) for row in self.rows(f"DESCRIBE {relation}")}

    def keep_table(self, name: str, table: pa.Table) -> None:
        self._connection.register("handed_over", table)
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM handed_over")
        self._connection.unregister("handed_over")

    def keep_facts(self, cube: Cube, facts: Facts, ancestors: Ancestors) -> None:
        """Store the encoded facts: a column for each level, and the measures' limbs."""
        columns: dict[str, NDArray[Any]] = {}
        for h, tree in enumerate(cube.hierarchies):
            for level in range(len(tree.levels)):
                if tree.has_all and level == 0:
                    continue
                name = f"h{h}_{level}"
                above = ancestors.at(h, level)[facts.leaf[h]]
                # Members without an ancestor there take the number after the last, never null.
                kind = np.uint8 if tree.size < 255 else np.uint16 if tree.size < 65535 else np.uint32
                columns[name] = np.where(above < 0, tree.size, above).astype(kind)
                self._grouped[h, level] = name
                self._sizes[name] = tree.size
        for m, (measure, column) in enumerate(zip(cube.measures, facts.measures, strict=True)):
            self._measures.append(measure.aggregator)
            self._columns.append(column.scale.limbs)
            if measure.aggregator in ("sum", "count", "avg"):
                for limb in range(column.scale.limbs):
                    columns[f"m{m}_{limb}"] = column.limbs[:, limb]
                columns[f"m{m}_p"] = (
                    np.ones(facts.size, np.uint8)
                    if column.present is None
                    else column.present.astype(np.uint8)
                )
            elif column.raw is not None:
                columns[f"m{m}_v"] = column.raw
        arrays = {name: pa.array(values, from_pandas=name.endswith("_v")) for name, values in columns.items()}
        self.keep_table("facts", pa.table(arrays))

    def scan(
        self, wanted: Sequence[Levels], measures: Sequence[int]
    ) -> list[tuple[Mapping[int, IntArray], dict[int, Column]]]:
        """See `app.cube.cuboids.Scanner`: one statement of grouping sets for all level combinations."""
        sets = [
            {h: self._grouped[h, level] for h, level in enumerate(levels) if level >= 0} for levels in wanted
        ]
        names = sorted({name for grouped in sets for name in grouped.values()})
        selected = [f"coalesce({name}, 0) AS {name}_" for name in names]
        for m in measures:
            selected.extend(self._aggregates(m))
        if len(sets) > 1 and names:
            selected.append(f"CAST(grouping({', '.join(names)}) AS BIGINT) AS which")
        grouping = ", ".join(f"({', '.join(grouped.values())})" for grouped in sets)
        found = self.arrays(f"SELECT {', '.join(selected)} FROM facts GROUP BY GROUPING SETS ({grouping})")
        answers: list[tuple[Mapping[int, IntArray], dict[int, Column]]] = []
        for grouped in sets:
            inside = np.ones(len(next(iter(found.values()))), dtype=bool)
            if "which" in found:
                bits = (name not in grouped.values() for name in names)
                inside &= found["which"] == int("".join("1" if absent else "0" for absent in bits), 2)
            for name in grouped.values():
                inside &= found[f"{name}_"] < self._sizes[name]
            rows = np.flatnonzero(inside)
            members = {h: found[f"{name}_"][rows].astype(np.int32) for h, name in grouped.items()}
            answers.append((members, {m: self._column(m, found).take(rows) for m in measures}))
        return answers

    def _aggregates(self, m: int) -> list[str]:
        aggregator = self._measures[m]
        if aggregator in ("sum", "count", "avg"):
            limbs = [f"CAST(sum(m{m}_{limb}) AS BIGINT) AS m{m}_{limb}" for limb in range(self._columns[m])]
            return [*limbs, f"CAST(sum(m{m}_p) AS BIGINT) AS m{m}_p"]
        if aggregator == "distinct-count":
            return [f"CAST(nullif(count(DISTINCT m{m}_v), 0) AS DOUBLE) AS m{m}_v"]
        return [f"{aggregator}(m{m}_v) AS m{m}_v"]

    def _column(self, m: int, found: Mapping[str, NDArray[Any]]) -> Column:
        if f"m{m}_v" in found:
            return Ready(np.ma.filled(found[f"m{m}_v"].astype(np.float64), np.nan))
        limbs = np.stack([found[f"m{m}_{limb}"] for limb in range(self._columns[m])], axis=1)
        return Sums(np.asarray(found[f"m{m}_p"]), np.ascontiguousarray(limbs))


@dataclass(frozen=True)
class _Dimension:
    """A dimension's distinct rows in table ``dim``; ``join`` finds the row of each fact."""

    definition: DimensionDefinition
    hierarchies: tuple[Hierarchy, ...]
    members: tuple[IntArray, ...]
    join: str
    number: str


class _Loader:
    def __init__(self, engine: DuckDBEngine, definition: CubeDefinition) -> None:
        self.engine = engine
        self.definition = definition
        self.mistakes: list[Mistake] = []
        self.language = next(iter(definition.captions), "en")
        self.digests: list[str] = []
        self.facts_name = ""
        self.types: dict[str, str] = {}
        self.n = 0

    def wrong(self, cause: str, remedy: str = "") -> None:
        at = self.definition.at
        self.mistakes.append(Mistake(at.file, at.line, at.column, cause, remedy))

    def load(self) -> Server:
        self.open_facts()
        self.check_columns()
        self.stop_if_wrong()
        dimensions = [
            dimension
            for number, definition in enumerate(self.definition.dimensions)
            if (dimension := self.dimension(number, definition)) is not None
        ]
        self.stop_if_wrong()
        cube = Cube(
            self.definition.name,
            self.definition.captions,
            tuple(hierarchy for dimension in dimensions for hierarchy in dimension.hierarchies),
            tuple(self.measure(measure) for measure in self.definition.measures),
        )
        facts = self.facts(dimensions)
        self.stop_if_wrong()
        ancestors = Ancestors(cube)
        self.engine.keep_facts(cube, facts, ancestors)
        self.engine.run("DROP TABLE IF EXISTS raw")
        scales = [column.scale for column in facts.measures]
        cuboids = Cuboids(cube, scales, facts.size, ancestors, self.engine)
        digest = hashlib.sha256("".join(self.digests).encode()).hexdigest()
        return Server(self.definition, cube, facts, cuboids, digest, self.engine.close)

    def stop_if_wrong(self) -> None:
        if self.mistakes:
            raise UserError(self.mistakes)

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            # Only the first line: the following ones may quote the data.
            cause = str(error).splitlines()[0].split(":", 1)[-1].strip()
            raise OperatorError(f"File {name} is damaged or isn't what its name says: {cause}") from error

    # Facts

    def open_facts(self) -> None:
        facts = self.definition.facts
        if facts.url is not None:
            table, digest = read_database(facts.url, facts.sql or "")
            self.engine.keep_table("raw", table)
            self.digests.append(digest)
            self.facts_name = "the query of the facts"
        else:
            self.facts_name = self.open_file("raw", facts.file or "")
        self.types = self.engine.describe("raw")
        self.n = self.engine.rows("SELECT count(*) FROM raw")[0][0]
        if self.n == 0:
            self.wrong(f"{self.facts_name} has no rows.")

    def open_file(self, relation: str, path: str) -> str:
        try:
            source = file_source(path)
        except UserError as error:
            for mistake in error.mistakes:
                self.wrong(mistake.cause, mistake.remedy)
            raise UserError(self.mistakes) from error
        before = file_digest(source.path)
        escaped = str(source.path).replace("'", "''")
        reader = (
            f"read_parquet('{escaped}')"
            if source.kind == "parquet"
            else f"read_csv('{escaped}', all_varchar = true, header = true)"
        )
        with self.reading(source.name):
            self.engine.run(f"CREATE TABLE {relation} AS SELECT * FROM {reader}")
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
            if dimension.table is None:
                wanted.update(_columns(dimension))
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

    def dimension(self, number: int, definition: DimensionDefinition) -> _Dimension | None:
        relation, where = f"dim{number}", self.facts_name
        keys = list(dict.fromkeys(level.key for h in definition.hierarchies for level in h.levels))
        others = [column for column in _columns(definition) if column not in keys]
        picked = ", ".join(f"min({_sql(column)}) AS {_sql(column)}" for column in others)
        grouped = ", ".join(map(_sql, keys))
        source = "raw"
        if definition.table is not None:
            source = f"table{number}"
            where = self.open_file(source, definition.table)
            types = self.engine.describe(source)
            known = len(self.mistakes)
            for column, user in _columns(definition).items():
                self.need(column, user, types, where)
            key = definition.table_key or ""
            self.need(key, f"dimension {definition.name}", types, where)
            if len(self.mistakes) > known:
                return None
            grouped = ", ".join(dict.fromkeys([_sql(key), *map(_sql, keys)]))
            others = [column for column in others if column != key]
            picked = ", ".join(f"min({_sql(column)}) AS {_sql(column)}" for column in others)
        chosen = f"{grouped}, {picked}" if picked else grouped
        self.engine.run(
            f"CREATE TABLE {relation} AS SELECT row_number() OVER (ORDER BY {grouped}) - 1 AS celosia_row, * "
            f"FROM (SELECT {chosen} FROM {source} GROUP BY {grouped})"
        )
        columns = [*dict.fromkeys([*keys, *others])]
        shown = ", ".join(map(_sql, columns))
        found = self.engine.rows(f"SELECT {shown} FROM {relation} ORDER BY celosia_row")
        n_rows = len(found)
        rows = {column: [row[index] for row in found] + [None] for index, column in enumerate(columns)}
        join = " AND ".join(f"raw.{_sql(key)} IS NOT DISTINCT FROM {relation}.{_sql(key)}" for key in keys)
        unknown = 0
        if definition.table is not None:
            join = self.join_table(definition, relation, where)
            unknown = self.check_keys(definition, relation, join, where)
        built = [
            build_hierarchy(definition, h, rows, n_rows + (unknown > 0), self.language, where)
            for h in definition.hierarchies
        ]
        for _, _, mistakes in built:
            self.mistakes.extend(mistakes)
        hierarchies = tuple(hierarchy for hierarchy, _, _ in built if hierarchy is not None)
        return _Dimension(
            definition,
            hierarchies,
            tuple(member for _, member, _ in built),
            f"LEFT JOIN {relation} ON {join}",
            f"coalesce({relation}.celosia_row, {n_rows})",
        )

    def join_table(self, definition: DimensionDefinition, relation: str, where: str) -> str:
        key = _sql(definition.table_key or "")
        twice = self.engine.rows(
            f"SELECT CAST({key} AS VARCHAR) FROM {relation} GROUP BY {key} HAVING count(*) > 1 ORDER BY 1"
        )
        for (value,) in twice[:_SHOWN]:
            self.wrong(
                f"{where}: key “{value}” of dimension {definition.name} stands in several places.",
                "Give it one parent.",
            )
        fact = _sql(definition.fact_key or definition.table_key or "")
        return f"CAST(raw.{fact} AS VARCHAR) = CAST({relation}.{key} AS VARCHAR)"

    def check_keys(self, definition: DimensionDefinition, relation: str, join: str, where: str) -> int:
        """Complain of facts whose key the table lacks; the number of facts without any key."""
        fact = _sql(definition.fact_key or definition.table_key or "")
        lost = self.engine.rows(
            f"SELECT CAST(raw.{fact} AS VARCHAR), count(*) FROM raw LEFT JOIN {relation} ON {join} "
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
        return Measure(
            definition.name,
            f"[Measures].{quote(definition.name)}",
            definition.captions or {self.language: definition.name},
            definition.aggregator,
            definition.unit,
            definition.format,
            definition.decimals,
            definition.nonnegative,
        )

    def facts(self, dimensions: Sequence[_Dimension]) -> Facts:
        weight = self.weight()
        measures = tuple(self.measure_column(measure, weight) for measure in self.definition.measures)
        leaf: list[IntArray] = []
        for dimension in dimensions:
            rows = self.column(dimension.number, dimension.join)
            leaf.extend(member[rows] for member in dimension.members)
        return Facts(tuple(leaf), measures, self.contributor(), weight, self.asked())

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
        name = _sql(measure.column)
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
        name, kind = _sql(column), self.types[column]
        failed = FixedPoint(0), np.zeros((self.n, 1), dtype=np.int64)
        if kind == "VARCHAR":
            kind = self.text_kind(column, user)
        digits = f"CAST(replace(CAST(raw.{name} AS VARCHAR), '.', '') AS HUGEINT)"
        if kind in _INTEGERS or kind in _WIDE or kind.startswith("DECIMAL"):
            if weight is None:
                largest = self.engine.rows(f"SELECT max(abs({digits})) FROM raw")[0][0] or 0
                if largest < 2**63:
                    decimals = int(kind.rsplit(",", 1)[1].rstrip(")")) if kind.startswith("DECIMAL") else 0
                    whole = self.column(f"coalesce(CAST({digits} AS BIGINT), 0)")
                    return encode_integers(whole.astype(np.int64), decimals)
        elif kind not in ("DOUBLE", "FLOAT", "BOOLEAN"):
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
        name = _sql(column)
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
        text = f"lower(trim(CAST(raw.{_sql(column)} AS VARCHAR)))"
        return self.column(f"coalesce({text} NOT IN {_NO}, false)").astype(bool)

    def contributor(self) -> NDArray[np.int64]:
        """Number of each row's holding, else respondent, else of the row itself."""
        facts = self.definition.facts
        given = [column for column in (facts.holding, facts.respondent) if column is not None]
        if not given:
            return np.arange(self.n, dtype=np.int64)
        names = [
            f"'{mark}' || nullif(CAST(raw.{_sql(column)} AS VARCHAR), '')"
            for mark, column in zip("hr", given, strict=False)
        ]
        who = f"coalesce({', '.join(names)}, 'n' || raw.rowid)"
        numbers = (
            f"JOIN (SELECT who, row_number() OVER (ORDER BY who) - 1 AS number "
            f"FROM (SELECT DISTINCT {who} AS who FROM raw)) AS people ON people.who = {who}"
        )
        return self.column("people.number", numbers).astype(np.int64)


def _columns(dimension: DimensionDefinition) -> dict[str, str]:
    """Columns that a dimension reads, and what for."""
    found: dict[str, str] = {}
    for hierarchy in dimension.hierarchies:
        for level in hierarchy.levels:
            user = f"level {level.name} of {dimension.name}"
            columns = (level.key, *level.caption_columns.values(), *level.properties.values())
            found.update(dict.fromkeys(columns, user))
            if level.order is not None:
                found[level.order] = user
    return found


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
