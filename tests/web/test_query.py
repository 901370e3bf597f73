"""Readers' own queries: the form, the query in MDX, the answer as page and file, and by POST."""

from __future__ import annotations

import json
from io import StringIO

import httpx
import pandas as pd
import pytest
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.web.app import create_app
from app.web.builder import QUERY_FORMATS
from tests.web.office import MemoryStore, Office, key_of
from tests.web.visitor import BASE, ask, read_table

SELECT = "SELECT {[Measures].[Taxpayers]} ON COLUMNS, [Geography].[Town].Members ON ROWS FROM [Tax]"
WHERE = " WHERE ([Sex].[Sex].&[W], [Year].[Year].&[2022])"
UNKNOWN = "SELECT {[Measures].[Income]} ON COLUMNS, Descendants([Geography].[Region].&[N]) ON ROWS FROM [Tax]"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def site(store: MemoryStore) -> ASGIApp:
    return create_app(store, asker=query_asker())


def post(site: ASGIApp, mdx: str, **headers: str) -> httpx.Response:
    told = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return ask(site, "/api/v1/mdx", "POST", told, json.dumps({"mdx": mdx}).encode())


def submit(site: ASGIApp, page: httpx.Response, **choices: list[str]) -> httpx.Response:
    """Send the form that puts a table together, as a browser without scripts does."""
    form = html.fromstring(page.content).xpath("//form[@class='arrange']")[0]
    said = [("build", "1")]
    for control in form.xpath(".//select[@name!='cube'] | .//input[@type='checkbox']"):
        name = control.get("name")
        if control.tag == "input":
            wanted = control.get("value") in choices.get(name.replace(".", "_"), [])
            said += [(name, control.get("value"))] if wanted else []
        else:
            options = [option.get("value") for option in control.xpath("./option")]
            chosen = choices.get(name.replace(".", "_"), options[:1])
            assert set(chosen) <= set(options)
            said += [(name, value) for value in chosen]
    # The place on the page that a form leads to goes to no server.
    return ask(site, f"{form.get('action').partition('#')[0]}?{httpx.QueryParams(said)}")


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_table_is_put_together_without_scripts(site: ASGIApp, store: MemoryStore, language: str) -> None:
    page = ask(site, f"/{language}/query")
    assert page.status_code == 200
    answer = submit(
        site,
        page,
        measure=["[Measures].[Taxpayers]"],
        place_0=["rows"],
        level_0=["[Geography].[Town]"],
        place_1=["columns"],
        member_1=["[Sex].[Sex].&[W]", "[Sex].[Sex].&[M]"],
        place_2=["filter"],
        member_2=["[Year].[Year].&[2022]"],
    )
    assert answer.status_code == 200
    document = html.fromstring(answer.content)
    mdx = document.xpath("string(//textarea[@name='mdx'])").strip()
    assert "[Geography].[Town].Members ON ROWS" in " ".join(mdx.split())
    (table,) = document.xpath("//section[@id='answer']//table")
    cells = read_table(table)
    towns = [name for name in store.office.cube.hierarchies[0].unique_names if "[Town]" in name]
    assert len(cells) == 2 * len(towns)
    signs = {"hidden": "[c]", "empty": "–"}
    for cell, (town, sex) in zip(cells, ((t, s) for t in towns for s in "WM"), strict=True):
        key = ("[Measures].[Taxpayers]", town, f"[Sex].[Sex].&[{sex}]", "[Year].[Year].&[2022]")
        if key in store.office.hidden:
            assert cell.text == signs["hidden"]
        elif key in store.office.empty:
            assert cell.text == signs["empty"]
        else:
            assert float(cell.text) == store.office.truth[key]
    again = ask(site, document.xpath("//section[@id='answer']/p[last()]/a/@href")[0].removeprefix(BASE))
    assert read_table(html.fromstring(again.content).xpath("//section[@id='answer']//table")[0]) == cells
    links = document.xpath("//section[@id='answer']//ul[@class='downloads']//a/@href")
    assert len(links) == len(QUERY_FORMATS)
    for link in links:
        assert ask(site, link).status_code == 200, link


