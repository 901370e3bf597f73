"""The ``xmla`` engine: cells of a cube on any server that speaks XMLA."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from app.cube.remote import RemoteServer, variable
from app.cube.tuples import TupleQueries
from app.cube.xmla.client import Client
from app.cube.xmla.reading import Cell
from app.cube.xmla.structure import discover_cube
from app.domain.cellset import FloatArray
from app.domain.errors import OperatorError
from app.domain.publication import CubeDefinition, RemoteDefinition


def open_cube(
    definition: CubeDefinition, remote: RemoteDefinition, transport: httpx.BaseTransport | None = None
) -> RemoteServer:
    """Open a cube on an XMLA server.

    Raises
    ------
    UserError
        The server has no such cube, hierarchy or measure, or an environment variable isn't set.
    OperatorError
        The server can't be reached or gives no proper answer.
    """
    user, password = (variable(definition, name) for name in (remote.user_variable, remote.password_variable))
    properties = {"Catalog": remote.catalog} if remote.catalog else {}
    client = Client(remote.url, user, password, properties, remote.timeout, transport)
    try:
        sources = client.discover("DISCOVER_DATASOURCES")
        if sources and sources[0].get("DataSourceInfo"):
            client.set_property("DataSourceInfo", sources[0]["DataSourceInfo"])
        client.begin()
        cube = discover_cube(client, definition, remote)
        return RemoteServer(definition, remote, cube, XmlaCells(client, remote))
    except BaseException:
        client.close()
        raise


class XmlaCells:
    """Values of cells by MDX queries of tuples; see `app.cube.remote.Cells`."""

    def __init__(self, client: Client, remote: RemoteDefinition) -> None:
        self._client = client
        self._remote = remote
        self._queries = TupleQueries(remote.cube, self._numbers)

    def values(self, tuples: Sequence[Sequence[str]]) -> FloatArray:
        return self._queries.values(tuples)

    def aggregate(self, tuples: Sequence[Sequence[str]], sets: Sequence[Sequence[str]]) -> FloatArray:
        return self._queries.aggregate(tuples, sets)

    def version(self) -> str:
        rows = self._client.discover("MDSCHEMA_CUBES", {"CUBE_NAME": self._remote.cube})
        return "|".join(
            f"{row.get('LAST_DATA_UPDATE', '')} {row.get('LAST_SCHEMA_UPDATE', '')}" for row in rows
        )

    def close(self) -> None:
        self._client.close()

    def _numbers(self, mdx: str, n: int) -> list[float]:
        dataset = self._client.execute(mdx)
        if dataset.size != n:
            raise OperatorError("The XMLA server answered with other positions than those asked for.")
        return [_number(dataset.cells.get(ordinal)) for ordinal in range(n)]


def _number(cell: Cell | None) -> float:
    if cell is None:
        return float("nan")
    if isinstance(cell.value, float):
        return cell.value
    if cell.value or cell.text:
        # Not empty, and no number: whatever it is, it isn't to be taken for nothing.
        raise OperatorError("The XMLA server holds something else than a number in a cell.")
    return float("nan")
