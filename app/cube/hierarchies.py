"""From the rows of a dimension to its numbered members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.domain.cube import Hierarchy, IntArray, Level
from app.domain.errors import Mistake
from app.domain.publication import DimensionDefinition, HierarchyDefinition, LevelDefinition
from app.domain.texts import unprintable
from app.mdx import quote

#: Key and name of the member that holds facts of which a level isn't known.
UNKNOWN_KEY = "#null"
UNKNOWN_CAPTION = "#null"
#: Key of the member that holds what a member of a parent-child hierarchy has of its own.
OWN_KEY = "#own"
#: Members above one another in a parent-child hierarchy.
MAX_DEPTH = 30
_SHOWN = 5


@dataclass(eq=False)
class _Node:
    level: int
    key: str
    parent: _Node | None
    captions: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    order: Any = None
    properties: dict[str, str] = field(default_factory=dict)
    children: dict[tuple[int, str], _Node] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    number: int = -1

    def path(self) -> tuple[str, ...]:
        above = self.parent.path() if self.parent is not None and self.parent.level >= 0 else ()
        return (*above, self.key)

    @property
    def called(self) -> str:
        """What queries call it by."""
        return self.name if self.name is not None else next(iter(self.captions.values()), UNKNOWN_CAPTION)


def build_hierarchy(
    dimension: DimensionDefinition,
    definition: HierarchyDefinition,
    rows: Mapping[str, Sequence[Any]],
    n_rows: int,
    language: str,
    file: str,
    used: Set[int] = frozenset(),
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
    used
        Rows that have facts, as far as a parent-child hierarchy needs to know.

    Returns
    -------
    hierarchy, member of each row (int32[n_rows]), mistakes (then the hierarchy is None)
    """
    root, mistakes = (
        _rows_as_paths(definition, rows, n_rows, language, file)
        if definition.levels[0].parent is None
        else _rows_as_tree(definition, rows, n_rows, used, language, file)
    )
    mistakes += [*_unprintable(root, definition, file), *_two_parents(root, definition, file)]
    if not root.children and not definition.all_captions:
        where = file or dimension.name
        mistakes.append(Mistake(where, 0, 0, f"Hierarchy {definition.name} has no member at all."))
    if mistakes:
        return None, np.zeros(0, np.int32), mistakes
    ordered = _number(root, definition)
    default = _default(dimension, definition, ordered)
    if default is None:
        cause = f"Hierarchy {definition.name} has no member {definition.default_member}, its default."
        return None, np.zeros(0, np.int32), [Mistake(file or dimension.name, 0, 0, cause)]
    member = np.zeros(n_rows, dtype=np.int32)
    for node in ordered:
        member[node.rows] = node.number
    return _hierarchy(dimension, definition, ordered, language, default), member, []


def _rows_as_paths(
    definition: HierarchyDefinition,
    rows: Mapping[str, Sequence[Any]],
    n_rows: int,
    language: str,
    file: str,
) -> tuple[_Node, list[Mistake]]:
    """The tree of rows that hold the key of each level."""
    root = _Node(-1, "", None)
    keys = [_texts(rows[level.key]) for level in definition.levels]
    mistakes = [
        Mistake(file, 0, 0, f"Level {level.name} has no member with the key “{key}”.")
        for level, column in zip(definition.levels, keys, strict=True)
        for key in sorted(set(level.merged).difference(key for key in column if key is not None))
    ]
    merged = [_merged_keys(level, column) for level, column in zip(definition.levels, keys, strict=True)]
    for row in range(n_rows):
        node = root
        for depth, level in enumerate(definition.levels):
            key = keys[depth][row]
            if key is None or (level.hidden and _is_hidden(level, rows, row, key, node)):
                continue
            key = merged[depth].get(key, key)
            child = node.children.get((depth, key))
            if child is None:
                child = node.children[depth, key] = _Node(depth, key, node)
                _describe(child, level, rows, row, language)
            node = child
        node.rows.append(row)
    _keep_facts_off_parents([root, *_walk(root)])
    return root, mistakes


def _merged_keys(level: LevelDefinition, column: Sequence[str | None]) -> Mapping[str, str]:
    """Keys in place of those that are merged, none of which another member has."""
    if not level.merged:
        return {}
    others = {key for key in column if key is not None} - set(level.merged)
    found = {}
    for key, whole in level.merged.items():
        while whole in others:
            whole += "+"
        found[key] = whole
    return found


def _is_hidden(
    level: LevelDefinition, rows: Mapping[str, Sequence[Any]], row: int, key: str, above: _Node
) -> bool:
    """Whether what a row holds at a level is no member, by its name."""
    column = level.member_name or next(iter(level.caption_columns.values()), None)
    name = key if column is None else _texts([rows[column][row]])[0]
    if level.hidden == "parent":
        return above.level >= 0 and name == above.called
    return name is None or not name.strip()


