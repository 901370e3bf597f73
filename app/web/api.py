"""What programs read: the catalogue and the structure of the cubes. Captions and parents, no cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from app.domain.catalogue import Catalogue
from app.domain.cube import Cube, Hierarchy
from app.domain.publication import Contact, QueryDefinition
from app.web.contents import Contents, FolderEntry, SheetEntry
from app.web.flows import VERSION, Flow, address, agency_of
from app.web.formats import sdmx
from app.web.formats.download import Download
from app.web.formats.registry import formats_for
from app.web.locate import write_moment
from app.web.tables import caption

MEDIA_TYPE = "application/json"


def catalogue_document(contents: Contents, prefix: str = "") -> bytes:
    """Folders, sheets, queries, parameters with their members, and where to find each below ``prefix``."""
    catalogue = contents.catalogue
    return _json(
        {
            "release": catalogue.release_id,
            "released": write_moment(catalogue.released),
            "title": dict(catalogue.title),
            "description": dict(catalogue.description),
            "publisher": dict(catalogue.publisher),
            "languages": list(catalogue.languages),
            "contact": _contact(catalogue.contact),
            "next_release": catalogue.next_release or None,
            "zeros_shown": not catalogue.hide_zeros,
            "structures": {name: f"{prefix}/api/v1/structure/{quote(name)}.json" for name in catalogue.cubes},
            "folders": [_folder(contents, prefix, entry) for entry in contents.root.folders],
            "sheets": [_sheet(contents, prefix, entry) for entry in contents.root.sheets],
        }
    )


def structure_document(catalogue: Catalogue, cube: Cube) -> bytes:
    """Hierarchies with their levels and members (unique name, captions, parent), measures, formulas.

    A measure's ``threshold`` is the smallest number of contributors of a shown cell, as the page on
    confidentiality says in words.
    """
    thresholds = {
        protection.measure: int(rule.parameters["n"])
        for protection in catalogue.protection
        for rule in protection.rules
        if protection.cube == cube.name and rule.name == "threshold"
    }
    return _json(
        {
            "name": cube.name,
            "caption": dict(cube.captions),
            "hierarchies": [_hierarchy(hierarchy) for hierarchy in cube.hierarchies],
            "measures": [
                {
                    "unique_name": measure.unique_name,
                    "caption": dict(measure.captions),
                    "aggregator": measure.aggregator,
                    "additive": measure.additive,
                    "unit": dict(measure.unit),
                    "decimals": measure.decimals,
                    "nonnegative": measure.nonnegative,
                    "of_which": [item.unique_name for item in cube.measures if item.name in measure.of_which],
                    "threshold": thresholds.get(measure.name, thresholds.get(measure.unique_name)),
                }
                for measure in cube.measures
            ],
            "calculated": [
                {
                    "unique_name": f"{member.hierarchy}.[{member.name}]",
                    "caption": dict(member.captions),
                    "formula": member.formula,
                }
                for member in catalogue.calculated.get(cube.name, ())
            ],
        }
    )


def _folder(contents: Contents, prefix: str, entry: FolderEntry) -> dict[str, Any]:
    return {
        "id": entry.folder.id,
        "number": entry.number,
        "title": dict(entry.folder.title),
        "url": _pages(contents, prefix, f"f/{quote(entry.folder.id)}"),
        "folders": [_folder(contents, prefix, child) for child in entry.folders],
        "sheets": [_sheet(contents, prefix, child) for child in entry.sheets],
    }


def _sheet(contents: Contents, prefix: str, entry: SheetEntry) -> dict[str, Any]:
    sheet = entry.sheet
    return {
        "id": sheet.id,
        "number": entry.number,
        "title": dict(sheet.title),
        "notes": dict(sheet.notes),
        "contact": _contact(contents.catalogue.contact_of(sheet)),
        "next_release": contents.catalogue.next_release_of(sheet) or None,
        "url": _pages(contents, prefix, f"s/{quote(sheet.id)}"),
        "parameters": [
            {
                "name": choice.parameter.name,
                "field": f"p.{choice.parameter.name}",
                "title": dict(choice.parameter.title),
                "default": choice.member.unique_name,
                "members": [
                    {
                        "key": key,
                        "unique_name": member.unique_name,
                        "caption": dict(member.captions),
                        "parent": member.parent,
                    }
                    for key, member in zip(choice.keys, choice.options, strict=True)
                ],
            }
            for choice in contents.choices(sheet, {})
        ],
        "queries": [_query(contents, prefix, entry, query) for query in sheet.queries],
    }


def _contact(contact: Contact) -> dict[str, Any] | None:
    if not contact:
        return None
    said = {"email": contact.email, "phone": contact.phone, "page": contact.page}
    return {"name": dict(contact.name), **{key: text for key, text in said.items() if text}}


def _query(contents: Contents, prefix: str, entry: SheetEntry, query: QueryDefinition) -> dict[str, Any]:
    path = f"s/{quote(entry.sheet.id)}/{quote(query.id)}"
    return {
        "id": query.id,
        "title": dict(query.title),
        "show": query.view,
        "cube": contents.catalogue.cube_of[entry.sheet.id, query.id],
        "mdx": query.mdx.strip(),
        "downloads": {
            form.extension: _pages(contents, prefix, f"{path}.{form.extension}")
            for form in formats_for(query.view)
        },
    }


def _pages(contents: Contents, prefix: str, path: str) -> dict[str, str]:
    return {language: f"{prefix}/{language}/{path}" for language in contents.catalogue.languages}


def _hierarchy(hierarchy: Hierarchy) -> dict[str, Any]:
    parents = hierarchy.parent.tolist()
    depths = hierarchy.depth.tolist()
    return {
        "unique_name": hierarchy.unique_name,
        "dimension": hierarchy.dimension,
        "caption": dict(hierarchy.captions),
        "time": hierarchy.time,
        "has_all": hierarchy.has_all,
        "default_member": hierarchy.unique_names[hierarchy.default_member],
        "levels": [
            {"unique_name": level.unique_name, "caption": dict(level.captions)} for level in hierarchy.levels
        ],
        "members": [
            {
                "unique_name": unique,
                "key": hierarchy.keys[index],
                "caption": {code: column[index] for code, column in hierarchy.member_captions.items()},
                "parent": hierarchy.unique_names[parents[index]] if parents[index] >= 0 else None,
                "level": hierarchy.levels[depths[index]].unique_name,
            }
            for index, unique in enumerate(hierarchy.unique_names)
        ],
    }


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def dataflows_document(contents: Contents, prefix: str, some: Sequence[Flow], total: int) -> bytes:
    """Some of the dataflows: what data can be asked of, with the addresses of structure and data."""
    catalogue = contents.catalogue
    return _json(
        {
            "release": catalogue.release_id,
            "total": total,
            "dataflows": [
                {
                    "id": flow.id,
                    "agency": agency_of(catalogue),
                    "version": VERSION,
                    "title": dict(flow.titles),
                    "cube": flow.cube.name,
                    "sheet": flow.entry.sheet.id if flow.entry is not None else None,
                    "query": flow.query.id if flow.query is not None else None,
                    "parameters": [f"p.{p.name}" for p in flow.entry.sheet.parameters]
                    if flow.entry is not None
                    else [],
                    "structure": address(prefix, catalogue, flow, "structure"),
                    "data": address(prefix, catalogue, flow),
                }
                for flow in some
            ],
        }
    )


def dimensions_document(download: Download, data: str) -> bytes:
    """The dimensions of a dataflow in the order of its keys, with the codes of the cells that it has."""
    language = download.language
    return _json(
        {
            "release": download.cells.release_id,
            "id": sdmx.structure(download),
            "title": download.title,
            "language": language,
            "data": data,
            "dimensions": [
                {
                    "id": dimension.id,
                    "hierarchy": dimension.hierarchy,
                    "name": download.hierarchy_caption(dimension.hierarchy).strip("[]"),
                    "codes": [
                        {
                            "id": dimension.codes[name],
                            "unique_name": name,
                            "name": caption(member, language),
                            "parent": dimension.codes.get(member.parent) if member.parent else None,
                        }
                        for name, member in dimension.members.items()
                    ],
                }
                for dimension in sdmx.dimensions(download)
            ],
        }
    )
