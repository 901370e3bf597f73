"""The provinces of Alboria as GeoJSON: cells around invented towns, cut off at an invented coast."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import shapely

from demo.country import REGIONS

SEED = 1_715
_TOWNS = 14


def write_provinces(path: Path) -> None:
    """Write one area for each province, with its key as id, in degrees."""
    random = np.random.default_rng(SEED)
    provinces = [province for region in REGIONS for province in region.provinces]
    centres = np.array([(p.column, -p.row) for p in provinces], dtype=np.float64)
    towns = centres.repeat(_TOWNS, axis=0) + random.uniform(-0.55, 0.55, (len(centres) * _TOWNS, 2))
    owner = np.arange(len(centres)).repeat(_TOWNS)
    # A town belongs to the province whose middle is nearest, so that no province lies in pieces.
    near = np.linalg.norm(towns[:, None] - centres, axis=2).argmin(axis=1) == owner
    towns, owner = np.vstack([towns[near], centres]), np.append(owner[near], np.arange(len(centres)))
    apart = np.linalg.norm(centres[:, None] - centres, axis=2) + 9 * np.eye(len(centres))
    island = apart.min(axis=1) > 1.5
    reach = np.where(island[owner], 0.16, 0.3) * random.uniform(0.75, 1.25, len(owner))
    ground = [
        *shapely.buffer(shapely.points(towns), reach),
        *shapely.buffer(shapely.points(centres[~island]), 0.74),
    ]
    land = shapely.buffer(shapely.buffer(shapely.union_all(ground), 0.22), -0.26)
    land = shapely.union_all([shapely.Polygon(part.exterior) for part in shapely.get_parts(land)])
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(towns), ordered=True))
    features = []
    for number, province in enumerate(provinces):
        area = shapely.intersection(shapely.union_all(cells[owner == number]), land)
        placed = shapely.transform(area, lambda p: np.round(p * [0.98, 0.78] + [-9.6, 43.9], 4))
        features.append(
            {
                "type": "Feature",
                "id": f"{number + 1:02d}",
                "properties": {"name": province.name},
                "geometry": json.loads(shapely.to_geojson(shapely.make_valid(placed))),
            }
        )
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
