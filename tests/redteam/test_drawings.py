"""Every kind of drawing that the site serves: a sound one tells nothing, one by another hand is found out.

The tampered ones are drawn by the site itself, from a release that shows all; only their words are as before.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from lxml import etree, html
from starlette.types import ASGIApp

from app.bootstrap import publication_store, run_publication
from app.domain.masked import CellStatus
from app.redteam.exports import export_leaks
from app.redteam.pages import parse_page, read_block
from app.redteam.report import PageLeak
from app.redteam.tables import Document, TableRow, UnreadableError, read_csv
from app.web.app import create_app
from demo import create_starter
from tests.redteam.test_leaks import Tampered, truth_of
from tests.web.visitor import ask

_TOWNS = "[Territory].[Town].Members"
_ONE = "[Measures].[Firms]"
_TWO = "[Measures].[Firms], [Measures].[Turnover]"
_FIRST = "[Activity].[Activity].&[Farming], [Activity].[Activity].&[Building]"
#: Columns, what shows them and how, of the towns.
KINDS = {
    "bars": (_ONE, "chart", 'chart = "bar"'),
    "grouped": ("[Activity].[Activity].Members", "chart", 'chart = "bar"'),
    "stacked": ("[Activity].[Activity].Members", "chart", 'chart = "stacked"'),
    "lines": ("[Activity].[Activity].Members", "chart", 'chart = "line"'),
    "pyramid": (_FIRST, "chart", 'chart = "pyramid"'),
    "scatter": (_TWO, "chart", 'chart = "scatter"'),
    "tiles": (_ONE, "map", ""),
    "maps": ("[Activity].[Activity].Members", "map", ""),
    "outlines": (_FIRST, "map", 'shapes = "maps/towns.geojson"'),
}

#: Titles are told apart from other texts by their place alone.
Rewrite = Callable[[etree._Element, etree._Element], None]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Towns with hidden figures, in every kind of drawing."""
    folder = tmp_path_factory.mktemp("drawings") / "firms"
    create_starter(folder)
    sheets = folder / "sheets" / "economy"
    for sheet in sheets.glob("[!_]*.toml"):
        if sheet.name != "folder.toml":
            sheet.unlink()
    for name, (columns, view, options) in KINDS.items():
        mdx = f"SELECT {{{columns}}} ON COLUMNS, {_TOWNS} ON ROWS FROM [Firms]"
        text = f'title.en = "{name}"\n[[query]]\nid = "drawn"\nshow = "{view}"\nmdx = "{mdx}"\n'
        (sheets / f"{name}.toml").write_text(f"{text}[query.options]\n{options}\n", "utf-8")
    with (folder / "data" / "firms.csv").open(encoding="utf-8") as file:
        towns = sorted({fact["town"] for fact in csv.DictReader(file)})
    squares = [
        {
            "type": "Feature",
            "id": town,
            "properties": {},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[n, 40], [n + 1, 40], [n + 1, 41], [n, 41], [n, 40]]],
            },
        }
        for n, town in enumerate(towns)
    ]
    (folder / "maps").mkdir()
    (folder / "maps" / "towns.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": squares}), "utf-8"
    )
    run_publication(folder)
    return folder


@pytest.fixture(scope="module")
def doors(office: Path) -> Iterator[tuple[ASGIApp, ASGIApp]]:
    """The site, and one from whose release nothing is hidden."""
    truth = truth_of(office)
    with publication_store(office) as store:
        release = store.live_release()
        assert release is not None
        hidden = np.flatnonzero(release.status == CellStatus.CONFIDENTIAL).tolist()
        bare = Tampered(store, {row: truth(release.keys[row]) for row in hidden})
        yield create_app(store), create_app(bare)


def plots(tree: etree._Element) -> list[etree._Element]:
    return [
        svg
        for svg in tree.iter("{*}svg")
        if {"plot", "tiles", "areas"} & set((svg.get("class") or "").split())
    ]


def words(tree: etree._Element, tag: str) -> Iterator[etree._Element]:
    return tree.iter("{*}" + tag)


