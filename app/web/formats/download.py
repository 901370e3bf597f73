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
from app.domain.publication import Contact
from app.web.charts import Chart
from app.web.maps import AreaMap
from app.web.tables import Table


def contact_parts(contact: Contact, language: str) -> tuple[str, ...]:
    """A contact's name, then its addresses, those that it has."""
    parts = (text_in(contact.name, language), contact.email, contact.phone, contact.page)
    return tuple(filter(None, parts)) if contact else ()


@dataclass(frozen=True, eq=False)
class Download:
    """Masked cells with what a file says about them.

    ``address`` is the path of the page that shows them, ``words`` are what files say in the reader's
    language. ``office`` (the publisher's name) and ``identity`` (of the query) are the same in all
    languages. ``contact`` and ``next_release`` are as the publication says them. ``patience`` is asked by
    whatever makes a file, at every row or block of it.
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
    contact: Contact = field(default_factory=Contact, kw_only=True)
    next_release: str = field(default="", kw_only=True)
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

    @property
    def contact_parts(self) -> tuple[str, ...]:
        """Whom to ask, and where."""
        return contact_parts(self.contact, self.language)

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