def test_a_time_that_is_not_used_is_the_latest_and_the_query_says_so(
    site: ASGIApp, store: MemoryStore
) -> None:
    years = store.office.cube.hierarchies[2].unique_names
    page = ask(site, "/en/query")
    unused = submit(site, page, measure=["[Measures].[Taxpayers]"], place_0=["rows"])
    told = submit(
        site,
        page,
        measure=["[Measures].[Taxpayers]"],
        place_0=["rows"],
        place_2=["filter"],
        member_2=[years[-1]],
    )
    assert f"WHERE ({years[-1]})" in html.fromstring(unused.content).xpath("string(//textarea[@name='mdx'])")
    tables = [
        html.fromstring(page.content).xpath("//section[@id='answer']//table")[0] for page in (unused, told)
    ]
    assert read_table(tables[0]) == read_table(tables[1]) != []
    across = submit(site, page, measure=["[Measures].[Taxpayers]"], place_2=["columns"])
    assert "WHERE" not in html.fromstring(across.content).xpath("string(//textarea[@name='mdx'])")


def test_lists_show_what_lies_in_what(site: ASGIApp) -> None:
    """A region and its town of the same name are told apart by how far in they stand."""
    one = ask(site, "/en/s/territory/places?pivot.table=1-2~~0")
    (box,) = html.fromstring(one.content).xpath("//select[@name='one.table.0']")
    texts = [option.text_content() for option in box.xpath("./option")]
    assert [len(text) - len(text.lstrip("\u2003")) for text in texts[:4]] == [0, 1, 2, 2]
    boxes = html.fromstring(ask(site, "/en/query").content).xpath("//input[@name='member.0']")
    assert [box.getparent().get("class") for box in boxes[:4]] == [None, "d1", "d2", "d2"]


@pytest.mark.parametrize(("language", "names"), [("en", ["Region", "Town"]), ("es", ["Region", "Town"])])
def test_a_level_without_a_name_of_its_own_has_its_hierarchys(
    site: ASGIApp, language: str, names: list[str]
) -> None:
    document = html.fromstring(ask(site, f"/{language}/query").content)

    def offered(number: int) -> list[str]:
        return [
            o.rpartition(": ")[2] for o in document.xpath(f"//select[@name='level.{number}']/option/text()")
        ]

    assert offered(0) == names
    assert offered(1) == [{"en": "Sex", "es": "Sexo"}[language]]
    assert offered(2) == [{"en": "Year", "es": "Año"}[language]]
    form = html.fromstring(ask(site, f"/{language}/s/territory/places?edit=table").content)
    modes = form.xpath("//select[@name='which.table.2']/option/text()")
    assert {"en": "Sex", "es": "Sexo"}[language] in modes


def test_a_program_gets_what_the_page_says_in_every_format(site: ASGIApp) -> None:
    response = post(site, SELECT + WHERE, accept="text/csv", accept_language="es")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["access-control-allow-origin"] == "*"
    address = f"/es/query.csv?{httpx.QueryParams(mdx=SELECT + WHERE)}"
    assert ask(site, address).content == response.content
    frame = pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)
    assert set(frame.OBS_STATUS) == {"A", "Q"} | (set(frame.OBS_STATUS) & {"M"})
    for form in QUERY_FORMATS:
        told = ask(
            site,
            f"/api/v1/mdx?format={form.extension}",
            "POST",
            {"content-type": "text/plain"},
            (SELECT + WHERE).encode(),
        )
        assert (told.status_code, told.headers["content-type"]) == (200, form.media_type)


