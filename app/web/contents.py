"""The publication as a table of contents: chapters and tables with their numbers, found by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from app.domain.catalogue import Catalogue
from app.domain.masked import AxisMember
from app.domain.publication import Folder, Parameter, Sheet
from app.serve.answer import NotPublishedError

#: What an address says for the latest period, whichever it is.
LATEST = "last:1"


@dataclass(frozen=True)
class SheetEntry:
    """A sheet where it stands: its number (as in *2.3*), the folders above it, its neighbours."""

    sheet: Sheet
    number: str
    path: tuple[Folder, ...]


@dataclass(frozen=True)
class FolderEntry:
    """A folder where it stands; ``path`` are the folders above it."""

    folder: Folder
    number: str
    path: tuple[Folder, ...]
    folders: tuple[FolderEntry, ...]
    sheets: tuple[SheetEntry, ...]

    def walk(self) -> Iterator[SheetEntry]:
        """Every sheet below, in order."""
        yield from self.sheets
        for folder in self.folders:
            yield from folder.walk()


@dataclass(frozen=True, eq=False)
class Choice:
    """What a reader chose for one parameter.

    ``follows`` is whether that was the latest period, whichever it is.
    """

    parameter: Parameter
    options: tuple[AxisMember, ...]
    keys: tuple[str, ...]
    chosen: int
    time: bool = False
    follows: bool = False

    @property
    def member(self) -> AxisMember:
        return self.options[self.chosen]

    @property
    def key(self) -> str:
        return self.keys[self.chosen]

    @property
    def term(self) -> str:
        """How addresses say it."""
        return LATEST if self.follows else self.key


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything that is found by path in one catalogue."""

    catalogue: Catalogue

    @cached_property
    def root(self) -> FolderEntry:
        return _enter(self.catalogue.root, "", ())

    @cached_property
    def _folders(self) -> Mapping[str, FolderEntry]:
        found: dict[str, FolderEntry] = {}
        waiting = [self.root]
        while waiting:
            entry = waiting.pop()
            found[entry.folder.id] = entry
            waiting.extend(entry.folders)
        return found

    @cached_property
    def sheets(self) -> Mapping[str, SheetEntry]:
        """Sheets by id, in order."""
        return {entry.sheet.id: entry for entry in self.root.walk()}

    @cached_property
    def _neighbours(self) -> Mapping[str, tuple[SheetEntry | None, SheetEntry | None]]:
        row = [None, *self.sheets.values(), None]
        return {
            entry.sheet.id: (row[index], row[index + 2]) for index, entry in enumerate(self.sheets.values())
        }

    def folder(self, path: str) -> FolderEntry:
        """The folder at a path; `NotPublishedError` when there is none."""
        try:
            return self._folders[path]
        except KeyError:
            raise NotPublishedError(path) from None

    def sheet(self, path: str) -> SheetEntry:
        """The sheet at a path; `NotPublishedError` when there is none."""
        try:
            return self.sheets[path]
        except KeyError:
            raise NotPublishedError(path) from None

    def neighbours(self, sheet: Sheet) -> tuple[SheetEntry | None, SheetEntry | None]:
        """The sheets before and after in the order of the contents."""
        return self._neighbours[sheet.id]

    def choices(self, sheet: Sheet, wanted: Mapping[str, str]) -> tuple[Choice, ...]:
        """What ``wanted`` (key or unique name by parameter) means; where it says nothing,
        the latest period or the first member.

        Raises
        ------
        NotPublishedError
            A parameter that the sheet doesn't have, or a member that it doesn't offer.
        """
        if unknown := set(wanted) - {parameter.name for parameter in sheet.parameters}:
            raise NotPublishedError(min(unknown))
        choices = []
        for parameter, options in zip(sheet.parameters, self.catalogue.choices[sheet.id], strict=True):
            if not options:
                raise NotPublishedError(parameter.name)
            keys = self._keys(parameter.cube, options)
            time = self._is_time(parameter.cube, options[0])
            chosen = len(options) - 1 if time else 0
            wish = wanted.get(parameter.name, "")
            follows = time and wish == LATEST
            if wish and not follows:
                names = [member.unique_name for member in options]
                if wish in names:
                    chosen = names.index(wish)
                elif wish in keys:
                    chosen = keys.index(wish)
                else:
                    raise NotPublishedError(parameter.name)
            choices.append(Choice(parameter, options, keys, chosen, time, follows))
        return tuple(choices)

    def _is_time(self, cube: str, member: AxisMember) -> bool:
        structure = self.catalogue.cubes[cube]
        return structure.hierarchies[structure.hierarchy_index[member.hierarchy]].time

    def _keys(self, cube: str, options: tuple[AxisMember, ...]) -> tuple[str, ...]:
        """A short key for each option in addresses: its own key where that tells it apart."""
        hierarchies = self.catalogue.cubes[cube].hierarchy_index
        keys = []
        for member in options:
            hierarchy = self.catalogue.cubes[cube].hierarchies[hierarchies[member.hierarchy]]
            keys.append(hierarchy.keys[hierarchy.index_of[member.unique_name]])
        unique = len(set(keys)) == len(keys) and all(keys)
        return tuple(keys) if unique else tuple(member.unique_name for member in options)

    def hierarchy_captions(self, sheet: str, query: str) -> Mapping[str, Mapping[str, str]]:
        """Captions of the hierarchies of a query's cube, by unique name."""
        cube = self.catalogue.cubes[self.catalogue.cube_of[sheet, query]]
        return {hierarchy.unique_name: hierarchy.captions for hierarchy in cube.hierarchies}

    def time_hierarchies(self, sheet: str, query: str) -> frozenset[str]:
        """Unique names of the hierarchies of time of a query's cube."""
        cube = self.catalogue.cubes[self.catalogue.cube_of[sheet, query]]
        return frozenset(hierarchy.unique_name for hierarchy in cube.hierarchies if hierarchy.time)


def choice_fields(choices: tuple[Choice, ...]) -> tuple[tuple[str, str], ...]:
    """What an address says of choices."""
    return tuple((f"p.{choice.parameter.name}", choice.term) for choice in choices)


def address_query(choices: tuple[Choice, ...], more: tuple[tuple[str, str], ...] = ()) -> str:
    """The query string that says these choices, and more fields."""
    return urlencode((*choice_fields(choices), *more))


def _enter(folder: Folder, number: str, path: tuple[Folder, ...]) -> FolderEntry:
    inside = (*path, folder)
    dot = f"{number}." if number else ""
    count = len(folder.sheets) if number else 0
    return FolderEntry(
        folder=folder,
        number=number,
        path=path,
        sheets=tuple(
            SheetEntry(sheet, f"{dot}{index}" if number else "", inside)
            for index, sheet in enumerate(folder.sheets, 1)
        ),
        folders=tuple(
            _enter(child, f"{dot}{index}", inside) for index, child in enumerate(folder.folders, 1 + count)
        ),
    )
