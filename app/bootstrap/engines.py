"""Which engine opens a cube."""

from __future__ import annotations

from collections.abc import Callable

from app.cube import atoti, duckdb
from app.cube.remote import RemoteServer
from app.cube.server import Server
from app.cube.sql import load
from app.cube.sql.foreign import Foreign
from app.cube.sql.postgresql import PostgreSQL
from app.cube.sql.spark import Spark
from app.cube.xmla import server as xmla
from app.domain.publication import CubeDefinition

DATABASES: dict[str, Callable[[str], Foreign]] = {"postgresql": PostgreSQL, "spark": Spark}


def open_cube(definition: CubeDefinition) -> Server | RemoteServer:
    """Open a cube on the engine that its file names.

    Raises
    ------
    UserError
        With every mistake found in the definition and the data.
    OperatorError
        A file is damaged, or a server or database can't be reached.
    """
    if definition.remote is None:
        database = DATABASES.get(definition.facts.engine)
        if database is not None:
            return load.open_cube(definition, database)
        return duckdb.open_cube(definition)
    if definition.remote.engine == "atoti":
        return atoti.open_cube(definition, definition.remote)
    return xmla.open_cube(definition, definition.remote)
