"""JSON-stat 2.0: a dataset of one query (https://json-stat.org/full/)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from app.domain.cube import text_in
from app.domain.masked import CellStatus, CellStyle
from app.domain.numbers import plain_number
from app.domain.observations import Column
from app.web.formats.csv import BLOCK
from app.web.formats.download import Download
from app.web.locate import write_moment
from app.web.tables import MEASURES, caption

MEDIA_TYPE = "application/json"

#: Beyond this many times as many places as cells, values are written sparsely.
_SPARSE = 2

_STATUS = {int(CellStatus.EMPTY): "M", int(CellStatus.CONFIDENTIAL): "C", int(CellStatus.UNRELEASED): "O"}


def parts(download: Download) -> Iterator[bytes]:
    """The dataset; a hidden cell is null with status ``C`` (``O`` if not released), an empty one with ``M``.

    JSON-stat wants every combination of categories. One that the table doesn't have is null without a
    status.
    """
    cells = download.cells
    ids = [column.hierarchy for column in cells.columns]
    size = [len(column.members) for column in cells.columns]
    total = prod(size)
    values: dict[int, Any] = {}
    status: dict[str, str] = {}
    for block in download.blocks(BLOCK):
        places = np.zeros(len(block.status), np.int64)
        for extent, codes in zip(size, block.members, strict=True):
            places = places * extent + codes
        for place, state, value in zip(
            places.tolist(), block.status.tolist(), block.values.tolist(), strict=True
        ):
            if state == CellStatus.SHOWN:
                values[place] = _number(value)
            else:
                status[str(place)] = _STATUS[state]
    styles = cells.first_styles(MEASURES, BLOCK)
    dataset = {
        "version": "2.0",
        "class": "dataset",
        "label": download.title,
        "source": download.publisher,
        "updated": write_moment(download.released),
        "note": [download.notes] if download.notes else [],
        "id": ids,
        "size": size,
        "role": _roles(download, ids),
        "dimension": {column.hierarchy: _dimension(download, column, styles) for column in cells.columns},
        "value": {str(place): value for place, value in sorted(values.items())}
        if total > _SPARSE * max(len(cells), 1)
        else [values.get(place) for place in range(total)],
        "status": status,
        "extension": {
            "release": cells.release_id,
            "page": download.address,
            **_asking(download),
            "status-label": {
                "C": download.words["confidential"],
                "M": "-",
                "O": download.words["not released"],
            },
        },
    }
    yield json.dumps(dataset, ensure_ascii=False, separators=(",", ":")).encode()


def _asking(download: Download) -> dict[str, Any]:
    """Whom to ask, as PxWebApi says it, and when the next figures are expected."""
    contact = download.contact
    said: dict[str, Any] = {}
    if contact:
        parts = {
            "name": text_in(contact.name, download.language),
            "phone": contact.phone,
            "mail": contact.email,
            "page": contact.page,
            "raw": ", ".join(download.contact_parts),
        }
        said["contact"] = [{name: text for name, text in parts.items() if text}]
    if download.next_release:
        said["next-release"] = download.next_release
    return said


def _number(value: float) -> float | int:
    text = plain_number(value)
    return int(text) if "." not in text else value


def _roles(download: Download, ids: list[str]) -> dict[str, list[str]]:
    times = [h.unique_name for h in download.cube.hierarchies if h.time and h.unique_name in ids]
    roles = {"time": times, "metric": [name for name in ids if name == MEASURES]}
    return {role: names for role, names in roles.items() if names}


def _dimension(download: Download, column: Column, styles: Mapping[str, CellStyle]) -> dict[str, Any]:
    name = column.hierarchy
    found = {member.unique_name: member for member in column.members}
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