def _rows_as_tree(
    definition: HierarchyDefinition,
    rows: Mapping[str, Sequence[Any]],
    n_rows: int,
    used: Set[int],
    language: str,
    file: str,
) -> tuple[_Node, list[Mistake]]:
    """The tree of rows that hold a key and the key above it.

    A member with facts of its own beneath others holds them in a member ``#own`` beneath, so that it is
    the sum of its children like any other.
    """
    level = definition.levels[0]
    keys, parents = _texts(rows[level.key]), _texts(rows[level.parent or ""])
    root = _Node(-1, "", None)
    nodes: dict[str, _Node] = {}
    above: dict[str, str | None] = {}
    wrong: dict[str, str] = {}
    for row in range(n_rows):
        key, parent = keys[row], parents[row]
        if key is None:
            root.rows.append(row)
            continue
        parent = None if parent in (key, level.null_parent) else parent
        if key in nodes and above[key] != parent:
            places = " and ".join(f"“{place}”" if place else "the top" for place in (above[key], parent))
            wrong.setdefault(
                f"Key “{key}” of {definition.name} stands under {places}.", "Give it one parent."
            )
        if key not in nodes:
            nodes[key], above[key] = _Node(0, key, root), parent
            _describe(nodes[key], level, rows, row, language)
        nodes[key].rows.append(row)
    for key, parent in above.items():
        if parent is not None and parent not in nodes:
            cause = f"Key “{key}” of {definition.name} stands under “{parent}”, which isn't there."
            wrong[cause] = "Add the parent, or leave it empty for a member at the top."
    for cycle in _cycles(above):
        shown = " → ".join(f"“{key}”" for key in cycle[:_SHOWN])
        wrong[f"Keys of {definition.name} stand under one another in a circle: {shown}."] = "Break it."
    mistakes = [Mistake(file, 0, 0, cause, remedy) for cause, remedy in sorted(wrong.items())[:_SHOWN]]
    _keep_facts_off_parents([root])
    if not mistakes:
        _hang(root, nodes, above, used)
        deepest = max((node.level for node in nodes.values()), default=0)
        if deepest >= MAX_DEPTH:
            cause = f"{definition.name} is {deepest + 1} members deep; the limit is {MAX_DEPTH}."
            mistakes.append(Mistake(file, 0, 0, cause))
    return root, mistakes


def _cycles(above: Mapping[str, str | None]) -> list[list[str]]:
    """Keys that are above themselves, one circle each."""
    done: set[str] = set()
    found: list[list[str]] = []
    for start in above:
        path: dict[str, None] = {}
        key: str | None = start
        while key is not None and key in above and key not in done and key not in path:
            path[key] = None
            key = above[key]
        if key in path:
            walked = list(path)
            found.append([*walked[walked.index(key) :], key])
        done.update(path)
    return found


def _hang(root: _Node, nodes: Mapping[str, _Node], above: Mapping[str, str | None], used: Set[int]) -> None:
    for key, node in nodes.items():
        parent = above[key]
        node.parent = root if parent is None else nodes[parent]
        node.parent.children[0, key] = node
    pending = list(root.children.values())
    while pending:
        node = pending.pop()
        node.level = 0 if node.parent is None or node.parent is root else node.parent.level + 1
        pending.extend(node.children.values())
    for node in nodes.values():
        if node.children and not used.isdisjoint(node.rows):
            captions = {code: f"({caption})" for code, caption in node.captions.items()}
            own = _Node(node.level + 1, OWN_KEY, node, captions, f"({node.called})")
            own.rows, node.rows = node.rows, []
            node.children[0, OWN_KEY] = own


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
    if level.member_name is not None:
        name = rows[level.member_name][row]
        node.name = node.key if name is None else _text(name)
    if level.order is not None:
        node.order = rows[level.order][row]
    for name, column in level.properties.items():
        value = rows[column][row]
        node.properties[name] = "" if value is None else _text(value)


