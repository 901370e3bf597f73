"""Old releases by address and by moment: as they were, or nothing at all."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from urllib.parse import quote
from zipfile import ZipFile

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.web.app import create_app
from tests.web.office import MemoryStore, Office
from tests.web.visitor import ask, crawl

PAGE = "/en/s/territory/places"
CSV = "/en/s/time/years/table.csv"


def later(store: MemoryStore, state: str = "superseded") -> None:
    """A second release a day later, with every figure one higher; the first one gets a state."""
    office = Office()
    office.truth = {cell: value + 1 for cell, value in office.truth.items()}
    first = store.live
    store.old = [replace(first, state=state)]
    store.live = replace(office.release("r2")[0], created=first.created + timedelta(days=1))


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    later(made)
    return made


@pytest.fixture
def site(store: MemoryStore) -> ASGIApp:
    return create_app(store, patience=0)


def test_a_superseded_release_says_what_it_said_when_it_was_live(site: ASGIApp) -> None:
    fresh = create_app(MemoryStore())
    for path in (CSV, PAGE + "/table.json", "/es/s/territory/map/map.svg"):
        then, now = ask(fresh, "/r/r1" + path), ask(site, "/r/r1" + path)
        assert now.status_code == 200
        assert now.content == then.content
        assert now.headers == then.headers
        assert now.content != ask(site, path).content
    assert ask(fresh, CSV).content == ask(site, "/r/r1" + CSV).content


def test_addresses_of_a_release_may_be_kept_for_a_day_and_are_nothing_for_search_engines(
    site: ASGIApp,
) -> None:
    for path in ("/en/", PAGE, CSV, "/api/v1/catalogue.json"):
        # No longer: the office may withdraw the release.
        kept = ask(site, f"/r/r1{path}").headers["cache-control"]
        assert kept == "public, max-age=86400, immutable", path
        assert "must-revalidate" in ask(site, path).headers["cache-control"]
    page = html.fromstring(ask(site, "/r/r1" + PAGE).content)
    assert page.xpath("//meta[@name='robots']/@content") == ["noindex"]
    assert page.xpath("//aside[@class='asitwas']//a/@href") == [f"{PAGE}?p.year=2023"]


def test_links_of_an_old_release_stay_in_it_and_work(store: MemoryStore) -> None:
    site = create_app(store)
    answers = crawl(site, "/r/r1/en/f/time")
    assert {path for path, response in answers.items() if response.status_code != 200} == set()
    inside = [path for path in answers if path.startswith("/r/r1/")]
    assert f"/r/r1{CSV}" in inside
    catalogue = json.loads(ask(site, "/r/r1/api/v1/catalogue.json").text)
    assert catalogue["release"] == "r1"
    assert all(path.startswith("/r/r1/") for path in catalogue["structures"].values())


@pytest.mark.parametrize(
    ("moment", "release"),
    [
        ("2026-11-27T09:30:00Z", "r1"),
        ("2026-11-27T10:30:00+01:00", "r1"),
        ("2026-11-27", "r1"),
        ("2026-11-28T09:29:59", "r1"),
        ("2026-11-28T09:29", "r1"),
        ("2026-11-28T10:29+01:00", "r1"),
        ("20261128T0929", "r1"),
        ("20261128T09", "r2"),
        ("2026-11-28T09:30", "r2"),
        ("2026-11-28", "r2"),
        ("2099-01-01", "r2"),
    ],
)
def test_a_moment_takes_the_release_of_that_moment(site: ASGIApp, moment: str, release: str) -> None:
    response = ask(site, f"{CSV}?asOf={moment}")
    assert response.content == ask(site, f"/r/{release}{CSV}").content
    assert "must-revalidate" in response.headers["cache-control"]


#: Every shape in which the site prints the moment of a release.
MOMENT = re.compile(r"\b\d{4}-?\d\d-?\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+\d\d:\d\d)?)?\b")


@pytest.mark.parametrize("fraction", [0, 1, 700_000, 999_999])
def test_every_moment_that_is_printed_finds_its_release(fraction: int) -> None:
    made = MemoryStore()
    made.live = replace(made.live, created=datetime(2026, 11, 27, 9, 30, 41, fraction, tzinfo=UTC))
    later(made)
    site = create_app(made, patience=0)
    printed: dict[str, set[str]] = {}
    places = ("/api/v1/catalogue.json", "/api/v1/openapi.json", "/en/feed.atom", "/catalog.ttl")
    files = [f"/en/s/time/years/table.{end}" for end in ("json", "px", "parquet", "xlsx", "svg", "html")]
    for path in (*places, "/catalog.jsonld", "/sitemap.xml", PAGE, *files):
        response = ask(site, f"/r/r1{path}")
        if response.status_code == 404 and path.endswith("svg"):
            continue
        assert response.status_code == 200, path
        body = response.content
        if body.startswith(b"PK"):
            with ZipFile(BytesIO(body)) as archive:
                body = archive.read("docProps/core.xml")
        printed[path] = {m for m in MOMENT.findall(body.decode("utf-8", "replace")) if "2026" in m}
    assert {path for path, moments in printed.items() if not moments} <= {f"{CSV[:-3]}html"}
    for moment in set().union(*printed.values()):
        answer = ask(site, f"{CSV}?asOf={quote(moment)}")
        assert (answer.status_code, answer.content) == (200, ask(site, f"/r/r1{CSV}").content), moment


@pytest.mark.parametrize("name", ["as%4Ff", "%61sOf", "%61%73%4f%66"])
def test_a_moment_counts_in_every_spelling_of_its_name(site: ASGIApp, name: str) -> None:
    assert ask(site, f"{CSV}?{name}=2026-11-27").content == ask(site, f"/r/r1{CSV}").content
    assert ask(site, f"/r/r2{CSV}?{name}=2026-11-27").status_code == 400


@pytest.mark.parametrize("prefix", ["", "/r/r1"])
def test_the_word_for_a_moment_may_be_sought(site: ASGIApp, prefix: str) -> None:
    assert ask(site, f"{prefix}/en/search?q=asOf").status_code == 200


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_moment_before_the_first_release_is_told(site: ASGIApp, language: str) -> None:
    said = [
        json.loads(ask(site, path, headers={"accept-language": language}).text)["title"]
        for path in ("/api/v1/catalogue.json?asOf=2020-01-01T10:00", "/r/r9/api/v1/catalogue.json")
    ]
    assert "2020-01-01T10:00" in said[0]
    assert len({*said, "There is no such page, table or choice in this release."}) == 3
    page = ask(site, f"/{language}/?asOf=2020-01-01")
    assert page.status_code == 404
    assert "2020-01-01" in html.fromstring(page.content).text_content()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{CSV}?asOf=2020-01-01", 404),
        (f"{CSV}?asOf=yesterday", 400),
        (f"{CSV}?asOf=", 400),
        (f"{CSV}?asOf=2026-11-27&asOf=2026-11-28", 400),
        (f"/r/r2{CSV}?asOf=2026-11-27", 400),
        (f"/r/r9{CSV}", 404),
        ("/r/", 404),
        ("/r/r9/static/site.css", 404),
        ("/r/../r1/en/", 404),
    ],
)
def test_a_release_that_is_not_there_gets_a_sentence(site: ASGIApp, path: str, status: int) -> None:
    response = ask(site, path)
    assert response.status_code == status
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("state", "status"), [("withdrawn", 410), ("scheduled", 404), ("draft", 404), ("something new", 404)]
)
def test_a_release_in_another_state_shows_nothing(state: str, status: int) -> None:
    store = MemoryStore()
    site = create_app(store, patience=0)
    paths = ["/r/r1/en/", "/r/r1" + PAGE, "/r/r1" + CSV, "/r/r1/api/v1/catalogue.json"]
    assert [ask(site, path).status_code for path in paths] == [200] * 4
    later(store, state)
    for path in paths:
        response = ask(site, path)
        assert response.status_code == status
        assert "Norland" not in response.text
    assert ask(site, f"{CSV}?asOf=2026-11-27T10:00:00Z").status_code == status
    spanish = ask(site, "/r/r1/es/").text
    assert ("se retiró" in spanish) == (state == "withdrawn")


def test_an_old_release_is_not_the_live_one_when_there_is_none(store: MemoryStore, site: ASGIApp) -> None:
    store.old, store.live = [*store.old, replace(store.live, state="withdrawn")], None  # type: ignore[assignment]
    assert ask(site, CSV).status_code == 503
    assert ask(site, "/r/r1" + CSV).status_code == 200
    assert ask(site, "/r/r2" + CSV).status_code == 410


class Certified(MemoryStore):
    """A store in which one release has a certificate."""

    def certificate(self, release_id: str) -> str | None:
        return "{}" if release_id == "r2" else None


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_page_on_confidentiality_says_how_a_certificate_is_checked(language: str) -> None:
    certified, bare = (create_app(made) for made in (Certified(release_id="r2"), MemoryStore()))
    assert "celosia verify certificate.json" in ask(certified, f"/{language}/confidentiality").text
    assert "celosia verify" not in ask(bare, f"/{language}/confidentiality").text


@pytest.mark.parametrize("path", ["/en/confidentiality", "/es/confidentiality", "/en/api", "/es/api"])
def test_a_status_stays_with_its_sign_on_narrow_screens(site: ASGIApp, path: str) -> None:
    (table,) = html.fromstring(ask(site, path).content).xpath("//table[contains(@class, 'signs')]")
    told = table.text_content()
    assert told.count("CONF_STATUS\N{NO-BREAK SPACE}C") == told.count("OBS_STATUS\N{NO-BREAK SPACE}Q") == 2
    assert "STATUS " not in told
