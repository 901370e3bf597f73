"""The addresses for programs as an OpenAPI 3.1 document, with examples from the release."""

from __future__ import annotations

import json
from typing import Any

from app.web.contents import Contents
from app.web.formats.registry import FORMATS

_JSON = {"application/json": {"schema": {"type": "object"}}}
_PROBLEM = {
    "application/problem+json": {
        "schema": {
            "type": "object",
            "required": ["type", "status", "title"],
            "properties": {
                "type": {"type": "string"},
                "status": {"type": "integer"},
                "title": {"type": "string"},
            },
        }
    }
}
_HTML = {"text/html": {"schema": {"type": "string"}}}
_BINARY = {"type": "string", "format": "binary"}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "xlsx": _BINARY,
    "parquet": _BINARY,
    "sdmx-json": {
        "type": "object",
        "required": ["meta", "data"],
        "properties": {"meta": {"type": "object"}, "data": {"type": "object"}},
    },
    "json": {
        "type": "object",
        "required": ["version", "class", "id", "size", "dimension", "value", "status"],
        "properties": {
            "version": {"const": "2.0"},
            "class": {"const": "dataset"},
            "id": {"type": "array", "items": {"type": "string"}},
            "size": {"type": "array", "items": {"type": "integer"}},
            "dimension": {"type": "object"},
            "status": {"type": "object", "additionalProperties": {"enum": ["C", "M"]}},
        },
    },
}
_TABLE = {form.kind: {"schema": _SCHEMAS.get(form.extension, {"type": "string"})} for form in FORMATS}


def openapi_document(contents: Contents, base: str) -> bytes:
    """The document; ``base`` is the server that it names."""
    catalogue = contents.catalogue
    cubes = list(catalogue.cubes)
    sheets = list(contents.sheets)
    queries = sorted({query.id for entry in contents.sheets.values() for query in entry.sheet.queries})
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": next(iter(catalogue.title.values()), "Celosia"),
            "version": catalogue.release_id,
            "description": "Every figure is exact or hidden. A hidden one is null with status C in "
            "JSON-stat, empty with OBS_STATUS Q and CONF_STATUS C in CSV and SDMX-CSV, the text [c] in XLSX, "
            "null beside the same statuses in Parquet and SDMX-JSON, the sign .. in PX, "
            "hatched in SVG (of queries shown as charts or maps).",
        },
        "servers": [{"url": base}],
        "paths": {
            "/api/v1/catalogue.json": _get(
                "Folders, sheets, queries, parameters and their members", [], _JSON, _PROBLEM, [400, 503]
            ),
            "/api/v1/structure/{cube}.json": _get(
                "Hierarchies, members, measures and formulas of a cube",
                [_in_path("cube", cubes)],
                _JSON,
                _PROBLEM,
                [400, 404, 503],
            ),
            "/{language}/s/{sheet}/{query}.{format}": _get(
                "The cells of a query; choices as p.<parameter>=<key>, see the catalogue",
                [
                    _in_path("language", list(catalogue.languages)),
                    _in_path("sheet", sheets, "A path, with its slashes as they are"),
                    _in_path("query", queries),
                    _in_path("format", [form.extension for form in FORMATS]),
                    {
                        "name": "asOf",
                        "in": "query",
                        "description": "Answer from the release that was the latest at this moment",
                        "schema": {"type": "string", "format": "date-time"},
                        "example": catalogue.created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    },
                ],
                _TABLE,
                _HTML,
                [400, 404, 503],
            ),
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _in_path(name: str, values: list[str], description: str = "") -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"name": name, "in": "path", "required": True, "schema": {"enum": values}, **said}


def _get(
    summary: str,
    parameters: list[dict[str, Any]],
    content: dict[str, Any],
    failure: dict[str, Any],
    failures: list[int],
) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": {"description": "The document", "content": content},
        "304": {"description": "Unchanged since the ETag that If-None-Match names"},
    }
    for status in failures:
        responses[str(status)] = {"description": "One sentence that says why", "content": failure}
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}
