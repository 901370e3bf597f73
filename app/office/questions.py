"""What can be asked about: thresholds, sheets, levels and members by their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.cube import Cube, Texts
from app.domain.publication import HierarchyDefinition, Publication

#: Members of a level that are offered to be merged.
MOST_MEMBERS = 300


@dataclass(frozen=True)
class Choices:
    """What a publication has to choose from.

    ``measures`` are those with a threshold; ``sheets`` ids with titles; ``levels`` (``Cube.Level``) those
    that can be left out, ``merged`` those whose members can be merged.
    """

    measures: tuple[str, ...]
    sheets: tuple[tuple[str, Texts], ...]
    levels: tuple[str, ...]
    merged: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """A member of a level, by its key."""

    key: str
    captions: Texts


def choices_of(publication: Publication) -> Choices:
    """What can be asked about a publication."""
    measures = dict.fromkeys(
        item.measure
        for item in publication.confidentiality.measures
        if any(rule.name == "threshold" for rule in item.rules)
    )
    sheets = tuple((sheet.id, sheet.title) for sheet in publication.sheets())
    found = list(_levels(publication))
    levels = [name for name, hierarchy in found if len(hierarchy.levels) > 1]
    merged = [name for name, hierarchy in found if hierarchy.levels[0].parent is None]
    return Choices(tuple(measures), sheets, tuple(dict.fromkeys(levels)), tuple(dict.fromkeys(merged)))


def _levels(publication: Publication) -> Iterator[tuple[str, HierarchyDefinition]]:
    for cube in publication.cubes:
        for dimension in cube.dimensions:
            for hierarchy in dimension.hierarchies:
                for level in hierarchy.levels:
                    yield f"{cube.name}.{level.name}", hierarchy


def members_of(cubes: tuple[Cube, ...], named: str) -> tuple[Member, ...]:
    """Members of a level ``Cube.Level``, in order; none where there is no such level."""
    name, _dot, level = named.rpartition(".")
    found: dict[str, Member] = {}
    for cube in cubes:
        if cube.name != name:
            continue
        for tree in cube.hierarchies:
            places = {depth for depth, item in enumerate(tree.levels) if item.name == level}
            for member in range(tree.size):
                if int(tree.depth[member]) in places and not tree.keys[member].startswith("#"):
                    captions = {code: column[member] for code, column in tree.member_captions.items()}
                    found.setdefault(tree.keys[member], Member(tree.keys[member], captions))
    return tuple(found.values())[:MOST_MEMBERS]
