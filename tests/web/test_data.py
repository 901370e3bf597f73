"""Data for programs: filters, keys, pages, formats and languages of dataflows."""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from typing import Any

import httpx
import pandas as pd
import pytest
from pyarrow import parquet as pq
from pyjstat import pyjstat
from starlette.types import ASGIApp

from app.web.app import create_app
from tests.web.large import long_store
from tests.web.office import MemoryStore
from tests.web.visitor import ask

OFFICE = "Office_of_Norland"
CUBE = f"/api/v1/data/dataflow/{OFFICE}/Tax/1.0.0"
PLACES = f"/api/v1/data/dataflow/{OFFICE}/territory_places_table/1.0.0"
YEARS = f"/api/v1/data/dataflow/{OFFICE}/time_years_table/1.0.0"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def site(store: MemoryStore) -> ASGIApp:
    return create_app(store)


def frame(site: ASGIApp, address: str) -> pd.DataFrame:
    response = ask(site, address, headers={"accept": "application/vnd.sdmx.data+csv"})
    assert response.status_code == 200, response.text
    return pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)


def test_every_dataflow_has_a_structure_and_data(site: ASGIApp) -> None:
    document = json.loads(ask(site, "/api/v1/dataflows").text)
    assert document["total"] == len(document["dataflows"]) == 8
    for flow in document["dataflows"]:
        structure = json.loads(ask(site, flow["structure"] + "?lang=es").text)
        data = frame(site, flow["data"])
        for dimension in structure["dimensions"]:
            codes = [code["id"] for code in dimension["codes"]]
            assert set(data[dimension["id"]]) == set(codes)
        assert set(data.STRUCTURE_ID) == {structure["id"]}


def test_a_cube_has_every_released_cell_as_the_release_has_it(site: ASGIApp, store: MemoryStore) -> None:
    response = ask(site, CUBE + "?format=csv&lang=en")
    read = pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)
    office = store.office
    names = ["[Measures]", "[Geography]", "[Sex]", "[Year]"]
    assert len(read) == len(office.truth) == int(response.headers["x-total-count"])
    for row in read.itertuples():
        cell = tuple(read.loc[row.Index, names])
        if cell in office.hidden:
            assert (row.OBS_VALUE, row.OBS_STATUS) == ("", "Q")
        elif cell in office.empty:
            assert (row.OBS_VALUE, row.OBS_STATUS) == ("", "M")
        else:
            assert (float(row.OBS_VALUE), row.OBS_STATUS) == (office.truth[cell], "A")


