"""Facts that stay with Spark: what the office's own cluster reads, aggregated there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from app.cube.sql.foreign import SOURCE, mistake, one_query, translated
from app.domain.errors import OperatorError, UserError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

_MASTERS = ("local", "spark://", "yarn", "k8s://")
#: Whatever the office has configured, sums that overflow fail, and nobody looks on over the network.
_ALWAYS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
#: Without a cluster: nothing listens beyond this machine, and work isn't cut into hundreds of parts.
_ALONE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(min(4, os.cpu_count() or 1)),
    "spark.default.parallelism": str(min(4, os.cpu_count() or 1)),
}


class _Application:
    """The one Spark application of this process, started by the first cube and stopped after the last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._root: SparkSession | None = None
        self._users = 0

    def session(self, master: str) -> SparkSession:
        """A session with temporary views of its own."""
        with self._lock:
            if self._root is None:
                self._root = _start(master)
            elif self._root.sparkContext.master != master:
                raise OperatorError("All cubes that one process opens on Spark need the same url.")
            session = self._root.newSession()
            self._users += 1
            return session

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._root is not None:
                self._root.stop()
                self._root = None


_application = _Application()


def _start(master: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    home = os.environ.get("JAVA_HOME")
    if not (Path(home, "bin", "java").is_file() if home else shutil.which("java")):
        raise OperatorError("Spark needs Java 17 or later: set JAVA_HOME, or put java on the PATH.")
    alone = master.startswith("local")
    if alone:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("celosia").master(master)
    for name, value in {**_ALWAYS, **(_ALONE if alone else {})}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise OperatorError(f"Spark at {master} can't be reached, or Java can't start it.") from error


class Spark:
    """See `app.cube.sql.foreign.Foreign`; ``url`` is the master, as Spark calls it.

    The session reads what the office's own Spark configuration (``SPARK_CONF_DIR``) lets it read. The facts
    are kept there as they were when the cube was opened. When a part of them is lost, statements fail:
    nothing is read again, as it might have changed.
    """

    def __init__(self, url: str) -> None:
        try:
            from pyspark.errors import PySparkException
        except ModuleNotFoundError as error:
            remedy = "Install celosia[spark]."
            raise UserError(mistake("The spark engine needs the package pyspark.", remedy)) from error
        if not url.startswith(_MASTERS):
            remedy = "Write the master as Spark does: spark://host:7077, yarn, k8s://…, or local[*]."
            raise UserError(mistake("The URL of the facts isn't a Spark master.", remedy))
        self._error: type[PySparkException] = PySparkException
        self._session = _application.session(url)
        self._open = True
        self._views: set[str] = set()

    def close(self) -> None:
        if self._open:
            self._open = False
            for name in self._views:
                self._session.catalog.dropTempView(name)
            _application.leave()

    def source(self, sql: str) -> None:
        with self._asked_by_office():
            self._name(SOURCE, self._session.sql(one_query(sql, "spark")))

    def freeze(self, columns: list[str]) -> None:
        with self._own_statement():
            rows = self._session.table(SOURCE).select(*(_quoted(column) for column in columns))
            self._name(SOURCE, rows.localCheckpoint(eager=True))

    def types(self) -> dict[str, str]:
        return dict(self._session.table(SOURCE).dtypes)

    def own(self, sql: str) -> pa.Table:
        with self._asked_by_office():
            return self._session.sql(one_query(sql, "spark")).toArrow()

    def table(self, sql: str) -> pa.Table:
        with self._own_statement():
            return self._session.sql(translated(sql, "spark")).toArrow()

    def view(self, name: str, sql: str) -> None:
        with self._own_statement():
            self._name(name, self._session.sql(translated(sql, "spark")))

    def keep(self, name: str, table: pa.Table) -> None:
        with self._own_statement():
            self._name(name, self._session.createDataFrame(table))

    def digest(self, hashes: str) -> str:
        # Two numbers of 60 bits of each row, added up without a limit.
        halves = (
            f"sum(CAST(conv(substr(h, {start}, 15), 16, 10) AS DECIMAL(38, 0))) AS s{start}"
            for start in (1, 16)
        )
        with self._own_statement():
            (row,) = self._session.sql(f"SELECT count(*) AS n, {', '.join(halves)} FROM {hashes}").collect()
        return " ".join(map(str, row))

    def _name(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)
        self._views.add(name)

    @contextmanager
    def _asked_by_office(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            said = str(error).strip().splitlines()[0].rstrip(".")
            raise UserError(f"Spark refuses the query: {said}.") from error

    @contextmanager
    def _own_statement(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            # Spark's own words may quote the data.
            kind = f"{type(error).__name__}, {error.getCondition() or 'no condition'}"
            raise OperatorError(f"Spark failed to aggregate ({kind}).") from error


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
