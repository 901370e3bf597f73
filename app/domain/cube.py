"""What a cube looks like: dimensions, hierarchies, levels, members, measures.

Members of a hierarchy are numbered in hierarchical order (a parent before its children, siblings in
their given order), so that a cell is a row of small integers and everything about cells is array work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]

#: Text by language code; the publication's first language is the fallback.
Texts = Mapping[str, str]


def text_in(texts: Texts, language: str) -> str:
    """The text in ``language``, or in the first language there is, or ``""``."""
    return texts.get(language) or next(iter(texts.values()), "")


@dataclass(frozen=True)
class Cuts:
    """That a level's members, in their order, divide the values of a summed measure by size.

    ``cuts`` are the numbers between each two of them, rising, or these and both ends.
    """

    measure: str
    cuts: tuple[float, ...]


@dataclass(frozen=True)
class Level:
    """A level of a hierarchy; ``unique_name`` as in ``[Geography].[Province]``.

    ``period`` is what its members are in time: ``year``, ``quarter``, ``month`` or ``week``; "" where nobody
    said it. ``bands`` is what somebody said of its members as bands.
    """

    name: str
    unique_name: str
    captions: Texts
    period: str = ""
    bands: Cuts | None = None


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of members.

    Attributes
    ----------
    dimension, name, unique_name : str
        E.g. ``Geography``, ``Geography``, ``[Geography]``.
    levels : tuple of Level
        From the top; the (All) level, where there is one, is level 0.
    has_all : bool
        Whether member 0 is the All member.
    default_member : int
        Member that a cell takes when nothing else is said (member 0 with an All).
    keys, unique_names : tuple of str
        One for each member; unique names as in ``[Geography].[Province].&[28]``.
    member_captions : mapping of language to tuple of str
    parent : int32[n]
        Index of the parent, -1 at the top.
    depth : int32[n]
        Index of the member's level.
    properties : mapping of name to tuple of str
        Member properties, one value for each member.
    time : bool
        Whether the hierarchy is of time, so that period functions work on it.
    parent_child : bool
        Whether one level of the definition holds a whole tree: then each depth is a level here, and all
        members bear the name of the first.
    member_names : tuple of str
        What queries call each member by; empty: by its caption in the first language.
    unlisted : tuple of int
        Members that hold facts and count in all totals, but are in no set: facts that aren't of any member.
    """

    dimension: str
    name: str
    unique_name: str
    captions: Texts
    levels: tuple[Level, ...]
    has_all: bool
    default_member: int
    keys: tuple[str, ...]
    unique_names: tuple[str, ...]
    member_captions: Mapping[str, tuple[str, ...]]
    parent: IntArray
    depth: IntArray
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    time: bool = False
    parent_child: bool = False
    member_names: tuple[str, ...] = ()
    unlisted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.keys)
        if not (len(self.unique_names) == len(self.parent) == len(self.depth) == n):
            raise ValueError(f"hierarchy {self.unique_name}: member columns differ in length")
        if any(len(column) != n for column in self.member_captions.values()):
            raise ValueError(f"hierarchy {self.unique_name}: captions differ in length")
        if len(self.member_names) not in (0, n):
            raise ValueError(f"hierarchy {self.unique_name}: names differ in length")
        if np.any(self.parent >= np.arange(n)):
            raise ValueError(f"hierarchy {self.unique_name}: a member stands before its parent")

    @property
    def size(self) -> int:
        return len(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """What queries call each member by."""
        return self.member_names or next(iter(self.member_captions.values()))

    @cached_property
    def index_of(self) -> Mapping[str, int]:
        """Member index by unique name."""
        return {name: index for index, name in enumerate(self.unique_names)}

    @cached_property
    def child_lists(self) -> tuple[IntArray, ...]:
        """Children of each member, in order."""
        order = np.argsort(self.parent, kind="stable").astype(np.int32)
        bounds = np.searchsorted(self.parent[order], np.arange(self.size + 1))
        return tuple(order[bounds[i] : bounds[i + 1]] for i in range(self.size))

    @cached_property
    def last_descendant(self) -> IntArray:
        """Where each member's branch ends: its descendants are ``member+1 .. last_descendant``.

        Holds because members stand in hierarchical order (depth first).
        """
        last = np.arange(self.size, dtype=np.int32)
        for member in range(self.size - 1, 0, -1):
            parent = self.parent[member]
            if parent >= 0:
                last[parent] = max(last[parent], last[member])
        return last

    def caption(self, member: int, language: str) -> str:
        column = self.member_captions.get(language)
        if column is None:
            column = next(iter(self.member_captions.values()))
        return column[member]


@dataclass(frozen=True)
class Measure:
    """A measure of the cube.

    ``aggregator`` is one of ``sum count distinct-count min max avg median``; only sum and count add up.
    ``decimals`` are the digits that are published: the published value is the exact one rounded to them.
    ``nonnegative`` is public knowledge that an attacker may use. ``column`` is what it is a statistic of: the
    facts' column, "" where that isn't known or where rows are counted. ``of_which`` are the names of measures
    that it is part of: in every record it is no more than they, which is public knowledge too.
    """

    name: str
    unique_name: str
    captions: Texts
    aggregator: str
    unit: Texts
    format: str
    decimals: int
    nonnegative: bool = True
    column: str = ""
    of_which: tuple[str, ...] = ()

    @property
    def additive(self) -> bool:
        return self.aggregator in ("sum", "count")

    @property
    def is_frequency(self) -> bool:
        """Whether a cell's value is its number of contributors or records."""
        return self.aggregator in ("count", "distinct-count")


@dataclass(frozen=True, eq=False)
class Cube:
    """A cube as an engine discovers it; ``measures`` is axis 0 of every coordinate row."""

    name: str
    captions: Texts
    hierarchies: tuple[Hierarchy, ...]
    measures: tuple[Measure, ...]

    @cached_property
    def hierarchy_index(self) -> Mapping[str, int]:
        return {hierarchy.unique_name: index for index, hierarchy in enumerate(self.hierarchies)}

    @cached_property
    def measure_index(self) -> Mapping[str, int]:
        return {measure.unique_name: index for index, measure in enumerate(self.measures)}
