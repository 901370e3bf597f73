"""What machines harvest, read by readers of their own kind."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from lxml import html
from openpyxl import load_workbook
from rdflib import Graph, Namespace, URIRef
from rdflib.compare import isomorphic
from rdflib.namespace import DCAT, DCTERMS, RDF
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.domain.publication import Contact
from app.web.app import create_app
from app.web.formats.registry import FORMATS
from tests.web.office import MemoryStore
from tests.web.visitor import BASE, ask

VCARD = Namespace("http://www.w3.org/2006/vcard/ns#")
NAMES = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "a": "http://www.w3.org/2005/Atom"}


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def test_the_sitemap_names_every_page_and_robots_name_the_sitemap(site: ASGIApp) -> None:
    assert f"Sitemap: {BASE}/sitemap.xml" in ask(site, "/robots.txt").text
    for app, more in ((site, 1), (create_app(MemoryStore(), asker=query_asker()), 2)):
        root = ET.fromstring(ask(app, "/sitemap.xml").content)
        addresses = [element.text or "" for element in root.findall("s:url/s:loc", NAMES)]
        assert len(addresses) == len(set(addresses)) == 2 * (2 + more + 2 + 4)
        for address in addresses:
            assert ask(app, address.removeprefix(BASE)).status_code == 200


def test_the_feed_names_the_tables_of_the_release(site: ASGIApp) -> None:
    response = ask(site, "/es/feed.atom")
    assert response.headers["content-type"].startswith("application/atom+xml")
    root = ET.fromstring(response.content)
    titles = [element.text for element in root.findall("a:entry/a:title", NAMES)]
    assert titles[0] == "1.1 Lugares por sexo"
    assert len(titles) == 4
    assert {e.text for e in root.findall(".//a:updated", NAMES)} == {"2026-11-27T09:30:00Z"}


def test_the_catalogue_says_the_same_in_turtle_and_json_ld(site: ASGIApp) -> None:
    turtle = Graph().parse(data=ask(site, "/catalog.ttl").text, format="turtle")
    linked = Graph().parse(data=ask(site, "/catalog.jsonld").text, format="json-ld")
    assert isomorphic(turtle, linked)
    datasets = set(turtle.subjects(RDF.type, DCAT.Dataset))
    assert len(datasets) == 4
    (catalogue,) = turtle.subjects(RDF.type, DCAT.Catalog)
    assert set(turtle.objects(catalogue, DCAT.dataset)) == datasets
    for dataset in datasets:
        assert {text.language for text in turtle.objects(dataset, DCTERMS.title)} == {"en", "es"}
        for distribution in turtle.objects(dataset, DCAT.distribution):
            (address,) = turtle.objects(distribution, DCAT.downloadURL)
            assert isinstance(address, URIRef)
            assert ask(site, str(address).removeprefix(BASE)).status_code == 200


def test_a_sheet_describes_itself_to_search_engines(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/en/s/territory/towns").content)
    (script,) = page.xpath("//script[@type='application/ld+json']")
    document = json.loads(script.text)
    assert document["@type"] == "Dataset"
    assert document["name"] == "Towns of a region"
    assert document["description"].endswith("<script>alert(1)</script>")
    assert "</script>alert" not in script.text
    assert ask(site, document["distribution"][0]["contentUrl"].removeprefix(BASE)).status_code == 200


def test_whom_to_ask_and_what_is_next_stands_where_readers_and_machines_look() -> None:
    """The office's contact for all tables, and a table's own in its place."""
    store = MemoryStore()
    name = {"en": "Users' <service>", "es": "Atención"}
    office = Contact(name, "ask+us@office.example", page="https://o.example/a")
    root = store._catalogue.root
    territory, time = root.folders
    years = replace(time.sheets[0], contact=Contact(phone="+34 900 123"), next_release="2027-03-15")
    root = replace(root, folders=(territory, replace(time, sheets=(years,))))
    store._catalogue = replace(store._catalogue, root=root, contact=office, next_release="2027-11")
    app = create_app(store)
    places, own = "/en/s/territory/places", "/es/s/time/years"
    page = html.fromstring(ask(app, places).content)
    assert "Next release: November 2027" in page.text_content()
    assert "Users' <service>" in page.text_content()
    ways = page.xpath("//p[@class='contact']/a/@href")
    assert ways == ["mailto:ask%2Bus@office.example", "https://o.example/a"]
    page = html.fromstring(ask(app, own).content)
    assert "Próxima publicación: 15 de marzo de 2027" in page.text_content()
    assert page.xpath("//p[@class='contact']/a/@href") == ["tel:+34900123"]
    # A release that is kept as it was says nothing of what comes next.
    assert "Next release" not in ask(app, f"/r/r1{places}").text
    turtle = Graph().parse(data=ask(app, "/catalog.ttl").text, format="turtle")
    assert isomorphic(turtle, Graph().parse(data=ask(app, "/catalog.jsonld").text, format="json-ld"))
    asked = {str(dataset): contact for dataset, contact in turtle.subject_objects(DCAT.contactPoint)}
    assert (len(asked), len(set(asked.values()))) == (4, 2)
    mine = asked[f"{BASE}/en/s/time/years#dataset"]
    assert set(turtle.objects(mine, VCARD.hasTelephone)) == {URIRef("tel:+34900123")}
    assert {str(fn) for fn in turtle.objects(mine, VCARD.fn)} == {"Office of Norland", "Oficina de Norland"}
    said = ask(app, f"{places}/table.json").json()["extension"]
    assert said["contact"] == [
        {
            "name": "Users' <service>",
            "mail": "ask+us@office.example",
            "page": "https://o.example/a",
            "raw": "Users' <service>, ask+us@office.example, https://o.example/a",
        }
    ]
    assert said["next-release"] == "2027-11"
    px = ask(app, f"{own}/table.px").text
    assert 'NEXT-UPDATE="20270315 00:00";' in px
    assert 'CONTACT="+34 900 123";' in px
    assert "NEXT-UPDATE" not in ask(app, f"{places}/table.px").text
    catalogue = ask(app, "/api/v1/catalogue.json").json()
    assert (catalogue["contact"]["email"], catalogue["next_release"]) == ("ask+us@office.example", "2027-11")
    assert catalogue["folders"][1]["sheets"][0]["contact"] == {"name": {}, "phone": "+34 900 123"}
    book = load_workbook(BytesIO(ask(app, f"{own}/table.xlsx").content))
    told = {row[0].value: row[1].value for row in book.worksheets[1].iter_rows()}
    assert (told["Contacto"], told["Próxima publicación"]) == ("+34 900 123", "15 de marzo de 2027")


def test_addresses_follow_the_host_unless_the_office_gives_one(site: ASGIApp) -> None:
    for host in ("a.example:8080", "b.example", "[::1]:8000"):
        text = ask(site, "/en/s/time/years", headers={"host": host}).text
        assert f'<link rel="canonical" href="http://{host}/en/s/time/years">' in text
    for host in ("evil.example/x", "a b", '"><script>', "x" * 300):
        assert ask(site, "/en/s/time/years", headers={"host": host}).status_code == 400
    named = create_app(MemoryStore(), public_url="https://stats.example.org/")
    text = ask(named, "/en/s/time/years", headers={"host": "evil.example"}).text
    assert "evil.example" not in text
    assert 'href="https://stats.example.org/en/s/time/years"' in text


#: Every kind of address that names the site itself.
NAMING = (
    "/", "/en/", "/en/f/territory", "/en/s/time/years", "/en/s/nope", "/en/api", "/en/query",
    "/en/confidentiality", "/en/search?q=a", "/en/embed/time/years/table", "/en/feed.atom", "/sitemap.xml",
    "/robots.txt", "/catalog.ttl", "/catalog.jsonld", "/api/v1/openapi.json", "/api/v1/catalogue.json",
    "/api/v1/dataflows?limit=2", "/api/v1/data/dataflow/*/Tax/*?limit=3", "/r/r1/en/s/time/years",
    "/r/r1/catalog.ttl", "/nope",
    *(f"/en/s/time/years/table.{form.extension}" for form in FORMATS if "table" in form.views),
)  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", NAMING)
def test_nobodys_host_gets_into_another_readers_answer(path: str, method: str) -> None:
    """Whoever says a false host is told it himself; what is kept for others has nothing of it."""
    site, named = create_app(MemoryStore()), create_app(MemoryStore(), public_url="https://stats.example.org")
    clean = ask(create_app(MemoryStore()), path, method)
    for false in ("evil.example", "evil.example:8000", "EVIL.example"):
        told = {"host": false, "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
        wrong = ask(site, path, method, told)
        mine = ask(site, path, method)
        assert (mine.status_code, mine.content, mine.headers) == (
            clean.status_code,
            clean.content,
            clean.headers,
        )
        assert b"evil" not in mine.content.lower()
        assert "evil" not in str(mine.headers).lower()
        if b"evil" in wrong.content.lower() and wrong.status_code == 200:
            # An answer that names the host is another one, so that no cache takes it for this.
            assert wrong.headers["etag"] != mine.headers["etag"]
            again = ask(site, path, method, {"if-none-match": wrong.headers["etag"]})
            assert again.status_code == 200
        public = ask(named, path, method, told)
        assert b"evil" not in public.content.lower()
        assert "evil" not in str(public.headers).lower()


@pytest.mark.parametrize("path", ["/en/s/time/years", "/sitemap.xml", "/robots.txt", "/catalog.jsonld"])
def test_nobodys_scheme_gets_into_another_readers_page(site: ASGIApp, path: str) -> None:
    """A proxy says the scheme; whoever gets a word of his own past it poisons his own page alone."""
    for sent, said in {"https": "https", "http": "http", "wss": "https", "ws": "http"}.items():
        whole = f"{sent}://site.test{path}"
        found = set(re.findall(r"\b(\w+)://site\.test", ask(site, whole).text))
        assert found == {said}, sent


def test_a_table_can_be_embedded_and_only_there_framed(site: ASGIApp) -> None:
    sheet = ask(site, "/en/s/territory/places?p.year=2022")
    assert "&lt;iframe src=&#34;http://site.test/en/embed/territory/places/bars?p.year=2022" in sheet.text
    framed = ask(site, "/en/embed/territory/places/bars?p.year=2022")
    assert framed.status_code == 200
    assert "frame-ancestors *" in framed.headers["content-security-policy"]
    assert "x-frame-options" not in framed.headers
    assert "frame-ancestors 'none'" in sheet.headers["content-security-policy"]
    # The sign is explained where it stands.
    for path in ("places/bars?p.year=2022", "places/table?p.year=2021"):
        text = ask(site, f"/en/embed/territory/{path}").text
        source = html.fromstring(text).xpath("string(//p[@class='source'])")
        assert ("[c]" in source) == ('class="hidden"' in text)
    page = html.fromstring(framed.content)
    assert page.xpath("string(//p[@class='source']/a/@href)") == "/en/s/territory/places?p.year=2022"
    for wrong in ("/en/embed/territory/places/nope", "/en/embed/nope/table", "/en/embed/"):
        assert ask(site, wrong).status_code == 404


def test_a_sheet_says_how_to_cite_it(site: ASGIApp) -> None:
    page = html.fromstring(ask(site, "/es/s/territory/map?p.year=2021").content)
    assert page.xpath("//p[@class='citation']")[0].text_content() == (
        "Cómo citar: Oficina de Norland (2026). Mapa de la renta. Tabla 1.3 de «Estadística fiscal». "
        "Publicado el 27 de noviembre de 2026. http://site.test/r/r1/es/s/territory/map?p.year=2021"
    )
