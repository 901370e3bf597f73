"""Maps from the office's own geography: read, checked, drawn to the right places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.bootstrap import check_publication
from app.domain.errors import UserError
from app.domain.publication import Position
from app.domain.shapes import Shapes
from app.pipeline.shapes import read_shapes
from app.pipeline.toml import Mistakes
from demo.country import REGIONS
from demo.shapes import write_provinces
from demo.starting import create_starter

AT = Position("sheets/map.toml", 3)


def read(path: Path, key: str | None = None) -> tuple[Shapes | None, list[str]]:
    mistakes = Mistakes()
    shapes = read_shapes(path, path.name, key, AT, mistakes)
    return shapes, [mistake.cause for mistake in mistakes.found]


def written(folder: Path, *features: tuple[Any, Any]) -> Path:
    path = folder / "areas.json"
    listed = [
        {"type": "Feature", "properties": {"code": name}, "geometry": geometry} for name, geometry in features
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    return path


def square(x: float, y: float, side: float = 1.0) -> dict[str, Any]:
    corners = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    return {"type": "Polygon", "coordinates": [corners]}


def points(path: str) -> np.ndarray[Any, Any]:
    numbers = [float(text) for text in re.findall(r"-?\d+(?:\.\d+)?", path)]
    return np.cumsum(np.array(numbers).reshape(-1, 2), axis=0)


def test_the_demo_has_an_area_for_each_province(tmp_path: Path) -> None:
    write_provinces(tmp_path / "p.geojson")
    shapes, mistakes = read(tmp_path / "p.geojson")
    assert mistakes == []
    assert shapes is not None
    assert len(shapes.paths) == sum(len(region.provinces) for region in REGIONS)
    assert sum(map(len, shapes.paths.values())) < 40_000
    corners = np.vstack(
        [points(part + "z") for path in shapes.paths.values() for part in path.split("z")[:-1]]
    )
    assert corners.min() > -1
    assert corners.max(axis=0)[0] < shapes.width + 1
    assert corners.max(axis=0)[1] < shapes.height + 1


def test_metres_keep_their_places_and_north_is_up(tmp_path: Path) -> None:
    shapes, _ = read(written(tmp_path, ("A", square(0, 0, 1000)), (7, square(1000, 1000, 1000))))
    assert shapes is not None
    assert (shapes.width, shapes.height) == (1000.0, 1000.0)
    assert points(shapes.paths["A"]).min(axis=0).tolist() == [0.0, 500.0]
    assert points(shapes.paths["7"]).min(axis=0).tolist() == [500.0, 0.0]


def test_equal_areas_of_the_globe_are_drawn_equal(tmp_path: Path) -> None:
    north = [[0, 60], [2, 60], [2, 61], [0, 61], [0, 60]]
    south = [[0, 40], [1, 40], [1, 41], [0, 41], [0, 40]]
    shapes, _ = read(
        written(
            tmp_path,
            ("N", {"type": "Polygon", "coordinates": [north]}),
            ("S", {"type": "Polygon", "coordinates": [south]}),
        )
    )
    assert shapes is not None

    def area(name: str) -> float:
        x, y = points(shapes.paths[name]).T
        return abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2

    on_earth = (
        2
        * (np.sin(np.radians(61)) - np.sin(np.radians(60)))
        / (np.sin(np.radians(41)) - np.sin(np.radians(40)))
    )
    assert area("N") / area("S") == pytest.approx(on_earth, rel=0.02)


def test_topojson_says_the_same_as_geojson(tmp_path: Path) -> None:
    plain, _ = read(written(tmp_path, ("A", square(0, 0, 1000)), ("B", square(1000, 0, 1000))))
    topology = {
        "type": "Topology",
        "transform": {"scale": [1000, 1000], "translate": [0, 0]},
        "arcs": [[[1, 0], [0, 1]], [[1, 1], [-1, 0], [0, -1], [1, 0]], [[1, 0], [1, 0], [0, 1], [-1, 0]]],
        "objects": {
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "A", "arcs": [[0, 1]]},
                    {"type": "MultiPolygon", "id": "B", "arcs": [[[2, -1]]]},
                ],
            }
        },
    }
    path = tmp_path / "areas.topojson"
    path.write_text(json.dumps(topology))
    shapes, mistakes = read(path)
    assert mistakes == []
    assert shapes is not None
    assert plain is not None
    for name in ("A", "B"):
        one, other = ({tuple(p) for p in points(s.paths[name]).tolist()} for s in (plain, shapes))
        assert one == other


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        (None, "no polygon"),
        ({"type": "Point", "coordinates": [1, 1]}, "no polygon"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}, "isn't valid"),
        ({"type": "Polygon", "coordinates": [[["a", 0]]]}, "neither"),
    ],
)
def test_areas_that_cannot_be_drawn_are_named(tmp_path: Path, geometry: Any, said: str) -> None:
    shapes, mistakes = read(written(tmp_path, ("A", geometry), ("B", square(0, 0))))
    assert shapes is None
    assert len(mistakes) == 1
    assert said in mistakes[0]


def test_files_that_are_no_maps_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    (tmp_path / "b.json").write_text('{"type": "Sausage"}')
    for name in ("a.json", "b.json", "none.json"):
        shapes, mistakes = read(tmp_path / name)
        assert shapes is None
        assert len(mistakes) == 1
    _, doubled = read(written(tmp_path, ("A", square(0, 0)), ("A", square(2, 0)), (None, square(4, 0))))
    assert len(doubled) == 2


def test_check_names_members_without_an_area_and_colours_that_are_none(tmp_path: Path) -> None:
    create_starter(tmp_path)
    written(tmp_path, ("North", square(0, 0)))
    (tmp_path / "sheets" / "economy" / "map.toml").write_text(
        'title.en = "Map"\n[[query]]\nshow = "map"\n'
        'mdx = "SELECT {[Measures].[Firms]} ON COLUMNS, [Territory].[Region].Members ON ROWS FROM [Firms]"\n'
        '[query.options]\nshapes = "areas.json"\n'
    )
    with (tmp_path / "publication.toml").open("a") as file:
        file.write('\n[theme]\naccent = "blue"\n')
    with pytest.raises(UserError) as refused:
        check_publication(tmp_path)
    causes = [mistake.cause for mistake in refused.value.mistakes]
    assert any("'blue' is no colour" in cause for cause in causes)
    assert any(cause.startswith("areas.json: ") and "have no area" in cause for cause in causes)
