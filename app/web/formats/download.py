"""What every download is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property

from app.domain.cube import Cube, text_in
from app.domain.masked import MaskedCellSet
from app.domain.observations import Block, Observations
from app.domain.patience import Patience
from app.web.charts import Chart
from app.web.maps import AreaMap
from app.web.tables import Table


@dataclass(frozen=True, eq=False)
class Download:
    """Masked cells with what a file says about them.

    ``address`` is the path of the page that shows them, ``words`` are what files say in the reader's
    language. ``office`` (the publisher's name) and ``identity`` (of the query) are the same in all
    languages. ``patience`` is asked by whatever makes a file, at every row or block of it.
    """

    cells: Observations
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
    words: Mapping[str, str]
    patience: Patience = field(default_factory=Patience, kw_only=True)

    def blocks(self, size: int) -> Iterator[Block]:
        """All cells, ``size`` at a time, as long as somebody waits for them.

        Raises
        ------
        OverdueError
        AbandonedError
        """
        for block in self.cells.blocks(size):
            self.patience.check()
            yield block

    def of(self, cells: Observations) -> Download:
        """The same of other cells."""
        return replace(self, cells=cells)

    def hierarchy_caption(self, hierarchy: str) -> str:
        """Caption of a hierarchy, its unique name when it has none (as the measures')."""
        index = self.cube.hierarchy_index.get(hierarchy)
        found = text_in(self.cube.hierarchies[index].captions, self.language) if index is not None else ""
        return found or hierarchy


@dataclass(frozen=True, eq=False)
class TableDownload(Download):
    """A whole table, for files that look like its page.

    ``context`` is what holds for all cells. ``lay_out``, ``draw_chart`` and ``draw_maps`` make what only
    some files need.
    """

    masked: MaskedCellSet
    context: tuple[tuple[str, str], ...]
    lay_out: Callable[[], Table]
    draw_chart: Callable[[], Chart | None]
    draw_maps: Callable[[], tuple[AreaMap, ...]]

    def listed(self, cells: Observations, identity: str) -> Download:
        """What files say that hold cells of the table, and no table."""
        said = {field.name: getattr(self, field.name) for field in fields(Download)}
        return Download(**{**said, "cells": cells, "identity": identity})

    @cached_property
    def table(self) -> Table:
        """The table as the page prints it."""
        return self.lay_out()
