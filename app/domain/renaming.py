"""An earlier release's cube under the names of today: the same things, though they are called otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from app.domain.cube import Cube, Hierarchy, IntArray
from app.domain.known import FactRows, ShownCells


@dataclass(frozen=True)
class Names:
    """Today's unique names by those of then, where they differ; a member's is unique in the whole cube."""

    cube: str
    measures: Mapping[str, str]
    hierarchies: Mapping[str, str]
    members: Mapping[str, str]

    def of_cube(self, cube: Cube) -> Cube:
        if cube.name == self.cube and not (self.measures or self.hierarchies or self.members):
            return cube
        measures = tuple(
            replace(item, unique_name=self.measures.get(item.unique_name, item.unique_name))
            for item in cube.measures
        )
        return replace(
            cube,
            name=self.cube,
            measures=measures,
            hierarchies=tuple(self._of_hierarchy(tree) for tree in cube.hierarchies),
        )

    def _of_hierarchy(self, tree: Hierarchy) -> Hierarchy:
        return replace(
            tree,
            unique_name=self.hierarchies.get(tree.unique_name, tree.unique_name),
            unique_names=tuple(self.members.get(name, name) for name in tree.unique_names),
        )

    def of_shown(self, shown: ShownCells) -> ShownCells:
        return replace(shown, cells=replace(shown.cells, cube=self.of_cube(shown.cells.cube)))

    def of_facts(self, rows: FactRows) -> FactRows:
        return replace(rows, cube=self.of_cube(rows.cube))


def level_of(tree: Hierarchy, member: int) -> str:
    """Name of a member's level, by which its key counts: the first one's in a tree of any depth."""
    return tree.levels[int(tree.has_all) if tree.parent_child else int(tree.depth[member])].name


def same_members(
    old: Hierarchy, new: Hierarchy, levels: Mapping[str, str], keys: Mapping[str, Mapping[str, str]]
) -> IntArray:
    """For each member of an earlier hierarchy the member that it is today, or -1.

    Parameters
    ----------
    levels
        Today's names of the levels by those of then.
    keys
        Today's keys by those of then, by today's level; others are as they were.
    """
    known: dict[tuple[str, str], list[int]] = defaultdict(list)
    for member, key in enumerate(new.keys):
        known[level_of(new, member), key].append(member)
    image = np.full(old.size, -1, dtype=np.int32)
    for member, name in enumerate(old.unique_names):
        if member == 0 and old.has_all:
            image[0] = 0 if new.has_all else -1
            continue
        then = level_of(old, member)
        level = levels.get(then)
        if level is None:
            continue
        key = old.keys[member]
        now = keys.get(level, {}).get(key, key)
        if now == key and old.unique_name == new.unique_name and level == then and name in new.index_of:
            image[member] = new.index_of[name]
            continue
        found = known[level, now]
        if len(found) > 1 or "]&[" in name:
            # Keys that mean nothing without the member above.
            found = [other for other in found if _above(new, other) == _image_above(old, image, member)]
        if len(found) == 1:
            image[member] = found[0]
    return image


def _above(tree: Hierarchy, member: int) -> int:
    return int(tree.parent[member])


def _image_above(tree: Hierarchy, image: IntArray, member: int) -> int:
    parent = int(tree.parent[member])
    return -1 if parent < 0 else int(image[parent])


def with_parents(old: Hierarchy, new: Hierarchy, image: IntArray) -> IntArray:
    """The same, with members found by what lies beneath: the same children make the same member."""
    result = image.copy()
    taken = set(image[image >= 0].tolist())
    for member in range(old.size - 1, -1, -1):
        children = result[old.child_lists[member]]
        if result[member] >= 0 or not len(children) or children.min() < 0:
            continue
        above = {int(new.parent[child]) for child in children.tolist()}
        parent = above.pop()
        if above or parent < 0 or parent in taken:
            continue
        if sorted(children.tolist()) == sorted(new.child_lists[parent].tolist()):
            result[member] = parent
            taken.add(parent)
    return result
