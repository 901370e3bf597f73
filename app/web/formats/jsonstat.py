"""JSON-stat 2.0: a dataset of one query (https://json-stat.org/full/)."""

from __future__ import annotations

import json
from typing import Any

from app.domain.cube import text_in
from app.domain.masked import AxisMember, CellStatus, CellStyle
from app.domain.numbers import plain_number
from app.web.formats.download import Download, members_of_cells
from app.web.tables import MEASURES, caption

MEDIA_TYPE = "application/json"

#: Beyond this many times as many places as cells, values are written sparsely.
_SPARSE = 2

_STATUS = {int(CellStatus.EMPTY): "M", int(CellStatus.CONFIDENTIAL): "C"}


def write(download: Download) -> bytes:
    """The dataset; a hidden cell is null with status ``C``, an empty one null with status ``M``.

    JSON-stat wants every combination of categories. One that the table doesn't have is null without a
    status.
    """
    masked = download.masked
    ids = list(download.hierarchies())
    cells = members_of_cells(masked)
    categories: list[dict[str, AxisMember]] = [{} for _ in ids]
    for members in cells:
        for found, member in zip(categories, members, strict=True):
            found.setdefault(member.unique_name, member)
    numbers = [{name: index for index, name in enumerate(found)} for found in categories]
    size = [len(found) for found in categories]
    values: dict[int, Any] = {}
    status: dict[str, str] = {}
    styles: dict[str, CellStyle] = {}
    for members, state, value, style in zip(
        cells, masked.status.tolist(), masked.values.tolist(), masked.style.tolist(), strict=True
    ):
        place = 0
        for name, member in zip(ids, members, strict=True):
            if name == MEASURES:
                styles.setdefault(member.unique_name, masked.styles[style])
        for number, extent, member in zip(numbers, size, members, strict=True):
            place = place * extent + number[member.unique_name]
        if state == CellStatus.SHOWN:
            values[place] = _number(value)
        else:
            status[str(place)] = _STATUS[state]
    total = 1
    for extent in size:
        total *= extent
    dataset = {
        "version": "2.0",
        "class": "dataset",
        "label": download.title,
        "source": download.publisher,
        "updated": download.released.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "note": [download.notes] if download.notes else [],
        "id": ids,
        "size": size,
        "role": _roles(download, ids),
        "dimension": {
            name: _dimension(download, name, found, styles)
            for name, found in zip(ids, categories, strict=True)
        },
        "value": {str(place): value for place, value in sorted(values.items())}
        if total > _SPARSE * max(len(cells), 1)
        else [values.get(place) for place in range(total)],
        "status": status,
        "extension": {
            "release": masked.release_id,
            "page": download.address,
            "status-label": {"C": download.words["confidential"], "M": "-"},
        },
    }
    return json.dumps(dataset, ensure_ascii=False, separators=(",", ":")).encode()


def _number(value: float) -> float | int:
    text = plain_number(value)
    return int(text) if "." not in text else value


def _roles(download: Download, ids: list[str]) -> dict[str, list[str]]:
    times = [h.unique_name for h in download.cube.hierarchies if h.time and h.unique_name in ids]
    roles = {"time": times, "metric": [name for name in ids if name == MEASURES]}
    return {role: names for role, names in roles.items() if names}


def _dimension(
    download: Download, name: str, found: dict[str, AxisMember], styles: dict[str, CellStyle]
) -> dict[str, Any]:
    category: dict[str, Any] = {
        "index": {unique: index for index, unique in enumerate(found)},
        "label": {unique: caption(member, download.language) for unique, member in found.items()},
    }
    children: dict[str, list[str]] = {}
    for unique, member in found.items():
        if member.parent is not None and member.parent in found:
            children.setdefault(member.parent, []).append(unique)
    if children:
        category["child"] = children
    if name == MEASURES:
        category["unit"] = {
            unique: {"label": text_in(style.unit, download.language), "decimals": style.decimals}
            for unique, style in styles.items()
        }
    return {"label": download.hierarchy_caption(name).strip("[]"), "category": category}
