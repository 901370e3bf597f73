"""define: GeoJSON and TopoJSON of an office become outlines for maps, projected and simplified.

Degrees are projected by Lambert's azimuthal equal-area projection about the middle of the data (Snyder, *Map
Projections*, USGS Professional Paper 1395, pp. 182–190), because areas are what readers of a choropleth
compare; coordinates beyond degrees are taken for metres of a projection that the office chose. Borders are
simplified as a coverage, so that neighbours still meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import shapely
import shapely.errors
from numpy.typing import NDArray

from app.domain.publication import Position
from app.domain.shapes import Shapes
from app.pipeline.toml import Mistakes

#: Width of a drawing, and how far a simplified border may stray in it.
WIDTH = 1000.0
_TOLERANCE = 1.2
_DEGREES = (180.0, 90.0)
#: Members of a feature that may hold its key, after its id.
KEYS = ("key", "id", "code")

Points = NDArray[np.float64]


def read_shapes(path: Path, said: str, key: str | None, at: Position, mistakes: Mistakes) -> Shapes | None:
    """The outlines of a file; None, with the mistakes noted, when it holds none or some that can't be drawn.

    Parameters
    ----------
    path : Path
    said : str
        How messages name the file.
    key : str, optional
        Property that holds the members' keys; else a feature's ``id``, or one of `KEYS`.
    at : Position
        Where the publication names it.
    """

    def wrong(cause: str, remedy: str = "") -> None:
        mistakes.add(at, f"{said}: {cause}", remedy)

    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        wrong(f"The file can't be read: {error.strerror}.")
        return None
    except (ValueError, RecursionError) as error:
        wrong(f"This isn't JSON: {error}.", "Save it as GeoJSON or TopoJSON.")
        return None
    before = len(mistakes.found)
    found: dict[str, shapely.Geometry] = {}
    try:
        features = list(_features(document))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, shapely.errors.ShapelyError):
        wrong("This is neither GeoJSON nor TopoJSON of areas.", "Give it polygons.")
        return None
    for number, (feature, geometry) in enumerate(features, 1):
        name = _key_of(feature, key)
        if name is None:
            wrong(f"Feature {number} has no key.", "Give it an id, or name the property: shape-key.")
        elif geometry is None or geometry.is_empty or geometry.geom_type not in ("Polygon", "MultiPolygon"):
            wrong(f"Area {name} is no polygon.", "Give it a Polygon or MultiPolygon.")
        elif not np.isfinite(shapely.get_coordinates(geometry)).all() or not geometry.is_valid:
            wrong(f"Area {name} isn't valid: {shapely.is_valid_reason(geometry)}.", "Mend its border.")
        elif name in found:
            wrong(f"Area {name} is there twice.", "Join its parts in one MultiPolygon.")
        else:
            found[name] = geometry
    if not found and len(mistakes.found) == before:
        wrong("There is no area.", "Give it polygons.")
    return _drawn(found) if len(mistakes.found) == before else None


def _key_of(feature: Mapping[str, Any], key: str | None) -> str | None:
    properties = feature.get("properties") or {}
    wanted = [properties.get(key)] if key else [feature.get("id"), *(properties.get(name) for name in KEYS)]
    return next((str(value) for value in wanted if isinstance(value, (str, int)) and str(value)), None)


def _features(document: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    if document["type"] == "Topology":
        arcs = _arcs(document)
        for item in document["objects"].values():
            for geometry in item.get("geometries", [item]):
                yield geometry, _from_arcs(geometry, arcs)
    elif document["type"] == "FeatureCollection":
        for feature in document["features"]:
            shape = feature.get("geometry")
            yield feature, None if shape is None else shapely.from_geojson(json.dumps(shape))
    else:
        raise ValueError(document["type"])


def _arcs(document: Mapping[str, Any]) -> list[Points]:
    """Arcs in coordinates; quantised ones are sums of differences (TopoJSON 1.0, section 2.1.3)."""
    transform = document.get("transform")
    arcs = [np.asarray(arc, dtype=np.float64)[:, :2] for arc in document["arcs"]]
    if transform is None:
        return arcs
    scale, shift = np.asarray(transform["scale"]), np.asarray(transform["translate"])
    return [np.cumsum(arc, axis=0) * scale + shift for arc in arcs]


def _from_arcs(geometry: Mapping[str, Any], arcs: list[Points]) -> Any:
    def ring(numbers: list[int]) -> Points:
        parts = [arcs[n] if n >= 0 else arcs[~n][::-1] for n in numbers]
        return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])

    def polygon(rings: list[list[int]]) -> Any:
        return shapely.Polygon(ring(rings[0]), [ring(hole) for hole in rings[1:]])

    if geometry["type"] == "Polygon":
        return polygon(geometry["arcs"])
    if geometry["type"] == "MultiPolygon":
        return shapely.MultiPolygon([polygon(rings) for rings in geometry["arcs"]])
    return None


def _drawn(found: Mapping[str, Any]) -> Shapes:
    areas = np.array(list(found.values()), dtype=object)
    everything = shapely.get_coordinates(areas)
    low, high = everything.min(axis=0), everything.max(axis=0)
    in_degrees = bool(np.all(np.abs([low, high]) <= _DEGREES))
    middle = np.radians((low + high) / 2)
    flat = shapely.transform(areas, lambda p: _equal_area(p, middle) if in_degrees else p * [1.0, -1.0])
    everything = shapely.get_coordinates(flat)
    low, high = everything.min(axis=0), everything.max(axis=0)
    scale = WIDTH / max(float(high[0] - low[0]), 1e-12)
    placed = shapely.transform(flat, lambda p: (p - low) * scale)
    simple = shapely.coverage_simplify(placed, _TOLERANCE) if len(placed) else placed
    height = max(1.0, float((high[1] - low[1]) * scale))
    return Shapes(
        WIDTH, round(height, 1), {name: _path(area) for name, area in zip(found, simple, strict=True)}
    )


def _equal_area(points: Points, middle: Points) -> Points:
    """Longitude and latitude to a plane whose y runs downwards, in radii of the earth."""
    along, up = np.radians(points[:, 0]) - middle[0], np.radians(points[:, 1])
    near = 1 + np.sin(middle[1]) * np.sin(up) + np.cos(middle[1]) * np.cos(up) * np.cos(along)
    stretch = np.sqrt(2 / np.maximum(near, 1e-9))
    x = stretch * np.cos(up) * np.sin(along)
    y = stretch * (np.cos(middle[1]) * np.sin(up) - np.sin(middle[1]) * np.cos(up) * np.cos(along))
    return np.column_stack([x, -y])


def _path(area: Any) -> str:
    """SVG path data with one decimal, in differences from point to point."""
    said = []
    for part in shapely.get_parts(area):
        for ring in (part.exterior, *part.interiors):
            points = np.rint(shapely.get_coordinates(ring) * 10).astype(np.int64)
            steps = np.diff(points, axis=0)
            steps = steps[np.any(steps != 0, axis=1)][:-1] if len(points) > 3 else steps
            moves = " ".join(f"{_tenths(x)} {_tenths(y)}" for x, y in steps.tolist())
            start = " ".join(map(_tenths, points[0].tolist()))
            said.append(f"M{start}l{moves}z" if moves else f"M{start}z")
    return "".join(said)


def _tenths(value: int) -> str:
    return f"{value / 10:.1f}".removesuffix(".0")
