"""A release with one long table: as many cells as are wanted, some hidden, none known but by its number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.domain.masked import Axis, AxisMember
from tests.web.office import MemoryStore

ADDRESS = "/en/s/time/years/table.csv"


def long_store(cells: int) -> MemoryStore:
    """The tests' office, whose table of years is repeated over so many districts that it has ``cells``."""
    store = MemoryStore()
    key = ("time/years", "table", ())
    layout = store.layouts[key]
    columns, rows = layout.axes
    times = cells // layout.cell.size + 1
    districts = [
        AxisMember("[District]", f"[District].&[{n}]", {"en": f"District {n}, north"}, "[District]", 0, None)
        for n in range(times)
    ]
    axes = (columns, rows, Axis(tuple((district,) for district in districts)))
    store._made[key] = replace(
        layout, axes=axes, cell=np.tile(layout.cell, times), style=np.tile(layout.style, times)
    )
    return store
