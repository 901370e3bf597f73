"""A table whose members go by the figures that are shown says so, wherever it is shown."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from httpx import QueryParams, Response
from openpyxl import load_workbook

from app.bootstrap import query_asker
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.test_xmla import execute
from tests.web.visitor import ask

NOTE = {"en": "left out or comes last", "es": "no aparece o va al final"}


class ByFigures(MemoryStore):
    """An office of which each table is chosen or ordered by figures."""

    def layout(self, release_id, sheet_id, query_id, choice):
        found = super().layout(release_id, sheet_id, query_id, choice)
        return None if found is None else replace(found, by_figures=True)


@pytest.mark.parametrize("language", sorted(NOTE))
@pytest.mark.parametrize(
    "path",
    [
        "s/territory/places",
        "s/territory/places?sort.table=1",
        "s/territory/map",
        "s/time/years",
        "embed/territory/places/table",
    ],
)
def test_pages_say_that_the_confidential_may_be_missing(language: str, path: str) -> None:
    address = f"/{language}/{path}"
    page = ask(create_app(ByFigures()), address)
    assert page.status_code == 200
    assert NOTE[language] in page.text
    assert NOTE[language] not in ask(create_app(MemoryStore()), address).text


def said_of(extension: str, answer: Response) -> str:
    assert answer.status_code == 200
    if extension == "xlsx":
        book = load_workbook(BytesIO(answer.content))
        return " ".join(str(cell.value) for each in book for row in each.iter_rows() for cell in row)
    return answer.content.decode("utf-8", "replace").replace('"\n"', "")


@pytest.mark.parametrize("extension", ["xlsx", "json", "px", "parquet", "html"])
def test_files_say_it_in_their_notes(extension: str) -> None:
    address = f"/es/s/territory/places/table.{extension}"

    def said(store: MemoryStore) -> str:
        return said_of(extension, ask(create_app(store), address))

    assert NOTE["es"] in said(ByFigures())
    assert NOTE["es"] not in said(MemoryStore())


BY_FIGURES = "Order([Geography].[Town].Members, [Measures].[Taxpayers], BDESC)"


@pytest.mark.parametrize("way", ["page", "xlsx", "json", "px", "parquet", "html", "xmla"])
def test_answers_to_own_queries_say_it(way: str) -> None:
    site = create_app(MemoryStore(), asker=query_asker())

    def said(members: str) -> str:
        mdx = f"SELECT {members} ON 0 FROM [Tax]"
        if way == "xmla":
            told = {"content-type": "text/xml", "accept-language": "es"}
            return said_of(way, ask(site, "/xmla", "POST", told, execute(mdx).encode()))
        extension = "" if way == "page" else f".{way}"
        return said_of(way, ask(site, f"/es/query{extension}?{QueryParams({'mdx': mdx})}"))

    assert NOTE["es"] in said(BY_FIGURES)
    assert NOTE["es"] not in said("[Geography].[Town].Members")
