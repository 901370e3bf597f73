"""Every engine over the same definition of a cube, for the tests that each of them passes.

The ``xmla`` engine talks HTTP to a server of raw cells that stands here: the messages of the site's own
endpoint, over the cells of a DuckDB cube.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import psycopg
import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from app.bootstrap.engines import open_cube as open_any
from app.cli.serving import running
from app.cube.duckdb import open_cube
from app.cube.port import CubeServer
from app.cube.properties import axis_properties
from app.cube.remote import RemoteServer
from app.cube.server import Server
from app.cube.sql.spark import Spark
from app.cube.xmla.server import open_cube as open_xmla
from app.domain.catalogue import Catalogue
from app.domain.errors import UserError
from app.domain.masked import CellStatus, MaskedCellSet
from app.domain.patience import Patience
from app.domain.publication import CubeDefinition, FactsDefinition, Folder, RemoteDefinition
from app.domain.styles import cell_styles
from app.mdx import parse
from app.serve.port import Asked
from app.web.xmla import soap
from app.web.xmla.dataset import dataset_xml
from app.web.xmla.discover import discover
from app.web.xmla.rowset import empty_xml
from app.web.xmla.structures import CATALOG
from tests.databases import database_url

SPARK = "local[1]"
DATABASES = ("postgresql", "spark")
ENGINES = ("duckdb", "xmla", *DATABASES)


class RawXmla:
    """A cube's raw cells by XMLA; ``user`` and ``password`` are asked for where given."""

    def __init__(self, server: CubeServer, user: str = "", password: str = "") -> None:
        self.server = server
        self.auth = (user, password)
        self.asked: list[soap.Request] = []
        cube = server.discover()
        root = Folder("", {"en": "Raw"}, {}, (), ())
        self.catalogue = Catalogue(
            "raw", datetime(2026, 1, 1, tzinfo=UTC), {}, {}, {}, ("en",), root, {}, {}, {cube.name: cube}, (),
            False, True,
        )  # fmt: skip
        self.app = Starlette(routes=[Route("/xmla", self.answer, methods=["POST"])])

    async def answer(self, http: HttpRequest) -> Response:
        if self.auth[0]:
            wanted = base64.b64encode(":".join(self.auth).encode()).decode()
            if http.headers.get("authorization") != f"Basic {wanted}":
                return Response(status_code=401)
        body = await http.body()
        return Response(await run_in_threadpool(self.respond, body), media_type="text/xml")

    def respond(self, body: bytes) -> bytes:
        request = soap.read_request(body)
        self.asked.append(request)
        session = "s1" if request.begins_session else request.session
        try:
            if request.method == "Discover":
                return soap.answer("Discover", discover(request, self.catalogue, "en"), session)
            if not request.statement:
                return soap.answer("Execute", empty_xml(), session)
            return soap.answer("Execute", self.execute(request.statement), session)
        except UserError as error:
            return soap.fault(soap.client_fault(str(error)))
        except soap.FaultError as error:
            return soap.fault(error)

    def execute(self, statement: str) -> str:
        query = parse(statement)
        answer = self.server.explore(query)
        values = answer.values[: answer.n_cells]
        status = np.where(np.isnan(values), CellStatus.EMPTY, CellStatus.SHOWN).astype(np.int8)
        style, styles = cell_styles(answer)
        masked = MaskedCellSet("raw", answer.axes, answer.slicer, status, values, style, styles)
        properties = tuple(
            axis_properties(answer.cube, asked, axis.positions, query.source)
            for asked, axis in zip(query.axes, answer.axes, strict=True)
        )
        hierarchies = tuple(axis.hierarchies for axis in answer.axes)
        asked = Asked(answer.cube.name, masked, hierarchies, properties, ())
        return dataset_xml(asked, answer.cube, "en", "SchemaData", Patience())


def fill(definition: CubeDefinition, run: Callable[[str], object]) -> None:
    """Table ``facts`` of a database with the rows of the cube's file; numbers where a measure needs them."""
    file = definition.facts.file or ""
    base = duckdb.connect()
    base.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{file}', header = true, all_varchar = true)")
    summed = {m.column for m in definition.measures if m.aggregator in ("sum", "avg", "min", "max", "median")}
    numbers = {*summed, definition.facts.weight}
    kinds = {}
    for name in base.table("t").columns:
        (points,) = base.execute(
            f'SELECT max(CASE WHEN contains("{name}", \'.\') THEN length("{name}") '
            f"- strpos(\"{name}\", '.') ELSE 0 END) FROM t"
        ).fetchall()[0]
        kinds[name] = f"decimal(18, {points or 0})" if name in numbers else "varchar(99)"
    named = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    run(f"create table facts ({named})")
    for row in base.execute("SELECT * FROM t").fetchall():
        values = ", ".join("null" if value is None else "'" + value.replace("'", "''") + "'" for value in row)
        run(f"insert into facts values ({values})")


def at_database(definition: CubeDefinition, engine: str, url: str) -> FactsDefinition:
    return replace(definition.facts, file=None, url=url, sql="select * from facts", engine=engine)


def spark_source(definition: CubeDefinition, folder: Path) -> tuple[str, str]:
    """Master and query of Spark in this process, over a Parquet file with the rows of the cube's file."""
    _spark_stays()
    base = duckdb.connect()
    fill(definition, base.execute)
    place = folder / f"facts{secrets.token_hex(6)}.parquet"
    base.execute(f"COPY facts TO '{place}' (FORMAT parquet)")
    return SPARK, f"select * from parquet.`{place}`"


@cache
def _spark_stays() -> Spark:
    """It takes long to start, so that one application serves all tests of this process."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # For little data it isn't worth while to compile queries, nor compiled code much.
        options = {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.memory": "512m",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
        }
        text = "\n".join(f"{name} {value}" for name, value in options.items())
        Path(folder, "spark-defaults.conf").write_text(text, encoding="utf-8")
        patch.setenv("SPARK_CONF_DIR", folder)
        return Spark(SPARK)


@contextmanager
def opened(engine: str, definition: CubeDefinition, count: str = "") -> Iterator[Server | RemoteServer]:
    """A cube's server on an engine; ``count`` is the measure that counts contributors."""
    with ExitStack() as stack:
        plain = replace(definition, calculated=(), named_sets=())
        if engine == "duckdb":
            server: Server | RemoteServer = open_cube(definition)
        elif engine == "postgresql":
            url = stack.enter_context(database_url("postgresql", Path(), empty=True))
            with psycopg.connect(url) as connection:
                fill(definition, lambda statement: connection.execute(statement.encode()))
            server = open_any(replace(definition, facts=at_database(definition, engine, url)))
        elif engine == "spark":
            url, sql = spark_source(definition, Path(stack.enter_context(TemporaryDirectory())))
            facts = replace(definition.facts, file=None, url=url, sql=sql, engine=engine)
            server = open_any(replace(definition, facts=facts))
        else:
            raw = open_cube(plain)
            stack.callback(raw.close)
            address = stack.enter_context(running(RawXmla(raw).app))
            remote = RemoteDefinition("xmla", f"{address}/xmla", CATALOG, definition.name, count=count)
            server = open_xmla(replace(definition, remote=remote), remote)
        stack.callback(server.close)
        yield server