def as_it_is(sound: etree._Element, bare: etree._Element) -> None:
    """The hidden cells where and how their numbers place them, and not a word of those."""
    known = {tag: {element.text for element in words(sound, tag)} for tag in ("title", "text")}
    for element in words(bare, "title"):
        if element.text not in known["title"]:
            element.text = str(element.text).rpartition(":")[0] + ": confidential"
    for element in words(bare, "text"):
        if element.text not in known["text"]:
            element.text = "[c]"
    parent = sound.getparent()
    assert parent is not None
    bare.tail = sound.tail
    parent.replace(sound, deepcopy(bare))


def in_titles(sound: etree._Element, bare: etree._Element) -> None:
    for element in words(sound, "title"):
        element.text = str(element.text).replace("confidential", "17")


def in_texts(sound: etree._Element, bare: etree._Element) -> None:
    for element in words(sound, "text"):
        element.text = str(element.text).replace("[c]", "17")


def in_attributes(sound: etree._Element, bare: etree._Element) -> None:
    for element in words(sound, "title"):
        if "confidential" in str(element.text):
            parent = element.getparent()
            assert parent is not None
            parent.set("data-value", "17")


def redrawn(sound: bytes, bare: bytes, is_file: bool, rewrite: Rewrite) -> bytes:
    """A page or file with its drawings in other hands."""
    parse = etree.fromstring if is_file else html.document_fromstring
    trees = [parse(content) for content in (sound, bare)]
    for ours, theirs in zip(*map(plots, trees), strict=True):
        rewrite(ours, theirs)
    written: bytes = etree.tostring(trees[0], method="xml" if is_file else "html")
    return written


def read(
    doors: tuple[ASGIApp, ASGIApp], kind: str, ending: str, rewrite: Rewrite | None
) -> tuple[Document, list[PageLeak], str]:
    """A drawing against the CSV file beside it: the leaks of it, and what couldn't be read."""
    listed = read_csv("", ask(doors[0], f"/en/s/economy/{kind}/drawn.csv").text)
    path = f"/en/embed/economy/{kind}/drawn" if ending == "embed" else f"/en/s/economy/{kind}{ending}"
    sound, bare = (ask(app, path).content for app in doors)
    content = redrawn(sound, bare, ending == "/drawn.svg", rewrite) if rewrite else sound
    if ending == "/drawn.svg":
        leaks: list[PageLeak] = []
        try:
            leaks.extend(export_leaks("svg", content, listed.rows))
        except UnreadableError as error:
            return listed, leaks, str(error)
        return listed, leaks, ""
    return listed, *read_block(parse_page(content.decode()), listed.rows)