def test_a_cell_that_no_table_shows_is_hidden_whatever_it_is() -> None:
    answers = []
    for value in (0.0, 41.0, 7_310_042.0):
        office = Office()
        town = "[Geography].[Town].&[N1]"
        cell = ("[Measures].[Taxpayers]", town, "[Sex].[Sex].&[W]", "[Year].[Year].&[2022]")
        assert office.truth.pop(cell) > 0
        store = MemoryStore(office)
        office.truth[cell] = value
        assert key_of(cell) not in store.live.keys
        wish = "SELECT {[Measures].[Taxpayers]} ON 0, {[Geography].[Town].&[N1]} ON 1 FROM [Tax]" + WHERE
        answers.append(post(create_app(store, asker=query_asker()), wish))
    assert len({(answer.content, str(answer.headers)) for answer in answers}) == 1
    document = json.loads(answers[0].text)
    assert (document["value"], document["status"]) == ([None], {"0": "O"})
    assert "no table of this release shows" in document["note"][0]


@pytest.mark.parametrize(
    ("kind", "body", "status", "word"),
    [
        ("application/json", b'{"mdx": "SELECT"}', 400, "errors"),
        ("application/json", b'{"mdx": "SELECT {[Nope]} ON 0 FROM [Tax]"}', 400, "errors"),
        ("application/json", b'{"mdx": "SELECT {} ON 0 FROM [Elsewhere]"}', 400, "errors"),
        ("application/json", b"{", 400, "mdx"),
        ("application/json", b"[]", 400, "mdx"),
        ("application/json", b"[" * 100_000, 400, "mdx"),
        ("application/json", b'{"mdx": 5}', 400, "mdx"),
        ("application/json", b'{"mdx": "\\ud800"}', 400, "ud800"),
        ("application/json", b'{"mdx": "SELECT {[\\udfff]} ON 0 FROM [Tax]"}', 400, "ud800"),
        ("text/plain", b"", 400, "mdx"),
        ("text/plain", b"\xff\xfe", 400, "mdx"),
        ("application/xml", b"<a/>", 415, "JSON"),
        ("text/plain", b"x" * 10_000_000, 413, ""),
    ],
)
@pytest.mark.parametrize("language", ["en", "es"])
def test_a_body_that_is_no_query_gets_one_sentence(
    site: ASGIApp, kind: str, body: bytes, status: int, word: str, language: str
) -> None:
    headers = {"content-type": kind, "accept-language": language}
    response = ask(site, "/api/v1/mdx", "POST", headers, body)
    assert response.status_code == status
    problem = json.loads(response.text)
    assert problem["status"] == status
    assert word in problem["title"]
    if word == "errors":
        assert problem["errors"][0]["cause"]


LARGE = "WITH MEMBER [Measures].[X] AS {} SELECT [Measures].[X] ON 0 FROM [Tax]"


@pytest.mark.parametrize(
    "formula",
    [
        "1" + "0" * 400,
        "1e400",
        "1e308 * 10",
        "10 ^ 400",
        "(0 - 10) ^ 401",
        "10 ^ 400 - 10 ^ 400",
        "Exp(1000)",
        "Power(10, 400)",
        "Sum({[Year].[Year].&[2021]}, [Measures].[Taxpayers] * 1e308)",
        "([Measures].[Taxpayers] * 1e300) * ([Measures].[Taxpayers] * 1e300)",
        "[Measures].[Taxpayers] ^ 400",
        "1e300 / ([Measures].[Taxpayers] * 1e-300)",
    ],
)
def test_a_number_larger_than_any_is_a_mistake_and_no_empty_cell(site: ASGIApp, formula: str) -> None:
    answer = post(site, LARGE.format(formula))
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert "too large" in error["cause"] or "out of range" in error["cause"]
    assert error["line"] == 1


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("0.1 ^ 400", 0.0),
        ("1e300 / 10", 1e299),
        ("Round(1.5, 1e10)", 1.5),
        ("Round([Measures].[Taxpayers] * 0 + 1.25, 400)", 1.25),
        ("IIF([Measures].[Taxpayers] >= 0, 3, Exp([Measures].[Taxpayers] * 1e6))", 3.0),
        ("0 ^ (0 - 1)", None),
        ("1 / 0", None),
    ],
)
def test_large_numbers_on_the_way_are_no_matter(site: ASGIApp, formula: str, value: float | None) -> None:
    answer = post(site, LARGE.format(formula))
    assert answer.status_code == 200
    assert answer.json()["value"] == [value if value is None else pytest.approx(value)]


