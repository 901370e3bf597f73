"""The ``atoti`` engine: documents in the documented form, and the contract where a session can be started.

The contract needs a session of the `atoti` package, which needs its licence. Where none can be started, the
test says so in pytest's summary, and checks that the engine says as much to whoever asks.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app.cube.atoti import open_cube, read_cellset
from app.domain.errors import OperatorError, UserError
from app.domain.publication import CubeDefinition, MeasureDefinition, RemoteDefinition
from app.mdx import parse
from tests.cube.office import AT

DISCOVERY = {
    "catalogs": [
        {
            "name": "atoti",
            "cubes": [
                {
                    "name": "Shop",
                    "defaultMembers": [],
                    "dimensions": [
                        {
                            "name": "Measures", "caption": "Measures", "type": "MEASURE",
                            "hierarchies": [
                                {"name": "Measures", "caption": "Measures", "slicing": True, "levels": []}
                            ],
                        },
                        {
                            "name": "Place", "caption": "Place", "type": "STANDARD",
                            "hierarchies": [
                                {
                                    "name": "Towns", "caption": "Towns", "slicing": False,
                                    "levels": [
                                        {"name": "ALL", "caption": "ALL", "type": "ALL"},
                                        {"name": "Region", "caption": "Region", "type": "REGULAR"},
                                        {"name": "Town", "caption": "Town", "type": "REGULAR"},
                                    ],
                                }
                            ],
                        },
                        {
                            "name": "Time", "caption": "Time", "type": "TIME",
                            "hierarchies": [
                                {
                                    "name": "Year", "caption": "Year", "slicing": True,
                                    "levels": [{"name": "Year", "caption": "Year", "type": "TIME"}],
                                }
                            ],
                        },
                    ],
                    "measures": [
                        {"name": "contributors.COUNT", "caption": "Count", "visible": True},
                        {"name": "Sales.SUM", "caption": "Sales", "visible": True},
                    ],
                }
            ],
        }
    ]
}  # fmt: skip
TREE = "[Place].[Towns].[ALL].[AllMember]"
SALES = {
    f"{TREE}": 60.0, f"{TREE}.[N]": 40.0, f"{TREE}.[N].[a]": 15.0, f"{TREE}.[N].[b]": 25.0,
    f"{TREE}.[S]": 20.0, f"{TREE}.[S].[c]": 20.0,
}  # fmt: skip
PATHS = (["AllMember"], ["AllMember", "N"], ["AllMember", "N", "a"], ["AllMember", "N", "b"],
         ["AllMember", "S"], ["AllMember", "S", "c"])  # fmt: skip


def axis(number: int, paths: list[list[dict[str, Any]]]) -> dict[str, Any]:
    return {"id": number, "hierarchies": [{"dimension": "Place", "hierarchy": "Towns"}], "positions": paths}


def member(path: list[str]) -> dict[str, Any]:
    return {"namePath": path, "captionPath": [f"The {part}" for part in path]}


def cellset(axes: list[dict[str, Any]], values: list[float | None]) -> dict[str, Any]:
    cells = [
        {
            "ordinal": place,
            "value": value,
            "formattedValue": f"{value:.2f}",
            "properties": {"BACK_COLOR": None},
        }
        for place, value in enumerate(values)
        if value is not None
    ]
    slicer = {"id": -1, "hierarchies": [], "positions": [[]]}
    return {"cube": "Shop", "axes": [slicer, *axes], "cells": cells, "defaultMembers": []}


def shop(request: httpx.Request) -> httpx.Response:
    """A server of one small cube; the tuples of a query are read by their text."""
    if request.url.path.endswith("/cube/discovery"):
        return httpx.Response(200, json=DISCOVERY)
    assert request.url.path == "/activeviam/pivot/rest/v9/cube/query/mdx"
    mdx = json.loads(request.content)["mdx"]
    if ".Members" in mdx:
        paths = [["2024"], ["2025"]] if "[Year].Members" in mdx else [list(path) for path in PATHS]
        return httpx.Response(200, json=cellset([axis(0, [[member(path)] for path in paths])], [1.0]))
    tuples = mdx[mdx.index("{(") + 2 : mdx.rindex(")}")].split("), (")
    values: list[float | None] = []
    for item in tuples:
        measure, place, year = item.split(", ")
        share = {"[Time].[Year].[Year].[2024]": 1.0, "[Time].[Year].[Year].[2025]": None}[year]
        counted = SALES[place] / 5 if "COUNT" in measure else SALES[place]
        values.append(None if share is None else counted)
    return httpx.Response(200, json=cellset([axis(0, [[member(["x"])]] * len(tuples))], values))


def measure(name: str, aggregator: str) -> MeasureDefinition:
    return MeasureDefinition(name, {"en": name}, aggregator, None, {}, "#,##0", 0, True)


DEFINITION = CubeDefinition(
    "Shop", {"en": "Shop"}, None, (),  # type: ignore[arg-type]
    (measure("contributors.COUNT", "count"), measure("Sales.SUM", "sum")), (), AT,
)  # fmt: skip
REMOTE = RemoteDefinition("atoti", "http://atoti.example:9090", "", "Shop", count="contributors.COUNT")


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.MockTransport:
    return httpx.MockTransport(answer)


def test_a_cube_by_its_documents() -> None:
    server = open_cube(DEFINITION, REMOTE, answering(shop))
    towns, years = server.discover().hierarchies
    assert towns.unique_names == tuple(SALES)
    assert towns.parent.tolist() == [-1, 0, 1, 1, 0, 4]
    assert towns.member_captions["en"][1] == "The N"
    assert (towns.has_all, years.has_all, years.time) == (True, False, True)
    text = (
        "WITH MEMBER [Measures].[Each] AS [Measures].[Sales.SUM] / [Measures].[contributors.COUNT] "
        "SELECT {[Measures].[Sales.SUM], [Each]} ON 0, NON EMPTY [Place].[Towns].[Town].Members ON 1 "
        "FROM Shop"
    )
    answer = server.execute(parse(text))
    assert answer.values[: answer.n_cells].tolist() == [15, 5, 25, 5, 20, 5]
    assert np.isnan(server.values(np.array([[1, 0, 1]], np.int32))).all()
    assert server.measure(np.array([[1, 1, 0]], np.int32), (), 2).count.tolist() == [8]
    assert server.fingerprint() == server.fingerprint()
    server.close()


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\ufffe", "\ud800"], ids=ascii)
@pytest.mark.parametrize("part", ["name", "caption"])
def test_members_that_no_file_can_hold_are_refused_by_name(odd: str, part: str) -> None:
    def spoilt(request: httpx.Request) -> httpx.Response:
        response = shop(request)
        if request.url.path.endswith("/cube/query/mdx"):
            old = "The b" if part == "caption" else '"b"'
            new = json.dumps(f"The b{odd}" if part == "caption" else f"b{odd}")
            text = response.text.replace(f'"{old}"' if part == "caption" else old, new)
            return httpx.Response(200, content=text.encode(), headers={"content-type": "application/json"})
        return response

    with pytest.raises(UserError, match=re.escape(f"control character U+{ord(odd):04X}")) as told:
        open_cube(DEFINITION, REMOTE, answering(spoilt))
    assert all(mistake.file == AT.file for mistake in told.value.mistakes)


def test_older_servers_wrap_the_cellset() -> None:
    inner = cellset([axis(0, [[member(["a"])], [member(["b"])]])], [1.5, None])
    for document in (inner, {"status": "success", "data": inner}):
        found = read_cellset(document)
        assert found.size == 2
        assert found.values == {0: 1.5}
        assert found.positions[0][1][0][0] == ("b",)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"data": None},
        {"axes": [], "cells": [{"value": 1}]},
        {"axes": [{"id": 0, "positions": [[{}]]}], "cells": []},
        cellset([axis(0, [[member(["a"])]])], [1.0, 2.0]),
    ],
)
def test_what_is_no_cellset(document: dict[str, Any]) -> None:
    with pytest.raises(OperatorError):
        read_cellset(document)


CHAIN = {"status": "error", "error": {"errorChain": [{"message": "outer"}, {"message": "No cube Shop"}]}}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: httpx.Response(401), "user or password"),
        (lambda _: httpx.Response(500, json=CHAIN), "No cube Shop"),
        (lambda _: httpx.Response(200, json=CHAIN), "No cube Shop"),
        (lambda _: httpx.Response(400, json={"detail": "Bad query"}), "Bad query"),
        (lambda _: httpx.Response(200, text="<html>"), "HTTP status 200"),
        (lambda _: httpx.Response(200, json={"catalogs": [{}]}), "discovery"),
    ],
)
def test_what_goes_wrong_is_said(answer: Callable[[httpx.Request], httpx.Response], told: str) -> None:
    with pytest.raises(OperatorError, match=told):
        open_cube(DEFINITION, REMOTE, answering(answer))


def test_what_a_server_does_not_have() -> None:
    wrong = RemoteDefinition("atoti", "http://x", "", "Elsewhere")
    with pytest.raises(UserError, match="It has Shop"):
        open_cube(DEFINITION, wrong, answering(shop))
    wrong = RemoteDefinition("atoti", "http://x", "", "Shop", hierarchies=("[Age].[Age]",), count="Heads")
    with pytest.raises(UserError) as caught:
        open_cube(DEFINITION, wrong, answering(shop))
    assert len(caught.value.mistakes) == 2


def test_contract_on_a_session_where_the_licence_starts_one() -> None:
    """Runs on a session of the `atoti` package; else says *not run* and checks that this is the truth."""
    why = _no_session()
    if why:
        warnings.warn(pytest.PytestWarning(f"atoti contract not run: {why}"), stacklevel=1)
        gone = RemoteDefinition("atoti", "http://127.0.0.1:9", "", "Shop", timeout=2.0)
        with pytest.raises(OperatorError, match="can't be reached"):
            open_cube(DEFINITION, gone)
        return
    import atoti
    import pandas as pd

    session = atoti.Session.start()
    frame = pd.DataFrame({"Region": ["N", "N", "S"], "Town": ["a", "b", "c"], "Sales": [15.0, 25.0, 20.0]})
    table = session.read_pandas(frame, table_name="Shop")
    cube = session.create_cube(table, mode="manual")
    cube.hierarchies["Place"] = [table["Region"], table["Town"]]
    cube.measures["Sales.SUM"] = atoti.agg.sum(table["Sales"])
    server = open_cube(
        DEFINITION, RemoteDefinition("atoti", session.url, "", "Shop", count="contributors.COUNT")
    )
    assert len(server.discover().hierarchies[0].keys) == 6
    answer = server.execute(parse("SELECT [Measures].[Sales.SUM] ON 0, [Town].Members ON 1 FROM Shop"))
    assert sorted(answer.values.tolist()) == [15, 20, 25]
    server.close()
    session.close()


def _no_session() -> str:
    """Why no session can be started; empty when one can."""
    if importlib.util.find_spec("atoti") is None:
        return "no licence (the package isn't installed)"
    start = [sys.executable, "-c", "import atoti; atoti.Session.start().close()"]
    done = subprocess.run(start, capture_output=True, text=True, timeout=200, check=False)
    return "" if done.returncode == 0 else f"no licence ({done.stderr.strip().splitlines()[-1:]})"
