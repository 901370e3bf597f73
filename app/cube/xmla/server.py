"""The ``xmla`` engine: cells of a cube on any server that speaks XMLA."""

from __future__ import annotations

import os
from collections.abc import Sequence

import httpx
import numpy as np

from app.cube.remote import RemoteServer
from app.cube.xmla.client import Client
from app.cube.xmla.reading import Cell, Dataset
from app.cube.xmla.structure import discover_cube
from app.domain.cellset import FloatArray
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition, RemoteDefinition

#: Tuples of one query.
CHUNK = 1_000


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
    user, password = (
        _variable(definition, name) for name in (remote.user_variable, remote.password_variable)
    )
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


def _variable(definition: CubeDefinition, name: str) -> str:
    if not name:
        return ""
    value = os.environ.get(name)
    if value is None:
        at = definition.at
        cause = f"Environment variable {name}, which cube {definition.name} needs, isn't set."
        raise UserError(Mistake(at.file, at.line, at.column, cause))
    return value


class XmlaCells:
    """Values of cells by MDX queries of tuples; see `app.cube.remote.Cells`."""

    def __init__(self, client: Client, remote: RemoteDefinition) -> None:
        self._client = client
        self._remote = remote

    def values(self, tuples: Sequence[Sequence[str]]) -> FloatArray:
        return self._asked(tuples, "")

    def _asked(self, tuples: Sequence[Sequence[str]], slicer: str) -> FloatArray:
        distinct = list(dict.fromkeys(map(tuple, tuples)))
        known: dict[tuple[str, ...], float] = {}
        for start in range(0, len(distinct), CHUNK):
            chunk = distinct[start : start + CHUNK]
            dataset = self._client.execute(f"SELECT {_set(chunk)} ON COLUMNS FROM {self._cube}{slicer}")
            known.update(zip(chunk, _numbers(dataset, len(chunk)), strict=True))
        return np.array([known[tuple(item)] for item in tuples], dtype=np.float64)

    def aggregate(self, tuples: Sequence[Sequence[str]], sets: Sequence[Sequence[str]]) -> FloatArray:
        slicer = " * ".join("{" + ", ".join(members) + "}" for members in sets)
        return self._asked(tuples, f" WHERE {slicer}")

    def version(self) -> str:
        rows = self._client.discover("MDSCHEMA_CUBES", {"CUBE_NAME": self._remote.cube})
        return "|".join(
            f"{row.get('LAST_DATA_UPDATE', '')} {row.get('LAST_SCHEMA_UPDATE', '')}" for row in rows
        )

    def close(self) -> None:
        self._client.close()

    @property
    def _cube(self) -> str:
        return f"[{self._remote.cube.replace(']', ']]')}]"


def _set(tuples: Sequence[Sequence[str]]) -> str:
    return "{" + ", ".join(f"({', '.join(item)})" for item in tuples) + "}"


def _numbers(dataset: Dataset, n: int) -> list[float]:
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
