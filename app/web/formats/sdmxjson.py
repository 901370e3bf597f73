"""SDMX-JSON 2.0 data message (https://github.com/sdmx-twg/sdmx-json): flat observations, with names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.cube import text_in
from app.domain.masked import CellStatus
from app.domain.numbers import plain_number
from app.web.formats import sdmx
from app.web.formats.csv import BLOCK, SDMX_STATUS
from app.web.formats.download import Download
from app.web.locate import write_moment
from app.web.tables import caption

MEDIA_TYPE = "application/vnd.sdmx.data+json; version=2.0.0"

_SCHEMA = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/data-message/tools/schemas/2.0.0/"
    "sdmx-json-data-schema.json"
)
_DATAFLOW = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow="
#: Codes of CL_OBS_STATUS and CL_CONF_STATUS, with what files call them.
_STATUS = {"A": "normal", "Q": "confidential", "M": "empty", "O": "unreleased"}
_CONFIDENTIALITY = {"F": "free", "C": "confidential"}


def parts(download: Download) -> Iterator[bytes]:
    """The message; a hidden cell's value is null, its statuses Q and C, or O and none if not released."""
    cells = download.cells
    dimensions = sdmx.dimensions(download)
    words = download.words
    statuses, confidentialities = list(_STATUS), list(_CONFIDENTIALITY)
    states = {
        state: (statuses.index(status), confidentialities.index(confidentiality) if confidentiality else None)
        for state, (status, confidentiality) in SDMX_STATUS.items()
    }
    said = [(text_in(style.unit, download.language), style.decimals) for style in cells.styles]
    units, decimals = (list(dict.fromkeys(column)) for column in ([u for u, _ in said], [d for _, d in said]))
    styles = [(units.index(unit), decimals.index(digits)) for unit, digits in said]
    observations: dict[str, list[Any]] = {}
    for block in download.blocks(BLOCK):
        for members, status, value, style in zip(
            zip(*(codes.tolist() for codes in block.members), strict=True) if block.members else [()],
            block.status.tolist(),
            block.values.tolist(),
            block.style.tolist(),
            strict=True,
        ):
            figure = _figure(value) if status == CellStatus.SHOWN else None
            observations[":".join(map(str, members))] = [figure, *states[status], *styles[style]]
    links = [{"rel": "dataflow", "urn": _DATAFLOW + sdmx.structure(download)}]
    structure = {
        "links": links,
        "name": download.title,
        "dimensions": {
            "observation": [
                _dimension(download, place, dimension) for place, dimension in enumerate(dimensions)
            ]
        },
        "measures": {"observation": [{"id": sdmx.VALUE, "name": words["value"]}]},
        "attributes": {
            "observation": [
                _attribute(sdmx.STATUS, words["status"], _coded(_STATUS, words)),
                _attribute(sdmx.CONFIDENTIALITY, words["confidentiality"], _coded(_CONFIDENTIALITY, words)),
                _attribute(sdmx.UNIT, words["unit"], [{"value": unit} for unit in units]),
                _attribute(
                    sdmx.DECIMALS,
                    words["decimals"],
                    [{"id": str(digits), "name": str(digits)} for digits in decimals],
                ),
            ]
        },
        "dataSets": [0],
    }
    message = {
        "meta": {
            "schema": _SCHEMA,
            "id": sdmx.code(cells.release_id),
            "test": False,
            "prepared": write_moment(download.released),
            "contentLanguages": [download.language],
            "name": download.title,
            "sender": {"id": sdmx.agency(download), "name": download.publisher},
        },
        "data": {
            "structures": [structure],
            "dataSets": [
                {"structure": 0, "action": "Information", "links": links, "observations": observations}
            ],
        },
    }
    yield json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _figure(value: float) -> float | int:
    text = plain_number(value)
    return int(text) if "." not in text else value


def _dimension(download: Download, place: int, dimension: sdmx.Dimension) -> dict[str, Any]:
    values = []
    for name, member in dimension.members.items():
        value = {"id": dimension.codes[name], "name": caption(member, download.language)}
        if member.parent is not None and member.parent in dimension.members:
            value["parent"] = dimension.codes[member.parent]
        values.append(value)
    return {
        "id": dimension.id,
        "name": download.hierarchy_caption(dimension.hierarchy).strip("[]"),
        "keyPosition": place,
        "values": values,
    }


def _attribute(identity: str, name: str, values: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": identity, "name": name, "relationship": {"observation": {}}, "values": values}


def _coded(codes: Mapping[str, str], words: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"id": key, "name": words[word]} for key, word in codes.items()]
