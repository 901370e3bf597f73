"""The default engine: facts in an embedded DuckDB, aggregated there."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.cube.facts import Ancestors, Facts
from app.cube.load import Loader
from app.cube.scan import GroupingScanner
from app.cube.server import Server
from app.cube.sources import CsvHead, FileSource, csv_head, odd_line_end
from app.domain.cube import Cube
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition


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
        return Loader(engine, definition).load()
    except BaseException:
        engine.close()
        raise


class DuckDBEngine(GroupingScanner):
    """A private in-memory database; every thread has a cursor of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._connection = duckdb.connect(
            ":memory:",
            config={"autoinstall_known_extensions": "false", "temp_directory": tempfile.gettempdir()},
        )

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

    def read_file(self, relation: str, source: FileSource) -> None:
        """Take a whole file in as a table; all columns of a CSV file are texts.

        Raises
        ------
        UserError
            When a line of a CSV file isn't like its first one.
        OperatorError
            When the file is damaged.
        """
        # In brackets, so that a file's *, ? and [ don't stand for other names.
        path = _text(re.sub(r"([*?\[])", r"[\1]", str(source.path)))
        try:
            if source.kind == "parquet":
                self.run(f"CREATE TABLE {relation} AS SELECT * FROM read_parquet({path})")
            else:
                self._read_csv(relation, path, csv_head(source))
        except duckdb.Error as error:
            # Only what is recognised is said: the engine's words quote the data.
            mistake = _csv_mistake(source, str(error)) if source.kind == "csv" else None
            if mistake is not None:
                raise UserError(mistake) from error
            raise OperatorError(f"File {source.name} is damaged or isn't what its name says.") from error

    def _read_csv(self, relation: str, path: str, head: CsvHead) -> None:
        """Everything is stated: what the engine guesses by itself may drop lines (as comments, say)."""
        columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in head.names)
        self.run(
            f"CREATE TABLE {relation} AS SELECT * FROM read_csv({path}, auto_detect = false, header = true, "
            f"delim = {_text(head.separator)}, quote = '\"', escape = '\"', comment = '', "
            f"columns = {{{columns}}})"
        )

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
                self.grouped[h, level] = name
                self.sizes[name] = tree.size
        for m, (measure, column) in enumerate(zip(cube.measures, facts.measures, strict=True)):
            self.aggregators.append(measure.aggregator)
            self.limbs.append(column.scale.limbs)
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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _csv_mistake(source: FileSource, said: str) -> Mistake | None:
    """The faulty line of a CSV file, when the engine's message tells it."""
    line = re.search(r"CSV Error on Line: (\d+)", said)
    number = int(line[1]) if line else odd_line_end(source) if "invalid state" in said else 0
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
    if not number:
        return None
    if line is None:
        cause, remedy = "The line ends in another way than the first.", "Save it with one kind of line end."
    elif counts:
        cause = f"The line has {counts[2]} values, but the first line names {counts[1]} columns."
        remedy = "Put values that hold the separator in double quotes."
    elif "not utf-8" in said:
        cause, remedy = "The line isn't UTF-8.", "Save the file as UTF-8."
    elif "unterminated quote" in said:
        cause, remedy = "A double quote isn't closed.", "Write a quote inside a value twice."
    else:
        cause, remedy = "The line can't be read as CSV.", ""
    return Mistake(source.name, number, 0, cause, remedy)
