"""A release with one long table: as many cells as are wanted, some hidden, none known but by its number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.domain.masked import Axis, AxisMember
from tests.web.office import MemoryStore

ADDRESS = "/en/s/time/years/table.csv"


def long_store(cells: int, rows: int | None = None) -> MemoryStore:
    """The tests' office, whose table of years is repeated over so many districts that it has ``cells``.

    ``rows`` are those of the table that is repeated, all of them where nothing is said.
    """
    store = MemoryStore()
    key = ("time/years", "table", ())
    layout = store.layouts[key]
    columns, inner = (layout.axes[0], Axis(layout.axes[1].positions[:rows]))
    size = len(columns.positions) * len(inner.positions)
    times = cells // size + 1
    districts = [
        AxisMember("[District]", f"[District].&[{n}]", {"en": f"District {n}, north"}, "[District]", 0, None)
        for n in range(times)
    ]
    axes = (columns, inner, Axis(tuple((district,) for district in districts)))
    store._made[key] = replace(
        layout, axes=axes, cell=np.tile(layout.cell[:size], times), style=np.tile(layout.style[:size], times)
    )
    # No district is in the cube, so no branch of the table can be opened.
    store._catalogue = replace(store._catalogue, places={})
    return store