def test_a_sheet_has_the_cells_of_its_page_for_each_choice(site: ASGIApp) -> None:
    for year in ("2021", "2023"):
        address = f"/api/v1/data/dataflow/*/territory_places_table/*?p.year={year}&format=csv&lang=es"
        page = ask(site, f"/es/s/territory/places/table.csv?p.year={year}")
        assert ask(site, address).content == page.content


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("c[Sex]=W", lambda d: d.Sex == "W"),
        ("Sex=W", lambda d: d.Sex == "W"),
        ("c[Sex]=W,M", lambda d: d.Sex.isin(["W", "M"])),
        ("Sex=W&Sex=M", lambda d: d.Sex == "never"),
        ("c[Sex]=ne:_T", lambda d: d.Sex != "_T"),
        ("c[TIME_PERIOD]=ge:2022", lambda d: d.TIME_PERIOD >= "2022"),
        ("c[TIME_PERIOD]=ge:2021%2Blt:2023", lambda d: d.TIME_PERIOD < "2023"),
        ("c[Geography]=sw:N&c[Sex]=eq:M", lambda d: d.Geography.str.startswith("N") & (d.Sex == "M")),
        ("c[Geography]=co:1", lambda d: d.Geography.str.contains("1")),
        ("c[Geography]=ew:1,2", lambda d: d.Geography.str[-1].isin(["1", "2"])),
        ("c[Geography]=nc:N", lambda d: ~d.Geography.str.contains("N")),
        ("startPeriod=2022", lambda d: d.TIME_PERIOD >= "2022"),
        ("endPeriod=2022", lambda d: d.TIME_PERIOD <= "2022"),
        ("startPeriod=2022&endPeriod=2022-Q4", lambda d: d.TIME_PERIOD == "2022"),
        ("lastNObservations=1", lambda d: d.TIME_PERIOD == "2023"),
        ("firstNObservations=2", lambda d: d.TIME_PERIOD <= "2022"),
        ("endPeriod=2022&lastNObservations=1", lambda d: d.TIME_PERIOD == "2022"),
        ("dimensionAtObservation=AllDimensions", lambda d: d.Sex != ""),
    ],
)
@pytest.mark.parametrize("flow", [CUBE, YEARS])
def test_filters_keep_what_they_say_in_order(site: ASGIApp, flow: str, wish: str, kept: Any) -> None:
    everything = frame(site, flow)
    expected = everything[kept(everything)].reset_index(drop=True)
    assert frame(site, f"{flow}?{wish}").equals(expected)


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("*", lambda d: d.Sex != ""),
        ("*.N1.W.*", lambda d: (d.Geography == "N1") & (d.Sex == "W")),
        (".N1.W.", lambda d: (d.Geography == "N1") & (d.Sex == "W")),
        ("Income.N%2BS.*.2023", lambda d: d.Geography.isin(["N", "S"]) & (d.TIME_PERIOD == "2023")),
        ("*.N1.W.*,*.S.M.2021", lambda d: d.index < 0),
    ],
)
def test_key_paths_say_a_code_for_each_dimension(site: ASGIApp, key: str, kept: Any) -> None:
    structure = json.loads(ask(site, CUBE.replace("/data/", "/structure/")).text)
    assert [d["id"] for d in structure["dimensions"]] == ["Measures", "Geography", "Sex", "TIME_PERIOD"]
    everything, found = frame(site, CUBE), frame(site, f"{CUBE}/{key}")
    expected = everything[kept(everything)]
    if key.startswith("Income"):
        expected = expected[expected.Measures == "Income"]
    if "," in key:
        one, other = (everything.Geography == "N1"), (everything.Geography == "S")
        first = one & (everything.Sex == "W")
        expected = everything[first | (other & (everything.Sex == "M") & (everything.TIME_PERIOD == "2021"))]
    assert len(expected) > 0
    assert found.equals(expected.reset_index(drop=True))


@pytest.mark.parametrize("year", ["2021", "2023"])
def test_what_a_parameter_chooses_may_be_asked_for_as_well(site: ASGIApp, year: str) -> None:
    chosen = frame(site, f"{PLACES}?p.year={year}")
    assert set(chosen.TIME_PERIOD) == {year}
    for wish in (f"c[TIME_PERIOD]={year}", f"startPeriod={year}", "c[TIME_PERIOD]=ge:2021"):
        assert frame(site, f"{PLACES}?p.year={year}&{wish}").equals(chosen)


@pytest.mark.parametrize("digits", [1, 15, 16, 17, 20, 40, 4400])
def test_a_number_is_one_however_long(site: ASGIApp, digits: int) -> None:
    number = "9" * digits
    total = len(frame(site, CUBE))
    assert len(frame(site, f"{CUBE}?limit={number}")) == min(int(number[:6]), total)
    assert len(frame(site, f"{CUBE}?lastNObservations={number}")) == total
    assert ask(site, f"/api/v1/dataflows?offset={number}&limit={number}").status_code == 200
    assert len(frame(site, f"{CUBE}?offset={number}&limit=10")) == (0 if digits > 1 else 10)


def test_there_is_a_way_back_from_beyond_the_end(site: ASGIApp) -> None:
    links = ask(site, f"{CUBE}?offset=99999&limit=10").headers["link"]
    before = links.partition('>; rel="prev"')[0].rpartition("<")[2]
    assert len(frame(site, before.removeprefix("http://site.test"))) > 0


