"""Fields of addresses: a slip is told by name and leads on, what others append to links changes nothing."""

from __future__ import annotations

import json

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.visitor import ask

PLACES = "/en/s/territory/places"
CUBE = "/api/v1/data/dataflow/*/Tax/1.0.0"
FLOW = "/api/v1/data/dataflow/*/territory_places_table/1.0.0"
DIMENSIONS = FLOW.replace("data", "structure", 1)
APPENDED = "utm_source=letter&utm_medium=mail&fbclid=Iw%2BAR0&gclid=x&gclid=y&mtm_campaign=1"


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore(), asker=query_asker())


@pytest.mark.parametrize(
    ("path", "wrong", "nearest"),
    [
        (f"{PLACES}?p.yaer=2021", "p.yaer", "p.year"),
        (f"{PLACES}?year=2021", "year", "p.year"),
        (f"{PLACES}?p.year=2021&sort.tabel=1", "sort.tabel", "sort.table"),
        (f"{PLACES}?chart.nothing=bar", "chart.nothing", "chart.table"),
        (f"{PLACES}?pick.tabel.0=N", "pick.tabel.0", "pick.table.0"),
        (f"{PLACES}?lang=xx", "lang", ""),
        (f"{PLACES}?p.year=2021&p.yaer=2022", "p.yaer", "p.year"),
        (f"{PLACES}/table.csv?p.yaer=2021", "p.yaer", "p.year"),
        ("/en/embed/territory/places/table?p.yaer=2021", "p.yaer", "p.year"),
        ("/en/search?p=income", "p", ""),
        ("/en/?asof=2026-11-27", "asof", "asOf"),
        ("/?lang=es", "lang", ""),
        ("/en/f/territory?sort=1", "sort", ""),
        ("/en/confidentiality?x=1", "x", ""),
        ("/en/api?x=1", "x", ""),
        ("/en/query?cubes=Tax", "cubes", "cube"),
        ("/en/query.csv?mdy=SELECT+FROM+[Tax]", "mdy", "mdx"),
        ("/en/feed.atom?p.year=1", "p.year", ""),
        ("/catalog.ttl?lang=en", "lang", ""),
        (f"{PLACES}?{'a' * 3000}=1", "aaa", ""),
        (f"{PLACES}?%3Cscript%3E=1", "<script>", ""),
    ],
)
def test_a_slip_is_told_by_name_and_leads_on(site: ASGIApp, path: str, wrong: str, nearest: str) -> None:
    for language in ("en", "es"):
        response = ask(site, path.replace("/en/", f"/{language}/"), headers={"accept-language": language})
        assert response.status_code == 400
        heading = html.fromstring(response.content).xpath("string(//h1)")
        assert wrong in heading
        assert (f"“{nearest}”" in heading or f"«{nearest}»" in heading) is bool(nearest)
        assert ("parameter" if language == "en" else "parámetro") in heading
    ways = html.fromstring(response.content).xpath("//main//a[@rel='nofollow']/@href")
    assert ways
    assert all(ask(site, way).status_code in (200, 307, 404) for way in ways)
    assert any(f"{nearest}=" in way for way in ways) is bool(nearest)


@pytest.mark.parametrize(
    ("path", "wrong", "nearest"),
    [
        (f"{CUBE}?lag=en", "lag", "lang"),
        (f"{CUBE}?Sexx=W", "Sexx", "Sex"),
        (f"{CUBE}?starPeriod=2021", "starPeriod", "startPeriod"),
        ("/api/v1/dataflows?limits=1", "limits", "limit"),
        ("/api/v1/catalogue.json?limit=1", "limit", ""),
        ("/api/v1/structure/Tax.json?x=1", "x", ""),
        (f"{CUBE}?p.year=2021", "p.year", ""),
        (f"{FLOW}?p.yaer=2021", "p.yaer", "p.year"),
        (f"{DIMENSIONS}?p.yaer=2021", "p.yaer", "p.year"),
        (f"{DIMENSIONS}?format=csv", "format", ""),
    ],
)
def test_programs_are_told_the_same(site: ASGIApp, path: str, wrong: str, nearest: str) -> None:
    response = ask(site, path)
    assert response.status_code == 400
    title = json.loads(response.text)["title"]
    assert f"“{wrong}”" in title
    assert (f"“{nearest}”" in title) is bool(nearest)


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (f"{PLACES}?chart.table=pie", "chart.table", "pie"),
        (f"{PLACES}?sort.table=x", "sort.table", "x"),
        (f"{PLACES}?page.table=0", "page.table", "0"),
        (f"{PLACES}?totals.table=maybe", "totals.table", "maybe"),
        (f"{PLACES}?pivot.table=1", "pivot.table", "1"),
        (f"{PLACES}?edit=tabel", "edit", "tabel"),
        (f"{PLACES}?edit=tabel&which.table.0=level:1", "edit", "tabel"),
        (f"{PLACES}?which.table.0=some", "which.table.0", "some"),
        (f"{PLACES}?place.table.0=above&which.table.0=", "place.table.0", "above"),
        (f"{PLACES}?edit=table&find.table.0=a&part.table.0=two", "part.table.0", "two"),
        (f"{PLACES}?spot.table.row=first&spot.table.column=1", "spot.table.row", "first"),
        (f"{PLACES}?asOf=yesterday", "asOf", "yesterday"),
        ("/en/?asOf=2026-13-01", "asOf", "2026-13-01"),
        ("/en/query?part.0=two", "part.0", "two"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(site: ASGIApp, path: str, field: str, value: str) -> None:
    response = ask(site, path)
    assert response.status_code == 400
    heading = html.fromstring(response.content).xpath("string(//h1)")
    assert field in heading
    assert value in heading


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (f"{CUBE}?startPeriod=spring", "startPeriod", "spring"),
        (f"{CUBE}?endPeriod=", "endPeriod", ""),
        (f"{CUBE}?asOf=yesterday", "asOf", "yesterday"),
    ],
)
def test_programs_are_told_the_field_too(site: ASGIApp, path: str, field: str, value: str) -> None:
    response = ask(site, path)
    assert response.status_code == 400
    assert json.loads(response.text)["title"] == f"“{field}” can't be “{value}”."


