"""Members as axes and slicers show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.cube.evaluate import Evaluator
from app.cube.names import Names
from app.cube.values import SetValue, TupleValue
from app.domain.cellset import AxisMember, CalculatedMember


class Showing:
    """Gives members of a cube with their names; those of its own are made once."""

    def __init__(self, names: Names) -> None:
        self._columns = names.columns
        #: By column: own members that have been shown.
        self._known: tuple[dict[int, AxisMember], ...] = tuple({} for _ in self._columns)

    def members(self, ev: Evaluator, column: int, numbers: list[int]) -> list[AxisMember]:
        """Members of a column, by their numbers."""
        shown = self._known[column]
        found = map(shown.get, numbers)
        return [
            self.member(ev, column, number) if member is None else member
            for member, number in zip(found, numbers, strict=True)
        ]

    def member(self, ev: Evaluator, column: int, number: int) -> AxisMember:
        """A member; a visual total is the one that it stands for, under a name of its own."""
        tree = self._columns[column].hierarchy
        if number >= tree.size:
            definition = ev.definitions[column, number]
            member: CalculatedMember = definition.member
            if definition.stands_for is not None:
                return replace(self.member(ev, column, definition.stands_for), captions=member.captions)
            name = ev.unique_name(column, number)
            depth, above = ev.level_of(column, number), definition.parent
            level = tree.levels[depth].unique_name
            under = tree.unique_names[above] if above >= 0 else None
            return AxisMember(tree.unique_name, name, member.captions, level, depth, under)
        shown = self._known[column].get(number)
        if shown is None:
            above = int(tree.parent[number])
            depth = int(tree.depth[number])
            shown = self._known[column][number] = AxisMember(
                tree.unique_name,
                tree.unique_names[number],
                {language: captions[number] for language, captions in tree.member_captions.items()},
                tree.levels[depth].unique_name,
                depth,
                tree.unique_names[above] if above >= 0 else None,
            )
        return shown

    def sliced(self, ev: Evaluator, sets: Sequence[SetValue], slicer: TupleValue) -> tuple[AxisMember, ...]:
        """What all cells have in common: the slicer, and the members that stand for not being told."""
        on_axes = {column for members in sets for column in members.columns}
        chosen = dict(zip(slicer.columns, slicer.numbers, strict=True))
        for column in self._columns:
            untold = column.number not in on_axes and column.number not in chosen
            if untold and not column.hierarchy.has_all:
                chosen[column.number] = column.hierarchy.default_member
        return tuple(self.member(ev, column, number) for column, number in sorted(chosen.items()))
