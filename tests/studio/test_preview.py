"""A preview is what readers get: the same tables, charts and maps, byte by byte, in the same looks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from app.bootstrap import publication_store, run_publication
from app.domain.people import Role
from app.domain.version import Files
from app.office.office import Office
from app.web.app import create_app
from app.web.studio.parts import PARTS
from app.web.studio.shell import beside, create_studio
from tests.pipeline.offices import PUBLICATION, SHEETS, write_office
from tests.studio.visitors import BASE, Visitor, staffed

THEME = '\n[theme]\naccent = "#7a1f3d"\nlogo = "logo.svg"\n'
LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'
LOOKS = {
    "map": '''
title.en = "Map"
title.es = "Mapa"
[[query]]
id = "areas"
show = "map"
mdx = """
SELECT {[Measures].[Firms]} ON COLUMNS, {[Place].[Region].Members} ON ROWS FROM [Firms]"""
[query.options]
shapes = "maps/regions.geojson"
''',
    "best": '''
title.en = "Largest towns"
[[query]]
id = "towns"
mdx = """
SELECT {[Measures].[Firms]} ON COLUMNS,
  TopCount([Place].[Town].Members, 4, [Measures].[Firms]) ON ROWS FROM [Firms]"""
[[query]]
id = "regions"
show = "chart"
mdx = """
SELECT {[Activity].[Activity].Members} ON COLUMNS, {[Place].[Region].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Firms])"""
''',
}
#: What addresses ask of a sheet: as published, a branch opened, turned round, the form open.
STATES = ("", "?open.regions.0=Region.A", "?edit=firms", "?p.activity=shop")
BLOCK = re.compile(r'<section class="block".*?</section>', re.DOTALL)


def square(x: int) -> list[list[list[int]]]:
    return [[[x, 40], [x + 1, 40], [x + 1, 41], [x, 41], [x, 40]]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Office, ASGIApp]]:
    folder: Path = tmp_path_factory.mktemp("looks") / "office"
    (folder / "maps").mkdir(parents=True)
    areas = [
        {"type": "Feature", "id": key, "geometry": {"type": "Polygon", "coordinates": square(x)}}
        for x, key in enumerate("ABC")
    ]
    (folder / "maps/regions.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
    (folder / "logo.svg").write_text(LOGO)
    write_office(folder, publication=PUBLICATION + THEME, sheets={**SHEETS, **LOOKS})
    run_publication(folder)
    with publication_store(folder) as store:
        office = staffed(folder, store)
        office.versions.import_folder(folder, "ana")
        yield office, beside(create_app(store), create_studio(office, PARTS, BASE))
        office.previews.close()


SCALED = """
title.en = "Scaled"
[[query]]
id = "q"
mdx = '''
WITH MEMBER [Measures].[Scaled] AS '[Measures].[Turnover] * {factor}'
SELECT NON EMPTY {{[Measures].[Scaled]}} ON 0, {{[Place].[Town].Members}} ON 1 FROM [Firms]'''
"""


@pytest.mark.parametrize("asked", ["preview", "what if"])
def test_no_factor_tells_how_large_a_cell_is(site: tuple[Office, ASGIApp], asked: str) -> None:
    """What can't be published exactly is refused by the size of cells: who tries factors mustn't hear it."""
    office, app = site
    analyst = Visitor(app).sign_in(Role.ANALYST)
    draft = office.versions.begin("ana")
    files = office.versions.files(draft)
    told = []
    for factor in ("1", "1000000000000", "1000000000000000000"):
        texts = {**files.texts, "sheets/scaled.toml": SCALED.format(factor=factor)}
        draft = office.versions.edit(draft, Files(texts, files.uploads))
        if asked == "preview":
            analyst.get("/studio/publication")
            page = analyst.get(f"/studio/drafts/{draft.id}/preview/sheets/scaled.toml")
        else:
            analyst.get("/studio/what-if")
            page = analyst.post("/studio/what-if", {"draft": str(draft.id)})
        told.append((page.status_code, "too large to be" in page.text))
    office.versions.discard(draft)
    refused = (422, False) if asked == "what if" else (200, False)
    assert told == [(200, False), refused, refused]


def blocks(text: str, address: str) -> list[str]:
    """The blocks of a page, without its files and with its own address left out."""
    found = []
    for block in BLOCK.findall(text):
        plain = re.sub(
            r'<ul class="downloads".*?</ul>|<details class="elsewhere".*?</details>',
            "",
            block,
            flags=re.DOTALL,
        )
        found.append(plain.replace(address, "HERE"))
    return found


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("sheet", [name for name in {**SHEETS, **LOOKS} if not name.endswith("folder")])
def test_a_released_sheet_looks_the_same_byte_by_byte(
    site: tuple[Office, ASGIApp], sheet: str, language: str
) -> None:
    office, app = site
    ana = Visitor(app).sign_in(Role.ANALYST)
    draft = office.versions.begin("ana")
    address = f"/studio/drafts/{draft.id}/preview/{language}/sheets/{sheet}.toml"
    public = f"/{language}/s/{sheet}"
    for state in STATES:
        preview, live = ana.get(address + state), Visitor(app).get(public + state)
        assert preview.status_code == live.status_code
        assert blocks(preview.text, address) == blocks(live.text, public)
        assert live.status_code != 200 or blocks(live.text, public)
    assert "Every cell is in the live release already" in ana.get(address).text


def test_maps_and_looks_are_the_draft_s(site: tuple[Office, ASGIApp]) -> None:
    office, app = site
    ana = Visitor(app).sign_in(Role.ANALYST)
    draft = office.versions.begin("ana")
    base = f"/studio/drafts/{draft.id}"
    page = ana.get(f"{base}/preview/sheets/map.toml").text
    assert page.count("<path") >= 3
    assert f'href="{base}/theme.css"' in page
    assert f'src="{base}/logo.svg"' in page
    assert ana.get(f"{base}/logo.svg").text == LOGO
    assert "#7a1f3d" in ana.get(f"{base}/theme.css").text
    files = office.versions.files(draft)
    text = files.texts["publication.toml"].replace("#7a1f3d", "#1f3d7a").replace('logo = "logo.svg"\n', "")
    office.versions.edit(draft, Files({**files.texts, "publication.toml": text}, files.uploads))
    assert "#1f3d7a" in ana.get(f"{base}/theme.css").text
    assert ana.get(f"{base}/logo.svg").status_code == 404
    assert "logo.svg" not in ana.get(f"{base}/preview/sheets/map.toml").text
    assert "#7a1f3d" in Visitor(app).get("/theme.css").text


def test_a_cell_that_no_release_holds_is_not_released_wherever_it_stands(
    site: tuple[Office, ASGIApp],
) -> None:
    office, app = site
    ana = Visitor(app).sign_in(Role.ANALYST)
    draft = office.versions.begin("ana")
    files = office.versions.files(draft)
    text = LOOKS["best"].replace("{[Activity].[Activity].Members}", "[Size].[Size].Members")
    office.versions.edit(draft, Files({**files.texts, "sheets/best.toml": text}, files.uploads))
    page = ana.get(f"/studio/drafts/{draft.id}/preview/sheets/best.toml")
    assert "cells are new" in page.text
    table = BLOCK.findall(page.text)[1]
    assert (table.count("[x]</abbr>"), table.count("[c]")) == (9, 0)
    assert "Not released: no table" in page.text