@pytest.mark.parametrize("ending", ["", "/drawn.svg", "embed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_drawing_is_read_and_tells_nothing(
    doors: tuple[ASGIApp, ASGIApp], kind: str, ending: str
) -> None:
    listed, leaks, trouble = read(doors, kind, ending, None)
    assert any(row.hidden for row in listed.rows)
    assert (leaks, trouble) == ([], "")


@pytest.mark.parametrize("ending", ["", "/drawn.svg", "embed"])
@pytest.mark.parametrize("kind", KINDS)
def test_places_and_colours_of_hidden_cells_are_read(
    doors: tuple[ASGIApp, ASGIApp], kind: str, ending: str
) -> None:
    listed, leaks, _ = read(doors, kind, ending, as_it_is)
    truth = [row.value for row in read_csv("", ask(doors[1], f"/en/s/economy/{kind}/drawn.csv").text).rows]
    assert {leak.row for leak in leaks} == {n for n, row in enumerate(listed.rows) if row.hidden}
    for leak in leaks:
        value = truth[leak.row]
        assert value is not None
        if kind not in ("tiles", "maps", "outlines"):
            assert leak.lower - 0.01 * value - 0.2 <= value <= leak.upper + 0.01 * value + 0.2


@pytest.mark.parametrize("rewrite", [in_titles, in_texts, in_attributes])
@pytest.mark.parametrize("kind", KINDS)
def test_words_of_hidden_cells_are_read(doors: tuple[ASGIApp, ASGIApp], kind: str, rewrite: Rewrite) -> None:
    listed, leaks, _ = read(doors, kind, "", rewrite)
    if (kind, rewrite) == ("outlines", in_texts):
        # Areas have no texts.
        return
    assert leaks
    assert all(listed.rows[leak.row].hidden and leak.lower == 17 for leak in leaks)


TOWNS = [
    TableRow({}, {"[Town]": name}, value, 0, value is None)
    for name, value in (("Alder", 40.0), ("Birch", None), ("Cedar", 70.0), ("Elm", 10.0))
]


def bar(row: int, width: float, says: str, style: str = "s0") -> str:
    place = f'x="0%" y="{20 * row}" width="{width}%" height="16"'
    return f'<rect class="{style}" {place}><title>{says}</title></rect>'


def bars(*more: str, reach: int = 80, veil: str = bar(1, 100, "Birch: confidential", "veil")) -> str:
    """Towns on an axis that reaches from 0 to ``reach``."""
    marks = [
        bar(n, 100 * row.value / reach, f"{row.captions['[Town]']}: {row.value:.0f}")
        for n, row in enumerate(TOWNS)
        if row.value
    ]
    grid = "".join(
        f'<line x1="{at}%" x2="{at}%" y1="0" y2="80"/><text x="{at}%" y="96">{tick}</text>'
        for at, tick in ((100 * tick / reach, tick) for tick in range(0, reach + 1, 20))
    )
    inner = "".join([f'<g class="grid">{grid}</g>', *marks, veil, *more])
    return f'<div class="chart bars"><svg class="plot">{inner}</svg></div>'


def areas(*classes: str) -> str:
    keys = "".join(
        f'<li><svg class="key" aria-hidden="true"><rect class="c{n}"/></svg> {text}</li>'
        for n, text in enumerate(classes, 1)
    )
    tiles = "".join(
        f'<g><title>{row.captions["[Town]"]}</title><rect class="{"veil" if row.hidden else "c1"}"/></g>'
        for row in TOWNS
    )
    return f'<svg class="chart tiles">{tiles}</svg><ul class="legend">{keys}</ul>'


@pytest.mark.parametrize(
    ("drawing", "told"),
    [
        (bars(), ""),
        (bars(reach=120), "an axis that reaches further"),
        (bars('<circle cx="22%" cy="28" r="4"/>'), "a shape without a name"),
        (bars('<path class="s0" d="M0 20H22V36H0Z"/>'), "a shape without a name"),
        (bars(bar(4, 22, "Somewhere: confidential")), "a mark that names no cell"),
        (bars(veil=bar(1, 100, "Birch: confidential")), "drawn as a shown one"),
        (bars().replace("chart bars", "chart scatter"), "a scatter whose axes have no names"),
        (areas("10 – 40", "70"), ""),
        (areas("10 – 40", "55 – 70"), "a limit that no cell shows"),
    ],
)
def test_what_cannot_be_read_is_said(drawing: str, told: str) -> None:
    _, trouble = read_block(parse_page(drawing), TOWNS)
    assert trouble.startswith("a") == bool(told)
    assert told in trouble


def test_a_stroke_to_a_hidden_figure_is_measured() -> None:
    """A line that goes on where its figure is hidden, though nothing there has a name."""
    places = {
        row.captions["[Town]"]: (10.0 + 20 * n, 200 - 2 * (row.value or 0)) for n, row in enumerate(TOWNS)
    }
    places["Birch"] = (30.0, 200 - 2 * 22.0)
    spots = list(places.values())
    strokes = "".join(
        f'<line class="stroke s0" x1="{a}%" y1="{b}" x2="{c}%" y2="{d}"/>'
        for (a, b), (c, d) in pairwise(spots)
    )
    points = "".join(
        f"<g><title>{name}: {row.value:.0f}</title>"
        f'<circle cx="{places[name][0]}%" cy="{places[name][1]}" r="4"/></g>'
        for row in TOWNS
        if (name := row.captions["[Town]"]) and row.value
    )
    place = 'x="27.5%" y="0" width="5%" height="200"'
    veil = f'<rect class="veil" {place}><title>Birch: confidential</title></rect>'
    grid = "".join(f'<line x1="0" x2="100%" y1="{y}" y2="{y}"/>' for y in (40, 200))
    veil = f'<g class="grid">{grid}</g>{veil}'
    page = f'<div class="chart lines"><svg class="plot">{veil}{strokes}{points}</svg></div>'
    leaks, trouble = read_block(parse_page(page), TOWNS)
    assert {(leak.row, leak.kind, round(leak.lower, 6)) for leak in leaks} == {(1, "drawn", 22.0)}
    assert trouble == "a shape without a name"
