"""Properties of members: those that every member has, and those that the cube's levels define."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.cube.hierarchies import OWN_KEY
from app.cube.names import Names
from app.cube.values import DimensionValue, HierarchyValue, LevelValue
from app.domain.cellset import AxisMember
from app.domain.cube import Cube, Hierarchy
from app.domain.errors import UserError
from app.mdx import Source, brief
from app.mdx.tree import AxisDefinition, Name


def _caption(tree: Hierarchy, member: int) -> str:
    return next(iter(tree.member_captions.values()))[member]


def _parent(tree: Hierarchy, member: int) -> str:
    above = int(tree.parent[member])
    return tree.unique_names[above] if above >= 0 else ""


def _parent_level(tree: Hierarchy, member: int) -> str:
    above = int(tree.parent[member])
    return str(tree.depth[above]) if above >= 0 else "0"


def _skipped(tree: Hierarchy, member: int) -> str:
    """How many levels a ragged hierarchy leaves out above a member."""
    above = int(tree.parent[member])
    return str(int(tree.depth[member] - tree.depth[above]) - 1) if above >= 0 else "0"


#: Types of members as OLE DB for OLAP numbers them.
_REGULAR, _ALL, _FORMULA = "1", "2", "4"

_OF_EVERY_MEMBER: Mapping[str, Callable[[Hierarchy, int], str]] = {
    "NAME": lambda tree, member: tree.names[member],
    "CAPTION": _caption,
    "VALUE": _caption,
    "UNIQUE_NAME": lambda tree, member: tree.unique_names[member],
    "KEY": lambda tree, member: tree.keys[member],
    "KEY0": lambda tree, member: tree.keys[member],
    "ID": lambda tree, member: tree.keys[member],
    "ORDINAL": lambda _, member: str(member),
    "LEVEL_NUMBER": lambda tree, member: str(tree.depth[member]),
    "LEVEL_UNIQUE_NAME": lambda tree, member: tree.levels[tree.depth[member]].unique_name,
    "HIERARCHY_UNIQUE_NAME": lambda tree, _: tree.unique_name,
    "DIMENSION_UNIQUE_NAME": lambda tree, _: f"[{tree.dimension.replace(']', ']]')}]",
    "PARENT_UNIQUE_NAME": _parent,
    "PARENT_LEVEL": _parent_level,
    "PARENT_COUNT": lambda tree, member: str(int(tree.parent[member] >= 0)),
    "CHILDREN_CARDINALITY": lambda tree, member: str(len(tree.child_lists[member])),
    "TYPE": lambda tree, member: _ALL if tree.has_all and member == 0 else _REGULAR,
    "SKIPPED_LEVELS": _skipped,
    "IS_DATAMEMBER": lambda tree, member: str(tree.keys[member] == OWN_KEY).lower(),
    "IS_PLACEHOLDERMEMBER": lambda tree, member: "false",
    "DESCRIPTION": lambda tree, member: "",
    "CUSTOM_ROLLUP": lambda tree, member: "",
}


def plain_name(name: str) -> str:
    """A property's name as it is looked up: ``MEMBER_CAPTION`` and ``Caption`` are one."""
    name = name.upper().replace("UNIQUENAME", "UNIQUE_NAME").replace("MEMBERVALUE", "MEMBER_VALUE")
    return name.removeprefix("MEMBER_")


def property_of(tree: Hierarchy, member: int, name: str) -> str | None:
    """A property of one of a hierarchy's own members, None if it has no such property.

    A property of the cube comes before one that every member has.
    """
    for known, values in tree.properties.items():
        if known.upper() == name.upper():
            return values[member]
    found = _OF_EVERY_MEMBER.get(plain_name(name))
    return None if found is None else found(tree, member)


@dataclass(frozen=True)
class _Asked:
    """A property asked for on an axis, and the columns whose members have it."""

    label: str
    columns: frozenset[int]


def axis_properties(
    cube: Cube, axis: AxisDefinition, positions: Sequence[tuple[AxisMember, ...]], source: Source
) -> tuple[tuple[Mapping[str, str | None], ...], ...]:
    """What DIMENSION PROPERTIES asks for, for each member of each position; None where it has no value.

    Raises
    ------
    UserError
        When no hierarchy of the axis has such a property.
    """
    names = Names(cube)
    numbers = {column.hierarchy.unique_name: column.number for column in names.columns}
    on_axis = [numbers[member.hierarchy] for member in positions[0]] if positions else []
    wanted = (_asked(names, name, on_axis, source) for name in axis.properties if positions)
    # A name that is said again, in small letters perhaps, is the same property.
    asked = list({(item.label.upper(), item.columns): item for item in wanted}.values())
    seen: dict[str, Mapping[str, str | None]] = {}

    def properties(member: AxisMember) -> Mapping[str, str | None]:
        if member.unique_name not in seen:
            number = numbers[member.hierarchy]
            tree = names.columns[number].hierarchy
            seen[member.unique_name] = {
                item.label: _value(tree, member, item.label) for item in asked if number in item.columns
            }
        return seen[member.unique_name]

    return tuple(tuple(map(properties, position)) for position in positions)


def _asked(names: Names, name: Name, on_axis: Sequence[int], source: Source) -> _Asked:
    *owner, last = name.parts
    columns = set(on_axis)
    if owner:
        found = names.resolve(Name(tuple(owner), name.at), source)
        if isinstance(found, (HierarchyValue, LevelValue)):
            columns &= {found.column}
        elif isinstance(found, DimensionValue):
            columns &= set(found.columns)
        else:
            raise UserError(source.mistake(name.at, f"{brief(name)} is no property of a level."))
    trees = {column: names.columns[column].hierarchy for column in columns}
    having = frozenset(
        column
        for column, tree in trees.items()
        if plain_name(last.text) in _OF_EVERY_MEMBER
        or last.text.upper() in (known.upper() for known in tree.properties)
    )
    if not having:
        known = sorted({key for column in on_axis for key in names.columns[column].hierarchy.properties})
        there = f"There are: {', '.join(known)}." if known else ""
        raise UserError(
            source.mistake(name.at, f"No member of this axis has a property {brief(last.text)}.", there)
        )
    return _Asked(last.text, having)


def _value(tree: Hierarchy, member: AxisMember, label: str) -> str | None:
    number = tree.index_of.get(member.unique_name)
    if number is not None:
        return property_of(tree, number, label) or None
    own = {
        "UNIQUE_NAME": member.unique_name,
        "LEVEL_UNIQUE_NAME": member.level,
        "HIERARCHY_UNIQUE_NAME": tree.unique_name,
        "TYPE": _FORMULA,
    }
    caption = next(iter(member.captions.values()), "")
    own.update(dict.fromkeys(("NAME", "CAPTION", "VALUE", "KEY"), caption))
    return own.get(plain_name(label))
