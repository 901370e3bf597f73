"""The ``atoti`` engine: cells of a cube of a running Atoti server, by its REST services.

Nothing of the `atoti` package is needed for it: the office runs the server, under whatever licence it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from app.cube.remote import RemoteServer, variable
from app.cube.tuples import TupleQueries
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, Hierarchy, Level
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.publication import CubeDefinition, RemoteDefinition
from app.mdx import quote

#: Where the services are below the server's address; the version is one that servers since 6.0 have.
SERVICES = "/activeviam/pivot/rest/v9/cube"
_ALL = "ALL"
_LONGEST = 500


@dataclass(frozen=True, eq=False)
class CellSetDocument:
    """A cellset as the services give it.

    Attributes
    ----------
    positions : tuple
        For each axis but the slicer, its positions: a path of names and one of captions for each member.
    values : mapping of ordinal to number or text
        Cells that aren't there are empty; axis 0 varies fastest.
    """

    positions: tuple[tuple[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...], ...], ...]
    values: Mapping[int, float | str]

    @property
    def size(self) -> int:
        n = 1
        for axis in self.positions:
            n *= len(axis)
        return n


def read_cellset(document: Any) -> CellSetDocument:
    """A cellset from its document, older ones within ``data``.

    Raises
    ------
    OperatorError
        It is none.
    """
    try:
        inner = document.get("data", document)
        axes = sorted((axis for axis in inner["axes"] if axis["id"] >= 0), key=lambda axis: axis["id"])
        positions = tuple(
            tuple(
                tuple(
                    (tuple(map(str, member["namePath"])), tuple(map(str, member.get("captionPath", ()))))
                    for member in position
                )
                for position in axis["positions"]
            )
            for axis in axes
        )
        found = {int(cell["ordinal"]): cell.get("value") for cell in inner["cells"]}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise OperatorError("The Atoti server gave no cellset.") from None
    values = {
        ordinal: float(value) if isinstance(value, (int, float)) else str(value)
        for ordinal, value in found.items()
        if value is not None
    }
    made = CellSetDocument(positions, values)
    if any(not 0 <= ordinal < made.size for ordinal in values):
        raise OperatorError("The Atoti server gave a cell beyond its axes.")
    return made


def open_cube(
    definition: CubeDefinition, remote: RemoteDefinition, transport: httpx.BaseTransport | None = None
) -> RemoteServer:
    """Open a cube of a running Atoti server.

    Raises
    ------
    UserError
        The server has no such cube, hierarchy or measure, or an environment variable isn't set.
    OperatorError
        The server can't be reached or gives no proper answer.
    """
    cells = AtotiCells(definition, remote, transport)
    try:
        return RemoteServer(definition, remote, cells.discover(), cells)
    except BaseException:
        cells.close()
        raise


class AtotiCells:
    """See `app.cube.remote.Cells`."""

    def __init__(
        self,
        definition: CubeDefinition,
        remote: RemoteDefinition,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._definition = definition
        self._remote = remote
        names = (remote.user_variable, remote.password_variable)
        user, password = (variable(definition, name) for name in names)
        self._http = httpx.Client(
            auth=(user, password) if user else None, timeout=remote.timeout, transport=transport
        )
        self._queries = TupleQueries(remote.cube, self._numbers)
        self._base = remote.url.rstrip("/") + SERVICES

    def values(self, tuples: Sequence[Sequence[str]]) -> FloatArray:
        return self._queries.values(tuples)

    def aggregate(self, tuples: Sequence[Sequence[str]], sets: Sequence[Sequence[str]]) -> FloatArray:
        return self._queries.aggregate(tuples, sets)

    def version(self) -> str:
        """Nothing: the services don't say when data changed."""
        return ""

    def close(self) -> None:
        self._http.close()

    def execute(self, mdx: str) -> CellSetDocument:
        """The answer to a query.

        Raises
        ------
        OperatorError
        """
        context = {"queriesTimeLimit": str(int(self._remote.timeout))}
        return read_cellset(self._json("POST", "/query/mdx", {"mdx": mdx, "context": context}))

    def _numbers(self, mdx: str, n: int) -> list[float]:
        found = self.execute(mdx)
        if found.size != n:
            raise OperatorError("The Atoti server answered with other positions than those asked for.")
        values = [found.values.get(ordinal, float("nan")) for ordinal in range(n)]
        numbers = [value for value in values if isinstance(value, float)]
        if len(numbers) != n:
            raise OperatorError("The Atoti server holds something else than a number in a cell.")
        return numbers

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        try:
            response = self._http.request(method, self._base + path, json=body)
        except httpx.TimeoutException:
            raise OperatorError("The Atoti server took too long to answer.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OperatorError(f"The Atoti server can't be reached ({type(error).__name__}).") from None
        if response.status_code in (401, 403):
            raise OperatorError("The Atoti server refuses the user or password.")
        try:
            document = response.json()
        except ValueError:
            document = None
        if response.status_code != 200 or not isinstance(document, dict) or document.get("status") == "error":
            raise OperatorError(f"The Atoti server says: {_said(document, response.status_code)}")
        return document

    # Structure

    def discover(self) -> Cube:
        """The cube with the hierarchies and measures that its file names.

        Raises
        ------
        UserError
            When the server has no such cube, hierarchy or measure.
        OperatorError
        """
        document = self._json("GET", "/discovery")
        try:
            return self._cube(document.get("data", document))
        except (KeyError, TypeError, IndexError):
            raise OperatorError("The Atoti server gave no discovery that can be read.") from None

    def _cube(self, discovery: Any) -> Cube:
        definition, remote, at = self._definition, self._remote, self._definition.at
        cubes = {cube["name"]: cube for catalog in discovery["catalogs"] for cube in catalog["cubes"]}
        if remote.cube not in cubes:
            cause = f"The Atoti server has no cube {remote.cube}."
            there = f"It has {', '.join(sorted(cubes))}." if cubes else ""
            raise UserError(Mistake(at.file, at.line, at.column, cause, there))
        found = cubes[remote.cube]
        known = {
            f"{quote(dimension['name'])}.{quote(tree['name'])}": (dimension, tree)
            for dimension in found["dimensions"]
            for tree in dimension["hierarchies"]
            if dimension["name"] != "Measures"
        }
        measures = {measure["name"]: measure for measure in found["measures"]}
        wanted = remote.hierarchies or tuple(known)
        missing = [f"hierarchy {name}" for name in wanted if name not in known]
        names = (*(item.name for item in definition.measures), *remote.profile_measures)
        missing += [f"measure {name}" for name in names if name not in measures]
        if missing:
            raise UserError(
                Mistake(at.file, at.line, 0, f"The Atoti cube has no {name}.") for name in missing
            )
        language = next(iter(definition.captions), "en")
        return Cube(
            definition.name,
            definition.captions,
            tuple(self._hierarchy(name, *known[name], language) for name in wanted),
            tuple(
                item.measure(
                    f"[Measures].{quote(item.name)}",
                    {language: measures[item.name].get("caption") or item.name},
                )
                for item in definition.measures
            ),
        )

    def _hierarchy(self, name: str, dimension: Any, tree: Any, language: str) -> Hierarchy:
        levels = tuple(
            Level(
                level["name"],
                f"{name}.{quote(level['name'])}",
                {language: level.get("caption", level["name"])},
            )
            for level in tree["levels"]
        )
        has_all = tree["levels"][0]["type"] == _ALL
        told = self.execute(f"SELECT {name}.Members ON COLUMNS FROM {quote(self._remote.cube)}")
        paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        for (member,) in told.positions[0]:
            paths[member[0]] = member[1] or member[0]
        ordered = list(_depth_first(list(paths)))
        index = {path: number for number, path in enumerate(ordered)}
        return Hierarchy(
            dimension=dimension["name"],
            name=tree["name"],
            unique_name=name,
            captions={language: tree.get("caption", tree["name"])},
            levels=levels,
            has_all=has_all,
            default_member=0,
            keys=tuple("" if has_all and len(path) == 1 else path[-1] for path in ordered),
            unique_names=tuple(f"{levels[0].unique_name}.{'.'.join(map(quote, path))}" for path in ordered),
            member_captions={language: tuple(paths[path][-1] for path in ordered)},
            parent=np.array([index.get(path[:-1], -1) for path in ordered], np.int32),
            depth=np.array([len(path) - 1 for path in ordered], np.int32),
            time=dimension.get("type") == "TIME",
        )


def _depth_first(paths: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Paths with each right before those beneath it, in the order given otherwise."""
    known = set(paths)
    beneath: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in paths:
        beneath.setdefault(path[:-1] if path[:-1] in known else (), []).append(path)
    stack = beneath.get((), [])[::-1]
    while stack:
        path = stack.pop()
        yield path
        stack.extend(beneath.get(path, [])[::-1])


def _said(document: Any, status: int) -> str:
    """What an error document says, in one line."""
    words = f"HTTP status {status}"
    if isinstance(document, dict):
        chain = document.get("error")
        chain = chain.get("errorChain") if isinstance(chain, dict) else document.get("errorChain")
        if isinstance(chain, list) and chain and isinstance(chain[-1], dict):
            words = str(chain[-1].get("message") or words)
        elif document.get("detail") or document.get("message"):
            words = str(document.get("detail") or document.get("message"))
    return " ".join(words.split())[:_LONGEST]
