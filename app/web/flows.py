"""What programs can ask data of: a dataflow for each query of a sheet, and one for each cube."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from app.domain.catalogue import Catalogue
from app.domain.cube import Cube, Texts, text_in
from app.domain.publication import QueryDefinition
from app.web.contents import Contents, SheetEntry
from app.web.formats import sdmx

VERSION = "1.0.0"


@dataclass(frozen=True, eq=False)
class Flow:
    """A dataflow; ``entry`` and ``query`` are None for that of a whole cube."""

    id: str
    cube: Cube
    entry: SheetEntry | None = None
    query: QueryDefinition | None = None

    def title(self, language: str) -> str:
        """What it is called."""
        if self.entry is None or self.query is None:
            return text_in(self.cube.captions, language) or self.cube.name
        names = (text_in(self.entry.sheet.title, language), text_in(self.query.title, language))
        return ". ".join(dict.fromkeys(filter(None, names)))

    @property
    def titles(self) -> Texts:
        """What it is called in each language that it has a name in."""
        spoken = {**self.cube.captions, **(self.entry.sheet.title if self.entry is not None else {})}
        return {language: self.title(language) for language in spoken}


def agency_of(catalogue: Catalogue) -> str:
    """The office as the agency of its dataflows."""
    return sdmx.identifier(text_in(catalogue.publisher or catalogue.title, catalogue.languages[0]))


def flows(contents: Contents) -> Mapping[str, Flow]:
    """Every dataflow by its id: the cubes', then the sheets' in order."""
    catalogue = contents.catalogue
    found: dict[str, Flow] = {}
    for name, cube in catalogue.cubes.items():
        identity = sdmx.free(sdmx.identifier(name), found)
        found[identity] = Flow(identity, cube)
    for entry in contents.sheets.values():
        for query in entry.sheet.queries:
            identity = sdmx.free(sdmx.identifier(f"{entry.sheet.id}/{query.id}"), found)
            cube = catalogue.cubes[catalogue.cube_of[entry.sheet.id, query.id]]
            found[identity] = Flow(identity, cube, entry, query)
    return found


def address(prefix: str, catalogue: Catalogue, flow: Flow, kind: str = "data") -> str:
    """Path of a flow's data or structure."""
    return f"{prefix}/api/v1/{kind}/dataflow/{quote(agency_of(catalogue))}/{quote(flow.id)}/{VERSION}"
