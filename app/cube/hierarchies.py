"""From the rows of a dimension to its numbered members."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.domain.cube import Hierarchy, IntArray, Level
from app.domain.errors import Mistake
from app.domain.publication import DimensionDefinition, HierarchyDefinition, LevelDefinition
from app.mdx import quote

#: Key and name of the member that holds facts of which a level isn't known.
UNKNOWN_KEY = "#null"
UNKNOWN_CAPTION = "#null"
_SHOWN = 5
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(eq=False)
class _Node:
    level: int
    key: str
    parent: _Node | None
    captions: dict[str, str] = field(default_factory=dict)
    order: Any = None
    properties: dict[str, str] = field(default_factory=dict)
    children: dict[tuple[int, str], _Node] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    number: int = -1

    def path(self) -> tuple[str, ...]:
        above = self.parent.path() if self.parent is not None and self.parent.level >= 0 else ()
        return (*above, self.key)


def build_hierarchy(
    dimension: DimensionDefinition,
    definition: HierarchyDefinition,
    rows: Mapping[str, Sequence[Any]],
    n_rows: int,
    language: str,
    file: str,
) -> tuple[Hierarchy | None, IntArray, list[Mistake]]:
    """A hierarchy and the member that each row of the dimension belongs to.

    A row of which the last levels are missing belongs to the member above (a ragged hierarchy). Should
    that member have children too, or should all levels be missing, the row goes to a member
    ``#null`` beneath, so that a member is always the sum of its children.

    Parameters
    ----------
    rows
        Columns of the dimension by name, None where nothing is known.
    language
        Of captions that no language was given for.
    file
        What the rows were read from, for mistakes.

    Returns
    -------
    hierarchy, member of each row (int32[n_rows]), mistakes (then the hierarchy is None)
    """
    root = _Node(-1, "", None)
    levels = definition.levels
    keys = [_texts(rows[level.key]) for level in levels]
    for row in range(n_rows):
        node = root
        for depth, level in enumerate(levels):
            key = keys[depth][row]
            if key is None:
                continue
            child = node.children.get((depth, key))
            if child is None:
                child = node.children[depth, key] = _Node(depth, key, node)
                _describe(child, level, rows, row, language)
            node = child
        node.rows.append(row)
    _keep_facts_off_parents(root, len(levels))
    mistakes = [*_unprintable(root, definition, file), *_two_parents(root, definition, file)]
    if not root.children and not definition.all_captions:
        where = file or dimension.name
        mistakes.append(Mistake(where, 0, 0, f"Hierarchy {definition.name} has no member at all."))
    if mistakes:
        return None, np.zeros(0, np.int32), mistakes
    ordered = _number(root, definition)
    member = np.zeros(n_rows, dtype=np.int32)
    for node in ordered:
        member[node.rows] = node.number
    return _hierarchy(dimension, definition, ordered, language), member, []


def _texts(column: Sequence[Any]) -> list[str | None]:
    return [None if value is None else _text(value) for value in column]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _describe(
    node: _Node, level: LevelDefinition, rows: Mapping[str, Sequence[Any]], row: int, language: str
) -> None:
    for code, column in level.caption_columns.items():
        caption = rows[column][row]
        node.captions[code] = node.key if caption is None else _text(caption)
    if not node.captions:
        node.captions[language] = node.key
    if level.order is not None:
        node.order = rows[level.order][row]
    for name, column in level.properties.items():
        value = rows[column][row]
        node.properties[name] = "" if value is None else _text(value)


def _keep_facts_off_parents(node: _Node, n_levels: int) -> None:
    for child in list(node.children.values()):
        _keep_facts_off_parents(child, n_levels)
    if node.rows and (node.children or node.level < 0):
        depth = node.level + 1
        unknown = node.children.setdefault(
            (depth, UNKNOWN_KEY), _Node(depth, UNKNOWN_KEY, node, {}, None, {})
        )
        unknown.rows.extend(node.rows)
        node.rows = []


def _two_parents(root: _Node, definition: HierarchyDefinition, file: str) -> list[Mistake]:
    mistakes: list[Mistake] = []
    for depth, level in enumerate(definition.levels):
        if definition.time or not level.unique:
            continue
        parents: dict[str, list[_Node]] = {}
        for node in _walk(root):
            if node.level == depth and node.key != UNKNOWN_KEY:
                parents.setdefault(node.key, []).append(node)
        for key, nodes in parents.items():
            if len(nodes) > 1:
                places = sorted("/".join(node.path()[:-1]) for node in nodes)
                above = " and ".join(f"“{place}”" for place in places[:_SHOWN])
                cause = f"Key “{key}” of level {level.name} ({definition.name}) stands under {above}."
                remedy = "Give it one parent, or say unique = false for the level."
                mistakes.append(Mistake(file, 0, 0, cause, remedy))
    return mistakes


def _unprintable(root: _Node, definition: HierarchyDefinition, file: str) -> list[Mistake]:
    """Members whose key or caption neither XML nor a spreadsheet can hold."""
    found = {
        node.key
        for node in _walk(root)
        if any(_UNPRINTABLE.search(text) for text in (node.key, *node.captions.values()))
    }
    cause = f"of {definition.name} holds a control character"
    return [Mistake(file, 0, 0, f"Member {key!r} {cause}.", "Take it out.") for key in sorted(found)[:_SHOWN]]


def _walk(root: _Node) -> list[_Node]:
    found: list[_Node] = []
    stack = list(root.children.values())
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(node.children.values())
    return found


def _rank(values: set[Any]) -> dict[Any, tuple[int, float, str]]:
    """Sort keys: numbers as numbers if all of them are, texts as texts, None last."""
    given = [value for value in values if value is not None]
    try:
        numbers = {value: float(value) for value in given}
    except (TypeError, ValueError):
        ranks = {value: (0, 0.0, str(value)) for value in given}
    else:
        ranks = {value: (0, number, str(value)) for value, number in numbers.items()}
    return {**ranks, None: (1, 0.0, "")}


def _number(root: _Node, definition: HierarchyDefinition) -> list[_Node]:
    """Members depth first, siblings by their order column, then by key."""
    nodes = _walk(root)
    levels = range(len(definition.levels))
    orders = [_rank({node.order for node in nodes if node.level == level}) for level in levels]
    keys = [_rank({n.key for n in nodes if n.level == level and n.key != UNKNOWN_KEY}) for level in levels]

    def place(node: _Node) -> tuple[Any, ...]:
        unknown = node.key == UNKNOWN_KEY
        key = None if unknown else node.key
        return (unknown, orders[node.level][node.order], node.level, keys[node.level][key])

    ordered: list[_Node] = []
    if definition.all_captions is not None:
        ordered.append(root)
    stack = sorted(root.children.values(), key=place, reverse=True)
    while stack:
        node = stack.pop()
        ordered.append(node)
        stack.extend(sorted(node.children.values(), key=place, reverse=True))
    for number, node in enumerate(ordered):
        node.number = number
    return ordered


def hierarchy_name(dimension: DimensionDefinition, definition: HierarchyDefinition) -> str:
    """Unique name: ``[Time]``, or ``[Time.Fiscal]`` for a hierarchy not named as its dimension."""
    if definition.name == dimension.name:
        return quote(dimension.name)
    return quote(f"{dimension.name}.{definition.name}")


def _hierarchy(
    dimension: DimensionDefinition, definition: HierarchyDefinition, nodes: list[_Node], language: str
) -> Hierarchy:
    name = hierarchy_name(dimension, definition)
    has_all = definition.all_captions is not None
    levels = [
        Level(level.name, f"{name}.{quote(level.name)}", level.captions or {language: level.name})
        for level in definition.levels
    ]
    if has_all:
        levels.insert(0, Level("(All)", f"{name}.[(All)]", {language: "(All)"}))
    shared = _keys_met_twice(nodes)
    unique_names: list[str] = []
    for node in nodes:
        if node.level < 0:
            unique_names.append(f"{name}.[All]")
            continue
        level = levels[node.level + has_all]
        path = node.path() if node.level in shared or node.key == UNKNOWN_KEY else (node.key,)
        unique_names.append(f"{level.unique_name}.{''.join(f'&{quote(key)}' for key in path)}")
    languages = dict.fromkeys(code for node in nodes for code in node.captions) or {language: None}
    captions: dict[str, tuple[str, ...]] = {}
    all_captions = definition.all_captions or {}
    for code in dict.fromkeys((*all_captions, *languages)):
        captions[code] = tuple(
            (all_captions.get(code) or next(iter(all_captions.values()), "All"))
            if node.level < 0
            else node.captions.get(code) or next(iter(node.captions.values()), UNKNOWN_CAPTION)
            for node in nodes
        )
    properties = dict.fromkeys(key for node in nodes for key in node.properties)
    return Hierarchy(
        dimension=dimension.name,
        name=definition.name,
        unique_name=name,
        captions=definition.captions or {language: definition.name},
        levels=tuple(levels),
        has_all=has_all,
        default_member=_default(definition, nodes, unique_names),
        keys=tuple(node.key if node.level >= 0 else "" for node in nodes),
        unique_names=tuple(unique_names),
        member_captions=captions,
        parent=np.array(
            [-1 if node.parent is None else node.parent.number for node in nodes], dtype=np.int32
        ),
        depth=np.array([node.level + has_all for node in nodes], dtype=np.int32),
        properties={key: tuple(node.properties.get(key, "") for node in nodes) for key in properties},
        time=definition.time,
    )


def _keys_met_twice(nodes: list[_Node]) -> set[int]:
    seen: set[tuple[int, str]] = set()
    shared: set[int] = set()
    for node in nodes:
        if node.key != UNKNOWN_KEY and (node.level, node.key) in seen:
            shared.add(node.level)
        seen.add((node.level, node.key))
    return shared


def _default(definition: HierarchyDefinition, nodes: list[_Node], unique_names: list[str]) -> int:
    wanted = definition.default_member
    if wanted is None:
        return 0
    for number, node in enumerate(nodes):
        if wanted in (unique_names[number], node.key) and node.level >= 0:
            return number
    return 0
