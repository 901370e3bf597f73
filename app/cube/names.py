"""Names of an MDX text become members, levels, hierarchies and sets of the cube."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.cube.values import DimensionValue, HierarchyValue, LevelValue, TupleValue
from app.domain.cube import Cube, Hierarchy, IntArray, Level
from app.domain.errors import Mistake, UserError
from app.mdx import Source, brief, quote, to_text
from app.mdx.tree import Name, Part

_NEAREST = 3
_MOST_COMPARED = 5000
#: Names whose meaning is kept for the next queries.
_MOST_KNOWN = 50_000
Found = TupleValue | LevelValue | HierarchyValue | DimensionValue


def measures_hierarchy(cube: Cube) -> Hierarchy:
    """The measures as members of a hierarchy, so that column 0 is like any other."""
    n = len(cube.measures)
    languages = dict.fromkeys(code for measure in cube.measures for code in measure.captions) or {"en": None}
    level = Level("MeasuresLevel", "[Measures].[MeasuresLevel]", {"en": "Measures"})
    return Hierarchy(
        dimension="Measures",
        name="Measures",
        unique_name="[Measures]",
        captions={"en": "Measures", "es": "Medidas"},
        levels=(level,),
        has_all=False,
        default_member=0,
        keys=tuple(measure.name for measure in cube.measures),
        unique_names=tuple(measure.unique_name for measure in cube.measures),
        member_captions={
            code: tuple(measure.captions.get(code) or measure.name for measure in cube.measures)
            for code in languages
        },
        parent=np.full(n, -1, dtype=np.int32),
        depth=np.zeros(n, dtype=np.int32),
    )


class Column:
    """A hierarchy as names and set functions see it: its members by name."""

    def __init__(self, number: int, hierarchy: Hierarchy) -> None:
        self.number = number
        self.hierarchy = hierarchy

    @cached_property
    def by_name(self) -> dict[tuple[int, str], list[int]]:
        """Members by level and lower-case name or key; by caption where no name or key is the same."""
        found: dict[tuple[int, str], list[int]] = {}
        tree = self.hierarchy
        for member, (name, key, depth) in enumerate(
            zip(tree.names, tree.keys, tree.depth.tolist(), strict=True)
        ):
            for text in {name.lower(), key.lower()}:
                found.setdefault((depth, text), []).append(member)
        if tree.member_names:
            shown: dict[tuple[int, str], list[int]] = {}
            captions = next(iter(tree.member_captions.values()))
            for member, (caption, depth) in enumerate(zip(captions, tree.depth.tolist(), strict=True)):
                shown.setdefault((depth, caption.lower()), []).append(member)
            found = {**shown, **found}
        return found

    @cached_property
    def by_unique_name(self) -> dict[str, list[int]]:
        """Members by lower-case unique name."""
        found: dict[str, list[int]] = {}
        for member, name in enumerate(self.hierarchy.unique_names):
            found.setdefault(name.lower(), []).append(member)
        return found

    @cached_property
    def at_level(self) -> tuple[IntArray, ...]:
        """Members of each level, in order."""
        depth = self.hierarchy.depth
        return tuple(
            np.flatnonzero(depth == level).astype(np.int32) for level in range(len(self.hierarchy.levels))
        )

    def named(self, part: Part, levels: Iterable[int]) -> list[int]:
        """Members at some levels that a part of a name fits; upper and lower case count only between two."""
        tree = self.hierarchy
        found: dict[int, None] = {}
        for level in levels:
            if part.keys is not None:
                path = "".join(f"&{quote(key)}" for key in part.keys)
                top = tree.levels[tree.has_all if tree.parent_child else level]
                name = f"{top.unique_name}.{path}"
                fitting = self.by_unique_name.get(name.lower(), [])
                if not fitting and len(part.keys) > 1:
                    # As Mondrian writes it: the member's own key first.
                    name = f"{top.unique_name}.{''.join(f'&{quote(key)}' for key in reversed(part.keys))}"
                    fitting = self.by_unique_name.get(name.lower(), [])
                found.update(
                    dict.fromkeys(m for m in fitting if tree.unique_names[m] == name or len(fitting) == 1)
                )
                if len(part.keys) > 1 or fitting:
                    continue
            for member in self.by_name.get((level, part.text.lower()), ()):
                if part.keys is None or tree.keys[member].lower() == part.text.lower():
                    found[member] = None
        if len(found) > 1:
            exact = [m for m in found if part.text in (tree.keys[m], tree.names[m])]
            return exact or list(found)
        return list(found)


@dataclass(frozen=True)
class _Calculated:
    """Calculated members of one name in one hierarchy: their numbers by the members that they are under."""

    by_parent: Mapping[int, int]

    @property
    def alone(self) -> int | None:
        """The one that the name alone means: that under no member, else the only one."""
        if len(self.by_parent) == 1:
            return next(iter(self.by_parent.values()))
        return self.by_parent.get(-1)


class Names:
    """Resolves names in one cube; calculated members by name and the member that they are under."""

    def __init__(self, cube: Cube) -> None:
        self.cube = cube
        trees = (measures_hierarchy(cube), *cube.hierarchies)
        self.columns = tuple(Column(number, tree) for number, tree in enumerate(trees))
        #: By column and name in small letters.
        self._calculated: dict[tuple[int, str], _Calculated] = {}
        self._n_calculated = 0
        self._known: dict[tuple[Part, ...], Found] = {}
        self._known_at = 0
        self._by_hierarchy: dict[str, tuple[int, ...]] = {}
        self._by_dimension: dict[str, tuple[int, ...]] = {}
        self._by_name: dict[str, tuple[int, ...]] = {}
        for column in self.columns:
            tree, number = column.hierarchy, column.number
            for table, name in (
                (self._by_hierarchy, tree.unique_name[1:-1].replace("]]", "]")),
                (self._by_dimension, tree.dimension),
                (self._by_name, tree.name),
            ):
                table[name.lower()] = (*table.get(name.lower(), ()), number)

    def fork(self) -> Names:
        """The same names, to which calculated members may be added."""
        # What names mean is kept for all queries, until one adds a calculated member: see `resolve`.
        if self._known_at != self._n_calculated or len(self._known) > _MOST_KNOWN:
            self._known, self._known_at = {}, self._n_calculated
        forked = copy(self)
        forked._calculated = dict(self._calculated)
        return forked

    def calculated_at(self, column: int, parent: int, name: str) -> int | None:
        """The calculated member of a name under a member (-1: under none), if there is one."""
        found = self._calculated.get((column, name.lower()))
        return None if found is None else found.by_parent.get(parent)

    def add_calculated(self, column: int, parent: int, name: str, number: int) -> None:
        """Make a calculated member known."""
        place = column, name.lower()
        known = self._calculated.get(place, _Calculated({})).by_parent
        self._calculated[place] = _Calculated({**known, parent: number})
        self._n_calculated += 1

    def resolve(self, name: Name, source: Source) -> Found:
        """What a name means.

        Raises
        ------
        UserError
            When it means nothing here (with the nearest names), or several things.
        """
        if self._known_at != self._n_calculated:
            self._known, self._known_at = {}, self._n_calculated
        found = self._known.get(name.parts)
        if found is None:
            found = self._known[name.parts] = self._resolve(name, source)
        return found

    def _resolve(self, name: Name, source: Source) -> Found:
        parts = name.parts
        failure: Mistake | None = None
        for columns, used in self._hierarchies(parts):
            if len(columns) > 1:
                if used == len(parts):
                    return DimensionValue(parts[0].text, columns)
                continue
            found = self._within(self.columns[columns[0]], parts[used:], name, source)
            if not isinstance(found, Mistake):
                return found
            failure = failure or found
        if failure is not None:
            raise UserError(failure)
        return self._anywhere(name, source)

    def _hierarchies(self, parts: tuple[Part, ...]) -> list[tuple[tuple[int, ...], int]]:
        """Hierarchies that the first parts may name, and how many parts that takes; likeliest first."""
        if parts[0].keys is not None:
            return []
        first = parts[0].text.lower()
        of_dimension = self._by_dimension.get(first, ())
        found: list[tuple[tuple[int, ...], int]] = [
            ((number,), 1) for number in self._by_hierarchy.get(first, ())
        ]
        if not found and len(of_dimension) == 1:
            found.append((of_dimension, 1))
        if len(parts) > 1 and parts[1].keys is None:
            second = parts[1].text.lower()
            found.extend(
                ((number,), 2)
                for number in of_dimension
                if self.columns[number].hierarchy.name.lower() == second
            )
        if not found and of_dimension:
            found.append((of_dimension, 1))
        # The name of a hierarchy is enough where there is but one of that name.
        alone = self._by_name.get(first, ())
        if len(alone) == 1 and not found:
            found.append((alone, 1))
        return found

    def _within(self, column: Column, parts: tuple[Part, ...], name: Name, source: Source) -> Found | Mistake:
        tree = column.hierarchy
        if not parts:
            return HierarchyValue(column.number)
        exact = column.by_unique_name.get(to_text(name).lower(), ())
        if len(exact) == 1:
            return TupleValue((column.number,), (exact[0],))
        levels: Iterable[int] = range(len(tree.levels))
        rest = parts
        level = self._level(column, parts[0])
        if level is not None:
            if len(parts) == 1:
                return LevelValue(column.number, level)
            # The one level of a parent-child hierarchy holds its whole tree.
            levels = range(level, len(tree.levels)) if self.is_tree(tree, level) else (level,)
            rest = parts[1:]
        calculated = None
        if rest[-1].keys is None:
            calculated = self._calculated.get((column.number, rest[-1].text.lower()))
        if calculated is not None:
            number = self._calculated_under(column, calculated, parts, len(rest), name, source)
            if isinstance(number, Mistake):
                return number
            if number is not None:
                return TupleValue((column.number,), (number,))
        found: list[int] = []
        if level is None and len(rest) >= 1 and tree.has_all and rest[0].text.lower() == "all":
            found = [0]
        elif level is None:
            # A name straight after the hierarchy is of the top, unless only deeper members bear it.
            found = column.named(rest[0], (0,)) or (
                column.named(rest[0], (1,)) if tree.has_all and len(tree.levels) > 1 else []
            )
        found = found or column.named(rest[0], levels)
        for step, part in enumerate(rest[1:], 1):
            beneath = [child for member in found for child in tree.child_lists[member].tolist()]
            depths, below = set(tree.depth[beneath].tolist()), set(beneath)
            fitting = [member for member in column.named(part, sorted(depths)) if member in below]
            if not fitting and found:
                shown = ".".join(to_text(Name((p,))) for p in rest[: step + 1])
                near = self._nearest(part.text, column, beneath)
                return source.mistake(name.at, f"{tree.unique_name} has no member {brief(shown)}.", near)
            found = fitting
        if len(found) == 1:
            return TupleValue((column.number,), (found[0],))
        written = brief(name)
        if found:
            several = ", ".join(tree.unique_names[member] for member in found[:5])
            return source.mistake(name.at, f"{written} is ambiguous: {several}.", "Write one of these.")
        members = [member for level in levels for member in column.at_level[level].tolist()]
        near = self._nearest(rest[0].text, column, members)
        return source.mistake(name.at, f"There is no {written}.", near)

    def _calculated_under(
        self,
        column: Column,
        calculated: _Calculated,
        parts: tuple[Part, ...],
        steps: int,
        name: Name,
        source: Source,
    ) -> int | Mistake | None:
        """Which calculated member of a name is meant by what stands before it; None: none of them."""
        tree, last = column.hierarchy, parts[-1]
        above = self._within(column, parts[:-1], Name(parts[:-1], name.at), source) if steps > 1 else None
        if isinstance(above, TupleValue):
            under = calculated.by_parent.get(above.numbers[0])
            if under is not None or above.numbers[0] >= tree.size:
                return under
            below = set(tree.child_lists[above.numbers[0]].tolist())
            if not below.isdisjoint(column.named(last, sorted(set(tree.depth[list(below)].tolist())))):
                return None
        if calculated.alone is not None:
            under_one = -1 not in calculated.by_parent
            own = under_one and steps == 1 and column.named(last, range(len(tree.levels)))
            return None if own else calculated.alone
        if isinstance(above, Mistake):
            return above
        written = (f"{tree.unique_names[member]}.{quote(last.text)}" for member in calculated.by_parent)
        cause = f"{brief(name)} is ambiguous: {', '.join(list(written)[:5])}."
        return source.mistake(name.at, cause, "Write one of these.")

    @staticmethod
    def is_tree(tree: Hierarchy, level: int) -> bool:
        """Whether a level stands for all members of a parent-child hierarchy."""
        return tree.parent_child and level == int(tree.has_all)

    @staticmethod
    def _level(column: Column, part: Part) -> int | None:
        if part.keys is not None:
            return None
        for number, level in enumerate(column.hierarchy.levels):
            if level.name.lower() == part.text.lower():
                return number
        return None

    def _nearest(self, text: str, column: Column, members: list[int]) -> str:
        tree = column.hierarchy
        by_name = {level.name: level.unique_name for level in tree.levels}
        for member in members[:_MOST_COMPARED]:
            by_name.setdefault(tree.names[member], tree.unique_names[member])
            by_name.setdefault(tree.keys[member], tree.unique_names[member])
        for number, name in self._calculated:
            if number == column.number:
                by_name.setdefault(name, f"{tree.unique_name}.{quote(name)}")
        return _suggest(text, by_name)

    def _anywhere(self, name: Name, source: Source) -> Found:
        """A name that begins with no hierarchy: of a measure, or of whatever alone bears it."""
        parts = name.parts
        options: list[Found] = []
        for column in self.columns:
            level = self._level(column, parts[0])
            calculated = self._calculated.get((column.number, parts[0].text.lower()))
            if (
                level is not None
                or calculated is not None
                or column.named(parts[0], range(len(column.hierarchy.levels)))
            ):
                found = self._within(column, parts, name, source)
                if isinstance(found, Mistake):
                    raise UserError(found)
                options.append(found)
        if len(options) == 1 or (options and isinstance(options[0], TupleValue) and 0 in options[0].columns):
            # A measure comes before members that bear its name.
            return options[0]
        if options:
            where = ", ".join(
                self.columns[
                    option.column
                    if not isinstance(option, (TupleValue, DimensionValue))
                    else option.columns[0]
                ].hierarchy.unique_name
                for option in options
            )
            cause = f"{brief(name)} is ambiguous: it is in {where}."
            raise UserError(source.mistake(name.at, cause, "Write the hierarchy before it."))
        known = {column.hierarchy.name: column.hierarchy.unique_name for column in self.columns}
        known.update({measure.name: measure.unique_name for measure in self.cube.measures})
        for column in self.columns:
            for name_there, unique in zip(column.hierarchy.names, column.hierarchy.unique_names, strict=True):
                if len(known) < _MOST_COMPARED:
                    known.setdefault(name_there, unique)
        cause = f"The cube {self.cube.name} has nothing called {brief(name)}."
        raise UserError(source.mistake(name.at, cause, _suggest(parts[0].text, known)))


def _suggest(text: str, names: dict[str, str]) -> str:
    lowered = {name.lower(): unique for name, unique in names.items()}
    near = difflib.get_close_matches(text.lower(), list(lowered), _NEAREST, 0.5)
    return f"Nearest: {', '.join(dict.fromkeys(lowered[name] for name in near))}." if near else ""
