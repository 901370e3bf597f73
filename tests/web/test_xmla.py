"""The XMLA endpoint over HTTP, as spreadsheets and OLAP clients talk to it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from itertools import product

import httpx
import numpy as np
import pytest

from app.cli.serving import running
from app.cube.xmla.client import Client
from app.cube.xmla.reading import Dataset, FaultError, read_message, read_rows
from app.domain.masked import CellStatus
from app.serve.adhoc import Adhoc
from app.web.app import create_app
from tests.web.office import MemoryStore

SOAP = (
    '<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/">{}'
    "<SOAP-ENV:Body>{}</SOAP-ENV:Body></SOAP-ENV:Envelope>"
)
XMLA = "urn:schemas-microsoft-com:xml-analysis"
STRUCTURE = (
    "DBSCHEMA_CATALOGS",
    "MDSCHEMA_CUBES",
    "MDSCHEMA_DIMENSIONS",
    "MDSCHEMA_HIERARCHIES",
    "MDSCHEMA_LEVELS",
    "MDSCHEMA_MEASURES",
    "MDSCHEMA_MEASUREGROUPS",
    "MDSCHEMA_MEASUREGROUP_DIMENSIONS",
    "MDSCHEMA_MEMBERS",
    "MDSCHEMA_PROPERTIES",
)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def address(store: MemoryStore) -> Iterator[str]:
    with running(create_app(store, asker=Adhoc())) as found:
        yield f"{found}/xmla"


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    opened = Client(address, properties={"Catalog": "Celosia"}, timeout=60)
    yield opened
    opened.close()


#: Not used over HTTP, but each request would make one, which takes longer than its answer.
TLS = ssl.create_default_context()


def post(address: str, body: str | bytes, **headers: str) -> httpx.Response:
    content = body.encode() if isinstance(body, str) else body
    headers = {"content-type": "text/xml", **headers}
    return httpx.post(address, content=content, headers=headers, timeout=60, verify=TLS)


def command(inner: str) -> str:
    return SOAP.format("", f'<Execute xmlns="{XMLA}"><Command>{inner}</Command><Properties/></Execute>')


def execute(statement: str, properties: str = "") -> str:
    escaped = statement.replace("&", "&amp;").replace("<", "&lt;")
    return SOAP.format(
        "",
        f'<Execute xmlns="{XMLA}"><Command><Statement>{escaped}</Statement></Command>'
        f"<Properties><PropertyList>{properties}</PropertyList></Properties></Execute>",
    )


def discover(rowset: str, restrictions: str = "", properties: str = "") -> str:
    return SOAP.format(
        "",
        f'<Discover xmlns="{XMLA}"><RequestType>{rowset}</RequestType>'
        f"<Restrictions><RestrictionList>{restrictions}</RestrictionList></Restrictions>"
        f"<Properties><PropertyList>{properties}</PropertyList></Properties></Discover>",
    )


def test_what_a_client_asks_first(client: Client) -> None:
    client.begin()
    (source,) = client.discover("DISCOVER_DATASOURCES")
    assert source["AuthenticationMode"] == "Unauthenticated"
    properties = {row["PropertyName"]: row["Value"] for row in client.discover("DISCOVER_PROPERTIES")}
    assert properties["StateSupport"] == "Sessions"
    assert client.discover("DISCOVER_PROPERTIES", {"PropertyName": "ProviderVersion"})[0]["Value"] == "1.1"
    rowsets = [row["SchemaName"] for row in client.discover("DISCOVER_SCHEMA_ROWSETS")]
    for rowset in rowsets:
        client.discover(rowset)
    assert {"MDSCHEMA_CUBES", "MDSCHEMA_MEMBERS", "DISCOVER_LITERALS"} <= set(rowsets)
    tables = client.discover("DBSCHEMA_TABLES", {"TABLE_TYPE": "TABLE"})
    assert [row["TABLE_NAME"] for row in tables] == ["Tax"]


def test_metadata_name_cubes_and_dimensions(address: str) -> None:
    asked = discover("DISCOVER_XML_METADATA", "<ObjectExpansion>ExpandFull</ObjectExpansion>")
    told = post(address, asked).text
    assert "<Cube><Name>Tax</Name>" in told
    assert "<Dimension><Name>Geography</Name>" in told


@pytest.mark.parametrize(
    ("body", "spanish"),
    [
        (
            execute("DRILLTHROUGH SELECT FROM Tax", "<LocaleIdentifier>3082</LocaleIdentifier>"),
            "registros individuales",
        ),
        (
            execute("SELECT FROM Tax", "<LocaleIdentifier>3082</LocaleIdentifier><Format>Odd</Format>"),
            "Format es",
        ),
        (
            discover("NOTHING", "", "<LocaleIdentifier>3082</LocaleIdentifier>"),
            "ningún conjunto de filas NOTHING",
        ),
    ],
)
def test_faults_are_in_the_language_of_the_client(address: str, body: str, spanish: str) -> None:
    assert spanish in post(address, body).text
    broken = httpx.post(address, content=b"<nothing", headers={"Accept-Language": "es"})
    assert "La petición no es XML" in broken.text


def test_structure(client: Client, store: MemoryStore) -> None:
    cube = store.office.cube
    rows = {rowset: client.discover(rowset, {"CUBE_NAME": "Tax"}) for rowset in STRUCTURE[1:]}
    assert [row["CUBE_NAME"] for row in rows["MDSCHEMA_CUBES"]] == ["Tax"]
    names = [row["HIERARCHY_UNIQUE_NAME"] for row in rows["MDSCHEMA_HIERARCHIES"]]
    assert names == ["[Measures]", *(tree.unique_name for tree in cube.hierarchies)]
    members = [row["MEMBER_UNIQUE_NAME"] for row in rows["MDSCHEMA_MEMBERS"]]
    own = [name for tree in cube.hierarchies for name in tree.unique_names]
    assert members == [*(measure.unique_name for measure in cube.measures), *own]
    assert {row["PROPERTY_NAME"] for row in rows["MDSCHEMA_PROPERTIES"]} == {"map_column", "map_row"}
    assert [row["LEVEL_NAME"] for row in rows["MDSCHEMA_LEVELS"]][1:4] == ["(All)", "Region", "Town"]
    assert [row["DIMENSION_TYPE"] for row in rows["MDSCHEMA_DIMENSIONS"]] == ["2", "3", "3", "1"]


@pytest.mark.parametrize(
    ("tree_op", "expected"),
    [
        (8, ["Norland"]),
        (1, ["Abeto", "Boj & Sons", "Cedro"]),
        (2, ["Sudland", "Estmark", "Westmark"]),
        (4, ["Whole country"]),
        (16, ["Abeto", "Boj & Sons", "Cedro"]),
        (32 | 8, ["Whole country", "Norland"]),
    ],
)
def test_relatives_of_a_member(client: Client, tree_op: int, expected: list[str]) -> None:
    restrictions = {"MEMBER_UNIQUE_NAME": "[Geography].[Region].&[N]", "TREE_OP": str(tree_op)}
    rows = client.discover("MDSCHEMA_MEMBERS", restrictions)
    assert [row["MEMBER_CAPTION"] for row in rows] == expected


@pytest.mark.parametrize(
    ("rowset", "restriction"),
    [
        ("MDSCHEMA_FUNCTIONS", "<ORIGIN>1</ORIGIN><LIBRARY_NAME>x</LIBRARY_NAME>"),
        ("MDSCHEMA_ACTIONS", "<ACTION_TYPE>1</ACTION_TYPE><INVOCATION>1</INVOCATION>"),
        ("MDSCHEMA_KPIS", "<CATALOG_NAME>Celosia</CATALOG_NAME><CUBE_SOURCE>1</CUBE_SOURCE>"),
        ("MDSCHEMA_SETS", "<CUBE_NAME>Tax</CUBE_NAME><SCOPE>1</SCOPE><CUBE_SOURCE>1</CUBE_SOURCE>"),
    ],
)
def test_what_isnt_there_may_be_asked_for_by_every_restriction(
    address: str, rowset: str, restriction: str
) -> None:
    found = post(address, discover(rowset, restriction))
    assert found.status_code == 200
    assert read_rows(read_message(found.content).root) == ()


def test_the_languages_of_a_client(address: str) -> None:
    asked = discover("MDSCHEMA_CUBES", properties="<LocaleIdentifier>3082</LocaleIdentifier>")
    assert "Impuesto" in post(address, asked).text
    assert "Impuesto" in post(address, discover("MDSCHEMA_CUBES"), **{"accept-language": "es"}).text
    assert "<CUBE_CAPTION>Tax<" in post(address, discover("MDSCHEMA_CUBES")).text


def cells_of(dataset: Dataset) -> list[tuple[tuple[str, ...], float | str | None, str]]:
    found = []
    for ordinal, position in enumerate(product(*dataset.axes[::-1])):
        names = tuple(member.unique_name for part in position for member in part)
        cell = dataset.cells.get(ordinal)
        found.append((names, cell.value if cell else None, cell.text if cell else ""))
    return found


def test_cells_are_the_released_ones(client: Client, store: MemoryStore) -> None:
    office = store.office
    dataset = client.execute(
        "SELECT NON EMPTY {[Measures].Members} ON COLUMNS, "
        "NON EMPTY Hierarchize({[Geography].Members}) * {[Sex].Members} "
        "DIMENSION PROPERTIES PARENT_UNIQUE_NAME, [Geography].[Town].[map_row] ON ROWS "
        "FROM [Tax] WHERE ([Year].[Year].&[2022]) CELL PROPERTIES VALUE, FORMATTED_VALUE, FORE_COLOR"
    )
    met: set[str] = set()
    for (place, sex, measure), value, text in cells_of(dataset):
        cell = (measure, place, sex, "[Year].[Year].&[2022]")
        if cell in office.hidden:
            assert (value, text) == (None, "[c]")
            met.add("hidden")
        elif cell in office.empty:
            assert (value, text) == (None, "")
        else:
            assert value == office.truth[cell]
            assert text
            met.add("shown")
    assert met == {"hidden", "shown"}
    assert dataset.slicer[0].unique_name == "[Year].[Year].&[2022]"
    town = next(p[0] for p in dataset.axes[1] if p[0].depth == 2)
    assert town.properties["PARENT_UNIQUE_NAME"].startswith("[Geography].[Region]")
    assert town.properties["map_row"].isdigit()


PIVOTS = [
    # The forms in which a spreadsheet's pivot table asks.
    "SELECT NON EMPTY CrossJoin(Hierarchize({DrilldownLevel({[Geography].[All]},,,INCLUDE_CALC_MEMBERS)}), "
    "{[Measures].[Taxpayers],[Measures].[Income]}) DIMENSION PROPERTIES PARENT_UNIQUE_NAME,"
    "HIERARCHY_UNIQUE_NAME ON COLUMNS FROM [Tax] CELL PROPERTIES VALUE, FORMAT_STRING, LANGUAGE, "
    "BACK_COLOR, FORE_COLOR, FONT_FLAGS",
    "SELECT NON EMPTY Hierarchize(DrilldownMember({{DrilldownLevel({[Geography].[All]},,,"
    "INCLUDE_CALC_MEMBERS)}}, {[Geography].[Region].&[N]},,,INCLUDE_CALC_MEMBERS)) "
    "DIMENSION PROPERTIES PARENT_UNIQUE_NAME ON COLUMNS, "
    "NON EMPTY {[Sex].[Sex].AllMembers} ON ROWS FROM (SELECT ({[Sex].[Sex].&[W]}) ON COLUMNS FROM [Tax]) "
    "WHERE ([Measures].[Taxpayers]) CELL PROPERTIES VALUE, FORMAT_STRING",
    "WITH MEMBER [Measures].[XL_PATH] AS Generate(Ascendants([Geography].CurrentMember), "
    "[Geography].CurrentMember.UniqueName, '__XLPSEP') "
    "SELECT {[Measures].[XL_PATH]} ON 0, {[Geography].[Town].&[N1]} ON 1 FROM [Tax]",
    "SELECT FROM [Tax]",
    "SELECT {} ON 0, [Sex].Members ON 1 FROM [Tax]",
    "SELECT Order([Geography].[Town].Members, [Measures].[Income], BDESC) ON 0 FROM [Tax]",
    "SELECT TopCount([Geography].[Town].Members, 3, [Measures].[Income]) ON 0 FROM [Tax]",
    "WITH MEMBER [Measures].[Mean] AS [Measures].[Income] / [Measures].[Taxpayers], FORMAT_STRING = '0.0' "
    "SELECT [Measures].AllMembers ON 0, [Geography].Members ON 1 FROM [Tax]",
    # Their filters by label, by value and by rank, and those of older ones.
    "SELECT NON EMPTY Hierarchize({DrilldownLevel({[Geography].[All]},,,INCLUDE_CALC_MEMBERS)}) "
    "DIMENSION PROPERTIES PARENT_UNIQUE_NAME,HIERARCHY_UNIQUE_NAME ON COLUMNS FROM (SELECT "
    "Filter([Geography].Levels(1).AllMembers, (InStr(1,[Geography].CurrentMember.MEMBER_CAPTION,"
    '"land")>0)) ON COLUMNS FROM [Tax]) WHERE ([Measures].[Taxpayers])',
    "SELECT {[Measures].[Taxpayers]} ON COLUMNS FROM (SELECT Filter([Geography].Levels(2).AllMembers, "
    "([Measures].[Taxpayers]>10)) ON COLUMNS FROM [Tax])",
    "SELECT {[Measures].[Taxpayers]} ON COLUMNS FROM (SELECT TopCount([Geography].Levels(2).AllMembers, 2, "
    "[Measures].[Taxpayers]) ON COLUMNS FROM [Tax])",
    "WITH SET [XL_Row_Dim_0] AS 'VisualTotals(Distinct(Hierarchize({Ascendants([Geography].[Region].&[N]), "
    "Descendants([Geography].[Region].&[N])})))' SELECT NON EMPTY Hierarchize(Intersect({DrilldownLevel("
    "{[Geography].[All]})}, [XL_Row_Dim_0])) DIMENSION PROPERTIES PARENT_UNIQUE_NAME, MEMBER_TYPE ON COLUMNS "
    "FROM [Tax] WHERE ([Measures].[Taxpayers])",
]


@pytest.mark.parametrize("mdx", PIVOTS)
def test_no_hidden_number_in_any_answer(address: str, store: MemoryStore, mdx: str) -> None:
    """Hidden cells hold unmistakable numbers; neither they nor what they add to stand anywhere."""
    hidden = {store.office.truth[cell] for cell in store.office.hidden}
    for form in ("Multidimensional", "Tabular"):
        answer = post(address, execute(mdx, f"<Format>{form}</Format>"))
        assert answer.status_code == 200
        read_message(answer.content)
        numbers = {float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*(?:\.\d+)?", answer.text)}
        assert not numbers & hidden
        assert "731" not in answer.text.replace("3731", "")


def test_filters_of_pivot_tables_choose_by_label(client: Client) -> None:
    for query in (PIVOTS[8], PIVOTS[11]):
        captions = [position[0].caption for position in client.execute(query).axes[0]]
        land = ["Norland", "Sudland"] if query is PIVOTS[8] else ["Norland"]
        assert sorted(captions[1:]) == land


def test_words_and_empty_axes(client: Client) -> None:
    path = client.execute(PIVOTS[2]).cells[0].value
    assert path == "[Geography].[Town].&[N1]__XLPSEP[Geography].[Region].&[N]__XLPSEP[Geography].[All]"
    assert client.execute(PIVOTS[4]).axes[0] == ()
    whole = client.execute(PIVOTS[3])
    assert whole.axes == ()
    assert whole.size == 1


def test_display_info_tells_what_is_drilled(address: str) -> None:
    text = post(address, execute("SELECT DrilldownLevel({[Sex].[All]}) ON 0 FROM [Tax]")).text
    assert re.findall("<DisplayInfo>([0-9]+)<", text)[:3] == [str(2 | 0x10000), "0", str(0x20000)]


def test_tables(client: Client, store: MemoryStore) -> None:
    rows = client.table(
        "SELECT [Measures].Members ON 0, [Geography].Members ON 1 FROM [Tax] WHERE [Year].[Year].&[2023]"
    )
    towns = [row for row in rows if "[Geography].[Town].[MEMBER_CAPTION]" in row]
    assert len(towns) == 9
    for row in towns:
        assert row["[Geography].[Region].[MEMBER_CAPTION]"] in ("Norland", "Sudland", "Estmark", "Westmark")
    shown = int((store.live.status == CellStatus.SHOWN).sum())
    values = [float(row["[Measures].[Income]"]) for row in rows if "[Measures].[Income]" in row]
    assert 0 < len(values) < shown
    assert set(values) <= set(store.live.values[np.isfinite(store.live.values)].tolist())


@pytest.mark.parametrize(
    ("content", "schema", "data"),
    [("Schema", True, False), ("Data", False, True), ("SchemaData", True, True), ("None", False, False)],
)
def test_contents(address: str, content: str, schema: bool, data: bool) -> None:
    wanted = f"<Content>{content}</Content>"
    for asked in (
        discover("MDSCHEMA_CUBES", "", wanted),
        execute("SELECT [Sex].Members ON 0 FROM Tax", wanted),
    ):
        text = post(address, asked).text
        assert ("xsd:schema" in text) == schema
        assert ("<row>" in text or "<CellData>" in text) == data


def test_a_part_of_the_cells(address: str) -> None:
    part = "<BeginRange>1</BeginRange><EndRange>2</EndRange>"
    text = post(address, execute("SELECT [Year].Members ON 0 FROM Tax", part)).text
    assert re.findall('CellOrdinal="([0-9]+)"', text) == ["1", "2"]


@pytest.mark.parametrize("many", ["9" * 10, "9" * 21, "9" * 5000, "0" * 30 + "9"])
def test_a_part_may_end_behind_the_last_cell(address: str, many: str) -> None:
    for first, last, found in (("1", many, ["1", "2"]), (many.lstrip("0") * 2, many, [])):
        part = f"<BeginRange>{first}</BeginRange><EndRange>{last}</EndRange>"
        text = post(address, execute("SELECT [Year].Members ON 0 FROM Tax", part)).text
        assert "Fault" not in text
        assert re.findall('CellOrdinal="([0-9]+)"', text) == found


def test_faults_are_in_the_clients_language(address: str) -> None:
    text = post(address, execute("SELECT [Nope] ON 0 FROM Tax"), **{"accept-language": "es"}).text
    assert "El cubo Tax no tiene nada llamado [Nope]" in text
    spanish = "<LocaleIdentifier>3082</LocaleIdentifier>"
    assert "El cubo Tax no tiene" in post(address, execute("SELECT [Nope] ON 0 FROM Tax", spanish)).text


def test_sessions(address: str) -> None:
    header = f'<SOAP-ENV:Header><BeginSession xmlns="{XMLA}" SOAP-ENV:mustUnderstand="1"/></SOAP-ENV:Header>'
    body = f'<Execute xmlns="{XMLA}"><Command><Statement/></Command><Properties/></Execute>'
    begun = read_message(post(address, SOAP.format(header, body)).content)
    assert len(begun.session) == 32
    header = f'<SOAP-ENV:Header><Session xmlns="{XMLA}" SessionId="{begun.session}"/></SOAP-ENV:Header>'
    asked = f'<Discover xmlns="{XMLA}"><RequestType>DBSCHEMA_CATALOGS</RequestType></Discover>'
    assert read_message(post(address, SOAP.format(header, asked)).content).session == begun.session


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DRILLTHROUGH SELECT [Sex].Members ON 0 FROM Tax", "drillthrough"),
        ("/* why */ drillthrough SELECT FROM Tax", "drillthrough"),
        ("CREATE SESSION SET x AS {}", "SELECT or WITH"),
        ("DROP MEMBER [Tax].[Measures].[X]", "DROP isn't offered here"),
        ("drop cube [Tax]", "DROP isn't offered here"),
        ("-- tidy up\n/* now */ DROP SESSION SET x", "DROP isn't offered here"),
        ("ALTER CUBE [Tax] UPDATE DIMENSION [Sex]", "ALTER isn't offered here"),
        ("UPDATE CUBE [Tax] SET ([Measures].[Taxpayers]) = 1", "UPDATE isn't offered here"),
        ("REFRESH CUBE [Tax]", "REFRESH isn't offered here"),
        ("CALL Sentences()", "CALL isn't offered here"),
        ("SELECT [Sex].Members ON 0 FROM Tax; DROP CUBE Tax", "has no meaning"),
        ("{DROP}", "SELECT or WITH"),
        (f"{'DROP' * 30} CUBE Tax", "SELECT or WITH"),
        ("-- nothing but this", "SELECT or WITH"),
        ("SELECT [Sex].[Nobody] ON 0 FROM Tax", "1:8"),
        ("SELECT [Sex].Members ON 0 FROM Elsewhere", "There is Tax."),
        ("SELECT", "expected"),
    ],
)
def test_refused_statements_are_faults(client: Client, statement: str, told: str) -> None:
    with pytest.raises(FaultError, match=re.compile(re.escape(told), re.IGNORECASE)):
        client.execute(statement)


BOMB = (
    "<!DOCTYPE a ["
    + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(12))
    + "]>"
)
FOREIGN = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"<a/>",
        b"\xff\xfe<\x00a",
        SOAP.format("", "").encode(),
        SOAP.format("", "<Else/>").encode(),
        SOAP.format("", f'<Execute xmlns="{XMLA}"/>').encode(),
        (
            BOMB + SOAP.format("", f'<Discover xmlns="{XMLA}"><RequestType>&e11;</RequestType></Discover>')
        ).encode(),
        (
            FOREIGN + SOAP.format("", f'<Discover xmlns="{XMLA}"><RequestType>&x;</RequestType></Discover>')
        ).encode(),
        SOAP.format("", "<a>" * 300 + "</a>" * 300).encode(),
        SOAP.format("", "<Discover>" + "<a/>" * 30_000 + "</Discover>").encode(),
    ],
)
def test_rubbish_is_a_fault(address: str, body: bytes) -> None:
    answer = post(address, body)
    assert answer.status_code == 400
    assert "<faultstring>" in answer.text
    assert "root:" not in answer.text
    assert "hahaha" not in answer.text


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (discover("MDSCHEMA_NOTHING"), "MDSCHEMA_NOTHING"),
        (discover(""), "Discover has no RequestType"),
        (discover("MDSCHEMA_CUBES", "<COLOUR>red</COLOUR>"), "COLOUR"),
        (execute("SELECT FROM Tax", "<Format>Spoken</Format>"), "Format"),
        (execute("SELECT FROM Tax", "<Content>Some</Content>"), "Content"),
        (execute("SELECT FROM Tax", "<Catalog>Other</Catalog>"), "Celosia"),
        (execute("SELECT FROM Tax", "<BeginRange>x</BeginRange>"), "beginrange"),
        (command("<Alter/>"), "Alter"),
        (command("<Drop/>"), "Drop"),
        (command("DROP CUBE Tax"), "one Statement"),
        (command("<Statement/>DROP CUBE Tax"), "one Statement"),
        (command("<Statement/><Drop/>"), "Drop"),
        (command("<Statement/><Statement>DROP CUBE Tax</Statement>"), "one Statement"),
        (command("<Statement><Drop/></Statement>"), "no elements within"),
        (command("<Statement>DROP CUBE Tax</Statement>"), "DROP"),
    ],
)
def test_wrong_requests_are_faults(address: str, asked: str, told: str) -> None:
    answer = post(address, asked)
    assert answer.status_code in (200, 400)
    with pytest.raises(FaultError, match=told):
        read_message(answer.content)


#: What isn't a number, or one that no machine holds, although Python's ``isdigit`` calls some of them digits.
NUMBERS = ("\u00b2", "\u2460\u2461", "\u0663", "9" * 5000, "-1", "1e9", " ", "", "0x10", "--1", "-")


@pytest.mark.parametrize("number", NUMBERS, ids=map(str, range(len(NUMBERS))))
def test_no_property_or_restriction_breaks_the_server(address: str, client: Client, number: str) -> None:
    properties = [row["PropertyName"] for row in client.discover("DISCOVER_PROPERTIES")]
    for name in properties:
        asked = f"<{name}>{number}</{name}>"
        for body in (execute("SELECT FROM Tax", asked), discover("MDSCHEMA_CUBES", "", asked)):
            assert post(address, body).status_code in (200, 400), name
    for row in read_rows(read_message(post(address, discover("DISCOVER_SCHEMA_ROWSETS")).content).root):
        names = {"TREE_OP"} if row["SchemaName"] == "MDSCHEMA_MEMBERS" else set()
        for name in names | set(re.findall(r"[A-Z_a-z]+", row.get("Restrictions", ""))):
            member = "<MEMBER_UNIQUE_NAME>[Geography].[Region].&amp;[N]</MEMBER_UNIQUE_NAME>"
            asked = f"{member}<{name}>{number}</{name}>"
            assert post(address, discover(row["SchemaName"], asked)).status_code in (200, 400), name


def test_too_large_a_message(address: str) -> None:
    answer = post(address, b"<" + b"x" * (10 << 20))
    assert answer.status_code == 413
    assert "1 MB" in answer.text


def test_browsers_may_ask(address: str) -> None:
    answer = httpx.options(address)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "SOAPAction" in answer.headers["access-control-allow-headers"]


def test_without_a_release_there_is_nothing(store: MemoryStore) -> None:
    none = MemoryStore()
    none.live = None  # type: ignore[assignment]
    with running(create_app(none, asker=Adhoc())) as found:
        assert post(f"{found}/xmla", discover("MDSCHEMA_CUBES")).status_code == 503