def test_pages_together_are_the_whole(site: ASGIApp) -> None:
    address = f"{CUBE}?limit=100&c[Sex]=W,M"
    seen = []
    while address:
        response = ask(site, address, headers={"accept": "text/csv"})
        seen.append(pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False))
        links = httpx.Headers({"link": response.headers["link"]}).get("link", "")
        following = [part for part in links.split(", ") if 'rel="next"' in part]
        address = following[0].partition(">")[0].removeprefix("<http://site.test") if following else ""
    whole = ask(site, f"{CUBE}?format=csv&lang=en&c[Sex]=W,M")
    expected = pd.read_csv(StringIO(whole.text), dtype=str, keep_default_na=False)
    assert len(seen) == len(expected) // 100 + 1
    assert pd.concat(seen, ignore_index=True).equals(expected)
    assert int(whole.headers["x-total-count"]) == len(expected)
    first = json.loads(ask(site, "/api/v1/dataflows?limit=3").text)
    last = json.loads(ask(site, "/api/v1/dataflows?limit=3&offset=6").text)
    assert (len(first["dataflows"]), len(last["dataflows"]), last["total"]) == (3, 2, 8)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*;q=0.5, application/vnd.apache.parquet;q=0.9", "application/vnd.apache.parquet"),
        ("application/vnd.sdmx.data+json;version=2.0.0", "application/vnd.sdmx.data+json"),
        ("application/vnd.sdmx.data+csv;version=2.0.0, */*;q=0.1", "application/vnd.sdmx.data+csv"),
        ("application/json;q=0, */*", "text/csv"),
        ("image/png", None),
        ("text/csv;q=x", None),
    ],
)
def test_the_format_is_the_one_that_the_client_likes_best(
    site: ASGIApp, accept: str, kind: str | None
) -> None:
    response = ask(site, YEARS, headers={"accept": accept})
    if kind is None:
        assert response.status_code == 406
        return
    assert response.headers["content-type"].partition(";")[0] == kind
    vary = {part.strip() for part in response.headers["vary"].split(",")}
    assert vary == {"Accept", "Accept-Language", "Accept-Encoding"}


def test_what_headers_ask_for_is_not_kept_for_others(site: ASGIApp) -> None:
    first = ask(site, YEARS, headers={"accept": "text/csv", "accept-language": "es"})
    other = ask(site, YEARS, headers={"accept": "application/json", "accept-language": "en"})
    assert "Lugar" in first.text
    assert json.loads(other.text)["label"] == "Year by year. The table"
    assert "Lugar" in ask(site, YEARS + "?lang=es&format=csv", headers={"accept-language": "en"}).text