def _keep_facts_off_parents(nodes: Iterable[_Node]) -> None:
    """Rows of members that have children go to a member beneath, whose key is UNKNOWN_KEY."""
    for node in nodes:
        if node.rows and (node.children or node.level < 0):
            depth = node.level + 1
            unknown = node.children.setdefault((depth, UNKNOWN_KEY), _Node(depth, UNKNOWN_KEY, node))
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
    """Members with a text that neither XML nor a spreadsheet can hold."""
    found: dict[str, str] = {}
    for node in _walk(root):
        texts = (node.key, node.name or "", *node.captions.values(), *node.properties.values())
        wrong = next(filter(None, map(unprintable, texts)), None)
        if wrong is not None:
            found.setdefault(node.key, wrong[1])
    mistakes: list[Mistake] = []
    for key, name in sorted(found.items())[:_SHOWN]:
        cause = f"Member {key!r} of {definition.name} holds the control character {name}."
        mistakes.append(Mistake(file, 0, 0, cause, "Take it out."))
    return mistakes


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
    levels = range(1 + max((node.level for node in nodes), default=0))
    orders = [_rank({node.order for node in nodes if node.level == level}) for level in levels]
    keys = [
        _rank({n.key for n in nodes if n.level == level and n.key not in (UNKNOWN_KEY, OWN_KEY)})
        for level in levels
    ]

    def place(node: _Node) -> tuple[Any, ...]:
        unknown = node.key == UNKNOWN_KEY
        key = None if unknown or node.key == OWN_KEY else node.key
        return (
            unknown,
            node.key != OWN_KEY,
            orders[node.level][node.order],
            node.level,
            keys[node.level][key],
        )

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
    dimension: DimensionDefinition,
    definition: HierarchyDefinition,
    nodes: list[_Node],
    language: str,
    default: int,
) -> Hierarchy:
    name = hierarchy_name(dimension, definition)
    has_all = definition.all_captions is not None
    parent_child = definition.levels[0].parent is not None
    levels = [
        Level(
            level.name,
            f"{name}.{quote(level.name)}",
            level.captions or {language: level.name},
            level.period,
            level.bands,
        )
        for level in definition.levels
    ]
    for depth in range(1, 1 + max((node.level for node in nodes), default=0)) if parent_child else ():
        captions_there = {code: f"{caption} {depth + 1}" for code, caption in levels[0].captions.items()}
        called = f"{levels[0].name} {depth + 1}"
        levels.append(Level(called, f"{name}.{quote(called)}", captions_there))
    if has_all:
        levels.insert(0, Level("(All)", f"{name}.[(All)]", {language: "(All)"}))
    shared = _keys_met_twice(nodes)
    unique_names: list[str] = []
    for node in nodes:
        if node.level < 0:
            unique_names.append(f"{name}.[All]")
            continue
        level = levels[has_all if parent_child else node.level + has_all]
        path = node.path() if node.level in shared or node.key in (UNKNOWN_KEY, OWN_KEY) else (node.key,)
        if parent_child:
            path = path[-2:]
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
    shown = next(iter(captions.values()))
    names = tuple((definition.all_name or shown[0]) if node.level < 0 else node.called for node in nodes)
    unlisted = tuple(node.number for node in nodes if node.level == 0 and node.key == UNKNOWN_KEY)
    return Hierarchy(
        dimension=dimension.name,
        name=definition.name,
        unique_name=name,
        captions=definition.captions or {language: definition.name},
        levels=tuple(levels),
        has_all=has_all,
        default_member=default,
        keys=tuple(node.key if node.level >= 0 else "" for node in nodes),
        unique_names=tuple(unique_names),
        member_captions=captions,
        parent=np.array(
            [-1 if node.parent is None else node.parent.number for node in nodes], dtype=np.int32
        ),
        depth=np.array([node.level + has_all for node in nodes], dtype=np.int32),
        properties={key: tuple(node.properties.get(key, "") for node in nodes) for key in properties},
        time=definition.time,
        parent_child=parent_child,
        member_names=() if names == shown else names,
        unlisted=() if dimension.lists_unknown else unlisted,
    )


def _keys_met_twice(nodes: list[_Node]) -> set[int]:
    seen: set[tuple[int, str]] = set()
    shared: set[int] = set()
    for node in nodes:
        if node.key not in (UNKNOWN_KEY, OWN_KEY) and (node.level, node.key) in seen:
            shared.add(node.level)
        seen.add((node.level, node.key))
    return shared


_QUOTED = re.compile(r"\[((?:[^\]]|\]\])*)\]")


def _default(
    dimension: DimensionDefinition, definition: HierarchyDefinition, nodes: list[_Node]
) -> int | None:
    """The member that a cell takes when nothing else is said; None where there is no such one."""
    wanted = definition.default_member
    if wanted is None:
        return 0
    parts = [part.replace("]]", "]").lower() for part in _QUOTED.findall(wanted)] or [wanted.lower()]
    owner = [dimension.name.lower(), definition.name.lower()]
    for heads in ([owner[0], owner[1]], [".".join(owner)], [owner[0]], [owner[1]]):
        if parts[: len(heads)] == heads and len(parts) > len(heads):
            parts = parts[len(heads) :]
            break
    levels = [level.name.lower() for level in definition.levels]
    level = levels.index(parts[0]) if parts[0] in levels and len(parts) > 1 else None
    parts = parts if level is None else parts[1:]
    everything = [definition.all_name, *(definition.all_captions or {}).values(), "all"]
    if nodes[0].level < 0 and parts[0] in [name.lower() for name in everything if name]:
        parts = parts[1:]
    fitting = [node for node in nodes if _bears(node, parts) and level in (None, node.level)]
    # A path from the top on comes before one that begins further down.
    fitting.sort(key=lambda node: len(node.path()) != len(parts))
    if not parts:
        return 0
    return fitting[0].number if fitting else None


def _bears(node: _Node, parts: Sequence[str]) -> bool:
    """Whether a member and those above it bear the names or keys of a path's end."""
    above: _Node | None = node
    for part in reversed(parts):
        if above is None or above.level < 0 or part not in (above.called.lower(), above.key.lower()):
            return False
        above = above.parent
    return True
