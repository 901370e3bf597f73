"""Addresses, languages, caching and refusals, as a browser or a proxy meets them."""

from __future__ import annotations

import json
import re

import httpx
import pytest
from lxml import html
from starlette.types import ASGIApp

from app.serve.adhoc import Adhoc
from app.web.app import create_app
from tests.web.office import MemoryStore, Office
from tests.web.visitor import ask, crawl

PAGE = "/en/s/territory/places"


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def test_the_entrance_speaks_the_readers_language(site: ASGIApp) -> None:
    for wish, place in (("es-ES,en;q=0.5", "/es/"), ("fr", "/en/"), ("", "/en/"), ("es;q=0,en", "/en/")):
        response = ask(site, "/", headers={"accept-language": wish})
        assert (response.status_code, response.headers["location"]) == (307, place)
        assert "Accept-Language" in response.headers["vary"]


def test_every_link_of_the_site_leads_somewhere(site: ASGIApp) -> None:
    answers = crawl(site)
    assert {path for path, response in answers.items() if response.status_code != 200} == set()
    assert any(path.endswith(".csv?p.year=2023") for path in answers)
    assert any(path.startswith("/es/s/") for path in answers)


def test_contents_are_numbered_and_breadcrumbs_lead_back(site: ASGIApp) -> None:
    home = html.fromstring(ask(site, "/es/").content)
    assert home.get("lang") == "es"
    assert [" ".join(a.text_content().split()) for a in home.xpath("//ol[@class='tables']//a")] == [
        "1.1 Lugares por sexo",
        "1.2 Pueblos de una región",
        "1.3 Mapa de la renta",
        "2.1 Año a año",
    ]
    sheet = html.fromstring(ask(site, "/es/s/territory/map").content)
    crumbs = sheet.xpath("//nav[@class='crumbs']//a")
    assert [(a.get("href"), a.text) for a in crumbs] == [
        ("/es/", "Índice"),
        ("/es/f/territory", "Territorio"),
    ]


def test_a_form_shows_what_is_chosen_and_defaults_to_the_latest_period(site: ASGIApp) -> None:
    def chosen(address: str) -> list[str]:
        return html.fromstring(ask(site, address).content).xpath(
            "//main//form[not(ancestor::details)]//option[@selected]/@value"
        )

    assert chosen("/en/s/territory/towns") == ["N", "2023"]
    assert chosen("/en/s/territory/towns?p.region=E&p.year=2021") == ["E", "2021"]
    assert chosen("/en/s/territory/towns?p.region=%5BGeography%5D.%5BRegion%5D.%26%5BW%5D") == ["W", "2023"]


def test_entity_tags_are_strong_and_spare_the_body(site: ASGIApp) -> None:
    first = ask(site, PAGE, headers={"accept-encoding": "identity"})
    tag = first.headers["etag"]
    assert tag.startswith('"')
    for wish in (tag, f'"other", {tag}', "*", f"W/{tag}"):
        again = ask(site, PAGE, headers={"accept-encoding": "identity", "if-none-match": wish})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = ask(site, PAGE, headers={"accept-encoding": "identity", "if-none-match": '"other"'})
    assert (other.status_code, other.content) == (200, first.content)
    assert ask(site, PAGE + "?p.year=2021").headers["etag"] != ask(site, PAGE).headers["etag"]


