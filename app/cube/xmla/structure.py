"""The structure of a cube on an XMLA server, as its schema rowsets tell it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.cube.xmla.client import Client
from app.cube.xmla.reading import NUMBER, Row, whole
from app.domain.cube import Cube, Hierarchy, Level
from app.domain.errors import Mistake, UserError
from app.domain.publication import CubeDefinition, RemoteDefinition

_KEY = re.compile(r".*\.&\[((?:[^\]]|\]\])*)\]$", re.DOTALL)
_FORMULA, _TIME, _ALL_LEVEL = "4", "1", "1"


@dataclass(frozen=True)
class _Asker:
    """Rowsets of one cube."""

    client: Client
    remote: RemoteDefinition

    def rows(self, rowset: str, **restrictions: str) -> tuple[Row, ...]:
        given = {"CATALOG_NAME": self.remote.catalog} if self.remote.catalog else {}
        return self.client.discover(rowset, {**given, "CUBE_NAME": self.remote.cube, **restrictions})


def discover_cube(client: Client, definition: CubeDefinition, remote: RemoteDefinition) -> Cube:
    """The cube with the hierarchies and measures that its file names.

    Raises
    ------
    UserError
        When the server has no such cube, hierarchy or measure.
    OperatorError
        When the server can't be asked.
    """
    at = definition.at
    asker = _Asker(client, remote)
    if not asker.rows("MDSCHEMA_CUBES"):
        there = ", ".join(
            sorted({row.get("CUBE_NAME", "") for row in client.discover("MDSCHEMA_CUBES")})[:10]
        )
        cause = f"The XMLA server has no cube {remote.cube}."
        raise UserError(Mistake(at.file, at.line, at.column, cause, f"It has {there}." if there else ""))
    language = next(iter(definition.captions), "en")
    rows = [row for row in asker.rows("MDSCHEMA_HIERARCHIES") if row.get("DIMENSION_TYPE") != "2"]
    rows = [row for row in rows if row.get("HIERARCHY_UNIQUE_NAME") != "[Measures]"]
    known = {row["HIERARCHY_UNIQUE_NAME"]: row for row in rows}
    wanted = remote.hierarchies or tuple(known)
    mistakes = [
        Mistake(at.file, at.line, 0, f"The XMLA cube has no hierarchy {name}.", f"It has {', '.join(known)}.")
        for name in wanted
        if name not in known
    ]
    measures = {row.get("MEASURE_NAME", ""): row for row in asker.rows("MDSCHEMA_MEASURES")}
    mistakes += [
        Mistake(
            at.file, at.line, 0, f"The XMLA cube has no measure {name}.", f"It has {', '.join(measures)}."
        )
        for name in (*(item.name for item in definition.measures), *remote.profile_measures)
        if name not in measures
    ]
    if mistakes:
        raise UserError(mistakes)
    hierarchies = tuple(_hierarchy(asker, known[name], language) for name in wanted)
    found = tuple(
        item.measure(
            measures[item.name].get("MEASURE_UNIQUE_NAME") or f"[Measures].[{item.name}]",
            {language: measures[item.name].get("MEASURE_CAPTION") or item.name},
        )
        for item in definition.measures
    )
    return Cube(definition.name, definition.captions, hierarchies, found)


def _hierarchy(asker: _Asker, row: Row, language: str) -> Hierarchy:
    unique_name = row["HIERARCHY_UNIQUE_NAME"]
    dimension = row.get("DIMENSION_UNIQUE_NAME", unique_name)[1:-1].replace("]]", "]")
    levels = sorted(
        asker.rows("MDSCHEMA_LEVELS", HIERARCHY_UNIQUE_NAME=unique_name),
        key=lambda level: whole(level.get("LEVEL_NUMBER", "0")),
    )
    told = [
        member
        for member in asker.rows("MDSCHEMA_MEMBERS", HIERARCHY_UNIQUE_NAME=unique_name)
        if member.get("MEMBER_TYPE") != _FORMULA
    ]
    members = _in_order(told)
    properties = _properties(asker, unique_name)
    has_all = bool(row.get("ALL_MEMBER")) or (bool(levels) and levels[0].get("LEVEL_TYPE") == _ALL_LEVEL)
    index = {member["MEMBER_UNIQUE_NAME"]: number for number, member in enumerate(members)}
    default = row.get("DEFAULT_MEMBER", "")
    captions = tuple(
        member.get("MEMBER_CAPTION") or member.get("MEMBER_NAME") or member["MEMBER_UNIQUE_NAME"]
        for member in members
    )
    called = tuple(
        member.get("MEMBER_NAME") or caption for member, caption in zip(members, captions, strict=True)
    )
    name = row.get("HIERARCHY_NAME") or dimension
    return Hierarchy(
        dimension=dimension,
        name=name.removeprefix(f"{dimension}."),
        unique_name=unique_name,
        captions={language: row.get("HIERARCHY_CAPTION") or name},
        levels=tuple(
            Level(
                level.get("LEVEL_NAME", ""),
                level["LEVEL_UNIQUE_NAME"],
                {language: level.get("LEVEL_CAPTION") or level.get("LEVEL_NAME", "")},
            )
            for level in levels
        ),
        has_all=has_all,
        default_member=0 if has_all else index.get(default, 0),
        keys=tuple(
            "" if has_all and number == 0 else _key(member, caption)
            for number, (member, caption) in enumerate(zip(members, captions, strict=True))
        ),
        unique_names=tuple(member["MEMBER_UNIQUE_NAME"] for member in members),
        member_captions={language: captions},
        parent=np.array(
            [index.get(member.get("PARENT_UNIQUE_NAME", ""), -1) for member in members], np.int32
        ),
        depth=np.array([whole(member.get("LEVEL_NUMBER", "0")) for member in members], np.int32),
        properties={
            name: tuple(values.get(member["MEMBER_UNIQUE_NAME"], "") for member in members)
            for name, values in properties.items()
        },
        time=row.get("DIMENSION_TYPE") == _TIME,
        member_names=() if called == captions else called,
    )


def _properties(asker: _Asker, hierarchy: str) -> dict[str, dict[str, str]]:
    """Member properties that the levels define: values by property and member."""
    levels: dict[str, set[str]] = {}
    rows = asker.rows("MDSCHEMA_PROPERTIES", HIERARCHY_UNIQUE_NAME=hierarchy, PROPERTY_TYPE="1")
    for row in rows:
        if row.get("LEVEL_UNIQUE_NAME") and not row.get("MEMBER_UNIQUE_NAME"):
            levels.setdefault(row["LEVEL_UNIQUE_NAME"], set()).add(row["PROPERTY_NAME"])
    found: dict[str, dict[str, str]] = {}
    for level, names in levels.items():
        listed = ", ".join(f"{level}.{_quoted(name)}" for name in sorted(names))
        cube = _quoted(asker.remote.cube)
        dataset = asker.client.execute(
            f"SELECT {level}.Members DIMENSION PROPERTIES {listed} ON COLUMNS FROM {cube}"
        )
        for (member,) in dataset.axes[0] if dataset.axes else ():
            for label, value in member.properties.items():
                # Servers name the element by the property alone, or by its whole name.
                name = next((item for item in names if label == item or label.endswith(_quoted(item))), None)
                if name is not None:
                    found.setdefault(name, {})[member.unique_name] = value
    return found


def _quoted(name: str) -> str:
    return f"[{name.replace(']', ']]')}]"


def _key(member: Row, caption: str) -> str:
    found = _KEY.fullmatch(member["MEMBER_UNIQUE_NAME"])
    return member.get("MEMBER_KEY") or (found[1].replace("]]", "]") if found else caption)


def _in_order(members: Sequence[Row]) -> list[Row]:
    """Members depth first, siblings as the server orders them."""
    ordinals = [member.get("MEMBER_ORDINAL", "") for member in members]
    if all(map(NUMBER.fullmatch, ordinals)) and len(set(ordinals)) == len(ordinals):
        members = sorted(members, key=lambda member: int(member["MEMBER_ORDINAL"]))
    names = {member["MEMBER_UNIQUE_NAME"] for member in members}
    beneath: dict[str, list[Row]] = {}
    seen: set[str] = set()
    for member in members:
        if member["MEMBER_UNIQUE_NAME"] not in seen:
            seen.add(member["MEMBER_UNIQUE_NAME"])
            above = member.get("PARENT_UNIQUE_NAME", "")
            beneath.setdefault(above if above in names else "", []).append(member)
    found: list[Row] = []
    stack = beneath.get("", [])[::-1]
    while stack:
        member = stack.pop()
        found.append(member)
        stack.extend(beneath.get(member["MEMBER_UNIQUE_NAME"], [])[::-1])
    return found