def test_filtered_data_can_be_had_in_every_list_format(site: ASGIApp) -> None:
    wish = "c[Sex]=W&c[Geography]=N,N1,N2,N3&lang=en"
    rows = pd.read_csv(
        StringIO(ask(site, f"{YEARS}?{wish}&format=csv").text), dtype=str, keep_default_na=False
    )
    numbers = pd.to_numeric(rows.OBS_VALUE)
    stat = pyjstat.Dataset.read(ask(site, f"{YEARS}?{wish}&format=json").text).write("dataframe", naming="id")
    assert stat.value.astype(float).equals(numbers)
    arrow = pq.read_table(BytesIO(ask(site, f"{YEARS}?{wish}&format=parquet").content)).to_pandas()
    assert arrow.OBS_VALUE.equals(numbers)
    message = json.loads(ask(site, f"{YEARS}?{wish}&format=sdmx-json").text)
    values = [seen[0] for seen in message["data"]["dataSets"][0]["observations"].values()]
    assert pd.Series(values, dtype=float).equals(numbers)
    dimensions = message["data"]["structures"][0]["dimensions"]["observation"]
    assert [len(d["values"]) for d in dimensions] == [4, 1, 3, 1]


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(
    ("address", "status", "word"),
    [
        (f"{CUBE}?c[Nope]=1", 400, "Nope"),
        (f"{CUBE}?Nope=1", 400, "Nope"),
        (f"{CUBE}?c[Sex]=X", 400, "X"),
        (f"{CUBE}?c[Sex]=like:X", 400, "like"),
        (f"{CUBE}/a.b", 400, "a.b"),
        (f"{CUBE}/*.*.X.*", 400, "X"),
        (f"{CUBE}?limit=0", 400, "limit"),
        (f"{CUBE}?offset=-1", 400, "offset"),
        (f"{CUBE}?limit=1e3", 400, "limit"),
        (f"{CUBE}?limit=²", 400, "limit"),
        (f"{CUBE}?limit={'0' * 40}", 400, "limit"),
        (f"{PLACES}?c[TIME_PERIOD]=2021", 400, "p.year"),
        (f"{PLACES}?TIME_PERIOD=2021", 400, "p.year"),
        (f"{PLACES}?c[TIME_PERIOD]=lt:2023", 400, "p.year"),
        (f"{PLACES}?startPeriod=2021&endPeriod=2022", 400, "p.year"),
        (f"{PLACES}?p.year=2021&startPeriod=2022", 400, "p.year"),
        (f"{PLACES}?startPeriod=abc", 400, "startPeriod"),
        (f"{PLACES}/*.*.*.2021", 400, "p.year"),
        (f"{PLACES}/*.*.*.2023,*.*.*.2021", 400, "p.year"),
        (f"{CUBE}?limit=1&limit=2", 400, "limit"),
        (f"{CUBE}?lastNObservations=0", 400, "lastNObservations"),
        (f"{CUBE}?dimensionAtObservation=TIME_PERIOD", 400, "AllDimensions"),
        (f"{CUBE}?format=exe", 400, "exe"),
        (f"{CUBE}?format=xlsx", 400, "xlsx"),
        (f"{CUBE}?lang=xx", 400, "xx"),
        (f"{CUBE}?p.year=2021", 400, "p.year"),
        (f"{YEARS}?p.year=2021", 400, "p.year"),
        (f"{CUBE}?c[Sex]=%ff", 400, ""),
        (f"{CUBE}?{'a' * 5000}=1", 400, "aaa"),
        ("/api/v1/data/dataflow/ESTAT/Tax/1.0.0", 404, ""),
        (f"/api/v1/data/dataflow/{OFFICE}/Tax/9.0.0", 404, ""),
        (f"/api/v1/data/dataflow/{OFFICE}/Nope/1.0.0", 404, ""),
        ("/api/v1/data/territory_map_map", 404, ""),
        ("/api/v1/dataflows?q=1", 400, "q"),
        (f"/api/v1/structure/dataflow/{OFFICE}/Tax/1.0.0?x=1", 400, "x"),
        (
            f"/api/v1/data/dataflow/{OFFICE}/territory_map_map/1.0.0?c[TIME_PERIOD]=x",
            400,
            "",
        ),
    ],
)
def test_a_wish_that_has_no_answer_gets_one_sentence(
    site: ASGIApp, address: str, status: int, word: str, language: str
) -> None:
    response = ask(site, address, headers={"accept-language": language})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["access-control-allow-origin"] == "*"
    problem = json.loads(response.text)
    assert problem["status"] == status
    assert word in problem["title"]
    assert len(problem["title"]) < 250
    other = ask(site, address, headers={"accept-language": "es" if language == "en" else "en"})
    assert json.loads(other.text)["title"] != problem["title"]


def test_browsers_of_any_origin_may_ask(site: ASGIApp) -> None:
    response = ask(
        site, CUBE, "OPTIONS", headers={"origin": "https://x.test", "access-control-request-method": "GET"}
    )
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert "GET" in response.headers["access-control-allow-methods"]
    assert ask(site, CUBE).headers["access-control-allow-origin"] == "*"


def test_too_many_cells_for_a_format_are_refused_and_stream_as_csv() -> None:
    site = create_app(long_store(200_001))
    refused = ask(site, f"{YEARS}?format=json&lang=en")
    assert refused.status_code == 413
    assert "CSV" in json.loads(refused.text)["title"]
    assert ask(site, f"{YEARS}?format=csv", "HEAD").status_code == 200
    assert ask(site, f"{YEARS}?format=json&limit=1000").status_code == 200