def test_compressed_and_plain_say_the_same_under_different_tags(site: ASGIApp) -> None:
    plain = ask(site, PAGE, headers={"accept-encoding": "gzip;q=0"})
    packed = ask(site, PAGE, headers={"accept-encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.headers["etag"] != plain.headers["etag"]
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


def test_a_cached_answer_is_the_first_answer(site: ASGIApp) -> None:
    first, second = ask(site, PAGE + "?p.year=2022"), ask(site, PAGE + "?p.year=2022")
    assert first.content == second.content
    assert first.headers == second.headers


def test_release_addressed_pages_may_be_kept_forever_and_others_are_asked_again(site: ASGIApp) -> None:
    assert "must-revalidate" in ask(site, PAGE).headers["cache-control"]
    assert "immutable" in ask(site, "/r/r1" + PAGE).headers["cache-control"]
    assert ask(site, "/r/r0" + PAGE).status_code == 404


def test_a_new_release_replaces_every_cached_page() -> None:
    store = MemoryStore()
    site = create_app(store, patience=0)
    before = ask(site, PAGE)
    office = Office()
    office.truth = {cell: value + 1 for cell, value in office.truth.items()}
    store.live = office.release("r2")[0]
    after = ask(site, PAGE)
    assert after.status_code == 200
    assert after.headers["etag"] != before.headers["etag"]
    assert json.loads(ask(site, "/api/v1/catalogue.json").text)["release"] == "r2"


def test_nothing_is_shown_without_a_live_release() -> None:
    store = MemoryStore()
    site = create_app(store, patience=0)
    paths = ["/", "/en/", PAGE, PAGE + "/table.csv", "/api/v1/catalogue.json", "/es/confidentiality"]
    assert ask(site, PAGE).status_code == 200
    store.live = None  # type: ignore[assignment]
    for path in paths:
        response = ask(site, path)
        assert response.status_code == 503
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["retry-after"]
        assert not any(figure in response.text for figure in ("552", "Norland"))
    assert ask(site, "/healthz").status_code == 503
    assert ask(site, "/static/site.css").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/en/s/nope", 404),
        ("/en/s/territory", 404),
        ("/en/f/nope", 404),
        ("/xx/", 404),
        ("/nope", 404),
        ("/en/s/territory/places/nope.csv", 404),
        ("/en/s/territory/places/table.exe", 404),
        ("/en/s/territory/places?p.year=1999", 404),
        ("/en/s/territory/places?p.year=%ff", 400),
        ("/en/s/../../../etc/passwd", 404),
        ("/en/s/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/static/../pyproject.toml", 404),
        ("/static/%2e%2e/pyproject.toml", 404),
        ("/en/s/territory/places%00", 404),
        ("/en/s/\u202eplaces", 404),
        ("/api/v1/structure/Nope.json", 404),
        ("/api/v1/nope", 404),
    ],
)
def test_a_wrong_address_gets_one_clear_sentence(site: ASGIApp, path: str, status: int) -> None:
    for language, word in (("en", "page"), ("es", "página")):
        spoken = path.replace("/en/", f"/{language}/", 1)
        response = ask(site, spoken, headers={"accept-language": language})
        assert response.status_code == status
        if response.headers["content-type"].startswith("text/html"):
            (heading,) = html.fromstring(response.content).xpath("//h1")
            assert word in heading.text_content().lower()
        else:
            assert response.headers["content-type"] == "application/problem+json"
            assert json.loads(response.text)["status"] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_the_site_can_only_be_read(site: ASGIApp, method: str) -> None:
    response = ask(site, PAGE, method, body=b"x" * 10_000_000 if method == "POST" else None)
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"
    assert "552" not in response.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "TRACE", "NOTHING"])
@pytest.mark.parametrize("path", ["/xmla", "/api/v1/mdx", "/r/r1/xmla"])
def test_what_is_only_asked_by_post_says_so(path: str, method: str) -> None:
    response = ask(create_app(MemoryStore(), asker=Adhoc()), path, method)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/xmla", "POST, OPTIONS"),
        ("/api/v1/mdx", "POST, OPTIONS"),
        ("/api/v1/catalogue.json", "GET, HEAD, OPTIONS"),
    ],
)
def test_what_may_be_asked_from_other_sites_is_what_is_answered(path: str, methods: str) -> None:
    site = create_app(MemoryStore(), asker=Adhoc())
    told, refused = ask(site, path, "OPTIONS"), ask(site, path, "PATCH")
    assert told.status_code in (200, 204)
    assert told.headers["access-control-allow-origin"] == "*"
    assert told.headers["access-control-allow-methods"] == methods
    assert told.headers["allow"] == refused.headers["allow"] == methods
    assert refused.status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/en/s/territory/places", "/es/s/territory/places?p.year=2021", "/en/f/territory", "/en/search?q=a",
     "/en/confidentiality", "/en/api", "/en/embed/territory/places/bars"],
)  # fmt: skip
def test_a_slash_too_many_leads_to_the_address_without(site: ASGIApp, path: str) -> None:
    assert ask(site, path).status_code == 200
    place, mark, state = path.partition("?")
    for slashes in ("/", "//"):
        answer = ask(site, f"{place}{slashes}{mark}{state}")
        if answer.status_code == 404:
            assert slashes == "//"
            continue
        assert (answer.status_code, answer.headers["location"]) == (308, path)


@pytest.mark.parametrize("path", ["/en/nope/", "/xx/s/territory/places/", "/en/embed/"])
def test_a_slash_too_many_leads_nowhere_else(site: ASGIApp, path: str) -> None:
    assert ask(site, path).status_code == 404


def test_head_is_get_without_a_body(site: ASGIApp) -> None:
    for path in (PAGE, PAGE + "/table.csv", "/en/nope"):
        head, got = ask(site, path, "HEAD"), ask(site, path)
        assert head.content == b""
        assert head.status_code == got.status_code
        assert head.headers == got.headers


