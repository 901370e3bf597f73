"""What a release says about itself: the tree of sheets, the choices, the cubes' structure, the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from app.domain.cellset import AxisMember
from app.domain.cube import Cube, Texts
from app.domain.publication import Folder, MeasureProtection, Sheet


@dataclass(frozen=True)
class Choices:
    """The members that a visitor may choose for one parameter of a sheet, in display order."""

    name: str
    title: Texts
    cube: str
    members: tuple[AxisMember, ...]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Everything public about a release but its cells; holds no value, no reason, no place of the data.

    Attributes
    ----------
    languages
        Codes; the first is the default.
    root
        Folders, sheets and queries as released.
    choices
        Per sheet id, one `Choices` for each parameter, in the order of the sheet's parameters. A `Layout`
        is addressed by one unique name of each.
    cubes
        Structure as the engine discovered it: captions and parents are public.
    protections
        Rules of each protected measure, for the page that says what is protected and how.
    """

    title: Texts
    description: Texts
    publisher: Texts
    languages: tuple[str, ...]
    root: Folder
    choices: Mapping[str, tuple[Choices, ...]]
    cubes: tuple[Cube, ...]
    protections: tuple[MeasureProtection, ...]
    hide_zeros: bool
    insiders: bool

    def sheets(self) -> Iterator[Sheet]:
        return self.root.walk()

    @cached_property
    def sheet_by_id(self) -> Mapping[str, Sheet]:
        return {sheet.id: sheet for sheet in self.root.walk()}

    @cached_property
    def cube_by_name(self) -> Mapping[str, Cube]:
        return {cube.name: cube for cube in self.cubes}
