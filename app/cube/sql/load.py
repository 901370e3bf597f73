"""From a cube's definition to a server whose facts stay where they are.

Only the distinct rows of each dimension come here. Their members are numbered as in the default engine, the
numbers are put beside the facts, and a view joins them: relation ``facts`` of `app.cube.scan`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from app.cube.cuboids import Cuboids
from app.cube.duckdb import DuckDBEngine
from app.cube.facts import Ancestors
from app.cube.load import NO, Dimension, Loader, columns_of, quoted
from app.cube.numbers import LIMIT, FixedPoint
from app.cube.scan import GroupingScanner
from app.cube.server import Server
from app.cube.sql.foreign import SOURCE, Foreign, decimals_of, is_number
from app.cube.sql.profiles import SqlProfiler
from app.cube.sql.scanner import SqlScanner
from app.domain.cube import Cube
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition, DimensionDefinition, MeasureDefinition


def open_cube(definition: CubeDefinition, connect: Callable[[str], Foreign]) -> Server:
    """Open a cube over facts in a database, which is closed with it.

    Raises
    ------
    UserError
        With every mistake found in the definition and the data.
    OperatorError
        When the database can't be reached, or can't do what is asked.
    """
    try:
        foreign = connect(definition.facts.url or "")
    except UserError as error:
        at = definition.at
        raise UserError(
            Mistake(at.file, at.line, at.column, mistake.cause, mistake.remedy) for mistake in error.mistakes
        ) from error
    local = DuckDBEngine()
    try:
        return SqlLoader(local, foreign, definition).load()
    except BaseException:
        foreign.close()
        raise
    finally:
        local.close()


class SqlLoader(Loader):
    """Reads the dimensions of one cube, collecting every mistake on the way."""

    def __init__(self, engine: DuckDBEngine, foreign: Foreign, definition: CubeDefinition) -> None:
        super().__init__(engine, definition)
        self.foreign = foreign
        self.tally = "CAST(sum(celosia_facts) AS BIGINT)"
        #: By dimension: the texts of its distinct rows among the facts, and their rows in its table.
        self.keys: list[tuple[str, pa.Table]] = []

    def load(self) -> Server:
        self.open_facts()
        self.check_columns()
        self.stop_if_wrong()
        scanner = SqlScanner(self.foreign)
        weight, units, places = self.weights()
        measured = [
            self.measured(m, measure, units, places) for m, measure in enumerate(self.definition.measures)
        ]
        self.stop_if_wrong()
        self.freeze()
        dimensions = self.dimensions()
        cube = self.cube(dimensions)
        ancestors = Ancestors(cube)
        selected, joins = self.levels(cube, dimensions, ancestors, scanner)
        for scale, columns in measured:
            scanner.limbs.append(scale.limbs)
            selected.extend(columns)
        scanner.aggregators.extend(measure.aggregator for measure in cube.measures)
        selected.extend([f"{weight} AS w", self.person(), self.requested()])
        self.foreign.view("facts", f"SELECT {', '.join(selected)} FROM {SOURCE} AS raw {joins}")
        scales = [scale for scale, _ in measured]
        signed = self.check_sums(scales)
        cuboids = Cuboids(cube, scales, self.n, ancestors, scanner)
        profiler = SqlProfiler(cube, cuboids, scanner, signed)
        return Server(self.definition, cube, None, profiler, cuboids, self.digest(), self.foreign.close)

    # Facts

    def open_facts(self) -> None:
        self.facts_name = "the query of the facts"
        try:
            self.foreign.source(self.definition.facts.sql or "")
        except UserError as error:
            self.blame(error)
        self.types = self.foreign.types()
        self.n = self.one("SELECT count(*) AS v FROM " + SOURCE)
        if self.n == 0:
            self.wrong(f"{self.facts_name} has no rows.")

    def open_query(self, relation: str, sql: str) -> None:
        try:
            table = self.foreign.own(sql)
        except UserError as error:
            self.blame(error)
        rows = sorted(repr(tuple(row.values())) for row in table.to_pylist())
        self.digests.append(hashlib.sha256(repr((table.column_names, rows)).encode()).hexdigest())
        self.engine.keep_table(relation, table)

    def blame(self, error: UserError) -> None:
        for mistake in error.mistakes:
            self.wrong(mistake.cause, mistake.remedy)
        raise UserError(self.mistakes) from error

    def one(self, sql: str) -> Any:
        return self.foreign.table(sql).column(0)[0].as_py()

    def used(self) -> list[str]:
        """Columns of the facts that the cube uses, in one order."""
        facts = self.definition.facts
        found = {facts.respondent, facts.holding, facts.weight, facts.request}
        found.update(measure.column for measure in self.definition.measures)
        for dimension in self.definition.dimensions:
            found.update(_of_facts(dimension))
        return sorted(column for column in found if column is not None)

    def freeze(self) -> None:
        used = self.used()
        self.foreign.freeze(used)
        self.foreign.view("celosia_hashes", f"SELECT md5({_whole(used)}) AS h FROM {SOURCE} AS raw")
        kinds = [(column, self.types[column]) for column in used]
        self.digests.append(
            hashlib.sha256(f"{kinds}{self.foreign.digest('celosia_hashes')}".encode()).hexdigest()
        )

    # Dimensions

    def dimension(self, number: int, definition: DimensionDefinition) -> Dimension | None:
        columns = _of_facts(definition)
        listed = ", ".join(f"raw.{quoted(column)}" for column in columns)
        self.engine.run("DROP TABLE IF EXISTS raw")
        self.engine.keep_table(
            "raw",
            self.foreign.table(
                f"SELECT {_whole(columns)} AS celosia_key, count(*) AS celosia_facts, {listed} "
                f"FROM {SOURCE} AS raw GROUP BY {listed}"
            ),
        )
        found = super().dimension(number, definition)
        if found is not None and not self.mistakes:
            rows = self.engine.arrays(f"SELECT celosia_key AS k, {found.number} AS n FROM raw {found.join}")
            self.keys.append(
                (_whole(columns), pa.table({"k": pa.array(rows["k"], pa.string()), "n": rows["n"]}))
            )
        return found

    def levels(
        self, cube: Cube, dimensions: Sequence[Dimension], ancestors: Ancestors, scanner: GroupingScanner
    ) -> tuple[list[str], str]:
        """Put member numbers beside the facts: the columns by level, and the joins that find them."""
        selected: list[str] = []
        joins: list[str] = []
        h = 0
        for d, (dimension, (text, keys)) in enumerate(zip(dimensions, self.keys, strict=True)):
            numbers = {"k": keys.column("k")}
            rows = keys.column("n").to_numpy()
            for member in dimension.members:
                tree = cube.hierarchies[h]
                for level in range(len(tree.levels)):
                    if tree.has_all and level == 0:
                        continue
                    name = f"h{h}_{level}"
                    above = ancestors.at(h, level)[member[rows]]
                    numbers[name] = pa.array(np.where(above < 0, tree.size, above).astype(np.int64))
                    scanner.grouped[h, level] = name
                    scanner.sizes[name] = tree.size
                    selected.append(f"celosia_map{d}.{name}")
                h += 1
            self.foreign.keep(f"celosia_map{d}", pa.table(numbers))
            joins.append(f"JOIN celosia_map{d} ON celosia_map{d}.k = {text}")
        return selected, " ".join(joins)

    # Measures and people

    def weights(self) -> tuple[str, str, int]:
        """The weight of a fact as a number, and as a whole number of units of its last place."""
        column = self.definition.facts.weight
        if column is None:
            return "1", "1", 0
        decimals = self.fixed(column, "the weight")
        name = f"raw.{quoted(column)}"
        if self.mistakes:
            return "1", "1", 0
        wrong = self.one(f"SELECT count(*) AS v FROM {SOURCE} AS raw WHERE coalesce({name}, 0) <= 0")
        if wrong:
            self.wrong(f"{wrong:,} rows have no weight above zero in column {column}.")
        return f"CAST({name} AS DOUBLE)", f"CAST({name} * {10**decimals} AS BIGINT)", decimals

    def fixed(self, column: str, user: str) -> int:
        """Decimals of a column that is summed; complains when its type doesn't fix them."""
        decimals = decimals_of(self.types[column])
        if decimals is None:
            self.wrong(
                f"Column {column} is {self.types[column]}, but {user} needs whole numbers or decimals with a "
                "fixed number of places, so that sums are exact.",
                f"Cast it in the query, e.g. CAST({column} AS DECIMAL(18, 2)).",
            )
        return decimals or 0

    def measured(
        self, m: int, measure: MeasureDefinition, units: str, places: int
    ) -> tuple[FixedPoint, list[str]]:
        """How a measure's sums are held, and its columns of view ``facts``."""
        if measure.column is None:
            return FixedPoint(places), [f"CAST({units} AS BIGINT) AS m{m}_0", f"1 AS m{m}_p"]
        name, user = f"raw.{quoted(measure.column)}", f"measure {measure.name}"
        present = f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END AS m{m}_p"
        if measure.aggregator == "count":
            limb = (
                f"CASE WHEN {name} IS NULL THEN CAST(0 AS BIGINT) ELSE CAST({units} AS BIGINT) END AS m{m}_0"
            )
            return FixedPoint(places), [limb, present]
        if measure.aggregator in ("sum", "avg"):
            decimals = self.fixed(measure.column, user)
            limb = f"coalesce(CAST({name} * {10**decimals} AS BIGINT), 0) * {units} AS m{m}_0"
            return FixedPoint(decimals + places), [limb, present]
        if measure.aggregator == "distinct-count":
            return FixedPoint(0), [f"{name} AS m{m}_v"]
        if not is_number(self.types[measure.column]):
            self.wrong(f"Column {measure.column} is {self.types[measure.column]}, but {user} needs numbers.")
        return FixedPoint(0), [f"CAST({name} AS DOUBLE) AS m{m}_v"]

    def person(self) -> str:
        """Columns ``who``, the contributor's name or null, and ``own``, which tells unlike rows apart."""
        facts = self.definition.facts
        given = [column for column in (facts.holding, facts.respondent) if column is not None]
        names = [
            f"'{mark}' || nullif(CAST(raw.{quoted(column)} AS VARCHAR), '')"
            for mark, column in zip("hr", given, strict=False)
        ]
        # Rows without a name that are alike in all are in the same cells, so none of them is alone in one.
        own = f"'n' || md5({_whole(self.used())}) AS own"
        who = f"coalesce({', '.join(names)})" if names else "CAST(NULL AS VARCHAR)"
        return f"{who} AS who, {own}"

    def requested(self) -> str:
        column = self.definition.facts.request
        if column is None:
            return "0 AS asked"
        text = f"lower(trim(CAST(raw.{quoted(column)} AS VARCHAR)))"
        return f"CASE WHEN coalesce({text} NOT IN {NO}, false) THEN 1 ELSE 0 END AS asked"

    def check_sums(self, scales: Sequence[FixedPoint]) -> frozenset[int]:
        """Measures with values below zero; checks that facts have their members and that sums fit."""
        summed = [
            m
            for m, measure in enumerate(self.definition.measures)
            if measure.aggregator in ("sum", "avg", "count")
        ]
        columns = [
            f"CAST(sum(CAST(abs(m{m}_0) AS DOUBLE)) AS DOUBLE) AS s{m}, min(m{m}_0) AS l{m}" for m in summed
        ]
        (row,) = self.foreign.table(f"SELECT {', '.join(['count(*) AS n', *columns])} FROM facts").to_pylist()
        if row["n"] != self.n:
            raise OperatorError("The facts changed while they were read. Run again.")
        for m in summed:
            if row[f"s{m}"] >= LIMIT:
                name = self.definition.measures[m].name
                self.wrong(
                    f"Sums of measure {name} have more digits than can be held exactly.",
                    "Give it fewer decimals in the query.",
                )
        self.stop_if_wrong()
        return frozenset(m for m in summed if row[f"l{m}"] < 0)


def _of_facts(dimension: DimensionDefinition) -> list[str]:
    """Columns of the facts that a dimension needs."""
    if dimension.has_table:
        return [dimension.fact_key or dimension.table_key or ""]
    return list(columns_of(dimension))


def _whole(columns: Sequence[str]) -> str:
    """A text of some columns' values that differs whenever one of them does."""
    texts = [f"CAST(raw.{quoted(column)} AS VARCHAR)" for column in columns]
    return " || ".join(f"coalesce(CAST(length({text}) AS VARCHAR) || ':' || {text}, 'n')" for text in texts)