@pytest.mark.parametrize(
    "formula",
    ["DatePart('', '2021-03-05')", "[Sex].CurrentMember.Properties('')", "CDate('')", "StrToMember('')"],
)
def test_a_mistake_about_an_empty_text_is_told_in_the_readers_language(site: ASGIApp, formula: str) -> None:
    mdx = f"WITH MEMBER [Measures].[X] AS {formula} SELECT {{[Measures].[X]}} ON 0 FROM [Tax]"
    english, spanish = (
        post(site, mdx, accept_language=language).json()["errors"][0]["cause"] for language in ("en", "es")
    )
    assert english != spanish


@pytest.mark.parametrize(
    ("method", "address", "body", "status"),
    [
        ("POST", "mdx?format=exe", b"SELECT", 400),
        ("POST", "mdx?", b"", 400),
        ("POST", "mdx?", b"S" * (1 << 20 | 1), 413),
        ("POST", "mdx?colour=red", b"SELECT", 400),
        ("GET", "mdx?", b"", 405),
        ("GET", "data/dataflow/*/Tax/*?limit=x", b"", 400),
        ("GET", "data/dataflow/*/Tax/*?format=exe", b"", 400),
        ("GET", "data/dataflow/*/Nope/*?", b"", 404),
        ("GET", "structure/dataflow/*/Tax/9?", b"", 404),
        ("GET", "dataflows?asOf=2020-01-01", b"", 404),
    ],
)
def test_a_refusal_is_in_the_language_that_the_address_names(
    site: ASGIApp, method: str, address: str, body: bytes, status: int
) -> None:
    told = {"content-type": "text/plain", "accept-language": "en"}
    answers = {
        language: ask(site, f"/api/v1/{address}&lang={language}", method, told, body)
        for language in ("en", "es", "xx")
    }
    assert {answer.status_code for answer in answers.values()} <= {status, 400}
    assert answers["es"].status_code == status
    assert answers["es"].json()["title"] != answers["en"].json()["title"]


@pytest.mark.parametrize(
    ("formula", "number"),
    [
        ('Format([Measures].[Income] / 3, "0.0")', "[Measures].[Income] / 3, FORMAT_STRING = '0.0'"),
        ('(Format([Measures].[Taxpayers], "0"))', "[Measures].[Taxpayers], FORMAT_STRING = '0'"),
        ('Format([Measures].[Taxpayers], "yes/no")', None),
        ('Format([Measures].[Taxpayers] - 1000000, "0;;\\\\-;none")', None),
        ('Format([Measures].[Income], "0") || " euros"', None),
        ('Format(NULL, "0")', None),
        ("CStr([Measures].[Income])", None),
        ('IIf([Measures].[Income] > 7000000, Format([Measures].[Income], "0"), "few")', None),
    ],
)
def test_texts_made_of_figures_are_answered_in_every_format(
    site: ASGIApp, formula: str, number: str | None
) -> None:
    mdx = f"WITH MEMBER [Measures].[X] AS {formula} {SELECT.replace('Taxpayers', 'X', 1)}{WHERE}"
    for form in QUERY_FORMATS:
        answer = ask(site, f"/en/query.{form.extension}?{httpx.QueryParams(mdx=mdx)}")
        assert answer.status_code == 200, (form.extension, formula)
    if number is not None:
        # A format alone is a number that is printed by it, as on sheets.
        assert post(site, mdx).json()["value"] == post(site, mdx.replace(formula, number)).json()["value"]


