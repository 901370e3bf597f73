"""Charts and maps: marks stand where their shown values say, and hidden ones always in the same place."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from app.domain.errors import InternalError
from app.domain.masked import CellStatus, MaskedCellSet
from app.domain.shapes import Shapes
from app.serve.answer import LiveReader
from app.web.app import create_app
from app.web.charts import Chart, draw, kinds_for
from app.web.labels import label_of
from app.web.maps import draw_maps
from app.web.scales import class_limits, scale_over
from tests.web.office import MemoryStore, build_cube
from tests.web.visitor import ask, links_of

BARS = ("territory/places", "bars", ("[Year].[Year].&[2023]",))
LINES = ("time/years", "lines", ())
MAP = ("territory/map", "map", ("[Year].[Year].&[2023]",))
TIME = frozenset({"[Year]"})


def masked(address: tuple[str, str, tuple[str, ...]], hide: tuple[int, ...] = ()) -> MaskedCellSet:
    cells = LiveReader(MemoryStore()).answer("r1", *address).masked
    status, values = cells.status.copy(), cells.values.copy()
    for row in hide:
        status[row], values[row] = CellStatus.CONFIDENTIAL, np.nan
    return replace(cells, status=status, values=values)


def bars(cells: MaskedCellSet, chart: str = "bar") -> Chart:
    return draw(cells, {"chart": chart}, TIME, "en")


@given(values=st.lists(st.floats(-1e12, 1e12), max_size=20), with_zero=st.booleans())
def test_a_scale_holds_every_value_on_few_round_ticks(values: list[float], with_zero: bool) -> None:
    scale = scale_over(values, with_zero=with_zero)
    assert 2 <= len(scale.ticks) <= 13
    assert all(-1e-6 <= scale.place(value) <= 1 + 1e-6 for value in values)
    if with_zero:
        assert scale.ticks[0] <= 0 <= scale.ticks[-1]


@given(values=st.lists(st.floats(-1e9, 1e9), max_size=40))
def test_classes_are_few_and_rising_and_start_at_the_least(values: list[float]) -> None:
    limits = class_limits(values)
    assert len(limits) <= 5
    assert list(limits) == sorted(set(limits))
    assert not values or limits[0] == min(values)


def test_lengths_of_bars_are_in_the_ratio_of_their_values() -> None:
    cells = masked(BARS)
    chart = bars(cells)
    shown = [mark for mark in chart.marks if mark.state == "shown"]
    values = [float(mark.text.replace(",", "")) for mark in shown]
    shares = {round(mark.width / value, 9) for mark, value in zip(shown, values, strict=True) if value}
    assert len(shares) == 1
    assert len(chart.marks) == cells.status.size


@pytest.mark.parametrize("chart", ["bar", "line", "stacked", "pyramid"])
def test_a_hidden_mark_does_not_depend_on_its_value(chart: str) -> None:
    hide = (2, 5)
    cells = masked(BARS, hide)
    other = replace(cells, values=cells.values.copy())
    assert bars(cells, chart) == bars(other, chart)
    hidden = [mark for mark in bars(cells, chart).marks if mark.state == "hidden"]
    assert hidden
    assert all(mark.text == "" for mark in hidden)
    assert bars(cells, chart).hidden == int(np.count_nonzero(cells.status == CellStatus.CONFIDENTIAL))
    assert {mark.width for mark in hidden} == ({5} if chart == "line" else {0})
    if chart == "bar":
        assert {(mark.x, mark.shift) for mark in hidden} == {(0.0, 0.0)}


def test_what_is_hidden_of_a_row_stands_behind_what_is_shown_of_it() -> None:
    """In a mark of one size, not over what is left of the axis, which would look like the largest part."""
    chart = bars(masked(BARS, (2, 5)), "stacked")
    ends: dict[float, float] = {}
    for mark in chart.marks:
        if mark.state == "shown":
            ends[mark.y] = max(ends.get(mark.y, 0.0), mark.x + mark.width)
    hidden = [mark for mark in chart.marks if mark.state == "hidden"]
    assert hidden
    assert all((mark.x, mark.width, mark.shift) == (ends.get(mark.y, 0.0), 0, 0) for mark in hidden)


def test_scales_come_from_shown_values_alone() -> None:
    cells = masked(BARS)
    largest = int(np.nanargmax(cells.values))
    everything, without = bars(cells), bars(masked(BARS, (largest,)))
    top = np.nanmax(np.delete(cells.values, largest))
    assert float(without.ticks[-1].text) < 2 * top + 1
    assert len(everything.marks) == len(without.marks)


def test_a_line_breaks_where_a_figure_is_hidden() -> None:
    whole = draw(masked(LINES), {"chart": "line"}, TIME, "en")
    broken = draw(masked(LINES, (1,)), {"chart": "line"}, TIME, "en")
    assert [label.text for label in whole.categories] == ["2021", "2022", "2023"]
    assert len(whole.segments) == 2 * len(whole.series)
    assert len(broken.segments) == len(whole.segments) - 2


def test_negative_values_stand_on_the_other_side_of_zero() -> None:
    cells = masked(BARS)
    turned = replace(
        cells, values=np.where(np.arange(cells.values.size) % 2 == 0, -cells.values, cells.values)
    )
    for chart in ("bar", "stacked"):
        drawn = bars(turned, chart)
        assert drawn.kind == "bar"
        assert 0 < drawn.zero < 100
        for mark in drawn.marks:
            if mark.state == "shown" and mark.negative:
                assert mark.x + mark.width == pytest.approx(drawn.zero)
            if mark.state == "hidden":
                assert (mark.x, mark.width, mark.shift) == (drawn.zero, 0, -7)


def test_charts_of_nothing_and_of_hidden_cells_alone_are_drawn() -> None:
    cells = masked(BARS)
    for chart in ("bar", "line", "stacked"):
        assert bars(masked(BARS, tuple(range(cells.status.size))), chart).marks
    with pytest.raises(InternalError):
        bars(cells, "pie")


def test_tiles_stand_where_properties_or_a_list_say_and_elsewhere_without() -> None:
    cube = build_cube()
    cells = masked(MAP, (3,))
    (placed,) = draw_maps(cells, {"column": "map_column", "row": "map_row"}, cube, "en")
    assert len({(tile.x, tile.y) for tile in placed.tiles}) == len(placed.tiles)
    assert [tile.state for tile in placed.tiles].count("hidden") == placed.hidden >= 1
    assert all(tile.shade == 0 and tile.text == "" for tile in placed.tiles if tile.state != "shown")
    listed = {tile.name: [number, 0] for number, tile in enumerate(placed.tiles)}
    (row,) = draw_maps(cells, {"tiles": {"N1": [5, 2], "N2": [6, 2]}}, cube, "en")
    assert (row.tiles[1].x, row.tiles[1].y) == (row.width, row.tiles[0].y)
    (square,) = draw_maps(cells, {}, cube, "en")
    assert len({(tile.x, tile.y) for tile in square.tiles}) == len(listed)


def test_names_stand_whole_in_tiles_on_any_screen() -> None:
    """Across where there is room, else upwards; never cut to a few letters that two areas share."""
    cube = build_cube()
    for wide, upright in ((2, False), (12, True)):
        tiles = {f"N{number}": [wide * (number - 1) // 3, 0] for number in (1, 2, 3)} | {"W1": [wide, 1]}
        (drawn,) = draw_maps(masked(MAP), {"tiles": tiles}, cube, "en")
        assert drawn.upright is upright
        for tile in drawn.tiles:
            assert " ".join(tile.narrow) == " ".join(tile.wide) == tile.name
            assert max(map(len, tile.narrow)) <= 13


def test_classes_of_a_map_come_from_shown_values_alone() -> None:
    cube = build_cube()
    cells = masked(MAP)
    largest = int(np.nanargmax(cells.values))
    (drawn,) = draw_maps(masked(MAP, (largest,)), {}, cube, "en")
    assert f"{cells.values[largest]:,.2f}" not in " ".join(drawn.classes)


def test_a_pyramid_has_two_halves_and_hidden_cells_stand_at_the_middle() -> None:
    cells = masked(BARS, (2, 5))
    chart = bars(cells, "pyramid")
    assert chart.kind == "pyramid"
    shown = [mark for mark in chart.marks if mark.state == "shown"]
    assert {round(mark.x + mark.width, 6) for mark in shown if mark.series == 0} == {100.0}
    assert {mark.x for mark in shown if mark.series == 1} == {0.0}
    shares = {round(mark.width / float(mark.text), 9) for mark in shown if float(mark.text)}
    assert len(shares) == 1
    hidden = {(m.series, m.x, m.width, m.shift) for m in chart.marks if m.state == "hidden"}
    assert hidden == {(0, 100.0, 0.0, -14.0), (1, 0.0, 0.0, 0.0)}
    assert bars(masked(LINES), "pyramid").kind == "bar"


def test_points_with_a_hidden_figure_share_one_strip() -> None:
    cells = masked(BARS, (2, 5))
    chart = bars(cells, "scatter")
    grid = cells.status.reshape(-1, 2)
    points = [mark for mark in chart.marks if mark.state == "shown"]
    assert len(points) == int(np.all(grid == CellStatus.SHOWN, axis=1).sum())
    (strip,) = [mark for mark in chart.marks if mark.state == "hidden"]
    assert strip.x + strip.width == 100.0
    assert all(point.x < strip.x for point in points)
    hidden = int(np.any(grid == CellStatus.CONFIDENTIAL, axis=1).sum())
    assert strip.label.count(", ") == hidden - 1


def test_the_picture_shows_hatching_whatever_is_hidden() -> None:
    site = create_app(MemoryStore())
    other = MemoryStore()
    for number, cell in enumerate(sorted(other.office.hidden)):
        other.office.truth[cell] = 3.0 + 17 * number
    other.live, _ = other.office.release()
    path = "/en/s/territory/places/bars.png"
    picture = ask(site, path).content
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20], "big") == 1800
    assert picture == ask(create_app(other), path).content


def test_readers_choose_among_the_kinds_of_chart_that_fit() -> None:
    site = create_app(MemoryStore())
    seen: dict[str, set[str]] = {}
    for path in ("/en/s/territory/places", "/en/s/territory/towns?p.region=E", "/en/s/time/years"):
        for link in sorted(links_of(ask(site, path))):
            for name, kind in httpx.QueryParams(urlsplit(link).query).multi_items():
                if not name.startswith("chart."):
                    continue
                response = ask(site, link)
                assert response.status_code == 200
                query = name.removeprefix("chart.")
                block = html.fromstring(response.content).get_element_by_id(query)
                drawn = {word for svg in block.find_class("chart") for word in svg.get("class").split()}
                assert drawn & {"bars", "lines", "pyramid", "scatter"} or kind == "table"
                assert [a.text for a in block.xpath(".//ul[@class='ways']//a[@aria-current]")]
                bare, _, state = link.partition("?")
                drawing = ask(site, f"{bare}/{query}.svg?{state}")
                assert drawing.status_code == (404 if kind == "table" else 200)
                seen.setdefault(f"{bare}#{query}", set()).add(kind)
    assert seen["/en/s/territory/towns#stacked"] == {"table", "bar", "pyramid", "scatter"}
    assert seen["/en/s/time/years#lines"] == {"table", "bar"}
    # Two measures of different units on one scale would lie, and totals stacked upon their parts.
    assert "/en/s/territory/places#table" not in seen
    assert "stacked" not in seen["/en/s/territory/towns#table"]


@given(
    hide=st.sets(st.integers(0, 17)), kind=st.sampled_from(["bar", "line", "stacked", "pyramid", "scatter"])
)
def test_what_hidden_figures_are_changes_no_kind_that_is_offered(hide: set[int], kind: str) -> None:
    cells = masked(BARS, tuple(hide))
    offered = kinds_for(cells, {"chart": kind}, TIME, "en", adds_up=True)
    assert set(offered) <= {"bar", "stacked", "pyramid", "scatter"}
    assert (
        kinds_for(replace(cells, status=cells.status[:0], values=cells.values[:0]), {}, TIME, "en", True)
        == ()
    )


def _area_path(corners: list[tuple[float, float]]) -> str:
    steps = " ".join(f"{b[0] - a[0]:.1f} {b[1] - a[1]:.1f}" for a, b in pairwise(corners))
    return f"M{corners[0][0]:.1f} {corners[0][1]:.1f}l{steps}z"


@given(
    radii=st.lists(st.floats(20, 260), min_size=5, max_size=24),
    name=st.sampled_from(["Soria", "Villa Real", "Alisio Occidental", "Santa Cruz de la Palma"]),
)
def test_a_name_lies_in_its_outline_or_is_numbered(radii: list[float], name: str) -> None:
    turns = [2 * np.pi * n / len(radii) for n in range(len(radii))]
    corners = [
        (300 + r * float(np.cos(t)), 300 + r * float(np.sin(t))) for r, t in zip(radii, turns, strict=True)
    ]
    shape = shapely.Polygon(corners).buffer(1.5)
    label = label_of(name, _area_path(corners))
    assert " ".join(label.lines) in (name, "")
    if label.lines:
        width, height = 8.0 * max(map(len, label.lines)) / 2, 7.0 * len(label.lines)
        assert shape.contains(
            shapely.box(label.x - width, label.y - height, label.x + width, label.y + height)
        )


def test_every_outlined_area_is_named_on_every_screen_and_in_files() -> None:
    """In the area where the name fits, else by number and list; no name is there for a pointer alone."""
    square = "l{0} 0 0 {0} -{0} 0z"
    sizes = {"N1": 200, "N2": 90, "N3": 12, "W1": 12}
    paths = {key: f"M{210 * n} 0{square.format(size)}" for n, (key, size) in enumerate(sizes.items())}
    (drawn,) = draw_maps(masked(MAP), {}, build_cube(), "en", Shapes(1000, 300, paths))
    assert {tile.name for tile in drawn.numbered} == {tile.name for tile in drawn.tiles}
    assert [tile.number for tile in drawn.numbered] == list(range(1, len(drawn.tiles) + 1))
    for tile in drawn.tiles:
        assert tile.label is not None
        named = f"{tile.number}\u00a0{tile.name}" in " ".join(drawn.key)
        assert (" ".join(tile.label.lines) == tile.name) is not named
    assert drawn.key