def test_every_answer_carries_the_security_headers(site: ASGIApp) -> None:
    for path in (PAGE, "/en/nope", "/static/site.css", "/", "/api/v1/catalogue.json"):
        headers: httpx.Headers = ask(site, path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"]


def test_a_sheet_without_its_data_is_light(site: ASGIApp) -> None:
    wanted = [PAGE, "/static/site.css", "/static/fonts/source-sans-3.woff2", "/static/icon.svg"]
    weights = [
        ask(site, path, headers={"accept-encoding": "gzip"}).headers["content-length"] for path in wanted
    ]
    assert sum(map(int, weights)) < 100_000


def test_static_files_are_named_by_their_bytes(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, PAGE).content)
    (address,) = page.xpath("//link[@rel='stylesheet']/@href")
    response = ask(site, address)
    assert "?v=" in address
    assert "immutable" in response.headers["cache-control"]
    (font,) = re.findall(r'url\("(.*?)"\)', response.text)
    assert "immutable" in ask(site, f"/static/{font}").headers["cache-control"]
    for other in ("/static/site.css", "/static/site.css?v=old"):
        assert "must-revalidate" in ask(site, other).headers["cache-control"]


def test_the_address_for_spreadsheets_can_be_copied_as_it_stands(site: ASGIApp) -> None:
    page = ask(site, "/en/api")
    canonical = re.search(r'rel="canonical" href="([^"]+)/en/api"', page.text)
    assert canonical is not None
    assert f" {canonical[1]}/xmla." in page.text


def test_the_api_names_members_parents_and_downloads(site: ASGIApp) -> None:
    catalogue = json.loads(ask(site, "/api/v1/catalogue.json").text)
    sheet = catalogue["folders"][0]["sheets"][1]
    assert sheet["id"] == "territory/towns"
    region = sheet["parameters"][0]
    assert region["members"][0]["unique_name"] == "[Geography].[Region].&[N]"
    address = sheet["queries"][0]["downloads"]["csv"]["es"]
    assert ask(site, f"{address}?{region['field']}={region['members'][2]['key']}").status_code == 200
    structure = json.loads(ask(site, catalogue["structures"]["Tax"]).text)
    members = structure["hierarchies"][0]["members"]
    assert members[2]["parent"] == "[Geography].[Region].&[N]"
    assert [m["decimals"] for m in structure["measures"]] == [0, 2]


def test_the_confidentiality_page_tells_no_percentages(site: ASGIApp) -> None:
    text = html.fromstring(ask(site, "/en/confidentiality").content).text_content()
    assert "fewer than 12" in text
    assert "Hidden wherever “Taxpayers” is hidden" in text
    assert "10" not in text


@pytest.mark.parametrize("path", [PAGE, PAGE + "/table.xlsx", "/static/site.css"])
def test_a_part_of_a_file_is_that_part(site: ASGIApp, path: str) -> None:
    whole = ask(site, path, headers={"accept-encoding": "identity"})
    size = len(whole.content)
    assert whole.headers["accept-ranges"] == "bytes"
    for wish, first, end in (
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, size),
        ("bytes=-7", size - 7, size),
        (f"bytes=5-{size + 9}", 5, size),
    ):
        part = ask(site, path, headers={"range": wish})
        assert (part.status_code, part.content) == (206, whole.content[first:end])
        assert part.headers["content-range"] == f"bytes {first}-{end - 1}/{size}"
        assert part.headers["etag"] == whole.headers["etag"]
        assert "content-encoding" not in part.headers
    beyond = ask(site, path, headers={"range": f"bytes={size}-"})
    assert (beyond.status_code, beyond.content) == (416, b"")
    assert beyond.headers["content-range"] == f"bytes */{size}"


@pytest.mark.parametrize("wish", ["bytes=9-3", "bytes=-", "bytes=0-1,5-6", "lines=1-2", "bytes=a-b"])
def test_a_wish_for_no_single_part_gets_the_whole(site: ASGIApp, wish: str) -> None:
    whole = ask(site, PAGE, headers={"accept-encoding": "identity"})
    response = ask(site, PAGE, headers={"range": wish})
    assert (response.status_code, response.content) == (200, whole.content)


def test_a_part_of_a_file_that_changed_is_the_whole_new_one(site: ASGIApp) -> None:
    tag = ask(site, PAGE, headers={"accept-encoding": "identity"}).headers["etag"]
    for condition, status in ((tag, 206), ('"other"', 200), ("Fri, 27 Nov 2026 09:30:00 GMT", 200)):
        response = ask(site, PAGE, headers={"range": "bytes=0-9", "if-range": condition})
        assert response.status_code == status


@pytest.mark.parametrize(
    ("wish", "coding"),
    [
        ("zstd", "zstd"),
        ("gzip, zstd", "zstd"),
        ("gzip, zstd;q=0", "gzip"),
        ("br", None),
        ("*", "gzip"),
        ("*;q=0", None),
        ("GZIP", "gzip"),
    ],
)
def test_the_coding_is_one_that_the_client_takes(site: ASGIApp, wish: str, coding: str | None) -> None:
    plain = ask(site, PAGE, headers={"accept-encoding": "identity"})
    response = ask(site, PAGE, headers={"accept-encoding": wish})
    assert response.headers.get("content-encoding") == coding
    assert response.content == plain.content
