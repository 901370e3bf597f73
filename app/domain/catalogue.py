"""A publication as it was released: the tree, the choices and the structures, all of it public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.cube import Cube, Texts
from app.domain.masked import AxisMember
from app.domain.places import Places
from app.domain.publication import (
    CalculatedDefinition,
    Contact,
    Folder,
    MeasureProtection,
    NamedSetDefinition,
    Sheet,
    Theme,
)
from app.domain.shapes import Shapes


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What a reader may know about a release besides its cells.

    Attributes
    ----------
    release_id : str
    released : datetime
        When it went public, with time zone (UTC); while it hasn't, when it was made.
    title, description, publisher : Texts
    languages : tuple of str
        The first is the default.
    root : Folder
        Folders, sheets and queries as written.
    choices : mapping of sheet id to one tuple of members for each of its parameters
    cube_of : mapping of (sheet id, query id) to cube name
    cubes : mapping of cube name to Cube
        Captions and parents of every member.
    protection : tuple of MeasureProtection
        The rules, for the page that says how the figures are protected.
    shapes : mapping of file to Shapes
        Outlines of the areas of maps.
    theme : Theme
    hide_zeros, insiders : bool
    calculated : mapping of cube name to tuple of CalculatedDefinition
        The formulas that a cube offers to every query; readers may know them like the queries' own.
    named_sets : mapping of cube name to tuple of NamedSetDefinition
        Likewise.
    places : mapping of cube name to Places
        Where the release's cells stand, so that queries that no sheet asks can be answered.
    contact : Contact
        Who answers questions, where a sheet has nobody of its own.
    next_release : str
        Likewise when new figures are expected, an ISO day or month.
    """

    release_id: str
    released: datetime
    title: Texts
    description: Texts
    publisher: Texts
    languages: tuple[str, ...]
    root: Folder
    choices: Mapping[str, tuple[tuple[AxisMember, ...], ...]]
    cube_of: Mapping[tuple[str, str], str]
    cubes: Mapping[str, Cube]
    protection: tuple[MeasureProtection, ...]
    hide_zeros: bool
    insiders: bool
    calculated: Mapping[str, tuple[CalculatedDefinition, ...]] = field(default_factory=dict)
    named_sets: Mapping[str, tuple[NamedSetDefinition, ...]] = field(default_factory=dict)
    places: Mapping[str, Places] = field(default_factory=dict)
    shapes: Mapping[str, Shapes] = field(default_factory=dict)
    theme: Theme = field(default_factory=Theme)
    contact: Contact = field(default_factory=Contact)
    next_release: str = ""

    def __post_init__(self) -> None:
        for sheet in self.root.walk():
            if len(self.choices.get(sheet.id, ())) != len(sheet.parameters):
                raise ValueError(f"sheet {sheet.id}: a parameter without its members")
            if any(self.cube_of.get((sheet.id, query.id)) not in self.cubes for query in sheet.queries):
                raise ValueError(f"sheet {sheet.id}: a query without its cube")

    def contact_of(self, sheet: Sheet) -> Contact:
        """Who answers questions about a sheet."""
        return sheet.contact or self.contact

    def next_release_of(self, sheet: Sheet) -> str:
        """When new figures of a sheet are expected, an ISO day or month; empty where nobody said."""
        return sheet.next_release or self.next_release
