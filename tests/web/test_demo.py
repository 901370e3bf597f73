"""Every sheet of the demo publication, in every format, by readers that aren't ours: what the page shows.

The figures are the demo's own, of few returns; which cells are hidden is drawn by lot, so that hidden ones
stand everywhere. That they are hidden rightly is for other tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sdmx
from lxml import html
from openpyxl import load_workbook
from pyarrow import parquet as pq
from pyaxis import pyaxis
from pyjstat import pyjstat
from sdmx.model import v30
from sdmx.reader.csv import Reader as SdmxCsv
from starlette.types import ASGIApp

from app.cube.duckdb import open_cube
from app.domain.catalogue import Catalogue
from app.domain.history import ReleaseMark
from app.domain.masked import Layout
from app.domain.release import Release
from app.pipeline.arrange import arrange
from app.pipeline.audit import ReleaseAudit
from app.pipeline.crawl import crawl
from app.pipeline.define import load_publication
from app.pipeline.release import make_release
from app.pipeline.suppress import Suppression
from app.web.app import create_app
from demo import create_demo
from tests.web.visitor import ask, read_table

RETURNS = 3000
Cells = list[tuple[float | None, str]]


@dataclass
class DemoStore:
    """One live release in memory."""

    live: Release
    published: Catalogue
    layouts: Mapping[tuple[str, str, tuple[str, ...]], Layout]

    def releases(self) -> tuple[ReleaseMark, ...]:
        return (ReleaseMark(self.live.id, "live", self.live.created),)

    def release(self, release_id: str) -> Release | None:
        return self.live

    def catalogue(self, release_id: str) -> Catalogue | None:
        return self.published

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        return self.layouts.get((sheet_id, query_id, choice))


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> DemoStore:
    folder: Path = tmp_path_factory.mktemp("demo")
    create_demo(folder, returns=RETURNS)
    publication = load_publication(folder)
    servers = {cube.name: open_cube(cube) for cube in publication.cubes}
    found = crawl(publication, servers)
    lot = np.random.default_rng(11)
    hidden = tuple(lot.random(len(cells)) < 0.15 for cells in found.cubes)
    audit = ReleaseAudit((), ())
    release, catalogue = make_release(publication, found, Suppression(hidden, (), {}), audit)
    release, layouts = arrange(publication, found, release, servers)
    for server in servers.values():
        server.close()
    return DemoStore(replace(release, state="live"), catalogue, layouts)


@pytest.fixture(scope="session")
def site(store: DemoStore) -> ASGIApp:
    return create_app(store)


def cells_of(frame: pd.DataFrame) -> Cells:
    return [(float(row.OBS_VALUE) if row.OBS_VALUE else None, row.OBS_STATUS) for row in frame.itertuples()]


def test_every_sheet_says_the_same_in_every_format(site: ASGIApp, store: DemoStore, tmp_path: Path) -> None:
    seen: set[str] = set()
    for sheet in store.published.root.walk():
        page = html.fromstring(ask(site, f"/en/s/{sheet.id}").content)
        for query in sheet.queries:
            address = f"/en/s/{sheet.id}/{query.id}"
            (section,) = page.xpath(f"//section[@id='{query.id}']")
            (link,) = section.xpath(".//ul[@class='downloads']//a[text()='CSV']/@href")
            state = link.partition("?")[2]
            frame = pd.read_csv(StringIO(ask(site, link).text), dtype=str, keep_default_na=False)
            expected = cells_of(frame)
            seen |= set(frame.OBS_STATUS)
            shown = [cell.text for cell in read_table(section.xpath(".//table")[0])]
            if len(shown) == len(expected):
                # A long table comes to the page in parts; its first part is as long as it can be.
                for text, (_, status) in zip(shown, expected, strict=True):
                    assert (text == "[c]") == (status == "Q"), address
                    assert (text == "–") == (status == "M"), address
            for extension, read in READERS.items():
                path = tmp_path / f"table.{extension}"
                path.write_bytes(ask(site, f"{address}.{extension}?{state}").content)
                assert read(path, frame) == expected, f"{address}.{extension}"
    assert seen == {"A", "Q", "M"} or seen == {"A", "Q"}


def _json_stat(path: Path, frame: pd.DataFrame) -> Cells:
    body = path.read_text()
    read = pyjstat.Dataset.read(body).write("dataframe", naming="id")
    document = json.loads(body)
    columns = document["id"]
    signs = {"C": "Q", "M": "M", None: "A"}
    told = {
        tuple(row[name] for name in columns): (
            None if pd.isna(row["value"]) else float(row["value"]),
            signs[document["status"].get(str(place))],
        )
        for place, row in enumerate(read.to_dict("records"))
    }
    return [told[tuple(row[name] for name in columns)] for row in frame.to_dict("records")]


def _sdmx_json(path: Path, frame: pd.DataFrame) -> Cells:
    body = path.read_bytes()
    message = json.loads(body)
    structure = message["data"]["structures"][0]
    for attribute in structure["attributes"]["observation"]:
        for value in attribute["values"]:
            value.setdefault("name", str(value.pop("value", "")))
    lifted = {"meta": message["meta"], "structure": structure, "dataSets": message["data"]["dataSets"]}
    return _observed(sdmx.read_sdmx(BytesIO(json.dumps(lifted).encode()), format="JSON").data[0].obs)


def _sdmx_csv(path: Path, frame: pd.DataFrame) -> Cells:
    body = path.read_bytes()
    names = body.split(b"\r\n", 1)[0].decode().split(",")
    flow = v30.Dataflow(id="F", structure=v30.DataStructureDefinition(id="S"))
    flow.structure.dimensions.extend(v30.Dimension(id=name) for name in names[3:-5])
    flow.structure.measures.append(v30.Measure(id="OBS_VALUE"))
    for name in names[-4:]:
        flow.structure.attributes.append(v30.DataAttribute(id=name))
    return _observed(SdmxCsv().convert(BytesIO(body), structure=flow).data[0].obs)


def _observed(observations: object) -> Cells:
    return [
        (
            None if seen.value in ("", None) else float(seen.value),
            getattr(
                seen.attached_attribute["OBS_STATUS"].value, "id", seen.attached_attribute["OBS_STATUS"].value
            ),
        )
        for seen in observations  # type: ignore[attr-defined]
    ]


def _xlsx(path: Path, frame: pd.DataFrame) -> Cells:
    body = path.read_bytes()
    sheet = load_workbook(BytesIO(body)).worksheets[0]
    top = int(sheet.freeze_panes.removeprefix("B"))
    signs = {"[c]": (None, "Q"), "–": (None, "M")}
    return [
        signs[cell.value] if cell.data_type == "s" else (float(cell.value), "A")
        for row in sheet.iter_rows(min_row=top, min_col=2)
        for cell in row
        if cell.value is not None
    ]


def _px(path: Path, frame: pd.DataFrame) -> Cells:
    read = pyaxis.parse(str(path), encoding="utf-8")["DATA"]
    signs = {'"-"': (None, "M")}
    return [(None, "Q") if pd.isna(sign) else signs.get(sign) or (float(sign), "A") for sign in read.DATA]


def _parquet(path: Path, frame: pd.DataFrame) -> Cells:
    read = pq.read_table(path).to_pandas()
    return [(None if pd.isna(r.OBS_VALUE) else float(r.OBS_VALUE), r.OBS_STATUS) for r in read.itertuples()]


READERS: dict[str, Callable[[Path, pd.DataFrame], Cells]] = {
    "json": _json_stat,
    "parquet": _parquet,
    "sdmx-csv": _sdmx_csv,
    "sdmx-json": _sdmx_json,
    "xlsx": _xlsx,
    "px": _px,
}
