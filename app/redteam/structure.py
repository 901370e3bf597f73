"""The hierarchies of a cube as the site publishes them: names, parents, order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

#: One unique name for the measure and one for each hierarchy, in the order of the structure.
Coordinates = tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """``captions`` are all the texts that the member goes by."""

    name: str
    parent: str | None
    level: str
    captions: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class PublicHierarchy:
    """``members`` in hierarchical order; ``default`` is the one meant when a table doesn't name any, ``time``
    says whether they are periods."""

    name: str
    members: Mapping[str, Member]
    default: str | None
    time: bool = False

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        lists: dict[str, list[str]] = {}
        for member in self.members.values():
            if member.parent is not None:
                lists.setdefault(member.parent, []).append(member.name)
        return {parent: tuple(names) for parent, names in lists.items()}

    @cached_property
    def all_member(self) -> str | None:
        """The one member above all others, if there is one."""
        tops = [member.name for member in self.members.values() if member.parent is None]
        return tops[0] if len(tops) == 1 and tops[0] in self.children else None

    @cached_property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        lists: dict[str, list[str]] = {}
        for member in self.members.values():
            lists.setdefault(member.level, []).append(member.name)
        return {level: tuple(names) for level, names in lists.items()}

    @cached_property
    def by_words(self) -> Mapping[tuple[str, ...], str]:
        """Members by the other ways to write them: hierarchy and caption, level and caption."""
        found: dict[tuple[str, ...], str] = {}
        for member in self.members.values():
            for caption in sorted(member.captions):
                found.setdefault((self.name, f"[{caption}]"), member.name)
                found.setdefault((member.level, f"[{caption}]"), member.name)
        return found

    def previous(self, name: str) -> str | None:
        """The member before, in its level."""
        siblings = self.levels[self.members[name].level]
        at = siblings.index(name)
        return siblings[at - 1] if at else None


@dataclass(frozen=True)
class PublicMeasure:
    name: str
    additive: bool
    frequency: bool
    nonnegative: bool
    decimals: int
    of_which: tuple[str, ...] = ()
    aggregator: str = "sum"


@dataclass(frozen=True, eq=False)
class Structure:
    """A cube as readers know it.

    ``formulas`` are those that the cube offers to every query, by unique name; ``thresholds`` the
    published smallest number of contributors, by measure.
    """

    cube: str
    hierarchies: tuple[PublicHierarchy, ...]
    measures: Mapping[str, PublicMeasure]
    formulas: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def column(self) -> Mapping[str, int]:
        """Column of each hierarchy in coordinates; 0 is the measures'."""
        return {"[Measures]": 0} | {h.name: 1 + i for i, h in enumerate(self.hierarchies)}
