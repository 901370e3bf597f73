"""What programs find: a page that explains it, and an OpenAPI document that is true."""

from __future__ import annotations

import json
from itertools import product

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.web.app import create_app
from app.web.formats.registry import formats_for
from tests.web.office import MemoryStore
from tests.web.visitor import ask


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


@pytest.mark.parametrize("language", ["en", "es"])
def test_every_example_of_the_page_works(site: ASGIApp, language: str) -> None:
    page = html.fromstring(ask(site, f"/{language}/api").content)
    examples = page.xpath("//p[@class='example']/a/@href")
    assert len(examples) == 7 + len(formats_for("table"))
    for address in examples:
        assert ask(site, address).status_code == 200, address


def test_the_openapi_document_says_what_the_addresses_answer(site: ASGIApp) -> None:
    document = json.loads(ask(site, "/api/v1/openapi.json").text)
    assert document["openapi"].startswith("3.1")
    for template, item in document["paths"].items():
        parameters = [p for p in item["get"]["parameters"] if p["in"] == "path"]
        names = [p["name"] for p in parameters]
        responses = item["get"]["responses"]
        seen = set()
        for values in product(*(p["schema"]["enum"] for p in parameters)):
            address = template.format(**dict(zip(names, values, strict=True)))
            response = ask(site, address)
            seen.add(response.status_code)
            told = responses[str(response.status_code)]["content"]
            assert response.headers["content-type"].partition(";")[0] in told
        assert 200 in seen
        strange = template.format(**dict.fromkeys(names, "%F0%9F%A6%8A"))
        assert str(ask(site, strange + "?asOf=never").status_code) in responses
