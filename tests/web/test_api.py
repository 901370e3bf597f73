"""What programs find: a page that explains it, and an OpenAPI document that is true."""

from __future__ import annotations

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
    assert len(examples) == 9 + len(formats_for("table"))
    for address in examples:
        assert ask(site, address).status_code == 200, address