def test_what_a_mistake_says_again_is_short(site: ASGIApp) -> None:
    """However long a name or function is, so that the sentence is found in the reader's language too."""
    name = "x" * 100_000
    asked = (
        f"SELECT [{name}] ON 0 FROM [Tax]",
        f"SELECT {name}(1) ON 0 FROM [Tax]",
        f"SELECT @{name} ON 0 FROM [Tax]",
        f"SELECT [Geography].[{name}] ON 0 FROM [Tax]",
        f"SELECT [Geography]{'.&[x]' * 20_000} ON 0 FROM [Tax]",
        f"SELECT {'x.' * 20_000}x ON 0 FROM [Tax]",
        f"SELECT FROM [{name}]",
        f"SELECT [Year] DIMENSION PROPERTIES [{name}] ON 0 FROM [Tax]",
        f"WITH MEMBER [{name}] AS 1 SELECT FROM [Tax]",
    )
    for mdx in asked:
        english, spanish = (post(site, mdx, accept_language=code).json()["errors"] for code in ("en", "es"))
        assert len(english[0]["cause"]) < 300
        assert spanish[0]["cause"] != english[0]["cause"]


def test_a_mistake_in_a_query_is_told_on_the_page_with_its_place(site: ASGIApp) -> None:
    response = ask(site, f"/es/query?{httpx.QueryParams(mdx='SELECT {[Nope].[X]} ON 0 FROM [Tax]')}")
    assert response.status_code == 400
    document = html.fromstring(response.content)
    said = document.xpath("string(//*[@id='mistakes'])")
    assert "La consulta no se puede responder" in said
    assert "El cubo Tax no tiene nada llamado [Nope].[X]" in said
    assert document.xpath("//textarea/@aria-invalid") == ["true"]
    assert "[Nope].[X]" in document.xpath("string(//textarea)")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("build=1&measure=[Nope]", "[Nope]"),
        ("build=1&place.0=everywhere", "everywhere"),
        ("build=1&place.0=rows&member.0=[X]", "[X]"),
        ("build=1&place.0=rows&level.0=[X]", "[X]"),
        ("build=1&level.0=[X]", "[X]"),
        ("build=1&place.9=rows", "rows"),
        ("build=1&place.1=filter&member.1=[Sex].[Sex].%26[W]&member.1=[Sex].[Sex].%26[M]", "«Sexo»"),
        ("build=1&place.1=filter", "«Sexo»"),
        ("build=1&member.1=[Sex].[Sex].%26[W]", "Se han elegido miembros de «Sexo»"),
    ],
)
def test_a_choice_that_the_form_does_not_offer_gets_one_sentence(
    site: ASGIApp, query: str, word: str
) -> None:
    response = ask(site, f"/es/query?{query}")
    assert response.status_code == 400
    document = html.fromstring(response.content)
    assert word in document.xpath("string(//*[@role='alert'])")
    # The form stays, with what was chosen.
    assert document.xpath("//select[@name='place.1']")


def test_a_cube_that_there_is_not_is_named_and_another_begins_anew(site: ASGIApp) -> None:
    response = ask(site, "/es/query?cube=Nope")
    assert response.status_code == 400
    assert "Nope" in html.fromstring(response.content).xpath("string(//h1)")
    anew = ask(site, "/es/query?cube=Tax&fresh=1&place.1=rows&member.1=[Other].[X]&place.9=rows")
    assert anew.status_code == 200
    assert html.fromstring(anew.content).xpath("//select[@name='place.1']/option[@selected]/@value") == [""]


def test_a_site_that_takes_no_queries_has_no_such_addresses() -> None:
    quiet = create_app(MemoryStore())
    assert ask(quiet, "/en/query").status_code == 404
    assert post(quiet, SELECT).status_code == 405
    assert "query" not in ask(quiet, "/en/").text


def test_old_releases_answer_queries_too(site: ASGIApp) -> None:
    now, then = (
        post(site, SELECT + WHERE),
        ask(site, "/r/r1/api/v1/mdx", "POST", {"content-type": "text/plain"}, (SELECT + WHERE).encode()),
    )
    assert json.loads(then.text)["value"] == json.loads(now.text)["value"]
