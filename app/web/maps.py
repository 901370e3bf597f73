"""Area maps: one tile for each area, coloured by classes of the shown values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from textwrap import wrap
from typing import Any

from app.domain.cube import Cube
from app.domain.masked import AxisMember, CellStatus, MaskedCellSet
from app.domain.numbers import format_value
from app.domain.shapes import Shapes
from app.web.arrange import Arrangement, Hierarchies
from app.web.labels import Label, label_of
from app.web.scales import class_limits
from app.web.tables import STATES, caption, grid_of

_TILE = 52
#: Pixels for a map on the narrowest phones, and on screens where slim tiles have their names across.
_PHONE, _SCREEN = 320, 900
#: Letters across a tile at most, and up a slim one.
_ACROSS, _UPWARD = 13, 10
#: Width of an outlined map in a file.
_DRAWN = 868
#: Letters in a line of names below it.
_KEY_LETTERS = 110


@dataclass(frozen=True)
class Area:
    """An area as it is drawn. ``shade`` is its class from 1, or 0 for a hidden or empty cell.

    ``wide`` and ``narrow`` are the lines of the name in a tile, on large screens and on phones. A tile stands
    at ``x`` (per cent) and ``y`` (pixels); an outline has its ``path``, a ``label`` in it, and the ``number``
    that stands for its name where that doesn't fit.
    """

    name: str
    wide: tuple[str, ...]
    narrow: tuple[str, ...]
    text: str
    state: str
    shade: int
    x: float
    y: float
    path: str = ""
    label: Label | None = None
    number: int = 0


@dataclass(frozen=True)
class AreaMap:
    """``title`` tells several maps of one query apart; ``classes`` are the legend, from low to high.

    ``extent`` is the width and height that outlines are drawn in; None for tiles. ``upright`` tiles are too
    slim on small screens for names across: theirs run upwards.
    """

    title: str
    tiles: tuple[Area, ...]
    width: float
    tile_height: float
    height: float
    classes: tuple[str, ...]
    hidden: int
    unreleased: int
    empty: int
    extent: tuple[float, float] | None = None
    upright: bool = False

    @property
    def numbered(self) -> tuple[Area, ...]:
        """Outlined areas by number: first those whose names fit on no screen."""
        return tuple(sorted((tile for tile in self.tiles if tile.label), key=lambda tile: tile.number))

    @property
    def key(self) -> tuple[str, ...]:
        """The names that fit nowhere with their numbers, in lines for a file."""
        named = (f"{tile.number}\u00a0{tile.name}" for tile in self.numbered if not tile.label.lines)  # type: ignore[union-attr]
        return tuple(wrap(" · ".join(named), _KEY_LETTERS))


def draw_maps(
    masked: MaskedCellSet,
    options: Mapping[str, Any],
    cube: Cube,
    language: str,
    shapes: Shapes | None = None,
) -> tuple[AreaMap, ...]:
    """One map for each column of the cellset, its areas being the rows.

    With ``shapes``, an area is drawn as its outline; one without isn't drawn. Else ``options`` say where
    tiles stand: ``column`` and ``row`` name two properties of the members, or ``tiles`` gives
    ``[column, row]`` by key or unique name. Areas without a place, or all of them when nothing is
    said, fill a square in their order.
    """
    grid = grid_of(masked)
    areas = tuple(position[0] for position in grid.rows if position)
    places = _places(areas, options, cube)
    width = 1 + max((x for x, _ in places), default=0)
    height = 1 + max((y for _, y in places), default=0)
    # Letters across a tile, of some six pixels each.
    phone, screen = (int((room / width - 8) / 6.3) for room in (_PHONE, _SCREEN))
    slim = phone < _UPWARD
    maps = []
    for column, members in enumerate(grid.columns):
        status, values = grid.status[:, column].tolist(), grid.values[:, column].tolist()
        numbers = grid.style[:, column].tolist()
        shown = [v for v, state in zip(values, status, strict=True) if state == CellStatus.SHOWN]
        limits = class_limits(shown)
        style = masked.styles[numbers[0]] if numbers else None
        tops = [
            max((v for v in shown if bisect_right(limits, v) == k + 1), default=low)
            for k, low in enumerate(limits)
        ]
        tiles = []
        for area, (x, y), value, state, number in zip(areas, places, values, status, numbers, strict=True):
            is_shown = state == CellStatus.SHOWN
            name = caption(area, language)
            tiles.append(
                Area(
                    name=name,
                    wide=_lines(name, max(_UPWARD, min(screen, _ACROSS))),
                    narrow=_lines(name, _UPWARD if slim else min(phone, _ACROSS)),
                    text=format_value(value, masked.styles[number], language) if is_shown else "",
                    state=STATES[state],
                    shade=bisect_right(limits, value) if is_shown else 0,
                    x=100 * x / width,
                    y=_TILE * y,
                    path=outline(area, shapes, cube) if shapes is not None else "",
                )
            )
        extent = (shapes.width, shapes.height) if shapes is not None else None
        maps.append(
            AreaMap(
                title=" · ".join(caption(member, language) for member in members),
                tiles=tuple(tiles) if shapes is None else _labelled(tiles),
                width=100 / width,
                tile_height=_TILE,
                height=_TILE * height if shapes is None else shapes.height * _DRAWN / shapes.width,
                extent=extent,
                upright=slim,
                classes=tuple(
                    _range(format_value(low, style, language), format_value(top, style, language))
                    for low, top in zip(limits, tops, strict=True)
                )
                if style is not None
                else (),
                hidden=status.count(int(CellStatus.CONFIDENTIAL)),
                unreleased=status.count(int(CellStatus.UNRELEASED)),
                empty=status.count(int(CellStatus.EMPTY)),
            )
        )
    return tuple(maps)


def with_areas_down(wanted: Arrangement, known: Hierarchies) -> Arrangement:
    """The arrangement with the areas (the outermost hierarchy of the published rows) down, the rest across,
    so that a map remains a map however its table is turned."""
    if not known.whole or not known.rows:
        return replace(wanted, rows=None, columns=None, fixed=(), sort=0, folded={})
    others = tuple(n for n in range(1, len(known.members)) if n not in wanted.fixed)
    fixed = tuple(n for n in wanted.fixed if n)
    return replace(wanted, rows=(0,), columns=others, fixed=fixed, sort=0, folded={})


def outline(area: AxisMember, shapes: Shapes, cube: Cube) -> str:
    """The path of an area, by its unique name or its key; empty when it has none."""
    if area.unique_name in shapes.paths:
        return shapes.paths[area.unique_name]
    index = cube.hierarchy_index.get(area.hierarchy)
    hierarchy = cube.hierarchies[index] if index is not None else None
    at = hierarchy.index_of.get(area.unique_name) if hierarchy is not None else None
    return shapes.paths.get(hierarchy.keys[at], "") if hierarchy is not None and at is not None else ""


def _labelled(areas: Sequence[Area]) -> tuple[Area, ...]:
    """The areas that have outlines, with their names placed, and numbered."""
    drawn = [replace(area, label=label_of(area.name, area.path)) for area in areas if area.path]
    order = sorted(range(len(drawn)), key=lambda at: bool((label := drawn[at].label) and label.lines))
    number = {at: place for place, at in enumerate(order, 1)}
    return tuple(replace(area, number=number[at]) for at, area in enumerate(drawn))


def _lines(name: str, letters: int) -> tuple[str, ...]:
    """A name in at most two lines."""
    return tuple(wrap(name, letters, max_lines=2, placeholder="…"))


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} – {high}"


def _places(areas: tuple[AxisMember, ...], options: Mapping[str, Any], cube: Cube) -> list[tuple[int, int]]:
    asked = [_place(area, options, cube) for area in areas]
    known = [place for place in asked if place is not None]
    left = min((x for x, _ in known), default=0)
    top = min((y for _, y in known), default=0)
    below = 1 + max((y - top for _, y in known), default=-1)
    side = max(ceil(sqrt(len(areas))), 1 + max((x - left for x, _ in known), default=0))
    places, free = [], 0
    for place in asked:
        if place is None:
            places.append((free % side, below + free // side))
            free += 1
        else:
            places.append((place[0] - left, place[1] - top))
    return places


def _place(area: AxisMember, options: Mapping[str, Any], cube: Cube) -> tuple[int, int] | None:
    index = cube.hierarchy_index.get(area.hierarchy)
    if index is None:
        return None
    hierarchy = cube.hierarchies[index]
    member = hierarchy.index_of.get(area.unique_name)
    if member is None:
        return None
    columns = hierarchy.properties.get(str(options.get("column", "")))
    rows = hierarchy.properties.get(str(options.get("row", "")))
    listed = options.get("tiles", {})
    pair = listed.get(area.unique_name) or listed.get(hierarchy.keys[member])
    if pair is None and columns is not None and rows is not None:
        pair = (columns[member], rows[member])
    try:
        return (int(float(pair[0])), int(float(pair[1]))) if pair else None
    except (ValueError, TypeError, IndexError):
        return None
