"""The XMLA client: answers of several servers, faults, hostile XML, sessions, passwords, timeouts."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import httpx
import numpy as np
import pytest

from app.cli.serving import running
from app.cube.duckdb import open_cube as open_facts
from app.cube.port import CubeServer
from app.cube.remote import RemoteServer
from app.cube.xmla.client import Client
from app.cube.xmla.reading import FaultError, read_dataset, read_message, read_rows
from app.cube.xmla.server import open_cube
from app.domain.cube import Cube, Hierarchy, Level, Measure
from app.domain.errors import OperatorError, UserError
from app.domain.publication import CubeDefinition, MeasureDefinition, RemoteDefinition
from app.mdx import parse
from tests.cube import xmla_answers as answers
from tests.cube.engines import RawXmla
from tests.cube.office import AT, office


def client(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client("http://olap.example/xmla", transport=httpx.MockTransport(answer))


def test_cells_of_mondrian() -> None:
    dataset = read_dataset(read_message(answers.MONDRIAN_CELLS).root)
    assert [[m.unique_name for m in position] for position in dataset.axes[1]] == [
        ["[Store].[All Stores].[USA]"],
        ["[Store].[All Stores].[Mexico & Co]"],
    ]
    assert dataset.slicer[0].caption == "2024"
    assert [dataset.cells[n].value for n in range(3)] == [266773.0, 225627.2336, 1500.0]
    assert 3 not in dataset.cells


def test_cells_of_analysis_services() -> None:
    message = read_message(answers.SSAS_CELLS)
    assert message.session == "1A2B3C4D-0000-4E5F-8A9B-0C1D2E3F4A5B"
    dataset = read_dataset(message.root)
    berlin = dataset.axes[0][0][0]
    assert berlin.unique_name == "[Customer].[City].&[Berlin]&[BE]"
    assert berlin.properties["[Customer].[City].[City].[Size]"] == "3700000"
    assert dataset.slicer == ()
    assert dataset.cells[0].value is None
    assert dataset.cells[1].value == 2**53 - 1


def test_rows() -> None:
    rows = read_rows(read_message(answers.ROWS).root)
    assert rows == ({"CUBE_NAME": "Sales & more", "LAST UPDATE": "2026"}, {})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (answers.SSAS_FAULT, "The member was not found"),
        (answers.MONDRIAN_FAULT, r"\[Nowhere\]"),
        (answers.BROKEN_OFF, "Memory ran out"),
        (answers.CELL_ERROR, "Divided"),
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_faults_are_told(answer: bytes, told: str, status: int) -> None:
    asking = client(lambda _: httpx.Response(status, content=answer))
    with pytest.raises(FaultError, match=told):
        asking.execute("SELECT FROM [Shop]")


BOMB = (
    b"<!DOCTYPE a ["
    + b"".join(b'<!ENTITY e%d "%s">' % (n, (b"&e%d;" % (n - 1)) * 10 if n else b"ha") for n in range(12))
    + b"]><a>&e11;</a>"
)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html><body>It works</body></html>",
        b"<a",
        BOMB,
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + answers.ROWS.replace(b"2026", b"&x;"),
        answers.MONDRIAN_CELLS.replace(b'CellOrdinal="2"', b'CellOrdinal="4"'),
        answers.MONDRIAN_CELLS.replace(b'CellOrdinal="2"', b'CellOrdinal="two"'),
        answers.MONDRIAN_CELLS.replace(b"<Tuples>", b"<CrossProduct>").replace(
            b"</Tuples>", b"</CrossProduct>"
        ),
        answers.ROWS,
    ],
)
def test_rubbish_is_an_operators_error(answer: bytes) -> None:
    asking = client(lambda _: httpx.Response(200, content=answer))
    with pytest.raises(OperatorError) as caught:
        asking.execute("SELECT FROM [Shop]")
    assert "root:" not in str(caught.value)


def fails(error: type[httpx.HTTPError]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("s3cret at olap.example")

    return answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (fails(httpx.ConnectError), "can't be reached"),
        (fails(httpx.ReadTimeout), "too long"),
        (lambda _: httpx.Response(401), "user or password"),
        (lambda _: httpx.Response(503, text="busy"), "503"),
        (lambda _: httpx.Response(302, headers={"location": "http://elsewhere.example"}), "302"),
    ],
)
def test_what_the_network_does(answer: Callable[[httpx.Request], httpx.Response], told: str) -> None:
    with pytest.raises(OperatorError, match=told) as caught:
        client(answer).discover("DBSCHEMA_CATALOGS")
    assert "s3cret" not in str(caught.value)


def test_a_slow_server_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asking = Client(f"http://127.0.0.1:{silent.getsockname()[1]}/xmla", timeout=0.2)
        with pytest.raises(OperatorError, match="too long"):
            asking.discover("DBSCHEMA_CATALOGS")
        asking.close()


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CubeDefinition, CubeServer]]:
    definition = office(tmp_path_factory.mktemp("office"))
    server = open_facts(definition)
    yield definition, server
    server.close()


def remote(address: str, **more: object) -> RemoteDefinition:
    return replace(RemoteDefinition("xmla", f"{address}/xmla", "Celosia", "Tax"), **more)  # type: ignore[arg-type]


def test_sessions_and_passwords(
    facts: tuple[CubeDefinition, CubeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    definition, server = facts
    raw = RawXmla(server, "ana", "s3cret")
    variables = {"user_variable": "OLAP_USER", "password_variable": "OLAP_PASSWORD"}
    with running(raw.app) as address:
        with pytest.raises(UserError, match="OLAP_USER"):
            open_cube(definition, remote(address, **variables))
        monkeypatch.setenv("OLAP_USER", "ana")
        monkeypatch.setenv("OLAP_PASSWORD", "wrong")
        with pytest.raises(OperatorError, match="user or password") as caught:
            open_cube(definition, remote(address, **variables))
        assert "wrong" not in str(caught.value)
        monkeypatch.setenv("OLAP_PASSWORD", "s3cret")
        opened = open_cube(definition, remote(address, **variables))
        opened.close()
    begun = [number for number, request in enumerate(raw.asked) if request.begins_session]
    assert len(begun) == 1
    assert all(request.session == "s1" for request in raw.asked[begun[0] + 1 :])
    assert raw.asked[-1].ends_session


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cube": "Taxes"}, "It has Tax."),
        ({"hierarchies": ("[Sex]", "[Age]")}, r"no hierarchy \[Age\]"),
        ({"count": "Heads"}, "no measure Heads"),
    ],
)
def test_what_a_server_does_not_have(
    facts: tuple[CubeDefinition, CubeServer], change: dict[str, object], told: str
) -> None:
    definition, server = facts
    with running(RawXmla(server).app) as address, pytest.raises(UserError, match=told):
        open_cube(definition, remote(address, **change))


def test_some_hierarchies_only(facts: tuple[CubeDefinition, CubeServer]) -> None:
    definition, server = facts
    with running(RawXmla(server).app) as address:
        opened = open_cube(definition, remote(address, hierarchies=("[Place]",)))
        assert [tree.unique_name for tree in opened.discover().hierarchies] == ["[Place]"]
        opened.close()


class Numbers:
    """Cells by their first two names."""

    def __init__(self, values: dict[tuple[str, str], float]) -> None:
        self._values = values

    def values(self, tuples: list[list[str]]) -> np.ndarray:
        return np.array([self._values.get((item[0], item[1]), np.nan) for item in tuples])

    def version(self) -> str:
        return "1"

    def close(self) -> None:
        pass


def tiny(values: dict[tuple[str, str], float], top: dict[str, tuple[str, ...]]) -> RemoteServer:
    names = ("[Place].[All]", "[Place].[Town].&[a]", "[Place].[Town].&[b]")
    place = Hierarchy(
        "Place", "Place", "[Place]", {"en": "Place"},
        (Level("(All)", "[Place].[(All)]", {}), Level("Town", "[Place].[Town]", {"en": "Town"})),
        True, 0, ("", "a", "b"), names, {"en": ("All", "a", "b")},
        np.array([-1, 0, 0], np.int32), np.array([0, 1, 1], np.int32),
    )  # fmt: skip
    measures = [
        Measure("Firms", "[Measures].[Firms]", {"en": "Firms"}, "count", {}, "0", 0),
        Measure("Sales", "[Measures].[Sales]", {"en": "Sales"}, "sum", {}, "0", 0),
    ]
    definition = CubeDefinition(
        "Shop", {"en": "Shop"}, None, (),  # type: ignore[arg-type]
        tuple(MeasureDefinition(m.name, m.captions, m.aggregator, None, {}, "0", 0, True) for m in measures),
        (), AT,
    )  # fmt: skip
    there = RemoteDefinition("xmla", "http://x", "", "Shop", count="Firms", top=top)
    cube = Cube("Shop", {"en": "Shop"}, (place,), tuple(measures))
    return RemoteServer(definition, there, cube, Numbers(values))  # type: ignore[arg-type]


ALL, A, B = "[Place].[All]", "[Place].[Town].&[a]", "[Place].[Town].&[b]"
VALUES = {
    ("[Measures].[Firms]", ALL): 5.0, ("[Measures].[Firms]", A): 3.0, ("[Measures].[Firms]", B): 2.0,
    ("[Measures].[Sales]", ALL): 100.0, ("[Measures].[Sales]", A): 70.0, ("[Measures].[Sales]", B): 30.0,
    ("[Measures].[First]", ALL): 50.0, ("[Measures].[First]", A): 50.0, ("[Measures].[First]", B): 29.0,
    ("[Measures].[Second]", ALL): 29.0, ("[Measures].[Second]", A): 15.0, ("[Measures].[Second]", B): 1.0,
}  # fmt: skip


def test_profiles_that_measures_tell() -> None:
    server = tiny(VALUES, {"Sales": ("First", "Second")})
    found = server.measure(np.array([[1, 0], [1, 1], [1, 2]], np.int32), (), 2)
    assert found.count.tolist() == [5, 3, 2]
    assert found.top.tolist() == [[50, 29], [50, 15], [29, 1]]
    assert found.value.tolist() == [100, 70, 30]
    with pytest.raises(UserError, match="3 largest"):
        server.measure(np.array([[1, 0]], np.int32), (), 3)


def test_of_what_nothing_is_known_it_is_taken_for_one_contributors() -> None:
    found = tiny(VALUES, {}).measure(np.array([[1, 1], [0, 1]], np.int32), (), 3)
    assert found.top.tolist() == [[70, 0, 0], [1, 1, 1]]


def test_members_that_are_not_the_sum_of_their_children_are_refused() -> None:
    with pytest.raises(UserError, match="isn't the sum"):
        tiny({**VALUES, ("[Measures].[Sales]", B): 31.0}, {})


def test_without_a_count_there_are_no_profiles() -> None:
    server = tiny(VALUES, {})
    server._remote = replace(server._remote, count="")
    with pytest.raises(UserError, match=r"\[contributors\]"):
        server.measure(np.array([[1, 1]], np.int32), (), 2)


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "-1", "x", "1.0", " "], ids=map(str, range(6)))
@pytest.mark.parametrize("element", ["LEVEL_NUMBER", "MEMBER_ORDINAL", "CellOrdinal", "LNum"])
def test_what_a_server_gives_for_a_number_breaks_nothing(
    facts: tuple[CubeDefinition, CubeServer], element: str, number: str
) -> None:
    """One sentence, or an answer without what it was said of: nothing that nobody foresaw."""
    definition, server = facts
    raw = RawXmla(server)

    def spoilt(request: httpx.Request) -> httpx.Response:
        text = raw.respond(request.content).decode()
        text = re.sub(rf"<{element}>[^<]*</{element}>", f"<{element}>{number}</{element}>", text)
        text = re.sub(rf'{element}="[^"]*"', f'{element}="{number}"', text)
        return httpx.Response(200, content=text.encode())

    with suppress(OperatorError, UserError):
        opened = open_cube(definition, remote("http://olap.example"), httpx.MockTransport(spoilt))
        opened.execute(parse("SELECT [Measures].Members ON 0 FROM [Tax]"))