def test_a_period_that_there_is_not_is_one_all_the_same(site: ASGIApp) -> None:
    for period in ("1999", "2022-Q1", "2022-01-31", "2022"):
        assert ask(site, f"{CUBE}?startPeriod={period}").status_code == 200


@pytest.mark.parametrize("ending", ["page", "file", "embed"])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("pick.table.0=E2:E1", "“E2:E1” runs backwards"),
        ("pick.table.0=N,S2:S1", "“S2:S1” runs backwards"),
        ("pick.table.0=level:7", "“level:7” doesn't say which"),
        ("pick.table.0=level:", "“level:” doesn't say which"),
        ("pick.table.2=last:2", "“last:2” doesn't say which"),
        ("pick.table.2=from:W", "“from:W” doesn't say which"),
        ("sort.table=7", "no column 7"),
        ("pick.table.3=W", "no parameter “pick.table.3”"),
        ("pick.table.00=N", "no parameter “pick.table.00”"),
        ("fold.table.9=N", "no parameter “fold.table.9”"),
        ("look.table.9=1", "no parameter “look.table.9”"),
    ],
)
def test_a_value_that_means_nothing_is_refused_and_not_left_aside(
    site: ASGIApp, ending: str, fields: str, words: str
) -> None:
    paths = {"page": PLACES, "file": f"{PLACES}/table.csv", "embed": "/en/embed/territory/places/table"}
    response = ask(site, f"{paths[ending]}?{fields}")
    assert response.status_code == 400
    assert words in html.fromstring(response.content).xpath("string(//h1)")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("which.table.9=level:1", "no parameter “which.table.9”"),
        ("spot.table.column=1", "no figure in row 0"),
        ("spot.table.row=99&spot.table.column=1", "no figure in row 99 and column 1"),
    ],
)
def test_what_a_form_does_not_offer_is_refused(site: ASGIApp, fields: str, words: str) -> None:
    response = ask(site, f"{PLACES}?{fields}")
    assert response.status_code == 400
    assert words in html.fromstring(response.content).xpath("string(//h1)")


def test_periods_are_counted_and_none_is_no_count(site: ASGIApp) -> None:
    years = "/en/s/time/years?pick.table.2="
    assert ask(site, f"{years}last:2").status_code == 200
    assert ask(site, f"{years}from:2022").status_code == 200
    for pick in ("last:0", "last:00000000000005", "last:9999999", "2023:2021", "level:1"):
        assert ask(site, f"{years}{pick}").status_code == 400


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_chart_that_the_figures_do_not_allow_is_said(site: ASGIApp, language: str) -> None:
    """Neither refused, since other members or a later release may bring it, nor left aside."""
    word = {"en": "can't be drawn as “Lines”", "es": "no se pueden dibujar como «Líneas»"}[language]
    for path, said in (
        ("places?chart.table=line", 1),
        ("places?chart.bars=pyramid", 0),
        ("map?chart.map=line", 1),
    ):
        response = ask(site, f"/{language}/s/territory/{path}")
        assert response.status_code == 200
        assert html.fromstring(response.content).text_content().count(word) == said


def test_what_is_said_twice_is_named(site: ASGIApp) -> None:
    response = ask(site, f"{PLACES}?p.year=2021&p.year=2022")
    assert response.status_code == 400
    assert "“p.year” is said twice" in html.fromstring(response.content).xpath("string(//h1)")


@pytest.mark.parametrize(
    "path",
    [
        f"{CUBE}?startPeriod=2021&startPeriod=2022",
        f"{CUBE}?lang=en&lang=es",
        f"{FLOW}?p.year=2021&p.year=2022",
        f"{DIMENSIONS}?p.year=2021&p.year=2022",
        "/api/v1/dataflows?limit=1&limit=2",
    ],
)
def test_programs_are_told_what_is_said_twice(site: ASGIApp, path: str) -> None:
    response = ask(site, path)
    assert response.status_code == 400
    name = path.split("?")[1].split("=")[0]
    assert f"“{name}” is said twice" in json.loads(response.text)["title"]


@pytest.mark.parametrize(
    "path",
    [
        f"{PLACES}?p.year=2022&sort.table=1",
        f"{PLACES}?p.year=2022&which.table.0=level:1",
        f"{PLACES}/table.csv?p.year=2022",
        "/en/",
        "/en/query?mdx=SELECT+FROM+[Tax]",
        "/en/search?q=income",
        "/api/v1/dataflows?limit=1",
        f"{CUBE}?Sex=W&limit=3",
    ],
)
def test_what_others_append_changes_nothing_and_goes_no_further(site: ASGIApp, path: str) -> None:
    plain, appended = ask(site, path), ask(site, f"{path}{'&' if '?' in path else '?'}{APPENDED}")
    assert plain.status_code in (200, 307)
    assert appended.content == plain.content
    told = ("etag", "link", "location")
    assert [appended.headers.get(name) for name in told] == [plain.headers.get(name) for name in told]
