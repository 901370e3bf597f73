"""The released cells of a cube, whatever sheets they stand on."""

from __future__ import annotations

import numpy as np

from app.domain.cube import Cube, Hierarchy, IntArray
from app.domain.masked import AxisMember, CellStatus, CellStyle
from app.domain.observations import Column, Observations
from app.domain.release import Release

MEASURES = "[Measures]"


def released_cells(release: Release, cube: Cube) -> Observations:
    """Every released cell of a cube's own measures and members: measure by measure, members in their order.

    A cell of a formula, or one whose key names what the cube doesn't have, isn't among them.
    """
    coords, rows = _coordinates(release.keys, cube)
    order = np.lexsort(coords.T[::-1])
    coords, rows = coords[order], rows[order]
    shown = (release.status[rows] == CellStatus.SHOWN) & np.isfinite(release.values[rows])
    status = np.full(len(rows), CellStatus.CONFIDENTIAL, np.int8)
    status[shown] = CellStatus.SHOWN
    status[release.status[rows] == CellStatus.EMPTY] = CellStatus.EMPTY
    columns = [
        _column(MEASURES, [_measure_member(cube, code) for code in range(len(cube.measures))], coords[:, 0])
    ]
    for place, hierarchy in enumerate(cube.hierarchies, 1):
        members = [_member(hierarchy, code) for code in range(hierarchy.size)]
        columns.append(_column(hierarchy.unique_name, members, coords[:, place]))
    return Observations(
        release_id=release.id,
        columns=tuple(columns),
        status=status,
        values=np.where(shown, release.values[rows], np.nan),
        style=coords[:, 0].copy(),
        styles=tuple(CellStyle(measure.format, measure.decimals, measure.unit) for measure in cube.measures),
    )


def _coordinates(
    keys: tuple[str, ...], cube: Cube
) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Measure and members of each key that is one of this cube (int32[n, 1+H]), and its row (int64[n])."""
    place: dict[str, tuple[int, int]] = {
        measure.unique_name: (0, code) for code, measure in enumerate(cube.measures)
    }
    for column, hierarchy in enumerate(cube.hierarchies, 1):
        place |= {name: (column, code) for code, name in enumerate(hierarchy.unique_names)}
    default = [-1, *(0 if hierarchy.has_all else -1 for hierarchy in cube.hierarchies)]
    head = f"{cube.name} | ["
    found: list[list[int]] = []
    rows: list[int] = []
    for row, key in enumerate(keys):
        if not key.startswith(head):
            continue
        coordinate = default.copy()
        for name in key[len(head) :].split(" | ["):
            at = place.get(f"[{name}")
            if at is None:
                break
            coordinate[at[0]] = at[1]
        else:
            if min(coordinate) >= 0:
                found.append(coordinate)
                rows.append(row)
    coords = np.array(found, np.int32).reshape(len(found), len(default))
    return coords, np.array(rows, np.int64)


def _column(hierarchy: str, members: list[AxisMember], codes: IntArray) -> Column:
    used, numbers = np.unique(codes, return_inverse=True)
    return Column(hierarchy, tuple(members[code] for code in used), numbers.reshape(-1).astype(np.int32), 1)


def _measure_member(cube: Cube, code: int) -> AxisMember:
    measure = cube.measures[code]
    return AxisMember(MEASURES, measure.unique_name, measure.captions, "[Measures].[MeasuresLevel]", 0, None)


def _member(hierarchy: Hierarchy, code: int) -> AxisMember:
    parent = int(hierarchy.parent[code])
    depth = int(hierarchy.depth[code])
    return AxisMember(
        hierarchy=hierarchy.unique_name,
        unique_name=hierarchy.unique_names[code],
        captions={language: column[code] for language, column in hierarchy.member_captions.items()},
        level=hierarchy.levels[depth].unique_name,
        depth=depth,
        parent=hierarchy.unique_names[parent] if parent >= 0 else None,
    )
