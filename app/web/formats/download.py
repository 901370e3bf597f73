"""What every download is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.cube import Cube, text_in
from app.domain.masked import AxisMember, MaskedCellSet
from app.web.charts import Chart
from app.web.maps import TileMap
from app.web.tables import Table


@dataclass(frozen=True, eq=False)
class Download:
    """A query's masked cells with what a file says about them.

    ``address`` is the path of the page that shows them; ``context`` is what holds for all cells, ``words``
    are what files say in the reader's language. ``office`` (the publisher's name) and ``identity`` (of the
    query) are the same in all languages.
    """

    masked: MaskedCellSet
    cube: Cube
    language: str
    number: str
    title: str
    notes: str
    publisher: str
    office: str
    identity: str
    released: datetime
    address: str
    context: tuple[tuple[str, str], ...]
    table: Table
    chart: Chart | None
    maps: tuple[TileMap, ...]
    words: Mapping[str, str]

    def hierarchy_caption(self, hierarchy: str) -> str:
        """Caption of a hierarchy, its unique name when it has none (as the measures')."""
        index = self.cube.hierarchy_index.get(hierarchy)
        found = text_in(self.cube.hierarchies[index].captions, self.language) if index is not None else ""
        return found or hierarchy

    def hierarchies(self) -> tuple[str, ...]:
        """Hierarchies on the axes, outermost first, then those of the slicer."""
        axes = [h for axis in reversed(self.masked.axes) for h in axis.hierarchies]
        return (*axes, *(member.hierarchy for member in self.masked.slicer))


def members_of_cells(masked: MaskedCellSet) -> list[tuple[AxisMember, ...]]:
    """The members of each cell, in the order of the cells and of `Download.hierarchies`."""
    cells: list[tuple[AxisMember, ...]] = [masked.slicer]
    for axis in masked.axes:
        cells = [position + inner for position in axis.positions for inner in cells]
    return cells
