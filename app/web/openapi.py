"""The addresses for programs as an OpenAPI 3.1 document, with examples from the release."""

from __future__ import annotations

import json
from typing import Any

from app.web.builder import QUERY_FORMATS
from app.web.contents import Contents
from app.web.flows import VERSION, Flow, agency_of, flows
from app.web.formats.registry import FORMATS, Format
from app.web.locate import write_moment

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_BINARY = {"type": "string", "format": "binary"}
_OBJECT = {"type": "object"}


def _record(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _or_null(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


_SCHEMAS: dict[str, Any] = {
    "Problem": _record(
        {"type": _TEXT, "status": {"type": "integer"}, "title": _TEXT},
        errors=_list(
            _record(
                {"line": {"type": "integer"}, "column": {"type": "integer"}, "cause": _TEXT, "remedy": _TEXT}
            )
        ),
    ),
    "JsonStat": _record(
        {
            "version": {"const": "2.0"},
            "class": {"const": "dataset"},
            "id": _list(_TEXT),
            "size": _list({"type": "integer"}),
            "dimension": _OBJECT,
            "value": {
                "anyOf": [
                    _list(_or_null("number")),
                    {"type": "object", "additionalProperties": {"type": "number"}},
                ]
            },
            "status": {"type": "object", "additionalProperties": {"enum": ["C", "M"]}},
        }
    ),
    "SdmxJson": _record({"meta": _OBJECT, "data": _OBJECT}),
    "Catalogue": _record(
        {
            "release": _TEXT,
            "released": {"type": "string", "format": "date-time"},
            "title": _TEXTS,
            "languages": _list(_TEXT),
            "structures": _TEXTS,
            "folders": _list(_OBJECT),
            "sheets": _list(_OBJECT),
        },
        contact={"type": ["object", "null"]},
        next_release={"type": ["string", "null"], "description": "A day or a month of ISO 8601."},
    ),
    "Structure": _record(
        {"name": _TEXT, "caption": _TEXTS, "hierarchies": _list(_OBJECT), "measures": _list(_OBJECT)}
    ),
    "Dataflows": _record(
        {
            "release": _TEXT,
            "total": {"type": "integer"},
            "dataflows": _list(
                _record(
                    {
                        "id": _TEXT,
                        "agency": _TEXT,
                        "version": _TEXT,
                        "title": _TEXTS,
                        "cube": _TEXT,
                        "sheet": _or_null("string"),
                        "query": _or_null("string"),
                        "parameters": _list(_TEXT),
                        "structure": _TEXT,
                        "data": _TEXT,
                    }
                )
            ),
        }
    ),
    "Dimensions": _record(
        {
            "id": _TEXT,
            "title": _TEXT,
            "data": _TEXT,
            "dimensions": _list(
                _record({"id": _TEXT, "hierarchy": _TEXT, "name": _TEXT, "codes": _list(_OBJECT)})
            ),
        }
    ),
}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_OF_FORMAT = {
    "json": _schema("JsonStat"),
    "sdmx-json": _schema("SdmxJson"),
    "xlsx": _BINARY,
    "parquet": _BINARY,
    "png": _BINARY,
}
_HTML = {"text/html": {"schema": _TEXT}}
_PROBLEM = {"application/problem+json": {"schema": _schema("Problem")}}
_LISTS = tuple(form for form in FORMATS if not form.whole)


def _files(forms: tuple[Format, ...]) -> dict[str, Any]:
    return {form.kind: {"schema": _OF_FORMAT.get(form.extension, _TEXT)} for form in forms}


def openapi_document(contents: Contents, base: str, asks: bool) -> bytes:
    """The document; ``base`` is the server that it names, ``asks``: readers' own queries are answered."""
    catalogue = contents.catalogue
    known = flows(contents)
    queries = sorted({query.id for entry in contents.sheets.values() for query in entry.sheet.queries})
    as_of = _field(
        "asOf",
        "Answer from the release that was the latest at this moment",
        {"type": "string", "format": "date-time"},
        write_moment(catalogue.released),
    )
    language = _field(
        "lang", "Instead of Accept-Language", {"enum": list(catalogue.languages)}, catalogue.languages[0]
    )
    paging = [
        _field("offset", "What to leave out at the beginning", {"type": "integer", "minimum": 0}, 0),
        _field(
            "limit",
            "How many at most; Link names the neighbouring pages",
            {"type": "integer", "minimum": 1},
            100,
        ),
    ]
    flow = [
        _in_path("agency", ["*", agency_of(catalogue)], "The office; * for any"),
        _in_path("flow", list(known)),
        _in_path("version", ["*", VERSION], "* for any"),
    ]
    format_field = _field("format", "Instead of Accept", {"enum": [form.extension for form in _LISTS]}, "csv")
    data = [
        *flow,
        format_field,
        language,
        as_of,
        *_of_cells(known),
        *paging,
    ]
    paths: dict[str, Any] = {
        "/api/v1/catalogue.json": _get(
            "Folders, sheets, queries, parameters and their members", [as_of], _json("Catalogue")
        ),
        "/api/v1/structure/{cube}.json": _get(
            "Hierarchies, members, measures and formulas of a cube",
            [_in_path("cube", list(catalogue.cubes)), as_of],
            _json("Structure"),
        ),
        "/api/v1/dataflows": _get(
            "What data can be asked of: a dataflow for each cube and for each query of a sheet",
            [*paging, as_of],
            _json("Dataflows"),
        ),
        "/api/v1/structure/dataflow/{agency}/{flow}/{version}": _get(
            "The dimensions of a dataflow, in the order of its keys, and their codes",
            [*flow, language, as_of],
            _json("Dimensions"),
        ),
        "/api/v1/data/dataflow/{agency}/{flow}/{version}": _get(
            "The cells of a dataflow; choices of a sheet as p.<parameter>=<key>",
            data,
            _files(_LISTS),
            (406, 413),
        ),
        "/api/v1/data/dataflow/{agency}/{flow}/{version}/{key}": _get(
            "The cells whose codes a key says: one for each dimension, with points between, * for any, "
            "+ between several; commas between several keys",
            [*data, {**_in_path("key", []), "schema": _TEXT, "example": "*"}],
            _files(_LISTS),
            (406, 413),
        ),
        "/{language}/s/{sheet}/{query}.{format}": _get(
            "A table or chart as a file; choices as p.<parameter>=<key>, see the catalogue",
            [
                _in_path("language", list(catalogue.languages)),
                {
                    **_in_path("sheet", list(contents.sheets), "A path, with its slashes as they are"),
                    "x-slashes": True,
                },
                _in_path("query", queries),
                _in_path("format", [form.extension for form in FORMATS]),
                as_of,
            ],
            _files(FORMATS),
            failure=_HTML,
        ),
    }
    if asks:
        paths["/api/v1/mdx"] = {"post": _mdx(contents, [language, as_of])}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": next(iter(catalogue.title.values()), "Celosia"),
            "version": catalogue.release_id,
            "description": "Every figure is exact or hidden. A hidden one is null with status C in "
            "JSON-stat, empty with OBS_STATUS Q and CONF_STATUS C in CSV and SDMX-CSV, the text [c] in XLSX, "
            "null beside the same statuses in Parquet and SDMX-JSON, the sign .. in PX, "
            "hatched in SVG (of queries shown as charts or maps). One that no table of the "
            "release shows is not released, whatever it is: OBS_STATUS O without CONF_STATUS, status O in "
            "JSON-stat, the text [x], the sign ... in PX.",
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {"schemas": _SCHEMAS},
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _of_cells(known: dict[str, Flow] | Any) -> list[dict[str, Any]]:
    whole = {"type": "integer", "minimum": 1}
    return [
        _field(
            "c[TIME_PERIOD]",
            "Codes of a dimension, c[<id>]: A,B any; ge:A+lt:B both. Also as <id>=A,B",
            _TEXT,
            "ge:2000",
        ),
        _field("startPeriod", "From this period on", _TEXT, "2000"),
        _field("endPeriod", "Up to this period", _TEXT, "2100"),
        _field("firstNObservations", "Of each series only the first", whole, 1),
        _field("lastNObservations", "Of each series only the last", whole, 1),
        _field("dimensionAtObservation", "", {"const": "AllDimensions"}, "AllDimensions"),
    ]


def _mdx(contents: Contents, fields: list[dict[str, Any]]) -> dict[str, Any]:
    cube = next(iter(contents.catalogue.cubes.values()))
    query = f"SELECT {{{cube.measures[0].unique_name}}} ON COLUMNS FROM [{cube.name}]"
    formats = {"enum": [form.extension for form in QUERY_FORMATS]}
    answer: dict[str, Any] = _get(
        "The answer to a query in MDX, from the released cells alone",
        [_field("format", "Instead of Accept", formats, "json"), *fields],
        _files(QUERY_FORMATS),
        (406, 413, 415),
    )
    told: dict[str, Any] = answer["get"]
    del told["responses"]["304"]
    body = _record({"mdx": _TEXT})
    told["requestBody"] = {
        "required": True,
        "content": {
            "application/json": {"schema": body, "example": {"mdx": query}},
            "text/plain": {"schema": _TEXT, "example": query},
        },
    }
    return told


def _field(name: str, description: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"name": name, "in": "query", "schema": schema, "example": example, **said}


def _in_path(name: str, values: list[str], description: str = "") -> dict[str, Any]:
    said: dict[str, Any] = {"description": description} if description else {}
    if values:
        said["example"] = values[0]
    return {"name": name, "in": "path", "required": True, "schema": {"enum": values}, **said}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": _schema(name)}}


def _get(
    summary: str,
    parameters: list[dict[str, Any]],
    content: dict[str, Any],
    more: tuple[int, ...] = (),
    failure: dict[str, Any] = _PROBLEM,
) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": {"description": "The document", "content": content},
        "304": {"description": "Unchanged since the ETag that If-None-Match names"},
    }
    for status in sorted((400, 404, 405, 410, 429, 503, *more)):
        responses[str(status)] = {"description": "One sentence that says why", "content": failure}
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}
